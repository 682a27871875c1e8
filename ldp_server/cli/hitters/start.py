"""The items of a file that a search begins with: an earlier answer as --json wrote it, or lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item
from ldp_server.tables.items import item_of

__all__ = ["items_of_answer"]


def items_of_answer(lines: Sequence[str]) -> list[Item]:
    """Return the items of an answer's JSON, which is an object with `items`, or else the lines, without weights."""
    try:
        answer = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
        return [line.partition("\t")[0] for line in lines]
    return [_item(row) for row in answer["items"]]


def _item(row: Any) -> Item:
    written = row.get("item") if isinstance(row, Mapping) else None
    if isinstance(written, Mapping) and len(written) == 1:
        ((kind, cell),) = written.items()
        kinds = {"text": str, "integer": int, "hex": str}
        if kind in kinds and isinstance(cell, kinds[kind]) and not isinstance(cell, bool):
            try:
                return item_of(kind, cell)
            except ValueError:
                pass
    raise InvalidSpec(
        "the file to start with is no list of popular items: give what --json printed, or one item a line"
    )
