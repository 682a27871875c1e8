"""Values as people read them, in tables, plots and CSV files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ldp_server.oracles.independence.result import Independence

__all__ = [
    "elements",
    "heading",
    "independence_text",
    "item_text",
    "pairs",
    "plain",
    "shown",
    "summary",
    "with_item_text",
]

HEADINGS = {
    "aggregate_per_second": "counted per second",
    "client_per_second": "client: reports per second",
    "consistent_mse_over_optimum": "error / optimum, made consistent",
    "damage": "moved by",
    "damage_per_malicious_user": "per malicious user",
    "estimate_ms": "ms to estimate",
    "guessed_first_answer": "guessed, first answer",
    "guessed_fresh": "guessed, fresh",
    "high": "to",
    "low": "95% from",
    "max_error": "largest error",
    "mse_over_optimum": "error / optimum",
    "multiple": "times D_opt",
    "norm_sub_mse_over_optimum": "error / optimum, made consistent",
    "rmse_first_answer": "error, first answer",
    "rmse_fresh": "error, fresh",
    "spent_basic": "spent, sum",
    "spent_best": "spent, best rule",
    "spent_first_answer": "spent, first answer",
}
"""Column names that are keys of --json, in words."""


def heading(name: str) -> str:
    """Return the heading of a column."""
    return HEADINGS.get(name, name.replace("_", " "))


def independence_text(found: Independence) -> str:
    """Write what reports show of copies, each line with its end."""
    return "".join(f"{line}\n" for line in (found.line, *(f"Warning: {one}" for one in found.warnings)))


def item_text(item: Mapping[str, Any]) -> str:
    """Return an item of a --json output as text; the reserved element is `none`."""
    if "none" in item:
        return "none"
    if "attributes" in item:
        return ", ".join(item["attributes"])
    return str(next(iter(item.values())))


def with_item_text(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its item as text."""
    return {**row, "item": item_text(row["item"])}


def pairs(values: Mapping[str, Any]) -> str:
    """Return named values, such as a mechanism's parameters, as `q=3 t=2`."""
    return " ".join(f"{name}={shown(value)}" for name, value in values.items())


def plain(value: Any) -> Any:
    """Return a value for a CSV file: numbers at full precision, nothing for None."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={plain(part)}" for name, part in value.items())
    return "" if value is None else value


def shown(value: Any) -> str:
    """Return a value for a table: numbers with few enough digits to be meaningful."""
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return pairs(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value + 0.0:,.4g}"
    return str(value)


def summary(shape: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an object as rows of name and value; parts of a nested object get rows of their own."""
    return [{"what": name, "value": value} for name, value in _flat(shape)]


def _flat(shape: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in shape.items():
        words = f"{above}{heading(name)}"
        if isinstance(value, Mapping) and name != "parameters":
            yield from _flat(value, f"{words}: ")
        else:
            yield words, value


def elements(size: int) -> str:
    """Return the size of a domain, a very large one as a power of two."""
    return f"{size:,}" if size < 1 << 40 else f"about 2^{math.log2(size):.0f}"
