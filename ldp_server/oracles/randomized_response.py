"""The oracle of randomized response: f_y = (C_y - n q_y)/(p - q), exactly unbiased (see the mechanism's docstring)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["RandomizedResponseOracle"]


class RandomizedResponseOracle(FrequencyOracle):
    """Counts of answers."""

    kind: ClassVar[type[RandomizedResponse]] = RandomizedResponse

    def __init__(self, randomizer: RandomizedResponse) -> None:
        super().__init__(randomizer)
        response = randomizer.response
        self._p, self._q = float(response.p), float(response.q)
        self._gap = (response.truth - response.lie) / (1 << response.word_bits)
        self._response = response

    def estimate(self, indexes: Indexes) -> Floats:
        """Return raw estimates, corrected for the few answers that have one leftover word more."""
        response, total = self._response, 1 << self._response.word_bits
        base = (response.lie + response.spare // response.k) / total
        lies = base + (indexes < response.spare % response.k) / total
        return (self.counts.values[indexes.astype(np.intp)] - self.reports * lies) / self._gap

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return (f p(1-p) + (n-f) q(1-q))/(p-q)^2."""
        return binomial_variance(frequencies, self.reports, self._p, self._q)

    @property
    def law(self) -> SupportLaw:
        return SupportLaw(self.reports, self._p, self._q)

    def chances(self) -> Sequence[Chance]:
        """An answer is likeliest from its holders and least likely from all others."""
        most, least = (float(self._response.probability(0, answer)) for answer in (0, self._response.k - 1))
        return (Chance(self.counts.values, self.reports, most, least),)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Answers exclude each other, so the m counted ones together are one binomial count.

        A holder of one of them gives one of them with P = p + (m-1) q, anybody else with Q = m q.
        """
        del indexes  # all answers are alike
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        more = (f.size - 1) * self._q
        inside, outside = min(1.0, self._p + more), min(1.0, self._q + more)
        holders = min(float(f.sum()), self.reports)
        spread = holders * inside * (1 - inside) + (self.reports - holders) * outside * (1 - outside)
        return spread / self._gap**2

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return the interval from the exact law of the one count that they are together (see sum_variance)."""
        more = (len(indexes) - 1) * self._q
        if not len(indexes) or self._p + more >= 1:
            held = float(self.reports) if len(indexes) else 0.0
            return held, held
        law = SupportLaw(self.reports, self._p + more, self._q + more)
        low, high = law.intervals(np.sum(estimates, keepdims=True), tail)
        return float(low[0]), float(high[0])
