"""The oracle of one sampled attribute: the binary estimate among those who drew it, scaled to all.

f_j = (n/n_j) (C_j - n_j q)/(p - q); variance (n/n_j)^2 times the binomial one, plus f (1 - f/n) (n/n_j - 1)
for which users drew the attribute.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ldp_client.mechanisms.sampled_attribute import SampledAttribute
from ldp_server.oracles.base import AttributesOracle, Floats, binomial_variance

__all__ = ["SampledAttributeOracle"]


class SampledAttributeOracle(AttributesOracle):
    """Counts of (attribute, answer)."""

    kind: ClassVar[type[SampledAttribute]] = SampledAttribute

    def __init__(self, randomizer: SampledAttribute) -> None:
        super().__init__(randomizer)
        response = randomizer.response
        self._p, self._q = float(response.probability(1, 1)), float(response.probability(0, 1))

    def attribute_counts(self) -> tuple[Floats, Floats]:
        """Return estimates and variances; an attribute that nobody drew has an infinite variance."""
        table = self.counts.values.reshape(-1, 2).astype(np.float64)
        drawn = table.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = self.reports / drawn
            estimates = np.where(drawn > 0, scale * (table[:, 1] - drawn * self._q) / (self._p - self._q), 0.0)
            f = np.clip(estimates, 0, self.reports)
            noise = np.array([binomial_variance(h, d, self._p, self._q) for h, d in zip(f / scale, drawn, strict=True)])
            sampling = f * (1 - f / max(1, self.reports)) * (scale - 1)
        return estimates, np.where(drawn > 0, scale**2 * noise + sampling, np.inf)
