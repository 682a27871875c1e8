"""Plots over time: values with bands, shares beside those before, and differences with whiskers.

What an interval decides nothing about is hollow, with "cannot tell".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ldp_server.answers.over_time.compare import Direction
from ldp_server.tables.plots.canvas import COLOURS, DASHES, MARKERS, THEORY, Canvas
from ldp_server.tables.table import AnswerTable

__all__ = ["DrawnLine", "draw_changes", "draw_differences", "draw_trend", "drawn_lines"]

Cells = Mapping[str, Any]

_UNCLEAR = Direction.CANNOT_TELL.value
_MOST_NAMED = 12
_DIRECTIONS = {
    Direction.ROSE.value: (COLOURS[0], "^"),
    Direction.FELL.value: (COLOURS[1], "v"),
    _UNCLEAR: (THEORY, "s"),
}


@dataclass(frozen=True)
class DrawnLine:
    """The rows of one line of an answer, oldest first."""

    label: str
    rows: tuple[Cells, ...]

    def column(self, name: str) -> list[float]:
        return [float(row[name]) for row in self.rows]


def drawn_lines(table: AnswerTable) -> list[DrawnLine]:
    """Return the lines of a table of periods, in the answer's order. Two may have the same label."""
    lines: list[tuple[str, list[Cells]]] = []
    for cells in table.rows():
        row = dict(zip(table.names, cells, strict=True))
        if not lines or lines[-1][0] != row["label"] or lines[-1][1][-1]["period"] >= row["period"]:
            lines.append((row["label"], []))
        lines[-1][1].append(row)
    return [DrawnLine(label, tuple(rows)) for label, rows in lines]


def draw_trend(drawing: Canvas, table: AnswerTable, lines: Sequence[DrawnLine]) -> None:
    """Draw a line of estimates with a band of intervals for each line; frequencies are shares of the reports."""
    (axes,) = drawing.axes
    shares = table.metadata.more["unit"] == "users"
    handles = []
    for place, line in enumerate(lines):
        scale = [1 / max(1.0, reports) if shares else 1.0 for reports in line.column("reports")]
        low, middle, high = (
            [value * by for value, by in zip(line.column(name), scale, strict=True)]
            for name in ("low", "estimate", "high")
        )
        colour, times = COLOURS[place % len(COLOURS)], _times(line)
        axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
        handles += axes.plot(times, middle, **_look_of(place))
        if len(times) == 1:  # a band of one point has no width
            axes.vlines(times, low, high, color=colour)
    _finish(drawing, lines, handles, "share of the reports" if shares else "number")


def draw_changes(drawing: Canvas, lines: Sequence[DrawnLine]) -> None:
    """Draw each period's share, and the interval in which the share of all earlier periods lies if nothing changed.

    A share that lies outside of it is filled: there "changed" is said.
    """
    (axes,) = drawing.axes
    handles = []
    for place, line in enumerate(lines):
        look, times, shares = _look_of(place), _times(line), line.column("share")
        low, high = (
            [share - end for share, end in zip(shares, line.column(name), strict=True)] for name in ("high", "low")
        )
        (handle,) = axes.plot(times, shares, markerfacecolor="white", **look)
        changed = [(*pair,) for pair, row in zip(zip(times, shares, strict=True), line.rows, strict=True) if _told(row)]
        if changed:
            axes.plot(*zip(*changed, strict=True), **{**look, "linestyle": "none", "markersize": 7})
        axes.step(times, line.column("before"), where="mid", color=look["color"], linewidth=0.8, linestyle=":")
        axes.vlines(times, low, high, color=look["color"], alpha=0.35, linewidth=5)
        handles.append(handle)
    _finish(drawing, lines, handles, "share of the reports")
    axes.set_xlabel("dots: the share, filled where it changed; bars: where that of all earlier periods may lie")


def _told(row: Cells) -> bool:
    return bool(row["direction"] != _UNCLEAR)


def draw_differences(drawing: Canvas, table: AnswerTable, most: int) -> None:
    """Draw a row for each difference, the first on top, and a vertical line where nothing differs."""
    (axes,) = drawing.axes
    rows = [dict(zip(table.names, cells, strict=True)) for cells in table.rows(most)]
    for direction, (colour, marker) in _DIRECTIONS.items():
        chosen = [(place, row) for place, row in enumerate(rows) if row["direction"] == direction]
        if chosen:
            middle = [row["difference"] for _, row in chosen]
            axes.errorbar(
                middle,
                [place for place, _ in chosen],
                xerr=[
                    [max(0.0, row["difference"] - row["low"]) for _, row in chosen],
                    [max(0.0, row["high"] - row["difference"]) for _, row in chosen],
                ],
                fmt=marker,
                color=colour,
                markerfacecolor="white" if direction == _UNCLEAR else colour,
                capsize=2.5,
                label=direction,
            )
    axes.axvline(0.0, color=THEORY, linestyle=":")
    drawing.rows(axes, [row["label"] for row in rows])
    shares = table.metadata.more["unit"] == "share"
    left = len(table) - len(rows)
    unit = "share of the reports" if shares else "number"
    axes.set_xlabel(f"difference, {unit}" + (f" ({left:,} more rows are not shown)" if left else ""))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:+.4g}%" if shares else f"{value:+,.6g}")
    axes.legend(loc="best")


def _look_of(place: int) -> dict[str, Any]:
    """The colour, marker and dash of a line."""
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": DASHES[place % len(DASHES)],
        "markersize": 4,
    }


def _times(line: DrawnLine) -> list[Any]:
    """When each period begins; the numbers of the periods where a date has more than four digits in its year."""
    try:
        return [datetime.fromisoformat(row["begins"]) for row in line.rows]
    except ValueError:
        return line.column("period")


def _finish(drawing: Canvas, lines: Sequence[DrawnLine], handles: Sequence[Any], what: str) -> None:
    (axes,) = drawing.axes
    axes.set_ylabel(what)
    percent = what != "number"
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.4g}%" if percent else f"{value:,.6g}")
    axes.tick_params(axis="x", labelrotation=20)
    drawing.names(axes, list(handles[:_MOST_NAMED]), [line.label for line in lines[:_MOST_NAMED]])
