r"""All tables of a question at once, made possible: not negative, adding up to the users, in agreement.

The pooled tables agree about the fields that they share, and some of their cells are negative. What is possible for all
of them together is convex and holds the truth, so the nearest possible tables (in the sum of squares over all cells of
all tables) are not farther from the truth than the pooled ones.

With y the cells of all tables one after the other, V the space of tables that agree and add up to 0, and P the
projection onto it, the nearest possible ones are x = y + P lambda for the lambda >= 0 that makes
|P lambda|^2/2 + lambda y least. That is found by steps of length 1 with momentum (Nesterov 1983). At the end x agrees
exactly and is negative by a hair. It is mixed with as little of the even tables as makes it not negative.

P is a mean in an orthonormal basis. Along each field of s elements the basis has the constant 1/sqrt(s) and s - 1
others (Helmert). A coordinate of a table that is constant along the fields outside S belongs to the effect of S. With
theta the coordinate of the effect itself, a table of k_A cells has theta/sqrt(k_A/k_S), so the nearest theta for
several tables is a weighted mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.base import Floats
from ldp_server.oracles.records.parts import Places

__all__ = ["MOST_JOINT", "all_possible"]

MOST_JOINT = 1 << 17
"""Cells of all tables together. A question with more has possible values for each table by itself."""
_STEPS = 1000
_LOOKS = 20
_DENSE = 400
_NEGATIVE = 1e-4
"""Of a table's even cell."""


@lru_cache(maxsize=64)
def _helmert(size: int) -> Floats:
    """An orthonormal basis whose first line is constant."""
    found = np.zeros((size, size))
    found[0] = 1 / math.sqrt(size)
    for line in range(1, size):
        found[line, :line] = 1 / math.sqrt(line * (line + 1))
        found[line, line] = -line / math.sqrt(line * (line + 1))
    return found


@dataclass(frozen=True)
class _Alike:
    """Tables whose fields have the same sizes, in the same order."""

    shape: tuple[int, ...]
    tables: tuple[Places, ...]
    numbers: npt.NDArray[np.intp]
    """Which coordinate of an effect each coordinate of each table is."""
    scales: Floats
    """1/sqrt(k_A/k_S), a line for all tables."""

    @cached_property
    def basis(self) -> Floats:
        """All coordinates at once, for small tables."""
        found: Floats = np.ones((1, 1))
        for size in self.shape:
            found = np.asarray(np.kron(found, _helmert(size)), np.float64)
        return found

    def turned(self, cells: Floats, *, back: bool = False) -> Floats:
        """Return the coordinates of each line of cells, or the cells of each line of coordinates."""
        if cells.shape[1] <= _DENSE:
            return np.asarray(cells @ (self.basis if back else self.basis.T))
        found = cells.reshape(-1, *self.shape)
        for axis, size in enumerate(self.shape, start=1):
            basis = _helmert(size)
            found = np.moveaxis(np.tensordot(found, basis, axes=(axis, 0 if back else 1)), -1, axis)
        return found.reshape(len(cells), -1)


class _Overlaps:
    """The projection onto tables that agree and add up to 0."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Places]) -> None:
        known: dict[tuple[Places, int], int] = {((), 0): 0}
        alike: dict[tuple[int, ...], list[Places]] = {}
        for places in tables:
            alike.setdefault(tuple(sizes[place] for place in places), []).append(places)
        self.groups = []
        for shape, members in alike.items():
            indexes = np.array(np.unravel_index(np.arange(math.prod(shape)), shape))
            scales = np.prod(np.where(indexes == 0, 1 / np.sqrt(np.array(shape))[:, None], 1.0), axis=0)
            numbers = np.array([_numbers(known, sizes, places, indexes) for places in members])
            self.groups.append(_Alike(shape, tuple(members), numbers, scales))
        self._total = np.zeros(len(known))
        for group in self.groups:
            np.add.at(self._total, group.numbers, np.broadcast_to(group.scales**2, group.numbers.shape))

    def project(self, cells: list[Floats]) -> list[Floats]:
        """Return the nearest tables that agree and add up to 0."""
        sums = np.zeros(len(self._total))
        for group, mine in zip(self.groups, cells, strict=True):
            sums += np.bincount(group.numbers.ravel(), (group.turned(mine) * group.scales).ravel(), minlength=len(sums))
        sums /= self._total
        sums[0] = 0.0  # the effect of no field: how many users there are
        return [group.turned(sums[group.numbers] * group.scales, back=True) for group in self.groups]


def _numbers(
    known: dict[tuple[Places, int], int], sizes: Sequence[int], places: Places, indexes: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Number the coordinates of a table; those of one effect have the same numbers in all tables."""
    found = np.zeros(indexes.shape[1], np.intp)
    for column in range(indexes.shape[1]):
        held = indexes[:, column]
        subset = tuple(place for place, one in zip(places, held.tolist(), strict=True) if one)
        code = 0
        for place, one in zip(places, held.tolist(), strict=True):
            if one:
                code = code * sizes[place] + one
        found[column] = known.setdefault((subset, code), len(known))
    return found


def all_possible(users: int, sizes: Sequence[int], tables: dict[Places, Floats]) -> dict[Places, Floats]:
    """Return the nearest tables that are possible together, with the same axes; the tables given agree."""
    overlaps = _Overlaps(sizes, tuple(tables))
    given = [np.stack([tables[one].ravel() for one in group.tables]) for group in overlaps.groups]
    even = [users / math.prod(group.shape) for group in overlaps.groups]
    found = _nearest(overlaps, given, even)
    worst = 0.0
    for part, middle in zip(found, even, strict=True):
        least = float(part.min())
        if least < 0:
            worst = max(worst, least / (least - middle))
    mixed = [part + worst * (middle - part) for part, middle in zip(found, even, strict=True)]
    return {
        places: np.maximum(line, 0.0).reshape(group.shape)
        for group, part in zip(overlaps.groups, mixed, strict=True)
        for places, line in zip(group.tables, part, strict=True)
    }


def _nearest(overlaps: _Overlaps, given: list[Floats], even: list[float]) -> list[Floats]:
    pushed = [np.zeros_like(part) for part in given]
    ahead, pace, found = pushed, 1.0, given
    for step in range(_STEPS):
        found = [y + moved for y, moved in zip(given, overlaps.project(ahead), strict=True)]
        if step % _LOOKS == 0 and all(
            float(part.min()) >= -_NEGATIVE * middle for part, middle in zip(found, even, strict=True)
        ):
            break
        new = [np.maximum(one - x, 0.0) for one, x in zip(ahead, found, strict=True)]
        after = (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        ahead = [one + (pace - 1) / after * (one - old) for one, old in zip(new, pushed, strict=True)]
        pushed, pace = new, after
    return found
