"""A row for each item, range or attribute: the estimate as a dot or a bar, the interval as whiskers, largest first.

A row is drawn hollow, with "cannot tell", where its interval decides nothing: whether the item is held by as many users
as the threshold that was asked about, or without one, whether anybody holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldp_server.answers.estimates import Verdict
from ldp_server.tables.items import ITEM, KIND
from ldp_server.tables.plots.canvas import COLOURS, THEORY, Canvas
from ldp_server.tables.table import AnswerTable
from ldp_server.tables.words import item_words

__all__ = ["DrawnRow", "draw_rows", "drawn_rows"]

_LAST = ("none", "everything else")
_UNASKED = "not asked"
_COLOURS = {"yes": COLOURS[0], "cannot tell": "#777777", "no": COLOURS[1], _UNASKED: COLOURS[0]}
_MARKERS = {"yes": "o", "cannot tell": "s", "no": "v", _UNASKED: "D"}


@dataclass(frozen=True)
class DrawnRow:
    """A label with an estimate and its interval."""

    label: str
    estimate: float
    low: float
    high: float
    state: str
    """yes, no, cannot tell, or not asked."""
    last: bool = False
    """Whether it stands below the others, whatever its estimate is."""


def drawn_rows(table: AnswerTable) -> list[DrawnRow]:
    """Return what a table's rows are drawn from, largest estimates first."""
    names = table.names
    rows = [_row(dict(zip(names, cells, strict=True))) for cells in table.rows()]
    return sorted(rows, key=lambda row: (row.last, -row.estimate))


def _row(cells: Mapping[str, Any]) -> DrawnRow:
    low = cells["low"]
    state = (Verdict.YES if low > 0 else Verdict.CANNOT_TELL).value
    if "verdict" in cells:
        state = cells["verdict"] or _UNASKED  # of everything else
    four = (cells["estimate"], low, cells["high"], state)
    if ITEM in cells:
        return DrawnRow(item_words(cells[KIND], cells[ITEM]), *four, last=cells[KIND] in _LAST)
    if "attributes" in cells:
        return DrawnRow(" + ".join(cells["attributes"]), *four)
    if "first_x" in cells:
        sides = (f"{cells[f'first_{side}']:,} to {cells[f'last_{side}']:,}" for side in "xy")
        return DrawnRow(", ".join(sides), *four)
    return DrawnRow(f"{cells['first']:,} to {cells['last']:,}", *four)


def draw_rows(
    drawing: Canvas, rows: Sequence[DrawnRow], lines: Mapping[str, float], *, bars: bool, judged: bool
) -> None:
    """Draw rows, and vertical lines with their names; `judged` says whether verdicts were asked for."""
    (axes,) = drawing.axes
    for state in _COLOURS:
        chosen = [(place, row) for place, row in enumerate(rows) if row.state == state]
        if chosen:
            _state(axes, state, chosen, judged=judged, bars=bars)
    for place, (name, value) in enumerate(lines.items()):
        axes.axvline(value, color=THEORY, linestyle=(0, (1, 2 + 2 * place)), label=f"{name}: {value:,.0f}")
    drawing.rows(axes, [row.label for row in rows])
    axes.set_xlim(left=min(0.0, *(row.estimate for row in rows)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="best")


def _state(axes: Any, state: str, chosen: Sequence[tuple[int, DrawnRow]], *, judged: bool, bars: bool) -> None:
    places, rows = [place for place, _ in chosen], [row for _, row in chosen]
    estimates = [row.estimate for row in rows]
    clear = state != "cannot tell"
    colour = _COLOURS[state]
    if bars:
        axes.barh(
            places,
            estimates,
            height=0.6,
            edgecolor=colour,
            color=colour if clear else "none",
            alpha=0.6 if clear else 1,
        )
    axes.errorbar(
        estimates,
        places,
        xerr=[
            [max(0.0, row.estimate - row.low) for row in rows],
            [max(0.0, row.high - row.estimate) for row in rows],
        ],
        fmt="none" if bars else _MARKERS[state],
        markersize=5,
        markerfacecolor=colour if clear else "white",
        ecolor="#333333" if bars else colour,
        color=colour,
        capsize=2.5,
        label=_words(state, judged=judged),
    )


def _words(state: str, *, judged: bool) -> str:
    if judged:
        return {"yes": "at or above the line", "no": "below it"}.get(state, state)
    return "held by somebody" if state == "yes" else "cannot tell whether anybody holds it"
