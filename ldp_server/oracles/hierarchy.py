"""The oracle of a tree over the integers: ranges and quantiles, from levels that are made to agree.

Raw: a cell of level l is estimated from the level's n_l users and scaled by n/n_l; its variance is (n/n_l)^2
times the linear hash's, plus f (1 - f/n)(n/n_l - 1) for which users drew the level.

Agreement (weighted least squares on the tree, the levels' noises being independent): upwards, every cell's own
estimate is averaged with the sum of its children, each weighted by the inverse of its variance; downwards, what a
cell's children lack of it is shared out in proportion to their variances. The root is n minus the users who have no
number, which every level estimates.

The variance of a count at or below an integer. Let X be a cell's final value, c_i its children's values on the way up
with variances s_i, S their sum. Then d_i = c_i - (s_i/S) sum c is independent of sum c, hence of X, and the final
child is d_i + (s_i/S) X. So the part of a cell that lies at or below the integer is a X + B, with B independent of X,
and up the tree, w_i = 1 for the children to the left, w_j = a_j for the child on the path, 0 to the right:

    a = sum of w_i s_i / S,   Var B = sum of s_i (w_i - a)^2 + Var B_j.

At the root the count is a X + B, and its excess over a share p of all is (a - p) X + B. Which users drew which level
adds at most F (1 - F/n)(n/n_l - 1), n_l the smallest level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_server.arrays.hashing import Indexes
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
from ldp_server.oracles.linear_hash import report_chances
from ldp_server.oracles.transform import drawn, support

__all__ = ["HierarchyOracle", "Quantile"]


@dataclass(frozen=True)
class Quantile:
    """The integer below or at which a share of the users' numbers lie, as a distance from the lowest."""

    share: float
    estimate: int
    low: int
    high: int


@dataclass(frozen=True)
class _Tree:
    """The levels after agreement, and how many users have a number."""

    leaves: Floats
    holders: float
    holders_variance: float
    spreads: list[Floats]
    """The variances of every level's cells on the way up; 0 beyond the range."""


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
            found.append(Chance(part, self.reports, most, least, place=start))
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
            leaves = self._pad(leaves, self._branching).reshape(-1, self._branching).sum(axis=1)
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
            first = self._agree(cells, empty, self.reports - none, root)
            # Once more, with the larger variances of the cells that many users hold.
            spreads = [
                self._noise(level, float(users), self._cells(first.leaves, len(totals) - 1 - level))
                for level, users in enumerate(totals)
            ]
            self._tree = self._agree(cells, spreads, self.reports - none, root)
        return self._tree

    def _agree(self, raw: list[Floats], variances: list[Floats], root: float, root_variance: float) -> _Tree:
        """Weighted least squares, up and down; cells beyond the range are known to be empty."""
        b = self._branching
        values = [self._pad(level, b) for level in raw]
        spreads = [self._pad(level, b) for level in variances]
        for level in range(len(raw) - 2, -1, -1):
            size = len(raw[level])
            sums = values[level + 1].reshape(-1, b).sum(axis=1)[:size]
            sum_spread = spreads[level + 1].reshape(-1, b).sum(axis=1)[:size]
            own = spreads[level][:size]
            share = own / (own + sum_spread)
            values[level][:size] += share * (sums - values[level][:size])
            spreads[level][:size] = own * sum_spread / (own + sum_spread)
        total, spread = float(values[0].sum()), float(spreads[0].sum())
        parents = np.array([total + spread / (spread + root_variance) * (root - total)])
        for level, linear in enumerate(values):
            children, shares = linear.reshape(-1, b), spreads[level].reshape(-1, b)
            children, shares = children[: len(parents)], shares[: len(parents)]
            lack = parents - children.sum(axis=1)
            parents = (children + shares / shares.sum(axis=1, keepdims=True) * lack[:, None]).ravel()[: len(raw[level])]
        variance = spread * root_variance / (spread + root_variance)
        return _Tree(parents, float(parents.sum()), variance, spreads)

    @staticmethod
    def _pad(level: Floats, b: int) -> Floats:
        return np.concatenate((level, np.zeros(-len(level) % b)))

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
        for spreads in reversed(tree.spreads):
            left = np.concatenate(([0.0], np.cumsum(spreads)))
            first = cells // b * b
            below, own, total = left[cells] - left[first], spreads[cells], left[first + b] - left[first]
            share_below = (below + inside * own) / total
            rest += below * (1 - share_below) ** 2 + own * (inside - share_below) ** 2
            rest += (total - below - own) * share_below**2
            inside, cells = share_below, cells // b
        held = np.clip(np.cumsum(tree.leaves), 0, self.reports)
        lottery = held * (1 - held / self.reports) * (self.reports / self.level_totals().min() - 1)
        found: Floats = np.sqrt(rest + (inside - share) ** 2 * tree.holders_variance + lottery)
        return found

    def quantile(self, share: float, confidence: float = 0.95) -> Quantile:
        """Return the integer at or below which this share of the numbers lie, with an interval.

        An integer v is in the interval if it cannot be told that fewer than the share lie at or below v, nor
        that the share or more lie below it: the interval misses the true quantile only if one of those two
        tests errs at it.
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

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Return how many users hold an integer from `first` to `last`, as distances from the lowest.

        Beside it a bound on its standard error. A cell's part of the range is again a X + B: a is 1 for a cell inside
        the range and 0 for one outside, and at most two cells of a level are partly inside (module's docstring).
        """
        if not 0 <= first <= last < self._leaves:
            raise InvalidSpec("a range lies within the domain, its ends in order")
        tree = self.tree()
        sums = np.concatenate(([0.0], np.cumsum(tree.leaves)))
        count = float(sums[last + 1] - sums[first])
        return count, self._range_error(first, last, count)

    def _range_error(self, first: int, last: int, count: float) -> float:
        tree, b = self.tree(), self._branching
        shares, rest = {first: 1.0, last: 1.0}, 0.0
        for spreads in reversed(tree.spreads):
            ends, parts = (first // b, last // b), shares
            shares = {}
            for parent in set(ends):
                children = np.arange(parent * b, min((parent + 1) * b, len(spreads)))
                inside = ((children > first) & (children < last)).astype(np.float64)
                for child, share in parts.items():
                    inside[children == child] = share
                own = spreads[children]
                share = float(inside @ own) / float(own.sum())
                rest += float(own @ (inside - share) ** 2)
                shares[parent] = share
            first, last = ends
        held = min(max(count, 0.0), float(self.reports))
        lottery = held * (1 - held / self.reports) * (self.reports / self.level_totals().min() - 1)
        return float(np.sqrt(rest + shares[0] ** 2 * tree.holders_variance + lottery))
