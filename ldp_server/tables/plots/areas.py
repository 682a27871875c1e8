"""The tiles of a map as a picture."""

from __future__ import annotations

from typing import Any

from ldp_server.tables.plots.canvas import Canvas
from ldp_server.tables.table import AnswerTable

__all__ = ["draw_areas", "is_map"]

_SIDES = ("first_x", "last_x", "first_y", "last_y")


def is_map(table: AnswerTable) -> bool:
    """Whether the areas lie side by side in rows and columns, each once."""
    places = list(zip(*(table.column(name) for name in _SIDES), strict=True))
    xs, ys = ({place[i : i + 2] for place in places} for i in (0, 2))
    return len(places) > 1 and len(set(places)) == len(places) == len(xs) * len(ys)


def draw_areas(drawing: Canvas, table: AnswerTable) -> None:
    """Draw each tile where it is; a darker one is more users."""
    (axes,) = drawing.axes
    cells = dict(
        zip(zip(table.column("first_x"), table.column("first_y"), strict=True), table.column("estimate"), strict=True)
    )
    xs, ys = (sorted({place[i] for place in cells}) for i in (0, 1))
    ends = [max(table.column(name)) + 1 for name in ("last_x", "last_y")]
    values = [[max(0.0, cells[x, y]) for x in xs] for y in ys]
    drawn: Any = axes.pcolormesh(
        [*map(float, [*xs, ends[0]])], [*map(float, [*ys, ends[1]])], values, cmap="Blues", vmin=0
    )
    drawing.figure.colorbar(drawn, ax=axes, label="users")
    axes.set_xlabel("first number")
    axes.set_ylabel("second number")
