"""A map of all pairs of attributes: how many users hold both."""

from __future__ import annotations

import numpy as np

from ldp_server.tables.plots.canvas import Canvas
from ldp_server.tables.table import AnswerTable

__all__ = ["draw_pairs", "pair_names"]


def pair_names(table: AnswerTable) -> list[str]:
    """The attributes of the pairs, in the order in which they come first."""
    return list(dict.fromkeys(name for pair in table.column("attributes") for name in pair))


def draw_pairs(drawing: Canvas, table: AnswerTable) -> None:
    """Draw a cell for each pair with its estimate; "?" where it cannot be told whether anybody holds both."""
    (axes,) = drawing.axes
    names = pair_names(table)
    cells = np.full((len(names), len(names)), np.nan)
    largest = max(1.0, *table.column("estimate"))
    for pair, estimate, low in zip(*(table.column(name) for name in ("attributes", "estimate", "low")), strict=True):
        row, column = sorted(names.index(name) for name in pair)[::-1]
        cells[row, column] = estimate
        told = f"{estimate:,.0f}" if low > 0 else f"{estimate:,.0f} ?"
        axes.text(column, row, told, ha="center", va="center", color="white" if estimate > largest / 2 else "black")
    image = axes.imshow(cells, cmap="Blues", vmin=0.0, vmax=largest, aspect="auto")
    drawing.figure.colorbar(image, ax=axes, label="users who hold both")
    drawing.rows(axes, names)
    drawing.columns(axes, names)
    axes.grid(visible=False)
    axes.set_ylim(len(names) - 0.5, 0.5)
    axes.set_xlim(-0.5, len(names) - 1.5)
    axes.set_xlabel("?: cannot tell whether anybody holds both")
