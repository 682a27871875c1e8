"""Pairs of attributes as a grid: how many users hold both. The numbers and intervals are in the table below it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ldp_server.answers.attributes import Held
from ldp_server.answers.words import visible
from ldp_server.web.charts.draw import compact, cut, element, picture, text_at

__all__ = ["heat"]

_SHADES = 9


def heat(title: str, names: Sequence[str], pairs: Sequence[Held], width: float = 860.0) -> Markup:
    """Draw the grid: the lower triangle, each pair once."""
    narrow = width < 500
    left, top = (84.0, 10.0) if narrow else (170.0, 12.0)
    columns = max(1, len(names) - 1)
    side = min(104.0, (width - left - 10.0) / columns)
    tall = min(side, 44.0)
    height = top + tall * columns + (70.0 if narrow else 90.0)
    most = max([1.0, *(row.estimate for row in pairs)])
    place = {name: i for i, name in enumerate(names)}
    parts = []
    for row in pairs:
        first, second = sorted(row.attributes, key=place.__getitem__)
        x, y = left + side * place[first], top + tall * (place[second] - 1)
        parts.append(_cell(row, (x, y, side, tall), most))
    room = int((left - 10.0) / 7.8)
    for i, name in enumerate(names):
        label = cut(visible(name), room)
        if i:
            parts.append(text_at(left - 8.0, top + tall * (i - 0.5) + 4.0, label, "end"))
        if i < columns:
            x, y = left + side * (i + 0.5), top + tall * columns + 16.0
            parts.append(element("text", label, x=x, y=y, text_anchor="end", transform=f"rotate(-35 {x:.1f} {y:.1f})"))
    told = f"how many users hold both attributes, for {len(pairs)} pairs; a darker cell is more users"
    return picture((width, height), title, told, parts, "narrow" if narrow else "wide")


def _cell(row: Held, box: tuple[float, float, float, float], most: float) -> Markup:
    x, y, width, height = box
    shade = min(_SHADES, max(0, round(_SHADES * row.estimate / most)))
    both = " + ".join(visible(name) for name in row.attributes)
    said = f"{both}: {row.estimate:,.0f} ({row.low:,.0f} to {row.high:,.0f})"
    marks = [
        element("title", said),
        element("rect", x=x, y=y, width=width - 2.0, height=height - 2.0, class_=f"cell shade-{shade}"),
    ]
    if width >= 34:
        kind = "minor on-dark" if shade > 5 else "minor on-light"
        marks.append(
            text_at(x + width / 2 - 1.0, y + height / 2 + 3.0, compact(_rounded(row.estimate)), "middle", kind)
        )
    values = {"data_estimate": repr(row.estimate), "data_low": repr(row.low), "data_high": repr(row.high)}
    return element("g", *marks, class_="mark unsure" if row.low <= 0 else "mark", **values)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
