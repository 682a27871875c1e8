"""Shares with their intervals: of groups that have an outcome, or of users about whom a rule is wrong."""

from __future__ import annotations

from ldp_server.tables.plots.canvas import COLOURS, Canvas
from ldp_server.tables.table import AnswerTable

__all__ = ["draw_shares", "share_labels"]


def share_labels(table: AnswerTable) -> list[str]:
    """Return a label for each row."""
    if "group" in table.names:
        return [str(name) for name in table.column("group")]
    return [f"{form}: {rule}" for form, rule in zip(table.column("form"), table.column("rule"), strict=True)]


def draw_shares(drawing: Canvas, table: AnswerTable) -> None:
    """Draw a dot and its whiskers on the axis of shares for each row."""
    (axes,) = drawing.axes
    low, high = table.column("low"), table.column("high")
    dots = [min(one[1], max(one[0], one[2])) for one in zip(low, high, table.column("estimate"), strict=True)]
    axes.errorbar(
        dots,
        range(len(dots)),
        xerr=[
            [dot - end for dot, end in zip(dots, low, strict=True)],
            [end - dot for dot, end in zip(dots, high, strict=True)],
        ],
        fmt="o",
        markersize=5,
        capsize=2.5,
        color=COLOURS[0],
    )
    drawing.rows(axes, share_labels(table))
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the group" if "group" in table.names else "share of the users about whom it is wrong")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
