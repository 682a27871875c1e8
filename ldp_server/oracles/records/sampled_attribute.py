"""The oracle of one sampled attribute: the binary estimate among those who drew it, scaled to all.

f_j = (n/n_j) (C_j - n_j q)/(p - q); variance (n/n_j)^2 times the binomial one, plus f (1 - f/n) (n/n_j - 1)
for which users drew the attribute.

The interval. The n_j users are drawn without replacement, so C_j has at most the spread of Bin(n_j, t) with
t = q + (p - q) f/n. Clopper and Pearson's interval for t, cut to [q, p], gives that for f.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_server.oracles.base import AttributesOracle, Floats, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile

__all__ = ["SampledAttributeOracle"]

_HALVINGS = 40


class SampledAttributeOracle(AttributesOracle):
    """Counts of (attribute, answer)."""

    kind: ClassVar[type[SampledAttribute]] = SampledAttribute

    def __init__(self, randomizer: SampledAttribute) -> None:
        super().__init__(randomizer)
        response = randomizer.response
        self._p, self._q = float(response.probability(1, 1)), float(response.probability(0, 1))

    def teams(self) -> Sequence[Chance]:
        """Which attribute a device answers does not depend on what it holds."""
        drawn = self.counts.values.reshape(-1, 2).sum(axis=1, dtype=np.int64)
        return (Chance(drawn, self.reports, 1 / len(drawn), 1 / len(drawn)),)

    def chances(self) -> Sequence[Chance]:
        """A yes or a no about one attribute."""
        attributes = len(self.counts.values) // 2
        return (Chance(self.counts.values, self.reports, self._p / attributes, self._q / attributes),)

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

    def attribute_intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return them from the law of yes and no; an attribute that nobody drew has the whole range."""
        z = normal_quantile(tail)
        table, line = np.unique(self.counts.values.reshape(-1, 2).astype(np.float64), axis=0, return_inverse=True)
        ends = [self._interval(float(yes), float(no + yes), z) for no, yes in table]
        low, high = (np.array([pair[side] for pair in ends])[line.ravel()] for side in (0, 1))
        return low, high

    def _interval(self, yes: float, drawn: float, z: float) -> tuple[float, float]:
        if not drawn:
            return 0.0, float(self.reports)
        low = self._crossing(drawn, yes, z) if yes else self._q
        high = self._crossing(drawn, yes + 1, -z) if yes < drawn else self._p
        scale = self.reports / (self._p - self._q)
        first, last = scale * (low - self._q), scale * (high - self._q)
        return float(np.ceil(first - 1e-6)), float(max(np.ceil(first - 1e-6), np.floor(last + 1e-6)))

    def _crossing(self, drawn: float, least: float, z: float) -> float:
        """The chance of a yes in [q, p] at which P(at least `least` of those who drew it say yes) = 1 - Phi(z)."""
        low, high = self._q, self._p
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            law = SupportLaw(int(drawn), middle, middle / 2)
            if float(law.score(np.array([drawn]), np.array([least]))[0]) > z:
                low = middle
            else:
                high = middle
        return (low + high) / 2
