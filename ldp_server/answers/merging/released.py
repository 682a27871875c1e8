"""The rows of a curator's release as counts with what is known of their errors.

    tables, fourier   every cell with the variance of its table's noise
    linear            every query with its own standard error; the answers are rounded
    any-of            with the method `counts` noise of one variance; else sets that were learned, with bounds
    online            cells that cost an update have noise; the others come from a fit, with bounds. After the last
                      update nothing is known of them, and they are left out

The noise of cells of `fourier`, `linear` and `online` is not independent (CohortCount.alone).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems, Item
from ldp_server.answers.merging.asked import LINEAR, NotTheSame, record_of, row_name
from ldp_server.answers.merging.cohorts import CohortCount, ErrorBound

__all__ = ["ONLINE", "TABLES", "is_laplace", "item_of", "of_conditions", "of_table"]

ONLINE = "online"
TABLES = ("tables", "fourier", ONLINE)
_ROUNDED = 1 / 12
"""The variance of rounding to a whole number."""

Row = Mapping[str, Any]
Table = tuple[tuple[str, ...], dict[Item, CohortCount]]


def is_laplace(content: Mapping[str, Any]) -> bool:
    """Whether the noise of a release may be Laplace noise: its price is an epsilon, or is not told."""
    price = content.get("price")
    return price is None or price["epsilon"] is not None


def item_of(plain: Row) -> Item:
    """Return the item that to_json.item_json has written."""
    ((kind, value),) = plain.items()
    if kind == "none":
        return None
    if kind == "record":
        return FieldItems(value)
    return int(value) if kind == "integer" else str(value)


def of_conditions(content: Mapping[str, Any]) -> dict[Item, CohortCount]:
    """Return the counts of a release of conditions or of sets, by their names."""
    record = record_of(content)
    names = [row_name(record, row["item"]) for row in content["rows"]]
    if content["kind"] == LINEAR:
        return dict(zip(names, _linear(content), strict=True))
    counts = [float(row["count"]) for row in content["rows"]]
    if content["variance"] is not None:
        variance, laplace = float(content["variance"]), is_laplace(content)
        return {name: CohortCount(one, variance, laplace) for name, one in zip(names, counts, strict=True)}
    bounds = _bounds(content)
    return {name: CohortCount(one, 0.0, bounds=bounds) for name, one in zip(names, counts, strict=True)}


def _linear(content: Mapping[str, Any]) -> list[CohortCount]:
    laplace, errors = is_laplace(content), content["details"]["standard_errors"]
    return [
        CohortCount(float(row["count"]), float(error) ** 2 + _ROUNDED, laplace, alone=False)
        for row, error in zip(content["rows"], errors, strict=True)
    ]


def _bounds(content: Mapping[str, Any]) -> tuple[ErrorBound, ...]:
    found = tuple(ErrorBound(float(one["chance"]), float(one["most"])) for one in content["details"]["bounds"])
    if not found:
        raise ValueError
    return found


def of_table(content: Mapping[str, Any], fields: Sequence[str]) -> Table:
    """Return a table of a release that has these fields: of `tables` and `fourier` that with the least variance."""
    if content["kind"] == LINEAR:
        return _cells(content, fields, list(zip(content["rows"], _linear(content), strict=True)))
    if content["kind"] == ONLINE:
        return _cells(content, fields, _online(content))
    having = [table for table in content["details"]["tables"] if set(fields) <= set(table["fields"])]
    rows: dict[frozenset[str], list[Row]] = {}
    for row in content["rows"]:
        rows.setdefault(frozenset(row["item"]["record"]), []).append(row)
    if not having:
        raise InvalidSpec(_lacking(fields, [table["fields"] for table in content["details"]["tables"]]))
    best = min(having, key=lambda table: table["variance"] * len(rows[frozenset(table["fields"])]))
    laplace, alone = is_laplace(content), content["kind"] == "tables"
    counts = {
        item_of(row["item"]): CohortCount(float(row["count"]), float(best["variance"]), laplace, alone)
        for row in rows[frozenset(best["fields"])]
    }
    return tuple(best["fields"]), counts


def _lacking(fields: Sequence[str], tables: Sequence[Sequence[str]]) -> str:
    there = "; ".join(", ".join(table) for table in tables[:10])
    return f"the release has no table with the fields {', '.join(fields)} together: it has {there}"


def _cells(content: Mapping[str, Any], fields: Sequence[str], rows: Sequence[tuple[Row, CohortCount]]) -> Table:
    """Return the table of just these fields: sums of its cells would add up bounds, or errors that go together."""
    record, wanted = record_of(content), set(fields)
    held = [(one["item"]["record"], count) for one, count in rows if "record" in one["item"]]
    found: dict[Item, CohortCount] = {FieldItems(cell): count for cell, count in held if set(cell) == wanted}
    whole = prod(record.sizes[record.names.index(name)] for name in wanted) if wanted <= set(record.names) else 0
    if not found or (content["kind"] == LINEAR and len(found) != whole):
        sets = {frozenset(one["item"]["record"]): None for one in content["rows"] if "record" in one["item"]}
        tables = [[name for name in record.names if name in one] for one in sets]
        if content["kind"] == ONLINE and any(set(names) == wanted for names in tables):
            raise NotTheSame("this release was out of updates before this table: of its cells nothing is known")
        raise InvalidSpec(
            f"{_lacking(fields, tables[:10])}. A table of it is merged as it is"
            if tables
            else "the release has conditions and no table: ask without --fields"
        )
    return tuple(fields), found


def _online(content: Mapping[str, Any]) -> list[tuple[Row, CohortCount]]:
    details, bounds, laplace = content["details"], _bounds(content), is_laplace(content)
    found = []
    for row, told in zip(content["rows"], details["updated"], strict=True):
        if told:
            found.append((row, CohortCount(float(row["count"]), float(details["variance"]), laplace)))
        elif row.get("low") is not None:
            found.append((row, CohortCount(float(row["count"]), 0.0, bounds=bounds)))
    return found
