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

from ldp_server.oracles.laws.normal import normal_tail

__all__ = ["SupportLaw", "normal_quantile"]

Floats = npt.NDArray[np.float64]

_STEPS = 120
_SLACK = 1e-3
_PRECISION = 1e-6
"""Of a standard error: how near the ends are found."""
_FEW = 120
"""So few holders and supports have their tails by convolution: saddlepoints are not exact enough there."""
_FLAT = 1e-4
"""Below this the tail is a half, and no interval ends there."""


def _binomial(trials: int, chance: float, length: int) -> Floats:
    """Return the first probabilities of a binomial law."""
    k = np.arange(length)
    ways = np.concatenate(([0.0], np.cumsum(np.log(np.maximum(trials - k[:-1], 1) / k[1:]))))
    logs = ways + k * math.log(chance) + (trials - k) * math.log1p(-chance)
    return np.where(k <= trials, np.exp(logs), 0.0)


def normal_quantile(tail: float) -> float:
    """Return the z that a normal error exceeds with this probability; 1e-300 stands for anything smaller."""
    return -NormalDist().inv_cdf(max(tail, 1e-300))


@dataclass(frozen=True)
class SupportLaw:
    """Bin(f, p) + Bin(n - f, s), the number of reports that support an item with f holders."""

    reports: int
    p: float
    s: float

    @property
    def unit(self) -> float:
        """The distance between two possible estimates."""
        return 1 / (self.p - self.s)

    def spread(self, holders: npt.ArrayLike) -> Floats:
        """Return the standard errors of the estimates of items with so many holders."""
        f = np.clip(np.asarray(holders, np.float64), 0, self.reports)
        variance = f * self.p * (1 - self.p) + (self.reports - f) * self.s * (1 - self.s)
        return np.asarray(np.sqrt(variance) / (self.p - self.s))

    def tails(self, holders: Floats, limits: Floats) -> Floats:
        """Return P(estimate >= limit), a line for each number of holders and a column for each limit."""
        least = np.ceil(limits * (self.p - self.s) + self.reports * self.s - 1e-6)
        if holders.max() <= _FEW and least.max() <= _FEW and (holders == np.rint(holders)).all():
            return self._exact_tails(holders, least)
        f, k = np.broadcast_arrays(holders[:, None], least)
        z = self.score(f.ravel(), k.ravel()).reshape(f.shape)
        return normal_tail(z)

    def _exact_tails(self, holders: Floats, least: Floats) -> Floats:
        """The tails for few holders and few supports, by convolution."""
        top = max(int(least.max()), 1)
        out = np.empty((len(holders), len(least)))
        for line, f in enumerate(holders.astype(int).tolist()):
            law = np.convolve(_binomial(f, self.p, top), _binomial(self.reports - f, self.s, top))[:top]
            above = np.maximum(0.0, 1 - np.concatenate(([0.0], np.cumsum(law))))
            out[line] = above[np.clip(least, 0, top).astype(np.intp)]
        return out

    def supports(self, estimates: npt.ArrayLike) -> Floats:
        """Return the whole numbers of supports that unbiased estimates (S - n s)/(p - s) were made from."""
        counts = np.asarray(estimates, np.float64) * (self.p - self.s) + self.reports * self.s
        return np.clip(np.rint(counts), 0, self.reports)

    def noise(self, z: float) -> float:
        """Return the largest estimate whose interval begins at 0, for the tail of z standard errors."""
        low, high = 0, self.reports
        while low < high:  # `low` supports or fewer may be those of an item that nobody holds
            middle = np.unique(np.linspace(low + 1, high, 16).astype(np.int64)).astype(np.float64)
            few = int((self.score(np.zeros(len(middle)), middle) < z).sum())
            low, high = (int(middle[few - 1]) if few else low), (int(middle[few]) - 1 if few < len(middle) else high)
        return (low - self.reports * self.s) * self.unit

    def intervals(self, estimates: npt.ArrayLike, tail: float) -> tuple[Floats, Floats]:
        """Return the intervals for the numbers of holders; each end errs with probability `tail` at most."""
        return self.intervals_at(estimates, normal_quantile(tail))

    def intervals_at(self, estimates: npt.ArrayLike, z: float) -> tuple[Floats, Floats]:
        """Return them for the tail that a normal error of z standard errors has."""
        seen, place = np.unique(self.supports(estimates), return_inverse=True)
        shape = np.shape(estimates)
        # Users are whole numbers. The ends were found within a small part of a standard error.
        low, high = np.ceil(self._lowest(seen, z) - _SLACK), np.floor(self._highest(seen, z) + _SLACK)
        high = np.maximum(low, high)
        return low[place].reshape(shape), high[place].reshape(shape)

    def _lowest(self, seen: Floats, z: float) -> Floats:
        """The least f at which so many supports or more are not too many."""
        fits = (self.score(np.zeros(len(seen)), seen) < z) | (seen == 0)
        return np.where(fits, 0.0, self._crossing(seen, z)[0])

    def _highest(self, seen: Floats, z: float) -> Floats:
        """The largest f at which so many supports or fewer are not too few."""
        n = float(self.reports)
        fits = (self.score(np.full(len(seen), n), seen + 1) > -z) | (seen == n)
        return np.where(fits, n, self._crossing(seen + 1, -z)[1])

    def _crossing(self, least: Floats, z: float) -> tuple[Floats, Floats]:
        """The two sides of the f at which `score` falls below z; where it does so nowhere in [0, n], anything.

        A bracket around the normal law's answer, or [0, n], is made smaller by secants and halves in turn.
        """
        n = float(self.reports)
        guess = np.clip((least - n * self.s) / (self.p - self.s), 0, n)
        spread = self.spread(guess) + self.unit
        low, high = (np.clip(guess - z * spread + side * spread, 0, n) for side in (-1.5, 1.5))
        above, below = self.score(low, least) - z, self.score(high, least) - z
        low, high = np.where(above > 0, low, 0.0), np.where(below <= 0, high, n)
        above, below = self.score(low, least) - z, self.score(high, least) - z
        low, high = np.where(below > 0, high, low), np.where(above <= 0, low, high)  # it crosses nowhere
        for step in range(_STEPS):
            if float((high - low).max(initial=0.0)) <= _PRECISION * max(1.0, float(spread.min(initial=n))):
                break
            middle = (low + high) / 2
            if step % 3 < 2:  # a secant, a little to the side on which the far end moves too
                with np.errstate(invalid="ignore", divide="ignore"):
                    part = np.clip(above / (above - below), 0.0, 1.0)
                part += np.where(part < 0.5, _PRECISION, -_PRECISION)
                secant = low + part * (high - low)
                middle = np.where(np.isfinite(secant) & (secant > low) & (secant < high), secant, middle)
            value = self.score(middle, least) - z
            over = value > 0
            low, above = np.where(over, middle, low), np.where(over, value, above)
            high, below = np.where(over, high, middle), np.where(over, below, value)
        return low, high

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
