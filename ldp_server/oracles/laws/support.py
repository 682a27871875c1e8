r"""The exact law of a count of supports, and intervals made by inverting it.

Of n reports, S support an item. A holder's report does so with probability p, anybody else's with s < p, all of them
independent: S is Bin(f, p) + Bin(n - f, s) for an item with f holders. Randomized response, linear-hash response and
subset selection have this law. The interval for f is

    { f in [0, n] : P_f(S >= S_seen) > tail  and  P_f(S <= S_seen) > tail },

which misses the true f with probability at most `tail` on each side, whatever f is: P_f(S >= k) rises with f. No
estimate of a standard error enters. With very few holders and no chance supports the law is a small binomial one, and
inverting it is the interval of Clopper and Pearson.

Tails. K(theta) = f ln(1 - p + p e^theta) + (n - f) ln(1 - s + s e^theta) is the cumulant generating function of S, with
f any real number. The saddlepoint solves K'(theta) = x; with w = e^theta that is the quadratic

    (n - x) p s w^2 + [f p (1-s) + (n-f) s (1-p) - x (p (1-s) + s (1-p))] w - x (1-p)(1-s) = 0,

whose coefficients of w^2 and 1 have opposite signs, so that it has one positive root. For P(S >= k) take x = k - 1/2,

    r = sign(theta) sqrt(2 (theta x - K)),   u = 2 sinh(theta/2) sqrt(K''(theta)),

and P(S >= k) = 1 - Phi(r + ln(u/r)/r) nearly: Lugannani and Rice's tail with Daniels' second continuity correction, in
Barndorff-Nielsen's form, which needs no table of Phi: it is compared with a quantile. P(S <= k) is 1 - P(S >= k + 1).
The outermost tails are exact: P(S >= n) = p^f s^(n-f), P(S <= 0) = (1-p)^f (1-s)^(n-f), P(S >= 0) = P(S <= n) = 1.
A test compares the tails with convolutions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["SupportLaw", "normal_quantile"]

Floats = npt.NDArray[np.float64]

_STEPS = 40
"""Bisections: each end is found within n/2^40 users."""
_FLAT = 1e-4
"""Below this the tail is a half, and no interval ends there."""


def normal_quantile(tail: float) -> float:
    """Return the z that a normal error exceeds with this probability; 1e-300 stands for anything smaller."""
    return -NormalDist().inv_cdf(max(tail, 1e-300))


@dataclass(frozen=True)
class SupportLaw:
    """Bin(f, p) + Bin(n - f, s), the number of reports that support an item with f holders."""

    reports: int
    p: float
    s: float

    def supports(self, estimates: npt.ArrayLike) -> Floats:
        """Return the whole numbers of supports that unbiased estimates (S - n s)/(p - s) were made from."""
        counts = np.asarray(estimates, np.float64) * (self.p - self.s) + self.reports * self.s
        return np.clip(np.rint(counts), 0, self.reports)

    def intervals(self, estimates: npt.ArrayLike, tail: float) -> tuple[Floats, Floats]:
        """Return the intervals for the numbers of holders; each end errs with probability `tail` at most."""
        seen, place = np.unique(self.supports(estimates), return_inverse=True)
        shape = np.shape(estimates)
        low, high = self._lowest(seen, tail), self._highest(seen, tail)
        return low[place].reshape(shape), high[place].reshape(shape)

    def _lowest(self, seen: Floats, tail: float) -> Floats:
        """The least f at which so many supports or more are not too many."""
        z, n = normal_quantile(tail), float(self.reports)
        low, high = np.zeros(len(seen)), np.full(len(seen), n)
        fits = self.score(low, seen) < z
        fits |= seen == 0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            enough = self.score(middle, seen) < z
            high, low = np.where(enough, middle, high), np.where(enough, low, middle)
        return np.where(fits, 0.0, low)

    def _highest(self, seen: Floats, tail: float) -> Floats:
        """The largest f at which so many supports or fewer are not too few."""
        z, n = normal_quantile(tail), float(self.reports)
        low, high = np.zeros(len(seen)), np.full(len(seen), n)
        fits = (self.score(high, seen + 1) > -z) | (seen == n)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            enough = self.score(middle, seen + 1) > -z
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        return np.where(fits, n, high)

    def score(self, holders: Floats, least: Floats) -> Floats:
        """Return z with P(S >= least) = 1 - Phi(z), for numbers of holders f and whole numbers `least`."""
        f, n = np.broadcast_to(holders, np.shape(least)), float(self.reports)
        x = np.clip(least - 0.5, 0.25, max(n - 0.25, 0.25))
        z = self._saddle(f, x)
        z = np.where(least <= 0, -np.inf, np.where(least > n, np.inf, z))
        for edge, sign, rate in ((1.0, -1.0, (1 - self.p, 1 - self.s)), (n, 1.0, (self.p, self.s))):
            at = least == edge
            if at.any():
                z[at] = sign * self._exact(f[at], *rate)
        return np.asarray(z)

    def _exact(self, holders: Floats, held: float, other: float) -> Floats:
        """The z of the probability held^f other^(n-f)."""
        with np.errstate(invalid="ignore"):
            logs = holders * math.log(held) + (self.reports - holders) * math.log(other)
        inverse = NormalDist().inv_cdf
        tails = np.exp(np.maximum(logs, -690.0))
        return np.array([-inverse(tail) if 0 < tail < 1 else -math.inf for tail in tails.tolist()])

    def _saddle(self, f: Floats, x: Floats) -> Floats:
        p, s, g = self.p, self.s, self.reports - f
        square, unit = (self.reports - x) * p * s, x * (1 - p) * (1 - s)
        linear = f * p * (1 - s) + g * s * (1 - p) - x * (p * (1 - s) + s * (1 - p))
        root = np.sqrt(linear**2 + 4 * square * unit)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            w = np.where(linear > 0, 2 * unit / (linear + root), (root - linear) / (2 * square))
            theta = np.log(w)
            held, other = p * w / (1 - p + p * w), s * w / (1 - s + s * w)
            # ln(1 - p + p w) = log1p(p (w - 1)): no digits are lost near theta = 0.
            k = f * np.log1p(p * (w - 1)) + g * np.log1p(s * (w - 1))
            spread = np.sqrt(f * held * (1 - held) + g * other * (1 - other))
            r = np.sign(theta) * np.sqrt(np.maximum(2 * (theta * x - k), 0.0))
            u = 2 * np.sinh(theta / 2) * spread
            z = r + np.log(u / r) / r
        return np.where((np.abs(r) > _FLAT) & np.isfinite(z), z, r)
