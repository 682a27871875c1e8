"""The tiles of a map as a picture: a darker tile is more users. The numbers are in the table below it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ldp_server.answers.fields.areas import AreaCount
from ldp_server.answers.words import visible
from ldp_server.web.charts.draw import compact, element, picture, text_at

__all__ = ["area_map"]

_SHADES = 9


def area_map(title: str, names: tuple[str, str], areas: Sequence[AreaCount], width: float = 860.0) -> Markup:
    """Draw each tile where it is, the lowest numbers at the left and at the bottom."""
    narrow = width < 500
    left, top = (64.0, 10.0) if narrow else (110.0, 12.0)
    xs = sorted({row.first_x for row in areas})
    ys = sorted({row.first_y for row in areas}, reverse=True)
    side = (width - left - 12.0) / len(xs)
    tall = min(side, 420.0 / len(ys))
    bottom = top + tall * len(ys)
    most = max([1.0, *(row.estimate for row in areas)])
    parts = []
    for row in areas:
        box = (left + side * xs.index(row.first_x), top + tall * ys.index(row.first_y), side, tall)
        parts.append(_tile(row, box, most))
    every = max(1, round(44.0 / side))
    for i, first in enumerate(xs):
        if i % every == 0:
            parts.append(text_at(left + side * i, bottom + 16.0, compact(float(first)), "middle"))
    for i, first in enumerate(ys):
        if (len(ys) - 1 - i) % max(1, round(16.0 / tall)) == 0:
            parts.append(text_at(left - 8.0, top + tall * (i + 1), compact(float(first)), "end"))
    parts.append(
        text_at(
            left + side * len(xs) / 2, bottom + 34.0, f"{visible(names[0])}; upwards: {visible(names[1])}", "middle"
        )
    )
    told = f"how many users are in each of {len(areas)} tiles; a darker tile is more users"
    return picture((width, bottom + 46.0), title, told, parts, "narrow" if narrow else "wide")


def _tile(row: AreaCount, box: tuple[float, float, float, float], most: float) -> Markup:
    x, y, width, height = box
    shade = min(_SHADES, max(0, round(_SHADES * row.estimate / most)))
    place = f"{row.first_x:,} to {row.last_x:,}, {row.first_y:,} to {row.last_y:,}"
    said = f"{place}: {row.estimate:,.0f} ({row.low:,.0f} to {row.high:,.0f})"
    marks = [
        element("title", said),
        element("rect", x=x, y=y, width=width - 1.0, height=height - 1.0, class_=f"cell shade-{shade}"),
    ]
    if width >= 34 and height >= 14:
        kind = "minor on-dark" if shade > 5 else "minor on-light"
        text = compact(float(f"{row.estimate:.2g}"))
        marks.append(text_at(x + width / 2, y + height / 2 + 3.0, text, "middle", kind))
    values = {"data_estimate": repr(row.estimate), "data_low": repr(row.low), "data_high": repr(row.high)}
    return element("g", *marks, class_="mark unsure" if row.low <= 0 else "mark", **values)
