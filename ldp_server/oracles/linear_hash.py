"""The oracle of linear-hash response: f(x) = (S(x) - n s)/(p - s), S from one fast transform (transform.py)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle, binomial_skewness, binomial_variance
from ldp_server.oracles.transform import support

__all__ = ["LinearHashOracle"]


class LinearHashOracle(FrequencyOracle):
    """Counts of (point, answer)."""

    kind: ClassVar[type[LinearHash]] = LinearHash

    def __init__(self, randomizer: LinearHash) -> None:
        super().__init__(randomizer)
        self._q, self._t = randomizer.q, randomizer.t
        self._p, self._s = (float(x) for x in randomizer.support)
        self._cells: Floats | None = None

    def _forget(self) -> None:
        self._cells = None

    def cells(self) -> Floats:
        """Return estimates of every element of F_q^t, kept until the counts change."""
        if self._cells is None:
            supports = support(self.counts.values, self._q, self._t).astype(np.float64, copy=False)
            self._cells = (supports - self.reports * self._s) / (self._p - self._s)
        return self._cells

    def estimate(self, indexes: Indexes) -> Floats:
        return self.cells()[indexes.astype(np.intp)]

    def estimate_all(self) -> Floats:
        return self.cells()[: self.randomizer.size].copy()

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return (f p(1-p) + (n-f) s(1-s))/(p-s)^2; supports of different items are nearly uncorrelated."""
        return binomial_variance(frequencies, self.reports, self._p, self._s)

    @property
    def skewness(self) -> float:
        return binomial_skewness(self.reports, self._s)
