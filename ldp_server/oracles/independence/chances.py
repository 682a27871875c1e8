"""Counts that no honest users can give, whatever they hold.

Whatever a user's item is, a report falls on a counted number with a probability between `least` and `most`. So over n
honest, independent reports the count lies between two binomial counts:

    P(count >= k) <= P(Binomial(n, most) >= k),    P(count <= k) <= P(Binomial(n, least) <= k),

and with m counted numbers each tail may have 1/(2 m) of the failure probability. Where the draw is free of the item, as
that of a team is, `most` and `least` are equal. Nothing is assumed about the items, and no bound is asymptotic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.binomial import largest_likely, least_likely

__all__ = ["Chance"]


@dataclass(frozen=True)
class Chance:
    """Counts of one kind, and how likely one report adds to each of them."""

    counts: npt.NDArray[np.integer]
    trials: int
    most: float
    least: float
    place: int | None = None
    """Where they stand in the oracle's counts, if what is beyond the largest likely count is left out."""
    of: int = 1
    """How many such kinds there are: they share the failure probability."""

    def limits(self, failure: float) -> tuple[int, int]:
        """Return the least and the largest count that are likely; honest reports leave them with this probability."""
        return _limits(self.trials, len(self.counts), self.most, self.least, failure / self.of)

    def broken(self, failure: float) -> bool:
        """Whether a count is one that honest reports do not give."""
        if not len(self.counts) or not self.trials:
            return False
        low, high = self.limits(failure)
        return bool(self.counts.max() > high or self.counts.min() < low)


@lru_cache(maxsize=1024)
def _limits(trials: int, counted: int, most: float, least: float, failure: float) -> tuple[int, int]:
    each = math.log(failure / (2 * counted))
    low = 0 if least <= 0 else least_likely(trials, least, each)
    return low, largest_likely(trials, most, each)
