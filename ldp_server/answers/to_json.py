"""The `--json` output of an answer, derived from its dataclass. This text says what a script may rely on.

| command | what it prints |
|---|---|
| `ldp-server estimate` | `ldp_server.answers.estimates.Estimates` |
| `ldp-server ask` | `ldp_server.learning.asked.QueriesAnswer` |
| `ldp-server average`, `quantiles`, `ranges` | the answers of ldp_server/answers/numbers.py |
| `ldp-server map` | `ldp_server.answers.fields.areas.AreasAnswer` |
| `ldp-server averages` | `ldp_server.answers.fields.averages.AveragesAnswer` |
| `ldp-server attributes` | `ldp_server.answers.attributes.AttributesAnswer`; with `--table` as `estimate` |
| `ldp-server fair-map` | `ldp_server.fairness.named.MapOutcome` |
| `ldp-server gaps` | `ldp_server.fairness.gaps.GapsAnswer` |
| `ldp-server rules-plan` | `ldp_server.learning.needed.RuleNeed` |
| `ldp-server learn rows`, `table` | `ldp_server.learning.trained.LearnedModel`, `tabled.TableModel`, and the file |
| `ldp-server line` | `ldp_server.learning.line.LineAnswer` |
| `ldp-server rules` | `ldp_server.learning.rules.RulesAnswer` |
| `ldp-server heavy-hitters` | `ldp_server.heavy_hitters.results.HeavyHitters` |
| `ldp-server candidates`, `collection ...`, `compact`, `token list`, `doctor` | ldp_server/cli/shapes.py |
| `ldp-server curator create`, `ledger` | ldp_server/cli/curator/tables.py |
| `ldp-server curator release`, `show` | the signed text and the signature: ldp_server/curator/signing.py |
| `ldp-server curator merge` | `ldp_server.answers.merging.cohorts.MergedAnswer`, or `averages.MergedAverages` |
| `ldp-server curator synthesize` | file, rows, fields |
| `ldp-server foreign` | `ldp_server.answers.foreign.ForeignEstimates` |
| `ldp-server collection draft` | `ldp_server.planning.Draft` |
| `ldp-simulate ...` | simulator/shapes.py |
| `python -m benchmarks ... --json` | benchmarks/row.py |

An output of one object is one JSON object on a line, a table one object a line. The keys are the dataclass's fields in
their order, and the values follow from their types:
- an item is an object with exactly one key: {"text": ...}, {"integer": ...}, {"hex": ...} for bytes that are no text,
  {"attributes": [...]} for a set of attributes, {"record": {...}} for a record, {"none": true} for `none`;
- numbers are JSON numbers; what is unknown is null, also an infinite standard error; an enum is its value; bytes (an
  id) are lower-case hex;
- a field with the metadata {"json": "unless None"} is left out where it is None, one with {"json": "unless empty"}
  where it is empty, and one with {"json": "never"} always.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

from ldp_client.protocol.domain import Item, as_set

__all__ = ["dump", "item_json", "to_json"]


def item_json(item: Item) -> dict[str, Any]:
    """Return an item as plain data."""
    if item is None:
        return {"none": True}
    if isinstance(item, int):
        return {"integer": item}
    if isinstance(item, bytes):
        return {"hex": item.hex()}
    if isinstance(item, Mapping):
        return {"record": dict(item)}
    return {"text": item} if isinstance(item, str) else {"attributes": sorted(as_set(item))}


def to_json(answer: Any, without: Container[str] = ()) -> dict[str, Any]:
    """Return a dataclass as plain data; the fields named in `without` are left out."""
    found = {}
    kind: Any = type(answer)
    for name, is_item, rule in _fields(kind):
        value = getattr(answer, name)
        absent = (rule == "unless None" and value is None) or (rule == "unless empty" and not value)
        if rule == "never" or absent or name in without:
            continue
        found[name] = item_json(value) if is_item else _plain(value)
    return found


def dump(shape: Mapping[str, Any]) -> str:
    """Write one object on one line; a number that JSON has no name for (nan, infinity) is an error, not an output."""
    return json.dumps(shape, ensure_ascii=False, allow_nan=False)


@cache
def _fields(kind: Any) -> list[tuple[str, bool, str]]:
    """The name of each field, whether it is an item, and when it is written."""
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name] == Item, field.metadata.get("json", "always")) for field in fields(kind)]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return None if value == math.inf else value
    if is_dataclass(value):
        return to_json(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value]
