"""Trends and comparisons as charts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from ldp_client.collection import Schedule
from ldp_server.analyst import CollectionComparison, CollectionTrend
from ldp_server.answers.over_time.compare import Direction
from ldp_server.answers.words import visible
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.charts.lines import MOST_DRAWN, LinePoint, LinesChart, lines_chart
from ldp_server.web.figures import NARROW, WIDE, Figure
from ldp_server.web.over_time.tables import signed
from ldp_server.web.periods import dates_of

__all__ = ["comparison_figure", "trend_figure"]

_KINDS = {Direction.CANNOT_TELL: "unsure", Direction.FELL: "no", Direction.ROSE: ""}


def trend_figure(
    trend: CollectionTrend, schedule: Schedule, parts: Mapping[int, str] = MappingProxyType({})
) -> Figure | None:
    """Return the chart of a trend: shares of the reports, or values in the unit of the domain.

    `parts` says of some periods why fewer people could report in them; their dots are hollow.
    """
    share = trend.unit == "users"
    lines = []
    for line in trend.lines:
        points = []
        for one in line.points:
            scale, raw = 1 / one.reports if share else 1.0, (one.estimate, one.low, one.high)
            when = dates_of(schedule, (one.period, one.period)).partition(" to ")[0]
            values = (raw[0] * scale, raw[1] * scale, raw[2] * scale)
            points.append(LinePoint(one.period, when, *values, raw, parts.get(one.period, "")))
        lines.append((visible(line.label), points))
    if not any(points for _, points in lines):
        return None
    unit = "share of the reports" if share else "the numbers' own unit"
    write = _percent if share else _plain
    chart = LinesChart(visible(trend.question), lines, unit, write, from_zero=share)
    marks = [("dot", "estimate of a period"), ("band", "its interval"), ("", "a gap: a period without reports")]
    marks = marks[:2] if not _gaps(lines) else marks
    if any(point.part for _, points in lines for point in points):
        marks.append(("unsure", "a period in part: fewer people could report"))
    if len(lines) > MOST_DRAWN:
        marks.append(("", f"the first {MOST_DRAWN} of {len(lines)} lines; the table has all"))
    return Figure(lines_chart(chart, WIDE), lines_chart(chart, NARROW), marks)


def _points(value: float) -> str:
    return f"{value * 100:+.4g}" if value else "0"


def _percent(value: float) -> str:
    return f"{value * 100:.4g}%"


def _plain(value: float) -> str:
    return f"{value:,.6g}"


def _gaps(lines: list[tuple[str, list[LinePoint]]]) -> bool:
    return any(points and points[-1].period - points[0].period + 1 > len(points) for _, points in lines)


def comparison_figure(comparison: CollectionComparison) -> Figure | None:
    """Return the chart of a comparison: differences with their intervals."""
    if not comparison.rows:
        return None
    share = comparison.unit == "share"
    rows = [
        Dot(visible(row.label), row.difference, row.low, row.high, _KINDS[row.direction]) for row in comparison.rows
    ]
    unit = "difference (pp)" if share else "difference"
    title = "" if comparison.first is None else visible(comparison.first.collection.question)
    chart = DotChart(title, rows, unit, write=partial(signed, share=share), tick=_points if share else None, least=0.0)
    marks = [("dot", "rose"), ("no", "fell"), ("unsure", "cannot tell: the interval holds 0")]
    said = [("", "pp: percentage points")] if share else []
    used = {dot.kind or "dot" for dot in rows}
    return Figure(dots(chart, WIDE), dots(chart, NARROW), [mark for mark in marks if mark[0] in used] + said)
