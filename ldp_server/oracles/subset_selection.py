"""The oracle of subset selection: how many sets hold each category, f(y) = (S(y) - n q)/(p - q).

There are up to 2^63 different reports, so the state is not their counts but the k numbers S(y): a report adds one to
each category of its set. They are additive like counts, and estimates need nothing else.

Sums. Two categories y, z that a user does not hold are in the set together with probability
q2 = (p (d-1)(d-2) + (1-p) d (d-1))/((k-1)(k-2)), and the user's own category and another one with probability
p (d-1)/(k-1). The variance of a sum of estimates follows from these. Over all k categories it is 0, since every set has
d of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.oracles.shared.counts import Counts
from ldp_server.oracles.shared.supports import Supports

__all__ = ["SubsetSelectionOracle"]


class _Supports(Supports):
    """How many sets hold each category."""

    def __init__(self, randomizer: SubsetSelection) -> None:
        super().__init__(randomizer, randomizer.size, randomizer.d)


class SubsetSelectionOracle(FrequencyOracle):
    """Counts of categories in sets."""

    kind: ClassVar[type[SubsetSelection]] = SubsetSelection
    state: ClassVar[type[Counts]] = _Supports

    def __init__(self, randomizer: SubsetSelection) -> None:
        super().__init__(randomizer)
        self._p, self._q = (float(x) for x in randomizer.support)
        self._gap = float(randomizer.support[0] - randomizer.support[1])
        self._k, self._d = randomizer.size, randomizer.d

    def estimate(self, indexes: Indexes) -> Floats:
        held = self.counts.values[indexes.astype(np.intp)].astype(np.float64)
        return np.asarray((held - self.reports * self._q) / self._gap)

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        return binomial_variance(frequencies, self.reports, self._p, self._q)

    @property
    def law(self) -> SupportLaw:
        return SupportLaw(self.reports, self._p, self._q)

    def chances(self) -> Sequence[Chance]:
        """A category is in the sets of its holders with p, in those of all others with q."""
        return (Chance(self.counts.values, self.reports, self._p, self._q),)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of a sum: categories of one set exclude each other a little."""
        del indexes  # all categories are alike
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        p, q, d, k, m = self._p, self._q, self._d, self._k, f.size
        both = (p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / ((k - 1) * (k - 2)) if k > 2 else 0.0
        apart, own = both - q * q, p * (d - 1) / (k - 1) - p * q
        holders = min(float(f.sum()), self.reports)
        single = holders * p * (1 - p) + (m * self.reports - holders) * q * (1 - q)
        pairs = (self.reports - holders) * m * (m - 1) * apart
        pairs += holders * (m - 1) * (2 * own + (m - 2) * apart)
        return max(0.0, single + pairs) / self._gap**2
