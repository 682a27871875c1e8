"""Values over time: a line for each item with a band, its intervals.

A line is broken where a period has no reports. Each line has its own colour and its own dashes, and its name stands in
the legend below, so that nobody needs the colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldp_server.web.charts.draw import Scale, cut, element, picture, text_at

__all__ = ["MOST_DRAWN", "LinePoint", "LinesChart", "lines_chart"]

MOST_DRAWN = 6
_MOST_DOTS = 60
_LEGEND = 22.0
_TOP, _BOTTOM = 30.0, 34.0


@dataclass(frozen=True)
class LinePoint:
    """One value, as it is drawn, with its number and its name on the axis of time."""

    period: int
    when: str
    value: float
    low: float
    high: float
    raw: tuple[float, float, float]
    """The numbers of the answer itself."""
    part: str = ""
    """Why fewer people could report in this period; empty for a whole one."""


@dataclass(frozen=True)
class LinesChart:
    """What is drawn, and how values are written."""

    title: str
    lines: Sequence[tuple[str, Sequence[LinePoint]]]
    unit: str
    write: Callable[[float], str]
    from_zero: bool = True


def lines_chart(chart: LinesChart, width: float = 860.0) -> Markup:
    """Draw the chart."""
    narrow = width < 500
    plot = 270.0 if narrow else 340.0
    drawn = chart.lines[:MOST_DRAWN]
    columns = 1 if narrow else 2
    height = plot + _LEGEND * -(-len(drawn) // columns) + 8.0
    points = [point for _, line in drawn for point in line]
    up = _up(chart, points, plot)
    left = 14.0 + 7.0 * max((len(chart.write(tick)) for tick in up.ticks(5)), default=4)
    numbers = [point.period for point in points]
    across = Scale(min(numbers) - 0.5, max(numbers) + 0.5, left, width - 16.0)
    parts = _axes(chart, points, across, up, narrow=narrow)
    parts += [_band(line, across, up, place) for place, (_, line) in enumerate(drawn)]
    for place, (label, line) in enumerate(drawn):
        parts += _line(chart, label, line, across, up, place)
        x = 8.0 + (place % columns) * (width / columns)
        parts.append(
            _legend(label, place, x, plot + 8.0 + _LEGEND * (place // columns), int(width / columns / 7.6) - 6)
        )
    told = f"{len(drawn)} lines over {len(set(numbers))} periods, each with a band of its intervals, in {chart.unit}"
    return picture((width, height), chart.title, told, parts, "narrow" if narrow else "wide")


def _up(chart: LinesChart, points: Iterable[LinePoint], plot: float) -> Scale:
    values = [one for point in points for one in (point.value, point.low, point.high) if math.isfinite(one)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(0.0, low) if chart.from_zero else low - (high - low) * 0.05
    return Scale(low, high + ((high - low) * 0.05 or 1.0), plot - _BOTTOM, _TOP)


def _axes(chart: LinesChart, points: Sequence[LinePoint], across: Scale, up: Scale, *, narrow: bool) -> list[Markup]:
    parts = []
    for tick in up.ticks(5):
        y, kind = up(tick), "axis" if tick == 0 else "grid"
        parts.append(element("line", x1=across.start, y1=y, x2=across.end, y2=y, class_=kind))
        parts.append(text_at(across.start - 6.0, y + 4.0, chart.write(tick), "end", "minor"))
    parts.append(text_at(6.0, 14.0, chart.unit, "start", "minor"))
    named = {point.period: point.when for point in points}
    room = max((len(when) for when in named.values()), default=10) * 7.2 + 14.0
    last = -math.inf
    for period in sorted(named):
        x = across(float(period))
        half = room / 2
        if x - half < max(last, 0.0) or x + half > across.end + 16.0:
            continue
        parts.append(element("line", x1=x, y1=up.start, x2=x, y2=up.start + 5.0, class_="axis"))
        parts.append(text_at(x, up.start + 19.0, named[period], "middle", "minor"))
        last = x + half + (0.0 if narrow else 24.0)
    return parts


def _pieces(line: Sequence[LinePoint]) -> list[list[LinePoint]]:
    """The parts of a line without a period between them that has no value."""
    pieces: list[list[LinePoint]] = []
    for point in line:
        if pieces and pieces[-1][-1].period == point.period - 1:
            pieces[-1].append(point)
        else:
            pieces.append([point])
    return pieces


def _band(line: Sequence[LinePoint], across: Scale, up: Scale, place: int) -> Markup:
    marks = []
    for piece in _pieces(line):
        high = [(across(float(one.period)), up(_finite(one.high, up))) for one in piece]
        low = [(across(float(one.period)), up(_finite(one.low, up))) for one in piece]
        marks.append(element("path", d=_path(high + low[::-1]) + "Z", class_="series-band"))
    return element("g", *marks, class_=f"series-{place}")


def _finite(value: float, up: Scale) -> float:
    return value if math.isfinite(value) else up.high if value > 0 else up.low


def _line(
    chart: LinesChart, label: str, line: Sequence[LinePoint], across: Scale, up: Scale, place: int
) -> list[Markup]:
    marks = []
    few = len(line) <= _MOST_DOTS
    for piece in _pieces(line):
        path = _path([(across(float(one.period)), up(one.value)) for one in piece])
        marks.append(element("path", element("title", label), d=path, class_="series-line"))
        if len(piece) == 1:
            (one,) = piece
            x = across(float(one.period))
            marks.append(
                element(
                    "line", x1=x, x2=x, y1=up(_finite(one.low, up)), y2=up(_finite(one.high, up)), class_="series-alone"
                )
            )
        if few or len(piece) == 1:
            marks += [_dot(chart, label, one, across, up) for one in piece]
    return [element("g", *marks, class_=f"series-{place}")]


def _dot(chart: LinesChart, label: str, one: LinePoint, across: Scale, up: Scale) -> Markup:
    when = f"{one.when} ({one.part})" if one.part else one.when
    said = f"{label}, {when}: {chart.write(one.value)} ({chart.write(one.low)} to {chart.write(one.high)})"
    values = {f"data_{name}": repr(value) for name, value in zip(("estimate", "low", "high"), one.raw, strict=True)}
    kind = "series-dot part" if one.part else "series-dot"
    dot = element("circle", cx=across(float(one.period)), cy=up(one.value), r=3.2, class_=kind)
    return element("g", element("title", said), dot, class_="mark", **values)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _legend(label: str, place: int, x: float, y: float, room: int) -> Markup:
    line = element("line", x1=x, x2=x + 26.0, y1=y + 8.0, y2=y + 8.0, class_="series-line")
    return element(
        "g", element("title", label), line, text_at(x + 34.0, y + 12.5, cut(label, room)), class_=f"series-{place}"
    )
