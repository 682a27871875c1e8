"""The oracle of bounded numbers: the average of those who have a number, with its standard error.

Each report about a number gives z = (Y - A)/(B J) - 1/2, whose mean over the users is the mean of (v/R - 1/2)
over all, people without a number counting 0. Reports about presence give the share h of those who have one.
The average is 1/2 + z/h; its variance is (Var z + (z/h)^2 Var h) / h^2.

Var z is that of the noise only: the numbers are fixed, and how much they differ is no error. Given its user's v, one
report's score Z has mean m(v) = v/R - 1/2 and a variance V(v). A crowd's mean of E[Z^2 | v] and mean of V(v) is a point
of the convex hull of the points (E[Z^2 | v], V(v)). The first is read off the reports, as the mean of Z^2; the upper
hull above it bounds the second. Where only some users were asked for their number (the others about presence), the
choice of these users adds (1 - asked/n) times the variance of m, which is at most the variance of Z minus the noise.
The variance of h has the same two parts, for each user: p (1 - p)/(p - q)^2 for the answer, and (1 - asked/n) h (1 - h)
for the choice of those who were asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldp_client.mechanisms.bounded_number import ROLES, BoundedNumber
from ldp_server.oracles.base import Floats, NumbersOracle, two_sided
from ldp_server.oracles.independence.chances import Chance

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
    instead: ClassVar[str] = "ask for its average (`ldp-server average`); frequencies and quantiles need hierarchy"

    def __init__(self, randomizer: BoundedNumber) -> None:
        super().__init__(randomizer)
        law = self._law = randomizer.law
        places = law.answers - law.window
        self._scores = (np.arange(law.answers) - float(law.base)) / (float(law.step) * places) - 0.5
        self._split = law.answers
        self._range = randomizer.size - 2
        self._asked = -(-(randomizer.presence << randomizer.word_bits) // ROLES) / (1 << randomizer.word_bits)
        response = randomizer.response
        self._p, self._q = float(response.probability(1, 1)), float(response.probability(0, 1))

    def teams(self) -> Sequence[Chance]:
        """Who is asked about presence does not depend on the number."""
        held = self.counts.values[self._split :].sum(dtype=np.int64, keepdims=True)
        return (Chance(held, self.reports, self._asked, self._asked),) if self._asked else ()

    def chances(self) -> Sequence[Chance]:
        """An answer is inside the window or outside, for every place of it; presence is a yes or a no."""
        law, n, rest = self._law, self.reports, 1 - self._asked
        weights = [law.weight(0, answer) for answer in (0, law.answers - 1)]
        most, least = (rest * weight / (1 << law.word_bits) for weight in weights)
        kinds = 2 if self._asked else 1
        found = [Chance(self.counts.values[: self._split], n, most, least, of=kinds)]
        if self._asked:
            held = self.counts.values[self._split :]
            found.append(Chance(held, n, self._asked * self._p, self._asked * self._q, of=kinds))
        return found

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
        share = (answered - self._q) / gap
        noise = self._q * (1 - self._q) / gap**2
        sampled = (1 - asked / self.reports) * (share * (1 - share) if 0 < share < 1 else 0.25)
        return share, (noise + sampled) / asked

    def holders(self) -> float:
        return max(0.0, min(1.0, self._share()[0])) * self.reports

    def _variance(self, mean: float, square: float, users: float) -> float:
        """Var z, from the mean and the mean square of the scores."""
        noise = self._noise(square)
        differ = max(0.0, square - mean**2 - noise)
        return (noise + (1 - users / self.reports) * differ) / users

    def _noise(self, square: float) -> float:
        """The largest mean of V over the users that the mean square allows: the upper hull of (E[Z^2 | v], V(v))."""
        law = self._law
        weights = [[law.weight(j, y) for y in range(law.answers)] for j in range(law.answers - law.window + 1)]
        places = np.array(weights, np.float64) / (1 << law.word_bits)
        squares, means = places @ self._scores**2, places @ self._scores
        part = np.linspace(0, 1, 33)[:, None]  # between two places both moments are linear
        moments = ((1 - part) * squares[:-1] + part * squares[1:]).ravel()
        centres = ((1 - part) * means[:-1] + part * means[1:]).ravel()
        return _upper_hull(moments, moments - centres**2, square)

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
        variance = self._variance(mean, float(counts @ self._scores**2) / users, users)
        centre = mean / share
        error = math.sqrt(variance + centre**2 * share_variance) / share
        middle, spread = (0.5 + centre) * self._range, error * self._range
        return Average(middle, spread, middle - reach * spread, middle + reach * spread, share * self.reports)


def _upper_hull(xs: Floats, ys: Floats, at: float) -> float:
    """The height of the upper convex hull of these points above `at`; beyond its ends, that of the end."""
    hull: list[tuple[float, float]] = []
    for x, y in sorted(zip(xs.tolist(), ys.tolist(), strict=True)):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) <= (y - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return float(np.interp(at, [x for x, _ in hull], [y for _, y in hull]))
