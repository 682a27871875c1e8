r"""The sum of a score of each report, and the intervals that follow from it at any number of reports.

A report's score x depends on the report and on the question's parameters, and on no other report. Its mean over the
coins of its device is 1 for a user who is counted and 0 for anybody else. In a sum that is only a bound the mean may be
less than that for a lower bound, or more for an upper one. The factor e^(t x) has by Bennett's inequality the mean

    exp(t mu + v/d^2 (e^(|t| d) - 1 - |t| d))

at most, with v the largest variance of a score of such a user and d the farthest that a score lies from its mean in the
direction of t. The right side rises in v and in d, so the largest of each may be taken.

**Users who are fixed.** f of the n who reported are counted. Every look: laws/every_look.py.

**Users who are drawn.** Each report comes from a counted user with the same probability theta, independently of the
others. Its factor has the mean theta a(t) + (1 - theta) b(t). The likelihood of laws/every_look.py with it is again a
product of factors of mean 1 at most, so theta lies in

    { theta : average over t of exp(t S_n - n ln(theta a(t) + (1 - theta) b(t))) <= 1/tail }

at all n at once, but for the probability `tail`. Copies: with each report counted as 1/w of a report, the exponent is
divided by w (ldp_server/answers/over_time/change.py says why that is enough for reports that come at most w times).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.every_look import Tilted, bennett, tilts

__all__ = ["ScoreSum", "share_crossing"]

Floats = npt.NDArray[np.float64]
Ends = tuple[float, float]

_SLACK = 1e-6
_HALVINGS = 50
_NEAREST = 1e-9
"""The least distance of a score from its mean that is reckoned with: a sum of no cells has scores of 0 alone."""


@dataclass(frozen=True)
class ScoreSum:
    """The sum of the scores of some reports, and what is known of a single score."""

    total: float
    reports: float
    most: float
    """The largest score that a report may have."""
    least: float
    inside: float
    """The largest variance of the score of a user who is counted."""
    outside: float
    """The same of anybody else."""
    shift: float = 0.0
    """By how much a mean may miss 1 or 0, in a sum that is only a bound."""

    def with_more(self, other: ScoreSum) -> ScoreSum:
        """Return the sum over these reports and others of the same question."""
        return replace(self, total=self.total + other.total, reports=self.reports + other.reports)

    def weighed(self, times: float) -> ScoreSum:
        """Return the same with each report as 1/times of one, where copies are seen."""
        return replace(self, total=self.total / times, reports=self.reports / times)

    def low(self, tail: float) -> float:
        """Return the least number of users who are counted; it is ever too large with probability `tail` at most."""
        found = float(self._tilted(1.0).least(np.array([self.total]), int(self.reports), tail)[0])
        return float(min(self.reports, max(0, math.ceil(found - _SLACK))))

    def high(self, tail: float) -> float:
        """Return the largest number; it is ever too small with probability `tail` at most."""
        found = float(self._tilted(-1.0).least(np.array([self.total]), int(self.reports), tail)[0])
        return float(min(self.reports, max(0, math.floor(found + _SLACK))))

    def ends(self, tail: float) -> Ends:
        """Return both ends."""
        low = self.low(tail)
        return low, max(low, self.high(tail))

    def share_ends(self, tail: float) -> Ends:
        """Return the ends for the share of those who could report, of whom each report is a draw."""
        if not self.reports:
            return 0.0, 1.0
        ends = []
        for sign in (1.0, -1.0):
            law = self._tilted(sign)
            gains = law.log_weights, law.tilts * self.total
            ends.append(share_crossing(gains, (law.holder, law.other), self.reports, tail))
        return ends[0], max(ends)

    def _tilted(self, sign: float) -> Tilted:
        spread = math.sqrt(max(self.outside, 1e-12))
        found, log_weights = tilts(spread, max(self.most, -self.least, 1.0), sign=sign)
        holder, other = (
            bennett(
                found,
                mean,
                variance,
                *(max(_NEAREST, way + self.shift) for way in (self.most - mean, mean - self.least)),
            )
            for mean, variance in ((1.0, self.inside), (0.0, self.outside))
        )
        if sign > 0:
            return Tilted(found, log_weights, np.maximum(holder, other), other)
        return Tilted(found, log_weights, holder, np.maximum(holder, other))


def share_crossing(gains: tuple[Floats, Floats], factors: tuple[Floats, Floats], reports: float, tail: float) -> float:
    """Return the end of the shares for which the average over tilts is at most 1/tail: 0 or 1 if all of them are.

    `gains` are the logarithms of the weights and t S_n; `factors` ln a(t) and ln b(t). Where a is larger than b the
    average falls with the share, and the end is the least share; else it is the largest.
    """
    bar, (log_weights, sums), (holder, other) = -math.log(max(tail, 1e-300)), gains, factors
    falls = bool((holder >= other).all())
    out, inside = (0.0, 1.0) if falls else (1.0, 0.0)

    def beyond(share: float) -> bool:
        with np.errstate(divide="ignore"):
            mixed = np.logaddexp(np.log(share) + holder, np.log1p(-share) + other)
        exponents = log_weights + sums - reports * mixed
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum())) > bar

    if not beyond(out):
        return out
    for _ in range(_HALVINGS):
        middle = (out + inside) / 2
        out, inside = (middle, inside) if beyond(middle) else (out, middle)
    return out
