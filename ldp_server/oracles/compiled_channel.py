r"""The oracle of compiled channels: linear equations, solved by weighted least squares.

The counts C_y of n reports have the means sum over x of f_x A[x][y], where A[x][y] is the probability of report y for
element x. Let c_y be the mean of A[x][y] over all elements, and D the diagonal matrix of 1/c_y, about the inverse of
the counts' variances where the elements are equally frequent. Then

    f = M C,    M = (A D A')^-1 A D,

and M A' = 1, so the estimates are unbiased whatever people hold. (The weights are fixed. Weights that follow the counts
are a little better where a few elements are frequent, and biased.) As every line of A adds up to 1, the estimates add
up to n.

Errors. The estimate of a set S of elements adds up g[y] = sum over x in S of M[x][y] over the reports. Its variance is

    sum over y of g[y]^2 E[C_y]  -  how many users hold an element of S,

because the mean of g is 1 for these users and 0 for all others. The counts give both terms without bias; the result is
kept between the least and the largest value that any crowd with so many holders can have. Intervals come from the law
of the sum: the exact one where few reports make all of its noise, else by a saddlepoint (laws/tables).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle, Unsupported
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.tables.intervals import TableIntervals

__all__ = ["CompiledChannelOracle"]

_WORST = 1e12
"""Above this condition number, rounding in floats is no longer small beside the noise."""


class CompiledChannelOracle(FrequencyOracle):
    """Counts of reports, and the inverse of the table."""

    kind: ClassVar[type[CompiledChannel]] = CompiledChannel

    def __init__(self, randomizer: CompiledChannel) -> None:
        super().__init__(randomizer)
        total = float(1 << randomizer.word_bits)
        self._table = np.array([[float(weight) / total for weight in line] for line in randomizer.lines])
        weighed = self._table / self._table.mean(axis=0)
        grown = weighed @ self._table.T
        if randomizer.bound < randomizer.size or np.linalg.cond(grown) > _WORST:
            raise Unsupported(
                "the reports of this compiled-channel do not tell its elements apart, so that no numbers of holders "
                "follow from them: compile it with as many reports as elements, and a loss that is least for the truth"
            )
        self._inverse = np.linalg.solve(grown, weighed)
        self._sums = TableIntervals(self._table, self._inverse)
        held = self._inverse**2 @ self._table.T  # the mean square of M[i] for the holders of each element
        own = np.diag(held) - 1
        others = np.where(np.eye(len(held), dtype=bool), np.nan, held)
        self._ends = [(own, np.nanmin(others, axis=1)), (own, np.nanmax(others, axis=1))]

    def estimate(self, indexes: Indexes) -> Floats:
        return np.asarray(self._inverse[indexes.astype(np.intp)] @ self.counts.values.astype(np.float64))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the largest variance that an element of so many holders can have."""
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        own, others = (float(np.max(values)) for values in self._ends[1])
        return np.asarray(f * own + (self.reports - f) * others)

    def noise_per_report(self) -> float:
        """Return the largest standard error that an item nobody holds can have, of a share, times sqrt(n)."""
        return float(np.sqrt(self._ends[1][1].max()))

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        """Return the errors of these elements, from the counts."""
        at = indexes.astype(np.intp)
        f = np.clip(estimates, 0, self.reports)
        low, high = (f * own[at] + (self.reports - f) * others[at] for own, others in self._ends)
        found = self._inverse[at] ** 2 @ self.counts.values.astype(np.float64) - estimates
        return np.asarray(np.sqrt(np.clip(found, low, high)))

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return intervals from the law of each element's sum."""
        sets = np.zeros((len(indexes), self.randomizer.size))
        sets[np.arange(len(indexes)), indexes.astype(np.intp)] = 1
        return self._sums.intervals(sets, self.counts.values, estimates, tail)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum of these estimates, from the counts."""
        row = self._inverse[indexes.astype(np.intp)].sum(axis=0)
        noise = row**2 @ self._table.T - (row @ self._table.T) ** 2  # of one user who holds each element
        inside = np.zeros(len(noise), dtype=bool)
        inside[indexes.astype(np.intp)] = True
        if inside.all() or not inside.any():
            return 0.0  # the estimates add up to the reports
        total = float(np.sum(np.asarray(frequencies, np.float64)))
        found = float(row**2 @ self.counts.values.astype(np.float64)) - total
        holders = min(max(0.0, total), float(self.reports))
        others = self.reports - holders
        least, most = (
            holders * float(end(noise[inside], initial=start)) + others * float(end(noise[~inside]))
            for end, start in ((np.min, np.inf), (np.max, 0.0))
        )
        return min(max(found, least), most)

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        sets = np.zeros((1, self.randomizer.size))
        sets[0, indexes.astype(np.intp)] = 1
        if not 0 < sets.sum() < self.randomizer.size:
            total = float(self.reports) if sets.any() else 0.0
            return total, total
        sums = np.array([float(np.sum(estimates))])
        low, high = self._sums.intervals(sets, self.counts.values, sums, tail)
        return float(low[0]), float(high[0])

    def chances(self) -> Sequence[Chance]:
        """Each report is at most and at least as likely as its largest and least weight says."""
        return [
            Chance(
                self.counts.values[y : y + 1],
                self.reports,
                float(column.max()),
                float(column.min()),
                of=len(self._table.T),
            )
            for y, column in enumerate(self._table.T)
        ]
