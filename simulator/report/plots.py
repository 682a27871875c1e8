"""Plots, all through one door: panels of series become one SVG, readable on screen and on grey paper.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; every series has a marker and a dash of
its own besides, so that nothing rests on colour. Letters are drawn as shapes: a page needs no fonts. Matplotlib comes
with the extra `plots`; without it a report has its tables and says what is missing.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Bar", "Interval", "Panel", "Series", "draw", "draw_bars", "draw_intervals", "have_plots", "png"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
THEORY = "#555555"
_MARKED = 15
"""Markers on a line, more or less."""
_INSIDE = 3
"""Longer legends stand below the panel, or once below all panels where they are the same."""
_SHORT = 26
"""Letters of a name that fits beside another."""
_STYLE: Any = {
    "svg.fonttype": "path",
    "svg.hashsalt": "hearsay",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Series:
    """One line of a panel: measured points (with error bars, if any), or a theory line without markers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    theory: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

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


@dataclass(frozen=True)
class Interval:
    """An item with its truth, estimate and interval."""

    label: str
    truth: float
    estimate: float
    low: float
    high: float
    group: str = field(default="")


@dataclass(frozen=True)
class Bar:
    """A named number."""

    label: str
    value: float


def have_plots() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


@contextmanager
def _canvas(width: float, height: float, rows: int = 1, columns: int = 1) -> Iterator[tuple[Any, list[Any]]]:
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - as above
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        yield figure, axes


def _svg(figure: Any) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _fill(axes: Any, panel: Panel, shared: bool) -> None:
    """Draw one panel."""
    measured = theory = 0
    for series in panel.series:
        points = [
            (x, y, 0.0 if series.error is None else series.error[i])
            for i, (x, y) in enumerate(zip(series.x, series.y, strict=True))
            if math.isfinite(x) and math.isfinite(y) and not (panel.log_y and y <= 0)
        ]
        xs, ys, errors = ([p[i] for p in points] for i in range(3))
        if series.theory:
            axes.plot(xs, ys, color=THEORY, linestyle=DASHES[1 + theory % 6], linewidth=1.3, label=series.name)
            theory += 1
            continue
        place = measured % len(COLOURS)
        axes.errorbar(
            xs,
            ys,
            yerr=errors if series.error is not None else None,
            color=COLOURS[place],
            marker=MARKERS[place],
            markersize=4.5,
            linewidth=1.3,
            linestyle=DASHES[place],
            capsize=2.5,
            markevery=max(1, len(xs) // _MARKED),
            label=series.name,
        )
        measured += 1
    if panel.level is not None:
        axes.axhline(panel.level[1], color=THEORY, linewidth=1.0, linestyle=(0, (1, 2)), label=panel.level[0])
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    _scale(axes, panel, shared)


def _scale(axes: Any, panel: Panel, shared: bool) -> None:
    """Scales, limits and a legend only where there is more than one thing to tell apart."""
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
    """What a legend lists."""
    return [series.name for series in panel.series] + ([] if panel.level is None else [panel.level[0]])


def _plain_ticks(axis: Any) -> None:
    """Numbers instead of powers of ten, and enough of them: 1, 2, 5, 10 where the axis is short."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter  # noqa: PLC0415 - an extra

    low, high = axis.get_view_interval()
    if not isinstance(axis.get_major_locator(), FixedLocator):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
    axis.set_major_formatter(lambda value, _: _number(value))
    axis.set_minor_formatter(NullFormatter())


def _number(x: float) -> str:
    """A tick for people."""
    if x >= 1_000_000:
        return f"{x / 1_000_000:g} M"
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"


def draw(panels: Sequence[Panel], columns: int = 2, *, width: float = 9.0, height: float = 3.6) -> str:
    """Return one SVG with a panel each; `height` is that of one row."""
    with _canvas_for(panels, columns, width, height) as figure:
        return _svg(figure)


def png(panels: Sequence[Panel], columns: int = 2, *, width: float = 9.0, height: float = 3.6) -> bytes:
    """The same as a PNG, for looking at."""
    with _canvas_for(panels, columns, width, height) as figure:
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
        return stream.getvalue()


@contextmanager
def _canvas_for(panels: Sequence[Panel], columns: int, width: float, height: float) -> Iterator[Any]:
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with _canvas(width if columns > 1 else min(width, 6.4), height * rows, rows, columns) as (figure, axes):
        names = _names(panels[0])
        shared = len(panels) > 1 and len(names) > _INSIDE and all(_names(panel) == names for panel in panels)
        for place, panel in zip(axes, panels, strict=False):
            _fill(place, panel, shared)
        if shared:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=2.8)
        for place in axes[len(panels) :]:
            place.set_visible(False)
        yield figure


def draw_intervals(title: str, x_label: str, intervals: Sequence[Interval], threshold: float | None = None) -> str:
    """Return an SVG of items, one a line: the estimate with its interval, and the truth as a cross."""
    with _canvas(8.0, 0.9 + 0.27 * max(4, len(intervals))) as (figure, axes):
        _fill_intervals(axes[0], title, x_label, intervals, threshold)
        return _svg(figure)


def _fill_intervals(
    axes: Any, title: str, x_label: str, intervals: Sequence[Interval], threshold: float | None
) -> None:
    places = range(len(intervals))
    missed = [not i.low <= i.truth <= i.high for i in intervals]
    for wrong, colour, name in ((False, COLOURS[0], "estimate, 95% interval"), (True, COLOURS[1], "truth outside")):
        chosen = [p for p in places if missed[p] is wrong]
        if chosen:
            axes.errorbar(
                [intervals[p].estimate for p in chosen],
                chosen,
                xerr=[
                    [max(0.0, intervals[p].estimate - intervals[p].low) for p in chosen],
                    [max(0.0, intervals[p].high - intervals[p].estimate) for p in chosen],
                ],
                fmt="s" if wrong else "o",
                markersize=4,
                capsize=2.5,
                color=colour,
                label=name,
            )
    axes.plot([i.truth for i in intervals], places, "x", color="#000000", markersize=6, label="truth")
    if threshold is not None:
        axes.axvline(threshold, color=THEORY, linestyle=(0, (1, 2)), label="threshold")
    axes.set_yticks(list(places), [i.label for i in intervals])
    axes.set_ylim(len(intervals) - 0.4, -0.6)
    axes.set_title(title, loc="left")
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="lower right")


def draw_bars(plots: Sequence[tuple[str, Sequence[Bar]]], *, log: bool = True) -> str:
    """Return an SVG with a row of dot plots, one for each (axis label, bars); our own are told from others'."""
    longest = max(len(bars) for _, bars in plots)
    with _canvas(8.0, (0.9 + 0.27 * max(3, longest)) * len(plots), len(plots)) as (figure, axes):
        for place, (label, bars) in zip(axes, plots, strict=True):
            ours = [bar.label.startswith("hearsay") for bar in bars]
            for mine, colour, marker in ((True, COLOURS[0], "o"), (False, COLOURS[1], "s")):
                at = [i for i, own in enumerate(ours) if own is mine]
                place.plot([bars[i].value for i in at], at, marker, color=colour, markersize=7)
            if log:
                place.set_xscale("log")
            else:
                place.set_xlim(left=0)
            place.set_yticks(range(len(bars)), [bar.label for bar in bars])
            place.set_ylim(len(bars) - 0.4, -0.6)
            place.set_xlabel(label)
        return _svg(figure)
