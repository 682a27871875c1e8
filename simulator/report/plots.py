"""Plots of lines: panels of series become one SVG, readable on a screen and printed in grey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldp_server.tables.plots.canvas import COLOURS, DASHES, MARKERS, THEORY, canvas
from ldp_server.tables.plots.glyphs import drawable

__all__ = ["Panel", "Series", "draw"]

_MARKED = 15
"""Markers on a line, more or less."""
_INSIDE = 3
"""The most entries of a legend inside its panel."""
_SHORT = 26
"""Characters of a name that fits beside another."""


@dataclass(frozen=True)
class Series:
    """A line of a panel: measured points, or a theory line without markers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    theory: bool = False


@dataclass(frozen=True)
class Panel:
    """A plot with one pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    y_from: float | None = None
    y_to: float | None = None
    level: tuple[str, float] | None = None
    """A horizontal line with its name: a threshold, an optimum."""


def _fill(axes: Any, panel: Panel, shared: bool) -> None:
    """Draw one panel."""
    measured = theory = 0
    for series in panel.series:
        points = [
            (x, y)
            for x, y in zip(series.x, series.y, strict=True)
            if math.isfinite(x) and math.isfinite(y) and not (panel.log_y and y <= 0)
        ]
        style: dict[str, Any] = {"label": drawable(series.name), "linewidth": 1.3}
        if series.theory:
            style |= {"color": THEORY, "linestyle": DASHES[1 + theory % 6]}
            theory += 1
        else:
            place = measured % len(COLOURS)
            style |= {"color": COLOURS[place], "linestyle": DASHES[place], "marker": MARKERS[place]}
            style |= {"markersize": 4.5, "markevery": max(1, len(points) // _MARKED)}
            measured += 1
        axes.plot([x for x, _ in points], [y for _, y in points], **style)
    if panel.level is not None:
        axes.axhline(panel.level[1], color=THEORY, linewidth=1.0, linestyle=(0, (1, 2)), label=drawable(panel.level[0]))
    axes.set_title(drawable(panel.title), loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    _scale(axes, panel, shared)


def _scale(axes: Any, panel: Panel, shared: bool) -> None:
    """Set scales and limits, and a legend where there is more than one line."""
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    if panel.y_from is not None:
        axes.set_ylim(panel.y_from, panel.y_from + 1.08 * (axes.get_ylim()[1] - panel.y_from))
    if panel.y_to is not None:
        axes.set_ylim(top=panel.y_to)
    xs = sorted({x for series in panel.series for x in series.x if math.isfinite(x)})
    if panel.log_x and 1 < len(xs) <= 8 and xs[-1] / xs[0] < 100:
        axes.set_xticks(xs, [_number(x) for x in xs], minor=False)
        axes.xaxis.minorticks_off()
    for axis, log in ((axes.xaxis, panel.log_x), (axes.yaxis, panel.log_y)):
        if log:
            _plain_ticks(axis)
    entries = _names(panel)
    if len(entries) > _INSIDE and not shared:
        columns = 2 if max(map(len, entries)) <= _SHORT else 1
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns, handlelength=2.8)
    elif len(entries) > 1 and not shared:
        axes.legend(loc="best", handlelength=2.8)


def _names(panel: Panel) -> list[str]:
    """The entries of a panel's legend."""
    return [series.name for series in panel.series] + ([] if panel.level is None else [panel.level[0]])


def _plain_ticks(axis: Any) -> None:
    """Show numbers instead of powers of ten; a short axis has ticks at 1, 2, 5, 10."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter  # noqa: PLC0415 - an extra

    low, high = axis.get_view_interval()
    if not isinstance(axis.get_major_locator(), FixedLocator):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
    axis.set_major_formatter(lambda value, _: _number(value))
    axis.set_minor_formatter(NullFormatter())


def _number(x: float) -> str:
    if x >= 1_000_000:
        return f"{x / 1_000_000:g} M"
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"


def draw(panels: Sequence[Panel], columns: int = 2, *, width: float = 9.0, height: float = 3.6) -> str:
    """Return one SVG with all panels; `height` is that of one row of panels."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    texts = [text for panel in panels for text in (panel.title, *_names(panel))]
    with canvas(width if columns > 1 else min(width, 6.4), height * rows, (rows, columns), texts) as drawing:
        names = _names(panels[0])
        # Legends that do not fit inside, and are the same in all panels, stand once below all panels.
        shared = len(panels) > 1 and len(names) > _INSIDE and all(_names(panel) == names for panel in panels)
        for place, panel in zip(drawing.axes, panels, strict=False):
            _fill(place, panel, shared)
        if shared:
            handles, labels = drawing.axes[0].get_legend_handles_labels()
            drawing.figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=2.8)
        for place in drawing.axes[len(panels) :]:
            place.set_visible(False)
        return drawing.svg()
