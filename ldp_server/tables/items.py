"""Items in the cells of a table, and back.

Two columns hold an item: `kind` says what it is, and `item` has it.

| kind | `item` |
|---|---|
| `text` | the text |
| `hex` | bytes that are no UTF-8 text, in hexadecimal digits |
| `integer` | the integer |
| `attributes` | the names of the attributes that hold, as a list; in CSV a JSON list |
| `record` | what each field holds, as a JSON object |
| `none` | empty: the domain's reserved element |
| `everything else` | empty: the users whose item is in no other row |

A column of items has one type: integers for a domain of integers, lists for one of attributes, else text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, FieldItems, Integers, Item, as_set
from ldp_server.answers.columns import WholeDomain

__all__ = ["ITEM", "KIND", "item_columns", "item_of"]

ITEM, KIND = "item", "kind"
_NONE = "none"


def item_columns(items: Sequence[Item], domain: Domain) -> tuple[list[Any], list[str]]:
    """Return the cells of the columns `item` and `kind` for these items."""
    if isinstance(items, WholeDomain):
        if isinstance(domain, Categories):
            return [None, *domain.names], [_NONE, *["text"] * len(domain.names)]
        if isinstance(domain, Integers):
            return [None, *range(domain.lowest, domain.highest + 1)], [_NONE, *["integer"] * domain.count]
    found = [_cell(item) for item in items]
    return [cell for _, cell in found], [kind for kind, _ in found]


def _cell(item: Item) -> tuple[str, Any]:
    if item is None:
        return _NONE, None
    if isinstance(item, str):
        return "text", item
    if isinstance(item, int):
        return "integer", item
    if isinstance(item, Mapping):
        return "record", json.dumps(dict(item), ensure_ascii=False)
    return ("hex", item.hex()) if isinstance(item, bytes) else ("attributes", sorted(as_set(item)))


def item_of(kind: str, cell: Any) -> Item:
    """Return the item of a row, from the cells of its columns `kind` and `item`, in whatever form the table is."""
    if kind == _NONE:
        return None
    if kind == "text":
        return cell if isinstance(cell, str) else ""  # readers of CSV take the empty text for an empty cell
    if kind == "integer":
        return int(cell)
    if kind == "hex":
        return bytes.fromhex(cell)
    if kind == "attributes":
        return frozenset(json.loads(cell) if isinstance(cell, str) else cell)
    if kind == "record":
        return FieldItems(json.loads(cell))
    raise InvalidSpec(f"a row of the kind {kind!r} is about no single item")
