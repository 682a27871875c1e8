"""Ranges of numbers as bars with whiskers, and quantiles as lines with their intervals as bands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ldp_server.answers.numbers import Range
from ldp_server.oracles.hierarchy import Quantile
from ldp_server.web.charts.draw import Scale, compact, element, picture, text_at

__all__ = ["histogram"]

_TOP, _BOTTOM = 40.0, 46.0


def histogram(title: str, ranges: Sequence[Range], quantiles: Sequence[Quantile] = (), width: float = 860.0) -> Markup:
    """Draw the chart. The ranges are alike but for one integer, so that heights can be compared."""
    narrow = width < 500
    height = 300.0 if narrow else 360.0
    across = Scale(float(ranges[0].first), float(ranges[-1].last) + 1.0, 52.0, width - 14.0)
    most = max([1.0, *(row.high for row in ranges), *(row.estimate for row in ranges)])
    least = min(0.0, *(row.estimate for row in ranges), *(row.low for row in ranges))
    up = Scale(least, most * 1.04, height - _BOTTOM, _TOP)
    parts = _axes(across, up, width, narrow=narrow)
    parts += [_bar(row, across, up) for row in ranges]
    for i, row in enumerate(quantiles):
        parts += _quantile(row, i, across, up, narrow=narrow)
    told = f"{len(ranges)} ranges of numbers with how many users each, and {len(quantiles)} quantiles"
    return picture((width, height), title, told, parts, "narrow" if narrow else "wide")


def _axes(across: Scale, up: Scale, width: float, *, narrow: bool) -> list[Markup]:
    parts = []
    ticks = up.ticks(5)
    for tick in ticks:
        y = up(tick)
        parts.append(element("line", x1=52.0, y1=y, x2=width - 14.0, y2=y, class_="axis" if tick == 0 else "grid"))
        parts.append(text_at(46.0, y + 4.0, compact(tick, ticks), "end", "minor"))
    for tick in across.ticks(4 if narrow else 9):
        if tick == math.floor(tick):
            parts.append(text_at(across(tick), up.start + 18.0, compact(tick), "middle", "minor"))
    parts.append(text_at(6.0, 14.0, "users", "start", "minor"))
    return parts


def _bar(row: Range, across: Scale, up: Scale) -> Markup:
    left, right = across(float(row.first)), across(float(row.last) + 1.0)
    middle, y, zero = (left + right) / 2, up(row.estimate), up(0.0)
    gap = min(1.0, (right - left) / 8)
    unsure = row.low <= 0
    said = f"{row.first:,} to {row.last:,}: {row.estimate:,.0f} users ({row.low:,.0f} to {row.high:,.0f})"
    marks = [
        element("title", said),
        element(
            "rect",
            x=left + gap,
            y=min(y, zero),
            width=max(0.5, right - left - 2 * gap),
            height=abs(y - zero),
            class_="bar",
        ),
        element("line", x1=middle, y1=up(row.low), x2=middle, y2=up(row.high), class_="whisker"),
        element("circle", cx=middle, cy=y, r=3.5, class_="dot"),
    ]
    values = {"data_estimate": repr(row.estimate), "data_low": repr(row.low), "data_high": repr(row.high)}
    return element("g", *marks, class_="mark unsure" if unsure else "mark", **values)


def _quantile(row: Quantile, place: int, across: Scale, up: Scale, *, narrow: bool) -> list[Markup]:
    x = across(row.estimate + 0.5)
    left, right = across(float(row.low)), across(float(row.high) + 1.0)
    label = "median" if row.share == 0.5 else f"{row.share * 100:.4g}%"
    y = _TOP - 6.0 - (13.0 if place % 2 else 0.0)
    said = f"{label}: {row.estimate:,} ({row.low:,} to {row.high:,})"
    return [
        element("line", x1=x, y1=y + 3.0, x2=x, y2=up.start, class_="quantile"),
        element("line", element("title", said), x1=left, y1=up.end, x2=right, y2=up.end, class_="quantile-reach"),
        text_at(x, y, label if narrow else f"{label}: {row.estimate:,}", "middle", "minor quantile-text"),
    ]
