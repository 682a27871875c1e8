"""The oracle of one sampled attribute: the binary estimate among those who drew it, scaled to all.

f_j = (n/n_j) (C_j - n_j q)/(p - q); variance (n/n_j)^2 times the binomial one, plus f (1 - f/n) (n/n_j - 1)
for which users drew the attribute.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.sampled_attribute import SampledAttribute
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.attributes import AttributesOracle
from ldp_server.oracles.base import Floats, binomial_variance

__all__ = ["SampledAttributeOracle"]


class SampledAttributeOracle(AttributesOracle):
    """Counts of (attribute, answer)."""

    kind: ClassVar[type[SampledAttribute]] = SampledAttribute

    def __init__(self, randomizer: SampledAttribute) -> None:
        super().__init__(randomizer)
        response = randomizer.response
        self._p, self._q = float(response.probability(1, 1)), float(response.probability(0, 1))

    def attribute_counts(self) -> tuple[Floats, Floats]:
        """Estimates and variances; an attribute that nobody drew has an infinite variance."""
        table = self.counts.values.reshape(-1, 2).astype(np.float64)
        drawn = table.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = self.reports / drawn
            estimates = np.where(drawn > 0, scale * (table[:, 1] - drawn * self._q) / (self._p - self._q), 0.0)
            f = np.clip(estimates, 0, self.reports)
            noise = np.array([binomial_variance(h, d, self._p, self._q) for h, d in zip(f / scale, drawn, strict=True)])
            sampling = f * (1 - f / max(1, self.reports)) * (scale - 1)
        return estimates, np.where(drawn > 0, scale**2 * noise + sampling, np.inf)

    @property
    def can_list(self) -> bool:
        """Only single attributes are asked, never their combinations."""
        return False

    def estimate(self, indexes: Indexes) -> Floats:
        """Combinations are not asked by this mechanism."""
        del indexes
        raise InvalidSpec("sampled-attribute asks for single attributes: use attributes(), not whole sets")

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """As for `estimate`."""
        del frequencies
        raise InvalidSpec("sampled-attribute asks for single attributes: use attributes(), not whole sets")

    @property
    def skewness(self) -> float:
        """Of a binomial count of the reports about one attribute."""
        spread = self.reports / max(1, len(self.counts.values) // 2) * self._q * (1 - self._q)
        return float((1 - 2 * self._q) / np.sqrt(spread)) if spread > 0 else 0.0
