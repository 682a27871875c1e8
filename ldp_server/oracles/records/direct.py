r"""A table that is asked for, from drawn tables that have all of its fields.

n_s of the n users drew table s, and f_s is its estimate for those users (sources.py). With weights a_s that add up to
1, the sum of a_s (n/n_s) f_s is unbiased for all users. The weights are those of the least variance for a row that few
users are in: n_s/(V_s + 0.05), V_s the variance of one report's answer. They depend on the draws and on no answer. The
variance is, given the draws,

    sum of (a_s n/n_s)^2 Var f_s + f (1 - f/n) (sum of a_s^2 n/n_s - 1),

the second term for which users drew which table: a user counts a_s n/n_s with probability n_s/n, and these have the
mean 1 and the mean square sum of a_s^2 n/n_s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.skewed import skewed_intervals
from ldp_server.oracles.records.mixture import MixtureLaw
from ldp_server.oracles.records.sources import Source

__all__ = ["Direct"]

_SAMPLING = 0.05


@dataclass(frozen=True)
class Direct:
    """The rows of an asked table, from at least one drawn table that somebody drew."""

    users: int
    sources: tuple[Source, ...]

    @property
    def count(self) -> int:
        return self.sources[0].count

    @cached_property
    def weights(self) -> Floats:
        """a_s, the same for every row."""
        widest = int(np.argmax(self.sources[0].sizes))
        parts = np.array([one.reports / (one.noise(widest) + _SAMPLING) for one in self.sources])
        return np.asarray(parts / parts.sum())

    @cached_property
    def _scales(self) -> Floats:
        """b_s = a_s n/n_s."""
        return np.asarray(self.weights * self.users / np.array([one.reports for one in self.sources]))

    @property
    def whole(self) -> bool:
        """Whether every user answered about one and the same table."""
        return len(self.sources) == 1 and self.sources[0].reports == self.users

    @cached_property
    def raw(self) -> Floats:
        return np.asarray(sum(b * one.estimates() for b, one in zip(self._scales, self.sources, strict=True)))

    def merged(self, chosen: npt.NDArray[np.intp]) -> Direct:
        """Return the same with these rows as one, and without the others."""
        return replace(self, sources=tuple(one.merged(chosen) for one in self.sources))

    def errors(self, holders: Floats) -> Floats:
        """Return the standard errors, with so many users in each row."""
        return np.asarray(np.sqrt(self._moments(holders)[0]))

    def _moments(self, holders: Floats) -> tuple[Floats, Floats]:
        """Variance and third central moment."""
        f, n = np.clip(holders, 0, self.users), self.users
        second, third = f * (1 - f / n) * max(0.0, float(self.weights @ self._scales) - 1), np.zeros(len(f))
        for b, source in zip(self._scales, self.sources, strict=True):
            spreads = source.spreads(f * source.reports / n)
            second = second + b**2 * np.array([one.variance for one in spreads])
            third = third + b**3 * np.array([one.third for one in spreads])
        return second, third

    def intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for the number of users in each row; each end errs with probability `tail` at most."""
        if self.whole:
            return self._of_one_table(tail)
        if not all(one.has_law() for one in self.sources):
            return self._skewed(tail)
        patterns = np.stack([one.sizes for one in self.sources])
        kinds, kind = np.unique(patterns, axis=1, return_inverse=True)
        low, high = np.zeros(self.count), np.full(self.count, float(self.users))
        for number in range(kinds.shape[1]):
            rows = np.flatnonzero(kind.ravel() == number)
            low[rows], high[rows] = self._law(kinds[:, number]).intervals(self.raw[rows], tail)
        return low, high

    def _law(self, sizes: Sequence[int] | npt.NDArray[np.intp]) -> MixtureLaw:
        """The law of a row with so many cells of each source."""
        laws = [one.law(int(size)) for one, size in zip(self.sources, sizes, strict=True)]
        most = max(len(values) for values, _, _ in laws)
        columns = [np.zeros((len(laws), most)) for _ in range(3)]
        for line, (law, b) in enumerate(zip(laws, self._scales, strict=True)):
            for column, part, scale in zip(columns, law, (b, 1.0, 1.0), strict=True):
                column[line, : len(part)] = part * scale
        counts = np.array([one.reports for one in self.sources], np.float64)
        return MixtureLaw(float(self.users), counts, columns[0], columns[1], columns[2])

    def _of_one_table(self, tail: float) -> tuple[Floats, Floats]:
        """Those of the table's own oracle: nothing is left to which users drew it."""
        source = self.sources[0]
        order = np.argsort(source.rows, kind="stable")
        edges = np.searchsorted(source.rows[order], np.arange(self.count + 1))
        found = []
        every = source.oracle.estimate_all()
        for row in range(self.count):
            cells = np.sort(order[edges[row] : edges[row + 1]]).astype(np.uint64)
            if len(cells) == 1:
                low, high = source.oracle.intervals(cells, every[cells.astype(np.intp)], tail)
                found.append((float(low[0]), float(high[0])))
            else:
                found.append(source.oracle.sum_interval(cells, every[cells.astype(np.intp)], tail))
        low, high = np.array(found).reshape(-1, 2).T
        return low, high

    def _skewed(self, tail: float) -> tuple[Floats, Floats]:
        return skewed_intervals(self.raw, self._moments, float(self.users), tail)
