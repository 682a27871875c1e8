"""Plots over the range of a number: a histogram with whiskers, quantiles and an average with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldp_server.tables.plots.canvas import COLOURS, Canvas
from ldp_server.tables.table import AnswerTable

__all__ = ["draw_histogram", "draw_places", "is_histogram"]


def is_histogram(table: AnswerTable) -> bool:
    """Whether the ranges lie beside each other, without a gap."""
    firsts, lasts = table.column("first"), table.column("last")
    return len(firsts) > 1 and all(first == last + 1 for first, last in zip(firsts[1:], lasts, strict=False))


def draw_histogram(drawing: Canvas, table: AnswerTable) -> None:
    """Draw a bar for each range; one whose interval holds 0 is hollow, because it cannot be told from an empty one."""
    (axes,) = drawing.axes
    names = ("first", "last", "estimate", "low", "high")
    rows = list(zip(*(table.column(name) for name in names), strict=True))
    for clear in (True, False):
        chosen = [row for row in rows if (row[3] > 0) is clear]
        if chosen:
            _bars(axes, chosen, clear=clear)
    axes.set_xlabel("number")
    axes.set_ylabel("users")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.legend(loc="best")


def _bars(axes: Any, rows: Sequence[tuple[Any, ...]], *, clear: bool) -> None:
    axes.bar(
        [float(first) - 0.5 for first, *_ in rows],
        [estimate for _, _, estimate, *_ in rows],
        width=[float(last - first + 1) for first, last, *_ in rows],
        align="edge",
        color=COLOURS[0] if clear else "none",
        edgecolor=COLOURS[0],
        alpha=0.6 if clear else 1.0,
        yerr=[
            [max(0.0, estimate - low) for _, _, estimate, low, _ in rows],
            [max(0.0, high - estimate) for _, _, estimate, _, high in rows],
        ],
        ecolor="#333333",
        capsize=2.5,
        label="somebody's number lies there" if clear else "cannot tell whether anybody's does",
    )


def draw_places(drawing: Canvas, labels: Sequence[str], table: AnswerTable) -> None:
    """Draw a dot and its whiskers on the axis of numbers for each row."""
    (axes,) = drawing.axes
    estimates, lows, highs = ([float(value) for value in table.column(name)] for name in ("estimate", "low", "high"))
    axes.errorbar(
        estimates,
        range(len(labels)),
        xerr=[
            [max(0.0, estimate - low) for estimate, low in zip(estimates, lows, strict=True)],
            [max(0.0, high - estimate) for estimate, high in zip(estimates, highs, strict=True)],
        ],
        fmt="o",
        markersize=5,
        capsize=2.5,
        color=COLOURS[0],
    )
    drawing.rows(axes, list(labels))
    axes.set_xlabel("number")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
