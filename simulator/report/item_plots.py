"""Plots with one row for each item or library: estimates with their intervals, and named numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldp_server.tables.plots.canvas import COLOURS, THEORY, canvas

__all__ = ["Bar", "Interval", "draw_bars", "draw_intervals"]

OURS = "hearsay"
"""Bars whose label begins with this have another colour."""


@dataclass(frozen=True)
class Interval:
    """An item with its truth, estimate and interval."""

    label: str
    truth: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Bar:
    """A named number."""

    label: str
    value: float


def draw_intervals(title: str, x_label: str, intervals: Sequence[Interval], threshold: float | None = None) -> str:
    """Return an SVG with a row for each item: the estimate with its interval, and the truth as a cross."""
    labels = [interval.label for interval in intervals]
    with canvas(8.0, 0.9 + 0.27 * max(4, len(intervals)), texts=labels) as drawing:
        (axes,) = drawing.axes
        for truth_outside in (False, True):
            _estimates(axes, intervals, truth_outside)
        axes.plot(
            [i.truth for i in intervals], range(len(intervals)), "x", color="#000000", markersize=6, label="truth"
        )
        if threshold is not None:
            axes.axvline(threshold, color=THEORY, linestyle=(0, (1, 2)), label="threshold")
        drawing.rows(axes, labels)
        axes.set_title(title, loc="left")
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(loc="lower right")
        return drawing.svg()


def _estimates(axes: Any, intervals: Sequence[Interval], truth_outside: bool) -> None:
    """Draw the estimates whose intervals hold the truth, or those whose intervals do not."""
    chosen = [(row, i) for row, i in enumerate(intervals) if (not i.low <= i.truth <= i.high) is truth_outside]
    if not chosen:
        return
    axes.errorbar(
        [i.estimate for _, i in chosen],
        [row for row, _ in chosen],
        xerr=[[max(0.0, i.estimate - i.low) for _, i in chosen], [max(0.0, i.high - i.estimate) for _, i in chosen]],
        fmt="s" if truth_outside else "o",
        markersize=4,
        capsize=2.5,
        color=COLOURS[truth_outside],
        label="truth outside" if truth_outside else "estimate, 95% interval",
    )


def draw_bars(plots: Sequence[tuple[str, Sequence[Bar]]], *, log: bool = True) -> str:
    """Return an SVG with one dot plot below the other, one for each (axis label, bars)."""
    longest = max(len(bars) for _, bars in plots)
    height = (0.9 + 0.27 * max(3, longest)) * len(plots)
    texts = [bar.label for _, bars in plots for bar in bars]
    with canvas(8.0, height, (len(plots), 1), texts) as drawing:
        for axes, (label, bars) in zip(drawing.axes, plots, strict=True):
            ours = [bar.label.startswith(OURS) for bar in bars]
            for mine, colour, marker in ((True, COLOURS[0], "o"), (False, COLOURS[1], "s")):
                rows = [row for row, own in enumerate(ours) if own is mine]
                axes.plot([bars[row].value for row in rows], rows, marker, color=colour, markersize=7)
            if log:
                axes.set_xscale("log")
            else:
                axes.set_xlim(left=0)
            drawing.rows(axes, [bar.label for bar in bars])
            axes.set_xlabel(label)
        return drawing.svg()
