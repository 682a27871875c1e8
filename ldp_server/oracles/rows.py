"""Counts of mechanisms that split their users over rows (or teams), each a linear-hash response of its own.

A report is row * B + (the inner linear hash's report), so the counts are a table of `rows` lines, and each line is
decoded like a linear hash of the users who drew that row. Which cell an item has in a row is the mechanism's business.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_server.oracles.base import binomial_variance
from ldp_server.oracles.counts import Counts
from ldp_server.oracles.transform import support

__all__ = ["RowCounts"]

KEPT_CELLS = 1 << 23
"""Estimates of at most this many cells are kept between queries (single precision); else a row is decoded anew."""


class RowCounts:
    """A view of `counts` by rows, with the estimates of each row's cells."""

    def __init__(self, counts: Counts, inner: LinearHash, rows: int) -> None:
        self.counts = counts
        self.inner = inner
        self.rows = rows
        self.p, self.s = (float(x) for x in inner.support)
        self._kept: dict[int, npt.NDArray[np.float32]] = {}
        self._totals: npt.NDArray[np.int64] | None = None

    def forget(self) -> None:
        """Drop what was worked out: the counts are about to change."""
        self._kept.clear()
        self._totals = None

    @property
    def row_totals(self) -> npt.NDArray[np.int64]:
        """How many users each row has."""
        if self._totals is None:
            self._totals = self.counts.values.reshape(self.rows, -1).sum(axis=1, dtype=np.int64)
        return self._totals

    def cell_estimates(self, row: int) -> npt.NDArray[np.float32]:
        """Unbiased estimates of how many of the row's users hold each of the q^t cells.

        Single precision: its rounding, 6e-8 of the largest value, is far below the noise of any estimate.
        """
        cells = self._kept.get(row)
        if cells is None:
            line = self.counts.values.reshape(self.rows, -1)[row]
            supports = support(line, self.inner.q, self.inner.t)
            supports -= self.row_totals[row] * self.s
            supports /= self.p - self.s
            cells = supports.astype(np.float32, copy=False)
            if self.rows * len(cells) <= KEPT_CELLS:
                self._kept[row] = cells
        return cells

    def cell_variance(self, row: int, holders: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The variance of a cell's estimate that so many of the row's users hold."""
        return binomial_variance(holders, float(self.row_totals[row]), self.p, self.s)
