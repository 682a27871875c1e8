"""The oracle of a tree over the integers: ranges and quantiles, from levels that are made to agree.

Raw: a cell of level l is estimated from the level's n_l users and scaled by n/n_l; its variance is (n/n_l)^2
times the linear hash's, plus f (1 - f/n)(n/n_l - 1) for which users drew the level. The levels are averaged by weighted
least squares (laws/agreement.py). The root is n minus the users who have no number, which every level estimates.

The variance of the count of a range. With the averages' weights fixed, the count is a sum over the raw cells, with a
coefficient k for each, so it is a sum over the reports: a report of level l adds

    h = (n/n_l) sum over the level's cells c of k_c (1[c is supported] - s)/(p - s).

On the levels together, a user with a number in the range adds 1 on average and any other 0, up to a constant. Given
how many users drew each level, the variance is, with F users in the range,

    sum over the levels of sum over the reports of (h - mean of h)^2, less F (1 - F/n).

A further user in cell c adds (n/n_l) (k_c - mean of k)^2 p/(p - s)^2 to a level's sum, averaged over the levels with
n_l/n, and 1 or less to what is taken off. All of it is read off the counts, also how cells of a level vary together
(linear_hash.py). Where few reports support anything, the counts may show less than the variance of the lies of n users
who are all elsewhere: the sum of k_c^2 (n/n_l)^2 n_l s (1 - s)/(p - s)^2. Then this is taken.

The variance of a count at or below an integer, for quantiles. Let X be a cell's final value, c_i its children's values
on the way up with variances s_i, S their sum. Then d_i = c_i - (s_i/S) sum c is independent of sum c, hence of X, and
the final child is d_i + (s_i/S) X. So the part of a cell that lies at or below the integer is a X + B, with B
independent of X, and up the tree, w_i = 1 for the children to the left, w_j = a_j for the child on the path, 0 to the
right:

    a = sum of w_i s_i / S,   Var B = sum of s_i (w_i - a)^2 + Var B_j.

At the root the count is a X + B, and its excess over a share p of all is (a - p) X + B. Which users drew which level
adds at most F (1 - F/n)(n/n_l - 1), n_l the smallest level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.transform import drawn, support, weights_of_reports
from ldp_server.oracles.base import (
    Floats,
    FrequencyOracle,
    NumbersOracle,
    TooFewReports,
    binomial_skewness,
    binomial_variance,
    two_sided,
)
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.agreement import Agreement
from ldp_server.oracles.linear_hash import report_chances

__all__ = ["HierarchyOracle", "Quantile", "RangeCount"]


@dataclass(frozen=True)
class Quantile:
    """The integer below or at which a share of the users' numbers lie, as a distance from the lowest."""

    share: float
    estimate: int
    low: int
    high: int


@dataclass(frozen=True)
class RangeCount:
    """How many users' numbers lie in a range, with its standard error."""

    count: float
    error: float
    inside: float
    """How much one more user whose number lies in the range adds to the variance, at most."""
    outside: float
    """The same for a user whose number lies elsewhere, or who has none."""

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the ends of the interval.

        The upper end F solves F - count = z sqrt(error^2 + inside (F - count)): where few users are in the range, the
        reports do not show the variance that more of them would have. The lower end is the same for those outside.
        """
        z = two_sided(confidence)
        up, down = (z * z * user / 2 for user in (self.inside, self.outside))
        reach = z * self.error
        return self.count - down - math.hypot(down, reach), self.count + up + math.hypot(up, reach)


@dataclass(frozen=True)
class _LevelSum:
    """What one level's reports say of the variance of a count."""

    read_off: float
    """The sum of (h - mean of h)^2 over the reports."""
    lies: float
    """The variance that lies alone would have."""
    per_user: Floats
    """What one more user in each cell adds."""


@dataclass(frozen=True)
class _Tree:
    """The levels after agreement, and how many users have a number."""

    leaves: Floats
    agreement: Agreement
    none_weights: Floats
    """The weight of each level's estimate of `none`; they add up to 1."""

    @property
    def holders(self) -> float:
        return float(self.leaves.sum())


class HierarchyOracle(NumbersOracle, FrequencyOracle):
    """Counts of (level, point, answer)."""

    kind: ClassVar[type[Hierarchy]] = Hierarchy

    def __init__(self, randomizer: Hierarchy) -> None:
        super().__init__(randomizer)
        self._levels, self._starts = randomizer.levels, randomizer.starts
        self._branching = randomizer.branching
        self._leaves = randomizer.size - 1
        self._tree: _Tree | None = None

    def _forget(self) -> None:
        self._tree = None

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """Each level has points of its own."""
        for linear, part in zip(self._levels, self._parts(), strict=True):
            yield (drawn(part, linear.q),)

    def teams(self) -> Sequence[Chance]:
        each, totals = 1 / len(self._levels), self.level_totals().astype(np.int64)
        return (Chance(totals, self.reports, each, each),)

    def chances(self) -> Sequence[Chance]:
        found = []
        for linear, part, start in zip(self._levels, self._parts(), self._starts, strict=False):
            most, least = (chance / len(self._levels) for chance in report_chances(linear))
            found.append(Chance(part, self.reports, most, least, place=start, of=len(self._levels)))
        return found

    def _parts(self) -> list[npt.NDArray[np.uint32] | npt.NDArray[np.uint64]]:
        """The counts of each level."""
        return [self.counts.values[a:b] for a, b in pairwise(self._starts)]

    def level_totals(self) -> Floats:
        """How many users drew each level."""
        pairs = zip(self._starts[:-1], self._starts[1:], strict=True)
        return np.array([self.counts.values[a:b].sum(dtype=np.int64) for a, b in pairs], np.float64)

    def _raw(self, level: int, users: float) -> Floats:
        """Estimates of every cell of a level, `none` first, for all n users."""
        linear = self._levels[level]
        counts = self.counts.values[self._starts[level] : self._starts[level + 1]]
        p, s = (float(x) for x in linear.support)
        cells = support(counts, linear.q, linear.t)[: linear.size].astype(np.float64)
        return (cells - users * s) / (p - s) * (self.reports / users)

    def _cells(self, leaves: Floats, up: int) -> Floats:
        """The sums of the leaves under every cell, so many levels up."""
        for _ in range(up):
            leaves = (
                np.append(leaves, np.zeros(-len(leaves) % self._branching)).reshape(-1, self._branching).sum(axis=1)
            )
        return leaves

    def _noise(self, level: int, users: float, holders: Floats) -> Floats:
        """A cell's variance without the part for which users drew the level."""
        p, s = (float(x) for x in self._levels[level].support)
        scale = self.reports / users
        return scale**2 * binomial_variance(np.clip(holders, 0, self.reports) / scale, users, p, s)

    def _cell_variance(self, level: int, users: float, holders: npt.ArrayLike) -> Floats:
        p, s = (float(x) for x in self._levels[level].support)
        if not users:
            return np.zeros(np.shape(holders))
        scale = self.reports / users
        f = np.clip(np.asarray(holders, np.float64), 0, self.reports)
        return scale**2 * binomial_variance(f / scale, users, p, s) + f * (1 - f / self.reports) * (scale - 1)

    def tree(self) -> _Tree:
        """The agreed tree, kept until the counts change."""
        if self._tree is None:
            totals = self.level_totals()
            if self.reports == 0 or not totals.all():
                raise TooFewReports("a level of the tree has no reports yet: more users are needed")
            raw = [self._raw(level, float(users)) for level, users in enumerate(totals)]
            weights = 1 / np.array([float(self._cell_variance(i, float(u), 0.0)) for i, u in enumerate(totals)])
            none = float(weights @ [level[0] for level in raw] / weights.sum())
            root = float(1 / weights.sum())
            cells = [level[1:] for level in raw]
            empty = [np.full(len(level), 1 / weight) for level, weight in zip(cells, weights, strict=True)]
            first = Agreement(self._branching, empty, root).leaves(cells, self.reports - none)
            # Once more, with the larger variances of the cells that many users hold.
            spreads = [
                self._noise(level, float(users), self._cells(first, len(totals) - 1 - level))
                for level, users in enumerate(totals)
            ]
            agreement = Agreement(self._branching, spreads, root)
            self._tree = _Tree(agreement.leaves(cells, self.reports - none), agreement, root * weights)
        return self._tree

    def holders(self) -> float:
        return self.tree().holders

    def estimate(self, indexes: Indexes) -> Floats:
        """Return estimates of single integers, and of `none`."""
        tree = self.tree()
        table = np.concatenate(([self.reports - tree.holders], tree.leaves))
        return np.asarray(table[indexes.astype(np.intp)])

    def estimate_all(self) -> Floats:
        tree = self.tree()
        return np.concatenate(([self.reports - tree.holders], tree.leaves))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return an upper bound: the variance of the integer's raw cell on the finest level."""
        return self._cell_variance(len(self._levels) - 1, float(self.level_totals()[-1]), frequencies)

    @property
    def skewness(self) -> float:
        """The skewness of a raw cell on the finest level."""
        return binomial_skewness(int(self.level_totals()[-1]), float(self._levels[-1].support[1]))

    def _prefix_errors(self, share: float) -> Floats:
        """The standard errors of (count at or below every integer) - share * (count of all)."""
        tree, b = self.tree(), self._branching
        cells = np.arange(self._leaves)
        inside, rest = np.ones(self._leaves), np.zeros(self._leaves)
        for spreads in reversed(tree.agreement.spreads):
            left = np.concatenate(([0.0], np.cumsum(spreads)))
            first = cells // b * b
            below, own, total = left[cells] - left[first], spreads[cells], left[first + b] - left[first]
            share_below = (below + inside * own) / total
            rest += below * (1 - share_below) ** 2 + own * (inside - share_below) ** 2
            rest += (total - below - own) * share_below**2
            inside, cells = share_below, cells // b
        held = np.clip(np.cumsum(tree.leaves), 0, self.reports)
        lottery = held * (1 - held / self.reports) * (self.reports / self.level_totals().min() - 1)
        found: Floats = np.sqrt(rest + (inside - share) ** 2 * tree.agreement.holders_variance + lottery)
        return found

    def quantile(self, share: float, confidence: float = 0.95) -> Quantile:
        """Return the integer at or below which this share of the numbers lie, with an interval.

        An integer v is in the interval unless a test shows that fewer than the share lie at or below v, or that the
        share or more lie below v. So the interval misses the true quantile only if one of these two tests errs there.
        """
        if not 0 < share < 1:
            raise InvalidSpec("a quantile's share lies strictly between 0 and 1, such as 0.5")
        z = two_sided(confidence)
        tree = self.tree()
        sums = np.cumsum(tree.leaves)
        excess = sums - share * tree.holders
        errors = self._prefix_errors(share)
        reach = z * errors
        above = np.maximum.accumulate(excess) >= 0
        estimate = int(np.argmax(above)) if above.any() else self._leaves - 1
        enough = excess + reach >= 0
        below = np.concatenate(([-np.inf], (excess - reach)[:-1])) < 0
        possible = np.flatnonzero(enough & below)
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (estimate, estimate)
        return Quantile(share, estimate, min(low, estimate), max(high, estimate))

    def quantile_error(self, share: float) -> float:
        """Return the standard error of (count at or below the quantile) - share * (count of all).

        It differs from integer to integer: the root mean square over those where the quantile may well lie.
        """
        tree, errors, place = self.tree(), self._prefix_errors(share), self.quantile(share).estimate
        near = np.abs(np.cumsum(tree.leaves) - share * tree.holders) <= float(errors.max())
        near[place] = True
        return float(np.sqrt(np.mean(errors[near] ** 2)))

    def between(self, first: int, last: int) -> RangeCount:
        """Return how many users hold an integer from `first` to `last`, as distances from the lowest."""
        if not 0 <= first <= last < self._leaves:
            raise InvalidSpec("a range lies within the domain, its ends in order")
        inside = np.zeros(self._leaves)
        inside[first : last + 1] = 1
        tree = self.tree()
        count = float(inside @ tree.leaves)
        cells, root = tree.agreement.coefficients(inside)
        sums = [
            self._level_sum(i, np.append(-root * none, k))
            for i, (none, k) in enumerate(zip(tree.none_weights, cells, strict=True))
        ]
        held = min(max(count, 0.0), float(self.reports))
        read_off = sum(one.read_off for one in sums) - held * (1 - held / self.reports)
        variance = max(read_off, sum(one.lies for one in sums))
        each = self._per_user([one.per_user for one in sums])
        there = np.append(False, inside > 0)
        return RangeCount(count, float(np.sqrt(variance)), float(each[there].max()), float(each[~there].max()))

    def _level_sum(self, level: int, weights: Floats) -> _LevelSum:
        """Return the part of one level, for weights of its cells, `none` first."""
        linear, users = self._levels[level], float(self.level_totals()[level])
        p, s = (float(x) for x in linear.support)
        counts, scale = self.counts.values[self._starts[level] : self._starts[level + 1]], self.reports / users
        padded = np.append(weights, np.zeros(linear.q**linear.t - linear.size))
        h = weights_of_reports(padded, linear.q, linear.t).astype(np.float64, copy=False)
        h = (h - weights.sum() * s) * (scale / (p - s))
        total = float(counts @ h)
        lies = float(np.square(weights).sum()) * float(self._noise(level, users, np.zeros(1))[0])
        per_user = scale * p / (p - s) ** 2 * np.square(weights - total / self.reports)
        return _LevelSum(float(counts @ np.square(h)) - total**2 / users, lies, per_user)

    def _per_user(self, levels: list[Floats]) -> Floats:
        """Return what a user adds to the variance, `none` first, then for each integer."""
        none, found = sum(float(one[0]) for one in levels), np.zeros(1)
        for level, cells in enumerate(levels):
            size = len(cells) - 1
            found = np.repeat(found, self._branching if level else size)[:size] + cells[1:]
        added: Floats = np.maximum(0, np.append(none, found) - 1)
        return added
