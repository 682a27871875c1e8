"""Error by table, and which fields go together: the truth beside the estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_server.tables.plots.canvas import canvas
from simulator.shapes import TableError

__all__ = ["draw_errors", "draw_together"]

_MOST = 40
"""Bars that are drawn; of more tables, those with the largest errors."""


def draw_errors(rows: Sequence[TableError]) -> str:
    """Return a plot with a line for each table: the measured errors, and the one that is stated."""
    shown = sorted(rows, key=lambda row: -row["error"])[:_MOST]
    names = [row["table"] for row in shown]
    with canvas(8, 1.4 + 0.24 * len(shown), texts=names) as plot:
        axes = plot.axes[0]
        places = np.arange(len(shown))
        axes.barh(places - 0.17, [row["error"] for row in shown], 0.3, color="#4477aa", label="raw")
        axes.barh(places + 0.17, [row["possible_error"] for row in shown], 0.3, color="#ccbb44", label="made possible")
        axes.plot([row["stated_error"] for row in shown], places, "|", color="#222222", markersize=11, label="stated")
        plot.rows(axes, names)
        axes.set_xlabel("error of a cell (root mean square), as a share of the users")
        axes.legend(loc="lower right")
        plot.finish()
    return plot.finished


def draw_together(fields: Sequence[str], true: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> str:
    """Return two heat maps of all pairs of fields with one scale."""
    most = max(0.1, float(np.nanmax([np.nanmax(true), np.nanmax(found)])))
    side = 1.6 + 0.42 * len(fields)
    with canvas(2 * side + 0.6, side + 0.4, (1, 2), texts=fields) as plot:
        for axes, matrix, title in zip(plot.axes, (true, found), ("the truth", "estimated"), strict=True):
            image = axes.imshow(matrix, vmin=0.0, vmax=most, cmap="cividis")
            axes.set_title(title, loc="left", fontsize=9)
            plot.columns(axes, list(fields))
            axes.set_yticks(range(len(fields)), [""] * len(fields))
            _numbers(axes, matrix, most)
        plot.rows(plot.axes[0], list(fields))
        plot.axes[0].set_ylim(len(fields) - 0.5, -0.5)
        plot.figure.colorbar(image, ax=plot.axes, shrink=0.7, label="how much two fields go together (Cramer's V)")
        plot.finish()
    return plot.finished


def _numbers(axes: object, matrix: npt.NDArray[np.float64], most: float) -> None:
    """Write the numbers into the cells, readable on their colour."""
    for (row, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            colour = "#ffffff" if value < most / 2 else "#000000"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)  # type: ignore[attr-defined]  # matplotlib's
