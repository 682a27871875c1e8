"""Items, sorted, each a dot with a whisker: the estimate and its interval.

A dot is hollow where the interval does not tell: it begins at 0, or holds the threshold. The grey band is what noise
alone shows of an item that nobody holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldp_server.web.charts.draw import Scale, compact, cut, element, picture, text_at

__all__ = ["Dot", "DotChart", "dots"]

_ROW = 24.0
_TOP = 34.0


@dataclass(frozen=True)
class Dot:
    """One line of the chart."""

    label: str
    estimate: float
    low: float
    high: float
    kind: str = ""
    """"unsure", "no", or nothing special."""
    truth: float | None = None

    def said(self, write: Callable[[float], str]) -> str:
        """The numbers of the line, for its tooltip."""
        text = f"{self.label}: {write(self.estimate)} ({write(self.low)} to {write(self.high)})"
        return text if self.truth is None else f"{text}; truth {write(self.truth)}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


@dataclass(frozen=True)
class DotChart:
    """What is drawn, and what its marks are called."""

    title: str
    dots: Sequence[Dot]
    unit: str = "users"
    noise: float | None = None
    threshold: float | None = None
    threshold_text: str = "threshold"
    bars: bool = False
    """Whether a bar leads from 0 to the dot."""
    write: Callable[[float], str] | None = None
    """Writes a number; without it, numbers are those of users."""
    least: float = 1.0
    """The least that the axis reaches."""


def dots(chart: DotChart, width: float = 860.0) -> Markup:
    """Draw the chart."""
    narrow = width < 500
    left = 112.0 if narrow else min(260.0, 40.0 + 7.2 * max((len(dot.label) for dot in chart.dots), default=5))
    left, right = max(left, 90.0), width - (14.0 if narrow else 26.0)
    height = _TOP + _ROW * max(1, len(chart.dots)) + 34.0
    scale = _scale(chart, left, right)
    bottom = height - 30.0
    parts: list[Markup] = []
    if chart.noise is not None:
        start, end = scale(-chart.noise), scale(chart.noise)
        parts.append(
            element("rect", x=start, y=_TOP, width=max(0.0, end - start), height=bottom - _TOP, class_="noise")
        )
    ticks = scale.ticks(4 if narrow else 8)
    for tick in ticks:
        x = scale(tick)
        parts.append(element("line", x1=x, y1=_TOP, x2=x, y2=bottom, class_="axis" if tick == 0 else "grid"))
        parts.append(text_at(x, bottom + 18.0, _tick(chart, tick, ticks), "middle", "minor"))
    room = int((left - 14.0) / 7.4)
    parts += [_row(chart, dot, scale, _TOP + _ROW * (i + 0.5), room) for i, dot in enumerate(chart.dots)]
    if chart.threshold is not None and math.isfinite(chart.threshold):
        parts += _threshold(chart, scale, bottom)
    parts.append(text_at(left - 10.0, 18.0, chart.unit, "end", "minor"))
    told = f"{len(chart.dots)} lines, each an estimate with its interval, in {chart.unit}"
    return picture((width, height), chart.title, told, parts, "narrow" if narrow else "wide")


def _tick(chart: DotChart, tick: float, ticks: Sequence[float]) -> str:
    return compact(tick, ticks) if chart.write is None else chart.write(tick)


def _scale(chart: DotChart, left: float, right: float) -> Scale:
    values = [value for dot in chart.dots for value in (dot.estimate, dot.low, dot.high) if math.isfinite(value)]
    values += [dot.truth for dot in chart.dots if dot.truth is not None]
    if chart.threshold is not None and math.isfinite(chart.threshold):
        values.append(chart.threshold)
    most = max([chart.least, *values])
    noise = min(chart.noise or 0.0, most)
    return Scale(min([0.0, -noise * 0.35 if chart.noise else 0.0, *values]), most * 1.03, left, right)


def _row(chart: DotChart, dot: Dot, scale: Scale, y: float, room: int) -> Markup:
    x, zero = scale(dot.estimate), scale(0.0)
    marks = [
        element("title", dot.said(chart.write or _whole)),
        element("rect", x=0.0, y=y - _ROW / 2, width=scale.end, height=_ROW, class_="row"),
        text_at(scale.start - 10.0, y + 4.5, cut(dot.label, room), "end"),
    ]
    if chart.bars:
        marks.append(element("rect", x=min(x, zero), y=y - 7.0, width=abs(x - zero), height=14.0, class_="bar"))
    low, high = scale(dot.low), scale(dot.high)
    marks.append(element("line", x1=low, y1=y, x2=high, y2=y, class_="whisker"))
    marks += [element("line", x1=end, y1=y - 4.0, x2=end, y2=y + 4.0, class_="whisker") for end in (low, high)]
    if dot.truth is not None:
        at = scale(dot.truth)
        marks.append(element("line", x1=at, y1=y - 8.0, x2=at, y2=y + 8.0, class_="truth"))
    marks.append(element("circle", cx=x, cy=y, r=4.5, class_="dot"))
    values = {"data_estimate": repr(dot.estimate), "data_low": repr(dot.low), "data_high": repr(dot.high)}
    return element("g", *marks, class_=f"mark {dot.kind}".strip(), **values)


def _threshold(chart: DotChart, scale: Scale, bottom: float) -> list[Markup]:
    value = chart.threshold or 0.0
    x = scale(value)
    right = x > (scale.start + scale.end) / 2
    label = f"{chart.threshold_text} {value:,.0f}"
    return [
        element("line", x1=x, y1=_TOP - 8.0, x2=x, y2=bottom, class_="threshold"),
        text_at(x + (-5.0 if right else 5.0), _TOP - 11.0, label, "end" if right else "start", "minor threshold-text"),
    ]
