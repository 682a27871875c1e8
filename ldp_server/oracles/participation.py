"""The oracle of dummy participation: what the inner oracle says, without the dummies, divided by the share.

f = (inner - (1-s) n/size)/s, unbiased because the inner oracle is; variance that of the inner estimate of what is
there, plus that of who takes part, at most n s (1-s), all over s^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.participation import DummyParticipation
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Floats

__all__ = ["DummyParticipationOracle"]


class DummyParticipationOracle:
    """An inner oracle, read through the dummies."""

    def __init__(self, randomizer: DummyParticipation) -> None:
        self.randomizer = randomizer
        self.inner = oracle_for(randomizer.inner)
        self._share = float(randomizer.taking_part)

    @property
    def reports(self) -> int:
        """How many reports have been counted, dummies included: one a device."""
        return self.inner.reports

    def accumulate(self, payload: bytes) -> int:
        """Count the reports packed in a payload."""
        return self.inner.accumulate(payload)

    def merge(self, other: DummyParticipationOracle) -> None:
        """Add the counts of another."""
        self.inner.merge(other.inner)

    def _present(self, frequencies: Floats) -> Floats:
        """How many of the reports are about each item, dummies included."""
        return self._share * frequencies + (1 - self._share) * self.reports / self.randomizer.size

    def estimate(self, indexes: Indexes) -> Floats:
        """Raw, unbiased estimates of how many users hold each index."""
        dummies = (1 - self._share) * self.reports / self.randomizer.size
        return (self.inner.estimate(indexes) - dummies) / self._share

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """The inner variance, and the lottery's."""
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        s, d = self._share, 1 / self.randomizer.size
        holds, others = s + (1 - s) * d, (1 - s) * d
        lottery = f * holds * (1 - holds) + (self.reports - f) * others * (1 - others)
        spread: Floats = (self.inner.variance(self._present(f)) + lottery) / s**2
        return spread
