r"""Intervals that hold at every look: with probability 1 - tail, no end is ever wrong, at no number of reports.

An ordinary interval is right with its confidence at one number of reports that was fixed beforehand. Whoever looks
every day, and stops at the day that looks best, is wrong far more often. The intervals here are right at all numbers of
reports at once.

**The process.** Report i adds x_i. Its factor for a tilt t is e^(t x_i), with mean m_u(t) for a user u, over the coins
of this report alone. Whatever came before,

    L_n(t) = exp(t (x_1 + ... + x_n) - ln m_u1(t) - ... - ln m_un(t))

is a product of factors of mean 1: a martingale that begins at 1. If m_u(t) is at most a(t) for a holder and at most
b(t) for everybody else, then with f holders among the first n users

    exp(t S_n - f ln a(t) - (n - f) ln b(t)) <= L_n(t),

and so is its average M_n(f) over tilts with fixed weights. By Ville's inequality, M_n exceeds 1/tail at *any* n with
probability `tail` at most. The interval at n is all f with M_n(f) <= 1/tail. Positive tilts give its lower end (M falls
in f), negative ones its upper end.

**What is fixed, and what is not.** Nothing is assumed of who reports when, but that it does not depend on coins of
reports to come. The truth may drift: f is the number of holders among those who have reported so far. Tilts and weights
are fixed by the mechanism, before the first report: the only data used are running counts and their number. No normal
law is used, so the statement is exact from n = 1 on.

**The tilts.** A deviation of z standard errors at n reports is seen best by t = z/(sigma sqrt(n)). The grid has that of
z = `_Z` and n = `_MIDDLE` in its middle, and then goes both ways in steps of a factor `_RATIO`. The weight of step k is
proportional to (2 + |k|)^-1.5. So an end reaches 3.2 standard errors in the middle, where a fixed 95% interval reaches
1.96, and somewhat more at far smaller or larger n (docs/planning.md has the widths).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Tilted", "bennett", "drawn_ends", "least_holders", "support_ends", "tilts"]

Floats = npt.NDArray[np.float64]
Ends = tuple[float, float]

_Z = 3.3
_MIDDLE = 1e5
_RATIO = 1.5
_STEPS = 26
_LARGEST = 25.0
"""The largest tilt times the largest score: e^25 is beyond every bar."""
_NEWTON = 100
_CHUNK = 1 << 14
_SLACK = 1e-6


@dataclass(frozen=True)
class Tilted:
    """Tilts of one sign with the bounds of the mean factors."""

    tilts: Floats
    log_weights: Floats
    holder: Floats
    """ln a(t)."""
    other: Floats
    """ln b(t)."""

    def least(self, sums: Floats, reports: int, tail: float) -> Floats:
        """Return the least numbers of holders that sums of scores allow; for negative tilts, the largest."""
        gains = sums[:, None] * self.tilts
        return self.least_of(gains, reports, tail)

    def least_of(self, gains: Floats, reports: int, tail: float) -> Floats:
        """Return the same, from t S_n for every tilt."""
        if self.tilts[0] > 0:
            return least_holders(gains, self, reports, tail)
        swapped = Tilted(self.tilts, self.log_weights, self.other, self.holder)
        return reports - least_holders(gains, swapped, reports, tail)


def tilts(sigma: float, largest: float, *, sign: float) -> tuple[Floats, Floats]:
    """Return the tilts and the logarithms of their weights, for scores of this spread and of at most this size."""
    steps = np.arange(-_STEPS, _STEPS + 1)
    found = _Z / (sigma * math.sqrt(_MIDDLE)) * _RATIO ** steps.astype(np.float64)
    kept = found * largest <= _LARGEST
    kept[0] = True  # the smallest is always there
    weights = (2.0 + np.abs(steps[kept])) ** -1.5
    return sign * found[kept], np.log(weights / weights.sum())


def least_holders(gains: Floats, law: Tilted, reports: int, tail: float) -> Floats:
    """Return the least f at which the average of exp(gain - f ln a - (n - f) ln b) is at most 1/tail.

    `gains` has a line for each item and a column for each tilt; ln a is at least ln b.
    """
    bar, slope = -math.log(max(tail, 1e-300)), law.holder - law.other
    found = np.empty(len(gains))
    for start in range(0, len(gains), _CHUNK):
        part = gains[start : start + _CHUNK] + (law.log_weights - reports * law.other)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(slope > 0, (part - bar) / slope, 0.0)
        f = np.clip(alone.max(axis=1), 0.0, float(reports))  # where the largest term alone comes down to the bar
        for _ in range(_NEWTON):  # a convex function that falls: Newton's steps stay to the left of its zero
            height, fall = _log_sum(part - f[:, None] * slope, slope)
            over = height > bar
            step = np.where(over, (height - bar) / np.maximum(fall, 1e-300), 0.0)
            f = np.minimum(f + step, float(reports))
            if float(step.max(initial=0.0)) < _SLACK / 2:
                break
        found[start : start + _CHUNK] = f
    return found


def _log_sum(logs: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the sum of the exponentials, and how fast it falls where the logs fall with these slopes."""
    top = logs.max(axis=1)
    parts = np.exp(logs - top[:, None])
    total = parts.sum(axis=1)
    return np.asarray(top + np.log(total)), np.asarray(parts @ slope / total)


def drawn_ends(yes: float, no: float, reports: int, drawn: float, told: tuple[float, float], tail: float) -> Ends:
    """Return the ends for yes and no of those who were drawn, each with probability `drawn`.

    `told` is how likely a holder and anybody else say yes. The score is 1 - c for yes, -c for no, 0 for who was not
    drawn, with c between the two probabilities: five of them, with equal weights, one of them near the best.
    """
    p, q = told
    centres = q + (p - q) * np.linspace(0, 1, 5)
    ends = []
    for sign in (1.0, -1.0):
        found, weights = tilts(math.sqrt(drawn * q * (1 - q)), 1.0, sign=sign)
        t, c = (grid.ravel() for grid in np.meshgrid(found, centres, indexing="ij"))
        holder, other = (np.log1p(drawn * (r * np.expm1(t * (1 - c)) + (1 - r) * np.expm1(-t * c))) for r in (p, q))
        law = Tilted(t, np.repeat(weights - math.log(len(centres)), len(centres)), holder, other)
        gains = (t * ((1 - c) * yes - c * no))[None, :]
        ends.append(float(law.least_of(gains, reports, tail)[0]))
    return ends[0], max(ends)


def support_ends(supports: Floats, reports: int, p: float, s: float, tail: float) -> tuple[Floats, Floats]:
    """Return both ends for counts of supports: a holder supports with probability p, anybody else with s."""
    if not reports:
        return np.zeros(len(supports)), np.zeros(len(supports))
    seen, place = np.unique(supports, return_inverse=True)
    ends = []
    for sign in (1.0, -1.0):
        found, weights = tilts(math.sqrt(s * (1 - s)), 1.0, sign=sign)
        factors = np.expm1(found)
        law = Tilted(found, weights, np.log1p(p * factors), np.log1p(s * factors))
        ends.append(law.least(seen, reports, tail))
    low = np.ceil(np.maximum(ends[0] - _SLACK, -0.5)) + 0.0
    return low[place], np.maximum(low, np.floor(ends[1] + _SLACK))[place]


def bennett(found: Floats, mean: float, variance: float, above: float, below: float) -> Floats:
    """Return a bound of ln E e^(t x) for scores of this mean and variance that differ from it by so much at most.

    Bennett's inequality: t mean + (variance/d^2)(e^(|t| d) - 1 - |t| d), with d the largest way up for positive tilts
    and down for negative ones.
    """
    way = above if found[0] > 0 else below
    size = np.abs(found) * max(way, 1e-300)
    return np.asarray(found * mean + variance / max(way, 1e-300) ** 2 * (np.expm1(size) - size))
