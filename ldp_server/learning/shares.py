r"""Shares of a table's cells among others, and differences of such shares, with intervals.

Of the users in some cells (b in all, the base), a are in those that count: the share is r = a/b. The estimates A and B
are sums of the table's estimates. They are unbiased, and their variances and covariances are those of sums of cells:
for disjoint sets, Cov(X, Y) = (V(X and Y) - V(X) - V(Y))/2.

**One share.** A - r B has the mean 0, whatever b is. The interval holds every r for which this is not surprising
(Fieller 1954):

    (A - r B)^2 <= z^2 (V_A - 2 r C_AB + r^2 V_B).

It lies within 0 and 1. Where B is not clearly above 0, z standard errors of it, the whole of 0 to 1 fits: the base is
below the noise, and the share is not known. A share near A/B with a short interval never comes out of a base that may
be empty, as it would from the error A/B itself.

**A difference of two shares.** From the intervals of both, taken with the correlation c of their errors (Zou and
Donner, Statistics in Medicine 2008): with d = r_1 - r_2,

    low = d - sqrt((r_1 - l_1)^2 + (u_2 - r_2)^2 - 2 c (r_1 - l_1)(u_2 - r_2)),

and the upper end likewise, with ends that were not yet cut to 0 and 1. If one share is not known, the difference lies
within what both intervals leave.

**Skewed errors.** Where the variance of A, or of C = B - A, the other part of the base, is below 5,000 users squared, z
is at each end the largest of the normal one and of what the intervals of A and C have: (end - A)/sqrt(V_A). With 60
users in the base and 2 in A, 6.7% of the upper ends that were to err with 2.5% did.

**Few reports.** Errors are taken to be normal, and they are where many reports make the noise. At a large epsilon a few
reports make it. Where the variance of A, or of the other part of the base, is below 50 users squared, the interval also
takes in what the exact intervals of both parts leave. The same holds for the surplus of some users over others, with
the exact intervals of three parts.

The shares are about those who reported. Nothing is added for people who did not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.oracles.base import FrequencyOracle
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["CellShare", "CellTotals", "Cells", "difference", "least_surplus"]

Cells = frozenset[int]

_FEW = 50.0
"""Users squared: below this variance, a sum's errors come from so few reports that they are not normal."""
_SKEWED = 5000.0
"""Below this one, they are skewed so much that it shows in an interval."""


@dataclass(frozen=True)
class CellShare:
    """A share of cells among a base, and its interval."""

    estimate: float
    """A/B; it may lie outside 0 to 1, as unbiased estimates do, unless the base is below the noise."""
    standard_error: float
    """Infinite where the base is below the noise."""
    low: float
    high: float
    base: float
    """The estimate B."""
    known: bool
    """Whether the base is clearly above the noise."""
    base_error: float
    ends: tuple[float, float]
    """The interval before it was cut to 0 and 1."""


class CellTotals:
    """Sums of the estimates of a table's cells, with their covariances."""

    def __init__(self, table: FrequencyOracle, seen: Independence = INDEPENDENT) -> None:
        self._table = table
        self._every = table.estimate_all()
        self._seen = seen
        self.variance = cache(self._variance)

    def estimate(self, cells: Cells) -> float:
        return float(self._every[sorted(cells)].sum()) if cells else 0.0

    def _variance(self, cells: Cells) -> float:
        if not cells or len(cells) == len(self._every):
            return 0.0
        at = np.array(sorted(cells), np.uint64)
        held = np.maximum(self._every[at.astype(np.intp)], 0.0)
        return self._seen.widened * self._table.sum_variance(at, held)

    def covariance(self, one: Cells, other: Cells) -> float:
        """Return the covariance of two sums; cells that are in both count in both."""
        both = one & other
        apart = self._disjoint(one - both, other - both)
        return apart + self._disjoint(one - both, both) + self._disjoint(other - both, both) + self.variance(both)

    def _disjoint(self, one: Cells, other: Cells) -> float:
        if not one or not other:
            return 0.0
        return (self.variance(one | other) - self.variance(one) - self.variance(other)) / 2

    def share(self, counted: Iterable[int], base: Iterable[int], tail: float) -> CellShare:
        """Return the share of some cells among those of a base; each end errs with probability `tail`."""
        some, every = frozenset(counted), frozenset(base)
        if not some <= every or not every:
            raise InvalidSpec("a share is one of cells among at least as many")
        rest, z = every - some, normal_quantile(tail)
        a, b = self.estimate(some), self.estimate(every)
        va, vb = self.variance(some), self.variance(every)
        cab = va + self._disjoint(some, rest)
        if b <= 0 or b * b <= z * z * vb:
            return CellShare(
                min(1.0, max(0.0, a / b)) if b > 0 else 0.0, np.inf, 0.0, 1.0, b, False, float(np.sqrt(vb)), (0.0, 1.0)
            )
        r = a / b
        error = float(np.sqrt(max(0.0, va - 2 * r * cab + r * r * vb))) / b
        below, above = self._reaches((some, rest), tail, z)
        ends = _fieller((a, b), (va, cab, vb), below)[0], _fieller((a, b), (va, cab, vb), above)[1]
        if min(va, self.variance(rest)) < _FEW:
            ends = _hull(ends, self._box(some, rest, tail))
        low, high = (min(1.0, max(0.0, end)) for end in ends)
        return CellShare(r, error, low, high, b, True, float(np.sqrt(vb)), ends)

    def surplus(self, parts: tuple[Cells, Cells], base: Cells, tail: float) -> tuple[float, float, float]:
        """Return (users in the first cells - users in the second ones)/(those of a base), and the ends.

        Each end errs with probability `tail`. Both parts lie in the base, and apart from each other.
        """
        right, wrong = parts
        if not right and not wrong:
            return 0.0, 0.0, 0.0
        z = normal_quantile(tail)
        a, b = self.estimate(right) - self.estimate(wrong), self.estimate(base)
        va = self.variance(right) + self.variance(wrong) - 2 * self.covariance(right, wrong)
        cab, vb = self.covariance(right, base) - self.covariance(wrong, base), self.variance(base)
        if b <= 0 or b * b <= z * z * vb:
            return (a / b if b > 0 else 0.0), -1.0, 1.0
        below, above = self._reaches((right, wrong), tail, z)
        ends = _fieller((a, b), (va, cab, vb), below)[0], _fieller((a, b), (va, cab, vb), above)[1]
        three = right, wrong, base - right - wrong
        if min(self.variance(part) for part in three if part) < _FEW:
            ends = _hull(ends, self._surplus_box(three, tail))
        return a / b, max(-1.0, ends[0]), min(1.0, ends[1])

    def _reaches(self, parts: tuple[Cells, Cells], tail: float, z: float) -> tuple[float, float]:
        """How many standard errors an end lies away, below and above, for skewed errors of what counts for and against.

        What counts against is below its estimate where the share is above.
        """
        below = above = z
        for sign, part in zip((1, -1), parts, strict=True):
            variance = self.variance(part)
            if 0 < variance < _SKEWED:
                low, high = self._interval(part, tail)
                error, found = math.sqrt(variance), self.estimate(part)
                ends = ((found - low) / error, (high - found) / error)[::sign]
                below, above = max(below, ends[0]), max(above, ends[1])
        return below, above

    def _surplus_box(self, parts: tuple[Cells, Cells, Cells], tail: float) -> tuple[float, float]:
        """What the intervals of the three parts leave for the surplus; together they err with `tail` at each end."""
        right, wrong, rest = (self._interval(part, tail / 3) for part in parts)
        return least_surplus(right[0], wrong[1], rest), -least_surplus(wrong[0], right[1], rest)

    def _box(self, some: Cells, rest: Cells, tail: float) -> tuple[float, float]:
        """What the intervals of both parts of a base leave for the share; together they err with `tail` at each end."""
        (a_low, a_high), (c_low, c_high) = (self._interval(part, tail / 2) for part in (some, rest))
        low = a_low / (a_low + c_high) if a_low > 0 else 0.0
        return low, a_high / (a_high + c_low) if a_high > 0 else 0.0

    def _interval(self, cells: Cells, tail: float) -> tuple[float, float]:
        if not cells:
            return 0.0, 0.0
        at = np.array(sorted(cells), np.uint64)
        return self._table.sum_interval(at, self._every[at.astype(np.intp)], self._seen.tail(tail))

    def correlation(self, one: tuple[Cells, Cells], other: tuple[Cells, Cells]) -> float:
        """Return that of the errors of two shares, each given by its counted cells and its base."""
        parts = []
        for counted, base in (one, other):
            b = self.estimate(base)
            r = min(1.0, max(0.0, self.estimate(counted) / b)) if b > 0 else 0.0
            parts.append((((1 - r), counted), (-r, base - counted)))
        first, second = parts
        shared = sum(x * y * self.covariance(s, t) for x, s in first for y, t in second)
        spreads = [sum(x * y * self.covariance(s, t) for x, s in part for y, t in part) for part in parts]
        total = float(np.sqrt(max(0.0, spreads[0]) * max(0.0, spreads[1])))
        return min(1.0, max(-1.0, shared / total)) if total > 0 else 0.0


def _fieller(estimates: tuple[float, float], variances: tuple[float, float, float], z: float) -> tuple[float, float]:
    """Return the ends of A/B: of A and B, the variance of A, their covariance and the variance of B."""
    (a, b), (va, cab, vb) = estimates, variances
    first, second, third = b * b - z * z * vb, a * b - z * z * cab, a * a - z * z * va
    if first <= 0:  # every share fits
        return min(a / b, 0.0) - 2, max(a / b, 1.0) + 2
    spread = math.sqrt(max(0.0, second * second - first * third))
    return (second - spread) / first, (second + spread) / first


def _hull(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def least_surplus(up: float, down: float, rest: tuple[float, float]) -> float:
    """The least (up - down)/(up + down + rest), for every rest between two ends."""
    up, down = max(0.0, up), max(0.0, down)
    total = up + down + max(0.0, rest[1] if up > down else rest[0])
    return (up - down) / total if total > 0 else -1.0


def difference(first: CellShare, second: CellShare, correlation: float) -> tuple[float, float, float]:
    """Return the difference of two shares, and the ends of its interval."""
    d = first.estimate - second.estimate
    if not (first.known and second.known):
        return d, first.low - second.high, first.high - second.low
    below = _reach(first.estimate - first.ends[0], second.ends[1] - second.estimate, correlation)
    above = _reach(first.ends[1] - first.estimate, second.estimate - second.ends[0], correlation)
    return d, max(-1.0, min(1.0, d - below)), min(1.0, max(-1.0, d + above))


def _reach(one: float, other: float, correlation: float) -> float:
    return float(np.sqrt(max(0.0, one * one + other * other - 2 * correlation * one * other)))
