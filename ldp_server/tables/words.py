"""Values of an answer as people read them, in pages and plots. Items come from strangers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ldp_server.answers.words import item_text
from ldp_server.tables.items import item_of

__all__ = ["COVERAGE_WORDS", "item_words", "number", "percent", "printable"]

COVERAGE_WORDS: Mapping[str, str] = {
    "each": "each interval, taken alone, holds the truth with this confidence",
    "together": "all intervals hold the truth at once with this confidence",
    "selected": "all intervals hold the truth at once with this confidence, although the largest were picked",
    "looks": "if nothing changes, all looks together say 'cannot tell' with this confidence",
    "listed": "an interval is for its item alone, given that the item is listed",
}
"""What the confidence of an answer is about, by the value of its coverage."""


def printable(text: str) -> str:
    """Return the text with control characters as escapes, so that an item cannot steer a terminal, a page or a plot.

    Marks that change the direction of the text after them are control characters too.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def item_words(kind: str, cell: Any) -> str:
    """Return the item of a row, from the cells of its columns `kind` and `item`, for a reader."""
    if kind == "text":
        return printable(cell) if cell not in {"", "none", "everything else"} else repr(cell)
    if kind == "hex":
        return f"bytes {cell}"
    if kind == "attributes":
        return " + ".join(printable(name) for name in cell)
    if kind == "record":
        return item_text(item_of(kind, cell))
    return str(cell) if kind == "integer" else kind


def number(value: float | None) -> str:
    """Return a number with few enough digits to be meaningful."""
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "unknown"
    return f"{value + 0.0:,.0f}" if abs(value) >= 1000 else f"{value + 0.0:,.4g}"


def percent(confidence: float) -> str:
    """Return a confidence as a percentage."""
    return f"{confidence * 100:.6g}%"
