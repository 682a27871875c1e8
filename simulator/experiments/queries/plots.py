"""The errors of the methods side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldp_server.tables.plots.canvas import canvas
from simulator.shapes import QueryMethod

__all__ = ["draw_methods"]


def draw_methods(rows: Sequence[QueryMethod]) -> str:
    """Return a plot with a line for each method: its mean error, and a mark at its largest."""
    shown = [row for row in rows if row["error"] is not None]
    names = [row["method"] for row in shown]
    with canvas(8, 1.4 + 0.34 * len(shown), texts=names) as plot:
        axes, places = plot.axes[0], np.arange(len(shown))
        axes.barh(places, [row["error"] for row in shown], 0.5, color="#4477aa", label="mean")
        axes.plot([row["largest_error"] for row in shown], places, "|", color="#222222", markersize=14, label="largest")
        plot.rows(axes, names)
        axes.set_xlabel("absolute error of a set's answer, as a share of the users")
        axes.legend(loc="lower right")
        plot.finish()
    return plot.finished
