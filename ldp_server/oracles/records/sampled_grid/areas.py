r"""How many users are in an area of a map, with an interval that holds wherever the users of cut cells are.

Sums of whole cells are known up to noise. An area whose sides are lines of the grids is such a sum. Of any other the
interval takes what reports can tell, and no more:

    at least   the tiles that lie inside
               the columns inside + the rows inside - all on the map    (who is in both)
    at most    the tiles that it touches; the columns that it touches; the rows that it touches

An area that reaches over the whole map in one direction is a sum of columns or of rows, the cut ones beside. The lower
end is the largest of its ends, the upper one the least, each with its part of the error. Which ones are looked at
follows from the area alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.base import Floats
from ldp_server.oracles.hierarchy import RangeCount
from ldp_server.oracles.records.sampled_grid.agreeing import AgreedGrids

__all__ = ["AreaBounds", "CellSum", "area_bounds", "looked_at"]


CellSum = tuple[dict[int, Floats], float]
"""Cells of grids, and how often those who are nowhere count."""


@dataclass(frozen=True)
class AreaBounds:
    """How many users are in an area."""

    estimate: float
    error: float
    """The standard error of the count of the cells that it touches: what noise alone makes unsure."""
    low: float
    high: float
    on_lines: bool
    """Whether it consists of whole cells, so that no user's place inside a cell matters."""


@dataclass(frozen=True)
class _Cut:
    """The cells of one grid in one direction: which lie inside a stretch of integers, and which it touches."""

    inside: Floats
    touched: Floats

    @classmethod
    def of(cls, ends: tuple[int, int], parts: int, count: int) -> _Cut:
        firsts = _firsts(parts, count)
        pairs = list(pairwise(firsts))
        inside = [first >= ends[0] and after - 1 <= ends[1] for first, after in pairs]
        touched = [after - 1 >= ends[0] and first <= ends[1] for first, after in pairs]
        return cls(np.array(inside, np.float64), np.array(touched, np.float64))

    @property
    def exact(self) -> bool:
        return bool(np.array_equal(self.inside, self.touched))

    @property
    def whole(self) -> bool:
        return bool(self.inside.all())


def area_bounds(found: AgreedGrids, x: tuple[int, int], y: tuple[int, int], confidence: float) -> AreaBounds:
    """Return how many users are in an area; its ends are distances from the lowest integers, both included."""
    made, n = found.grid, found.reports
    for ends, count in zip((x, y), made.counts, strict=True):
        if not 0 <= ends[0] <= ends[1] < count:
            raise InvalidSpec("an area lies within the map, its ends in order")
    lowest, highest, exact = looked_at(found, x, y)
    uppers = [found.count(*one) for one in highest]
    lowers = uppers if exact else [found.count(*one) for one in lowest]
    high = min(n, *(_ends(one, confidence, len(uppers))[1] for one in uppers))
    low = max(0.0, *(_ends(one, confidence, len(lowers))[0] for one in lowers))
    low, high = min(low, n), max(low, high, 0.0)
    middle = uppers[0].count if exact else _on_map(found, x, y)
    return AreaBounds(min(max(middle, low), high), uppers[0].error, low, high, exact)


def looked_at(found: AgreedGrids, x: tuple[int, int], y: tuple[int, int]) -> tuple[list[CellSum], list[CellSum], bool]:
    """Return the sums of cells below and above the count of an area, and whether it is such a sum."""
    made = found.grid
    across, down = _Cut.of(x, made.across, made.counts[0]), _Cut.of(y, made.down, made.counts[1])
    lowest: list[CellSum] = [({2: np.outer(down.inside, across.inside).ravel()}, 0.0)]
    highest: list[CellSum] = [({2: np.outer(down.touched, across.touched).ravel()}, 0.0)]
    if 0 not in found.parts or (across.exact and down.exact):
        return lowest, highest, across.exact and down.exact
    columns, rows = _Cut.of(x, made.columns, made.counts[0]), _Cut.of(y, made.rows, made.counts[1])
    if rows.whole or columns.whole:
        drawn, cut = (0, columns) if rows.whole else (1, rows)
        return [({drawn: cut.inside}, 0.0)], [({drawn: cut.touched}, 0.0)], cut.exact
    highest += [({0: columns.touched}, 0.0), ({1: rows.touched}, 0.0)]
    # Who is in these columns, and who in these rows, less all on the map: n less those who are nowhere.
    lowest.append(({0: columns.inside, 1: rows.inside}, 1.0))
    return lowest, highest, False


def _ends(count: RangeCount, confidence: float, parts: int) -> tuple[float, float]:
    """The ends of an interval of which each errs with its part of the error."""
    return count.interval(1 - (1 - confidence) / parts)


def _on_map(found: AgreedGrids, x: tuple[int, int], y: tuple[int, int]) -> float:
    """The count of an area on the map, where the users of an atom are spread evenly over it."""
    shares = [
        _shares(ends, *side)
        for ends, side in zip((x, y), zip(found.sides, found.grid.counts, strict=True), strict=True)
    ]
    return float(shares[1] @ found.map() @ shares[0])


def _firsts(parts: int, count: int) -> list[int]:
    """The first integer of each cell, and one past the last."""
    return [-(-place * count // parts) for place in range(parts + 1)]


def _shares(ends: tuple[int, int], parts: int, count: int) -> Floats:
    """Which part of each cell a stretch of integers takes."""
    return np.array(
        [
            max(0, min(after, ends[1] + 1) - max(first, ends[0])) / (after - first)
            for first, after in pairwise(_firsts(parts, count))
        ]
    )
