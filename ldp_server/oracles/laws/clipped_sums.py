r"""Intervals for items of a sketch of teams that survive collisions with popular items.

In team m an item x is told by S_m, the reports that support its cell. Where x shares the cell with an item of many
users, S_m is far too large. That is no normal error, and the more items are asked about, the more often it happens. So
the test of "x has f holders" is a sum in which one team can do only so much:

    Z(f) = sum over teams of min(r_m, c),   r_m = (S_m - m_m - f w_m (p - s))/u(f),

m_m the average of S over the team's cells, w_m the team's share of the users, and u(f) the standard error of S_m. The
interval is { f : P(Z(f) >= z) > tail and P(Z(f) <= z) > tail }, z the value seen. Z falls as f rises, so the ends are
found by bisection.

The law of Z needs no model of the crowd. The cell of an item is independent of the others' cells, so where nobody holds
x, S_m is a cell of the team's own table, drawn at random: noise, collisions and popular cells are in it as often as
they happen. With f holders, f w_m of the team's users support x with p in place of s; that adds f w_m (p - s) on
average, and f w_m (p (1-p) - s (1-s)) to the variance (where it is positive). The table's histogram, with that normal
error added, is clipped at c, and the teams' histograms are convolved. (The holders are divided among the teams at
random. That adds up to zero over the teams and, clipping being concave, only makes Z smaller. Where only some teams
tell an item, it adds to the variance.)

c is one of CAPS: that with the shortest reach below the truth at f = 0, chosen from the tables alone. Where popular
cells are rare for the tail wanted, c is large and Z nearly the sum of all teams. Where they are not, every team counts
for little. With normal errors alone, the estimate by the sum clipped at 1 has 1.06 times the variance of the plain sum,
and clipped at 2.5 it has 1.001 times; Theorem 3.7's median has pi/2 times for many teams.

Probabilities below 1e-12 are beyond the precision of the convolution. Their quantiles come from Chernoff's bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Beyond", "TeamTables", "clipped_intervals"]

Floats = npt.NDArray[np.float64]

CAPS = (1.0, 1.5, 2.5, 4.0, 8.0, 16.0)
_STEP = 1 / 24
"""The width of a histogram's bars, in standard errors of one team."""
_POINTS = 14
"""How many values of f the law is worked out for; between them its quantiles are interpolated."""
_BISECTIONS = 36
_PRECISE = 1e-12


@dataclass(frozen=True)
class TeamTables:
    """What the teams say about all their cells."""

    tables: list[Floats]
    """S of every cell, of each team that has users."""
    shares: Floats
    """w_m: each team's users over all users."""
    users: float
    """All users, those of other teams included."""
    p: float
    s: float

    @property
    def centres(self) -> Floats:
        return np.array([table.mean() for table in self.tables])

    def first(self, teams: int) -> TeamTables:
        """Return the first teams alone."""
        return replace(self, tables=self.tables[:teams], shares=self.shares[:teams])

    @property
    def whole(self) -> bool:
        """Whether all users are in these teams."""
        return float(self.shares.sum()) > 1 - 1e-9

    def added(self, holders: float) -> float:
        """How much holders add to the variance of one team's count, on average over the teams."""
        share = float(self.shares.mean())
        held = self.p * (1 - self.p * (1 if self.whole else share))
        return max(0.0, holders * share * (held - self.s * (1 - self.s)))

    def unit(self, holders: npt.ArrayLike) -> Floats:
        """u(f), the same for all teams."""
        noise = self.users * float(self.shares.mean()) * self.s * (1 - self.s)
        return np.asarray(np.sqrt(noise + np.asarray(holders, np.float64) * self.added(1.0)))


class Beyond(Protocol):
    """Whether f is out of the question on one side."""

    def __call__(self, holders: Floats, *, upper: bool) -> npt.NDArray[np.bool_]: ...


class _Law:
    """The law of Z(f) for one f, in units of u(f)."""

    def __init__(self, tables: TeamTables, holders: float, cap: float) -> None:
        unit = float(tables.unit(holders))
        blur = math.sqrt(tables.added(holders)) / unit
        rows = [(table - table.mean()) / unit for table in tables.tables]
        lowest = math.floor((min(row.min() for row in rows) - 8 * blur) / _STEP)
        self._offset, self._teams, self._cap = lowest * _STEP, len(rows), cap
        top = math.ceil(cap / _STEP) - lowest
        parts = [_clipped(row, lowest, top, blur) for row in rows]
        self._mass = np.stack(parts)
        length = 1 << (top * len(parts) + 1).bit_length()
        product = np.ones(length // 2 + 1, np.complex128)
        for part in parts:
            product *= np.fft.rfft(part, length)
        law = np.maximum(np.fft.irfft(product, length)[: top * len(parts) + 1], 0.0)
        self._above, self._below = np.cumsum(law[::-1])[::-1], np.cumsum(law)

    def quantile(self, tail: float, *, upper: bool) -> float:
        """Return the outermost value of Z whose tail, itself included, is still above `tail`."""
        if tail < _PRECISE:
            return self._chernoff(tail, upper=upper)
        found: npt.NDArray[np.intp] = np.flatnonzero((self._above if upper else self._below) > tail)
        place = float(found[-1] if upper else found[0])
        return float(place * _STEP + self._teams * self._offset + (_STEP if upper else -_STEP))

    def _chernoff(self, tail: float, *, upper: bool) -> float:
        sign = 1.0 if upper else -1.0
        values = self._offset + _STEP * np.arange(self._mass.shape[1])
        ends = []
        for theta in np.geomspace(0.05, 50, 60):
            powers = sign * theta * values
            k = float(np.log(self._mass @ np.exp(powers - powers.max())).sum()) + self._teams * float(powers.max())
            ends.append((k - math.log(tail)) / theta)
        return float(sign * min(ends))


def _clipped(row: Floats, lowest: int, top: int, blur: float) -> Floats:
    """The histogram of a team's residuals, with a normal error added, and all that is above the cap at the cap."""
    reach = math.ceil(8 * blur / _STEP)
    bars = np.clip(np.rint(row / _STEP).astype(np.int64) - lowest, 0, top + reach)
    mass = np.bincount(bars, minlength=top + reach + 1) / len(row)
    if reach:
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * _STEP / blur) ** 2)
        mass = np.convolve(mass, kernel / kernel.sum())[reach : reach + top + reach + 1]
    out = mass[: top + 1].copy()
    out[top] += max(0.0, 1.0 - float(out.sum()))
    return out


def clipped_intervals(
    tables: TeamTables, supports: Floats, tail: float, tells: npt.NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """Return the intervals of items with these supports, a line for each team and a column for each item.

    `tells` says which teams are used for each item, equally many for all of them. Teams are alike but for their sizes,
    so any as many give the law.
    """
    used = tables if tells is None else tables.first(int(tells[:, 0].sum()))
    cap = _best_cap(used, tail)
    grid = np.concatenate(([0.0], np.geomspace(tables.users / 4096, tables.users, _POINTS)))
    laws = [_Law(used, float(f), cap) for f in grid]
    ends = {upper: np.array([law.quantile(tail, upper=upper) for law in laws]) for upper in (True, False)}
    residuals = supports - tables.centres[:, None]
    gaps = (tables.shares * (tables.p - tables.s))[:, None]

    def beyond(holders: Floats, *, upper: bool) -> npt.NDArray[np.bool_]:
        """Whether Z(f) is out of its law's range on this side."""
        each = np.minimum((residuals - holders * gaps) / used.unit(holders), cap)
        z = each.sum(axis=0) if tells is None else np.where(tells, each, 0.0).sum(axis=0)
        end = np.interp(np.log1p(holders), np.log1p(grid), ends[upper])
        return np.asarray(z > end if upper else z < end)

    return _bisect(beyond, tables.users, supports.shape[1])


def _bisect(beyond: Beyond, users: float, items: int) -> tuple[Floats, Floats]:
    """The least f at which Z is not too large, and the largest at which it is not too small."""
    found = []
    for upper in (True, False):
        low, high = np.zeros(items), np.full(items, users)
        at_zero = beyond(low, upper=upper) ^ (not upper)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            rising = beyond(middle, upper=upper) ^ (not upper)
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        found.append(np.where(at_zero, low if upper else high, 0.0))
    return found[0], np.maximum(found[0], found[1])


def _best_cap(tables: TeamTables, tail: float) -> float:
    """The cap at which the lower end lies least far below the truth, when the teams' errors are as usual."""
    laws = {cap: _Law(tables, 0.0, cap) for cap in CAPS}
    return min(CAPS, key=lambda cap: _reach(laws[cap].quantile(tail, upper=True) / len(tables.tables), cap))


def _reach(wanted: float, cap: float) -> float:
    """How far every team has to be off, in standard errors, for the mean of min(error, cap) to be `wanted`."""
    normal, below = NormalDist(), 0.0
    if wanted >= cap:
        return math.inf
    above = wanted + 64.0
    for _ in range(60):
        middle = (below + above) / 2
        gap = cap - middle
        mean = cap - gap * normal.cdf(gap) - normal.pdf(gap)
        below, above = (middle, above) if mean < wanted else (below, middle)
    return above
