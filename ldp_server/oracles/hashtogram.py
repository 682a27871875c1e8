"""The oracle of Hashtogram: the sum (or the median) over the rows of what each row's cell says, collisions removed.

Sum:    f(x) = sum over r of g_r(x), with g_r(x) = T/(T-1) (fhat_r(h_r(x)) - n_r/T). The default, with intervals.
Median: the median over r of (n/n_r) g_r(x), the paper's estimator: an item that meets a very popular one in one row is
        not misled by it; variance about pi/2 times as large.

Variance. Noise: (T/(T-1))^2 times the linear hash's, summed over the rows. Collisions: over the choice of the hash, a
row's estimate moves by the items that share the cell, with variance F2_r/(T-1) where F2_r is the sum of the squared
numbers of the row's users that hold each *other* item. F2_r is estimated without bias: the squared cell estimates of
a row add up to (their noise variance) + F2_r + (n_r^2 - F2_r)/T on average.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_server.arrays.hashing import Indexes, pairwise
from ldp_server.oracles.base import Floats, Oracle, binomial_variance
from ldp_server.oracles.counts import Counts
from ldp_server.oracles.linear_hash import binomial_skewness
from ldp_server.oracles.rows import RowCounts

__all__ = ["HashtogramOracle"]


class HashtogramOracle(Oracle):
    """Counts of (row, point, answer)."""

    kind: ClassVar[type[Hashtogram]] = Hashtogram

    def __init__(self, randomizer: Hashtogram) -> None:
        self._randomizer = randomizer
        self._cells = randomizer.inner.size
        self._second_moment: float | None = None
        super().__init__(randomizer)

    @property
    def rows(self) -> RowCounts:
        """The counts, row by row."""
        return self._rows

    def set_counts(self, counts: Counts) -> None:
        """Take the state, seen row by row."""
        super().set_counts(counts)
        self._rows = RowCounts(counts, self._randomizer.inner, self._randomizer.rows)

    def _forget(self) -> None:
        self._rows.forget()
        self._second_moment = None

    def _by_row(self, indexes: Indexes) -> Floats:
        """g_r(x) for every row r and every x."""
        out = np.empty((self._rows.rows, len(indexes)))
        size = self._cells
        for row in range(self._rows.rows):
            held = self._rows.cell_estimates(row)[pairwise(self._randomizer.hash(row), indexes).astype(np.intp)]
            out[row] = (held - self._rows.row_totals[row] / size) * (size / (size - 1))
        return out

    def estimate(self, indexes: Indexes) -> Floats:
        """Raw estimates, by the sum."""
        return np.asarray(self._by_row(indexes).sum(axis=0))

    def estimate_median(self, indexes: Indexes) -> Floats:
        """Estimates by the paper's median, for a worst-case guarantee; rows without users say nothing."""
        used = self._rows.row_totals > 0
        if not used.any():
            return np.zeros(len(indexes))
        scaled = self._by_row(indexes)[used] * (self.reports / self._rows.row_totals[used])[:, None]
        return np.asarray(np.median(scaled, axis=0))

    def second_moment(self) -> float:
        """An estimate of the sum over rows of the squared numbers of users that hold each item in the row."""
        if self._second_moment is None:
            rows, size, total = self._rows, self._cells, 0.0
            for row in range(rows.rows):
                users = float(rows.row_totals[row])
                squares = float(np.square(rows.cell_estimates(row), dtype=np.float64).sum())
                noise = float(rows.cell_variance(row, users)) + (size - 1) * float(rows.cell_variance(row, 0.0))
                total += max(0.0, (squares - noise - users**2 / size) / (1 - 1 / size))
            self._second_moment = total
        return self._second_moment

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Noise and collisions."""
        f = np.asarray(frequencies, np.float64)
        size, rows = self._cells, self._rows
        noise = binomial_variance(f, self.reports, rows.p, rows.s) * (size / (size - 1)) ** 2
        others = np.maximum(0.0, self.second_moment() - np.clip(f, 0, self.reports) ** 2 / rows.rows)
        return noise + others / (size - 1)

    @property
    def skewness(self) -> float:
        """Of the noise; collisions add a little more."""
        return binomial_skewness(self.reports, self._rows.s)
