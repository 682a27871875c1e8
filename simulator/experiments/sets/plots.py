"""The items' truth, what is left of it after the cut, and the intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldp_server.tables.plots.canvas import canvas
from simulator.shapes import SetItem

__all__ = ["draw_items"]

_MOST = 40
"""Items that are drawn; of more, those that most users hold."""


def draw_items(rows: Sequence[SetItem]) -> str:
    """Return a plot with a line for each item: its interval, the truth, and the truth after the cut."""
    shown = sorted(rows, key=lambda row: -row["truth"])[:_MOST]
    names = [row["item"] for row in shown]
    with canvas(8, 1.4 + 0.24 * len(shown), texts=names) as plot:
        axes = plot.axes[0]
        places = np.arange(len(shown))
        axes.hlines(places, [row["low"] for row in shown], [row["high"] for row in shown], color="#4477aa")
        axes.plot([row["estimate"] for row in shown], places, "o", color="#4477aa", markersize=4, label="estimate")
        axes.plot([row["truth"] for row in shown], places, "|", color="#222222", markersize=11, label="truth")
        axes.plot(
            [row["after_cut"] for row in shown], places, "|", color="#cc6677", markersize=7, label="after the cut"
        )
        plot.rows(axes, names)
        axes.set_xlabel("users who hold the item, as a share of all; lines are 95% intervals")
        axes.legend(loc="lower right")
        plot.finish()
    return plot.finished
