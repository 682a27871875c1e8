"""The oracle of bounded numbers: the average of those who have a number, with its standard error.

Each report about a number gives z = (Y - A)/(B J) - 1/2, whose mean over the users is the mean of (v/R - 1/2)
over all, people without a number counting 0. Reports about presence give the share h of those who have one.
The average is 1/2 + z/h; its variance, with the variances of the two averages read off the reports,

    (Var z + (z/h)^2 Var h) / h^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_server.oracles.base import NumbersOracle, two_sided

__all__ = ["Average", "BoundedNumberOracle"]


@dataclass(frozen=True)
class Average:
    """An average, as a distance from the lowest integer of the domain, and who it is about."""

    estimate: float
    standard_error: float
    low: float
    high: float
    holders: float
    """How many users have a number at all."""


class BoundedNumberOracle(NumbersOracle):
    """Counts of answers."""

    kind: ClassVar[type[BoundedNumber]] = BoundedNumber
    instead: ClassVar[str] = "ask for average(); frequencies and quantiles need hierarchy"

    def __init__(self, randomizer: BoundedNumber) -> None:
        super().__init__(randomizer)
        law = randomizer.law
        places = law.answers - law.window
        self._scores = (np.arange(law.answers) - float(law.base)) / (float(law.step) * places) - 0.5
        self._split = law.answers
        self._range = randomizer.size - 2
        response = randomizer.response
        self._p, self._q = float(response.probability(1, 1)), float(response.probability(0, 1))

    def _share(self) -> tuple[float, float]:
        """The share of users who have a number, and its variance; all of them where it was not asked."""
        held = self.counts.values[self._split :].astype(np.float64)
        asked = float(held.sum())
        if not len(held):
            return 1.0, 0.0
        if asked < 2:
            return 1.0, math.inf
        answered = float(held[1]) / asked
        gap = self._p - self._q
        return (answered - self._q) / gap, answered * (1 - answered) / (asked - 1) / gap**2

    def holders(self) -> float:
        return max(0.0, min(1.0, self._share()[0])) * self.reports

    def average(self, confidence: float = 0.95) -> Average:
        """Return the average with its interval; the whole range where the reports cannot tell."""
        reach = two_sided(confidence)
        counts = self.counts.values[: self._split].astype(np.float64)
        users = float(counts.sum())
        share, share_variance = self._share()
        if users < 2 or share <= 3 * math.sqrt(share_variance):
            holders = max(0.0, min(1.0, share)) * self.reports
            return Average(self._range / 2, math.inf, 0.0, float(self._range), holders)
        mean = float(counts @ self._scores) / users
        variance = float(counts @ (self._scores - mean) ** 2) / (users - 1) / users
        centre = mean / share
        error = math.sqrt(variance + centre**2 * share_variance) / share
        middle, spread = (0.5 + centre) * self._range, error * self._range
        return Average(middle, spread, middle - reach * spread, middle + reach * spread, share * self.reports)
