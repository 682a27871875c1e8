"""The oracle of a tree over the integers: ranges and quantiles, from levels that are made to agree.

Raw: a cell of level l is estimated from the level's n_l users and scaled by n/n_l; its variance is (n/n_l)^2
times the linear hash's, plus f (1 - f/n)(n/n_l - 1) for which users drew the level.

Agreement (weighted least squares on the tree, the levels' noises being independent): upwards, every cell's
own estimate is averaged with the sum of its children, each weighted by the inverse of its variance;
downwards, what a cell's children lack of it is shared out in proportion to their variances. The root is n
minus the users who have no number, which every level estimates. Least squares never has more variance than
any other unbiased sum, so the standard errors below, those of the raw cells that make up a range, are upper
bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_server.bulk.hashing import Indexes
from ldp_server.oracles.base import Floats, Oracle, binomial_variance
from ldp_server.oracles.linear_hash import binomial_skewness
from ldp_server.oracles.transform import support

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


class HierarchyOracle(Oracle):
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

    def _cell_variance(self, level: int, users: float, holders: npt.ArrayLike) -> Floats:
        p, s = (float(x) for x in self._levels[level].support)
        scale = self.reports / users
        f = np.clip(np.asarray(holders, np.float64), 0, self.reports)
        return scale**2 * binomial_variance(f / scale, users, p, s) + f * (1 - f / self.reports) * (scale - 1)

    def tree(self) -> _Tree:
        """The agreed tree, kept until the counts change."""
        if self._tree is None:
            totals = self.level_totals()
            if self.reports == 0 or not totals.all():
                raise InvalidSpec("a level of the tree has no reports yet: more users are needed")
            raw = [self._raw(level, float(users)) for level, users in enumerate(totals)]
            weights = 1 / np.array([float(self._cell_variance(i, float(u), 0.0)) for i, u in enumerate(totals)])
            none = float(weights @ [level[0] for level in raw] / weights.sum())
            leaves = self._agree([level[1:] for level in raw], 1 / weights, self.reports - none, 1 / weights.sum())
            self._tree = _Tree(leaves, float(leaves.sum()), float(1 / weights.sum()))
        return self._tree

    def _agree(self, raw: list[Floats], variances: Floats, root: float, root_variance: float) -> Floats:
        """Weighted least squares, up and down; cells beyond the range are known to be empty."""
        b = self._branching
        values = [self._pad(level, b) for level in raw]
        spreads = [self._pad(np.full(len(level), v), b) for level, v in zip(raw, variances, strict=True)]
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
        agreed: Floats = parents
        return agreed

    @staticmethod
    def _pad(level: Floats, b: int) -> Floats:
        return np.concatenate((level, np.zeros(-len(level) % b)))

    def estimate(self, indexes: Indexes) -> Floats:
        """Estimates of single integers, and of `none`."""
        tree = self.tree()
        table = np.concatenate(([self.reports - tree.holders], tree.leaves))
        return np.asarray(table[indexes.astype(np.intp)])

    def estimate_all(self) -> Floats:
        """Estimates of the whole domain."""
        tree = self.tree()
        return np.concatenate(([self.reports - tree.holders], tree.leaves))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Of one integer's estimate, at most that of its raw cell on the finest level."""
        return self._cell_variance(len(self._levels) - 1, float(self.level_totals()[-1]), frequencies)

    @property
    def skewness(self) -> float:
        """Of a raw cell on the finest level."""
        return binomial_skewness(int(self.level_totals()[-1]), float(self._levels[-1].support[1]))

    def _prefix_errors(self, sums: Floats, total: float) -> Floats:
        """Upper bounds on the standard errors of the counts at or below every integer.

        The first x leaves are d_l(x) cells of each level l, the digits of x in base b; or all but the cells
        of the rest.
        """
        users = self.level_totals()
        errors = []
        ends = np.arange(1, self._leaves + 1)
        for count, held in ((ends, sums), (self._leaves - ends, total - sums)):
            spread = np.zeros(self._leaves)
            left = count.copy()
            for level in range(len(users) - 1, -1, -1):
                cells = left % self._branching if level else left
                left = left // self._branching
                empty = float(self._cell_variance(level, float(users[level]), 0.0))
                spread += cells * empty
            sampling = np.clip(held, 0, self.reports) * (self.reports / users.min() - 1)
            errors.append(np.sqrt(spread + sampling))
        found: Floats = np.minimum(errors[0], errors[1] + math.sqrt(self.tree().holders_variance))
        return found

    def quantile(self, share: float, confidence: float = 0.95) -> Quantile:
        """Return the integer at or below which this share of the numbers lie, with an interval.

        An integer v is in the interval if it cannot be told that fewer than the share lie at or below v, nor
        that the share or more lie below it: the interval misses the true quantile only if one of those two
        tests errs at it.
        """
        if not 0 < share < 1 or not 0 < confidence < 1:
            raise InvalidSpec("a quantile's share and its confidence lie strictly between 0 and 1")
        tree = self.tree()
        sums = np.cumsum(tree.leaves)
        # The wanted count is itself estimated: compare (1 - share) of what lies below with share of what lies
        # above.
        excess = sums - share * tree.holders
        errors = self._prefix_errors(sums, tree.holders) + share * math.sqrt(tree.holders_variance)
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * errors
        above = np.maximum.accumulate(excess) >= 0
        estimate = int(np.argmax(above)) if above.any() else self._leaves - 1
        enough = excess + reach >= 0
        below = np.concatenate(([-np.inf], (excess - reach)[:-1])) < 0
        possible = np.flatnonzero(enough & below)
        low, high = (int(possible[0]), int(possible[-1])) if len(possible) else (estimate, estimate)
        return Quantile(share, estimate, min(low, estimate), max(high, estimate))

    def between(self, first: int, last: int) -> tuple[float, float]:
        """Return how many users hold an integer from `first` to `last` (distances from the lowest), and its
        error.
        """
        if not 0 <= first <= last < self._leaves:
            raise InvalidSpec("a range lies within the domain, its ends in order")
        tree = self.tree()
        sums = np.concatenate(([0.0], np.cumsum(tree.leaves)))
        errors = np.concatenate(([0.0], self._prefix_errors(sums[1:], tree.holders)))
        return float(sums[last + 1] - sums[first]), float(errors[last + 1] + errors[first])
