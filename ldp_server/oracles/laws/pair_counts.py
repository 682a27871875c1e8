r"""The law of the number of equal pairs among draws that are independent, and how many pairs are too many.

n draws from B equally likely values give value b N_b times, and T = sum of N_b (N_b - 1)/2 equal pairs:

    E T = n (n-1)/(2 B),    Var T = E T (1 - 1/B).

If draws are copied, so that independent draw i comes w_i times (sum w_i = n), then E T grows by (1 - 1/B) sum of
w_i (w_i - 1)/2, and

    lambda = 1 + 2 (T - E T)/(n (1 - 1/B))

has the mean sum w^2 / sum w: the factor by which copies raise the variance of every sum over the draws. Its standard
deviation is at most lambda sqrt(2/(B-1)).

Several draws of n_l from B_l values each are taken together with weights g_l, B_l/n_l up to a factor. (The noise of T_l
is n_l/sqrt(2 B_l) and copies add n_l to it for each part of them, so these weights see copies best.)

The tail. The N_b are independent Poisson counts with mean mu = n/B, given that they add up to n. Let

    K(s, a) = ln sum over k of Poisson(k; mu) e^(s g (k-mu)^2/2 + a (k-mu)),

T being g sum (N_b - mu)^2/2 but for a constant. With a(s) the minimum of K in a, L(s) = sum over the draws of
B K(s, a(s)) nearly is the cumulant generating function of T given n, and Skovgaard's double saddlepoint formula gives
its tail. At s with L'(s) = x, with r = sqrt(2 (s x - L)) and

    u = 2 sinh(s h/2)/h sqrt(L'' product of K_aa(s, a(s))/K_aa(0, 0)),   h the distance between possible values,

P(T >= x + h/2) = 1 - Phi(r + ln(u/r)/r). The normal law is far too narrow there: of 1,000 draws from 14 million values
one pair alone is 5 standard deviations, and has probability .035. Counts beyond a largest and a least one are left out
of K; their probability, bounded by adding up binomial tails, is part of the failure probability. The tests compare the
limits with the exact law, computed by convolution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.binomial import largest_likely, least_likely

__all__ = ["LEAST_VALUES", "Pairs", "PairsLaw"]

LEAST_VALUES = 64
"""With fewer values the saddlepoint is not exact, and copies of less than half of all draws are not seen."""
_BEYOND = 0.1
"""The part of the failure probability for counts that K leaves out."""
_STEPS = 200
_HALVINGS = 80
_PRECISE = 1e-10
_STEEPEST = 1e3
_CAUGHT = 1.6449
"""Standard deviations below the mean that a normal value stays above with probability 95%."""


@dataclass(frozen=True)
class Pairs:
    """The equal pairs among `draws` draws from `values` equally likely values."""

    draws: int
    values: int
    pairs: int

    @classmethod
    def of(cls, parts: Iterable[npt.NDArray[np.integer]]) -> Pairs:
        """Return the pairs of values that were drawn so often; the parts are looked at one after the other."""
        draws = values = twice = 0
        for part in parts:
            often = part.astype(np.int64, copy=False)
            draws, values = draws + int(often.sum()), values + len(often)
            twice += int(often @ (often - 1))
        return cls(draws, values, twice // 2)


class PairsLaw:
    """T, the weighted number of equal pairs of several draws, and what independent draws make of it."""

    def __init__(self, draws: Sequence[tuple[int, int]]) -> None:
        """Take (n_l, B_l) of each draw."""
        self.draws = [(n, values) for n, values in draws if n > 1 and values >= LEAST_VALUES]
        finest = max((values / n for n, values in self.draws), default=1.0)
        self.weights = [values / n / finest for n, values in self.draws]
        parts = list(zip(self.weights, self.draws, strict=True))
        self.mean = sum(g * n * (n - 1) / (2 * b) for g, (n, b) in parts)
        self.spread = math.sqrt(sum(g * g * n * (n - 1) / (2 * b) * (1 - 1 / b) for g, (n, b) in parts))
        self.gain = sum(g * n * (1 - 1 / b) for g, (n, b) in parts)
        """How much T grows on average if every draw comes twice as often as it should: n (1 - 1/B)."""

    def total(self, pairs: Sequence[Pairs]) -> float:
        """Return T of these pairs, given in the order of the draws."""
        used = [one.pairs for one in pairs if one.draws > 1 and one.values >= LEAST_VALUES]
        return sum(g * count for g, count in zip(self.weights, used, strict=True))

    def factor(self, total: float) -> float:
        """Return the estimate of lambda."""
        return 1 + 2 * (total - self.mean) / self.gain if self.gain else 1.0

    @property
    def uncertainty(self) -> float:
        """The standard deviation of the estimate of lambda, over lambda."""
        return 2 * self.spread / self.gain if self.gain else math.inf

    def limit(self, failure: float) -> float:
        """Return the T that independent draws reach with this probability at most; infinite if there is none."""
        return _limit(tuple(self.draws), tuple(self.weights), failure) if self.draws else math.inf

    def caught_from(self, failure: float) -> float | None:
        """Return the part of copies, of all draws, from which T exceeds the limit with probability 95%.

        Copies of different draws; None if no part up to a half is caught. At the part d the mean of T is larger by
        d gain, and its standard deviation by the factor lambda = 1 + 2 d.
        """
        room = self.gain - 2 * _CAUGHT * self.spread
        limit = self.limit(failure)
        if room <= 0 or not math.isfinite(limit):
            return None
        part = (limit - self.mean + _CAUGHT * self.spread) / room
        return part if part <= 0.5 else None


class _Part:
    """The counts of one draw's values: K and its derivatives."""

    def __init__(self, draws: int, values: int, weight: float, log_beyond: float) -> None:
        self.values, self.mean = values, draws / values
        each = log_beyond - math.log(2 * values)
        low, high = least_likely(draws, 1 / values, each), largest_likely(draws, 1 / values, each)
        k = np.arange(low, high + 1, dtype=np.float64)
        logs = k * math.log(self.mean) - self.mean - np.array([math.lgamma(x + 1) for x in k.tolist()])
        self.distance = k - self.mean
        self.square = weight * self.distance**2 / 2
        self.logs = logs
        self.deviation = math.sqrt(self.mean)
        self.slope = 0.0
        self.plain = self.at(0.0)[4]

    def at(self, s: float) -> tuple[float, float, float, float, float]:
        """Return K(s, a(s)), and the derivatives K_s, K_ss, K_sa and K_aa there."""
        a, low, high = self.slope, -math.inf, math.inf
        for _ in range(_STEPS):
            powers = self.logs + s * self.square + a * self.distance
            top = float(powers.max())
            mass = np.exp(powers - top)
            total = float(mass.sum())
            mass /= total
            mean = float(mass @ self.distance)
            spread = float(mass @ np.square(self.distance - mean))
            if abs(mean) <= _PRECISE * self.deviation:
                break
            low, high = (a, high) if mean < 0 else (low, a)
            a = self._next(a, mean, spread, (low, high))
        self.slope = a
        first = float(mass @ self.square)
        off = self.square - first
        spread = max(spread, _PRECISE * self.mean)
        return (
            top + math.log(total),
            first,
            float(mass @ np.square(off)),
            float(mass @ (off * (self.distance - mean))),
            spread,
        )

    def _next(self, a: float, mean: float, spread: float, ends: tuple[float, float]) -> float:
        """Return Newton's next a, or the middle of the ends where that leaves them."""
        low, high = ends
        most = 4 / self.deviation
        step = -mean / spread if spread > 0 else math.copysign(most, -mean)
        a += max(-most, min(most, step))
        return a if low < a < high else (low + high) / 2


@lru_cache(maxsize=256)
def _limit(draws: tuple[tuple[int, int], ...], weights: tuple[float, ...], failure: float) -> float:
    """Find the s whose tail is as wanted; its T is the limit."""
    beyond = math.log(_BEYOND * failure / len(draws))
    parts = [_Part(n, values, g, beyond) for (n, values), g in zip(draws, weights, strict=True)]
    step = 1.0 if len(parts) == 1 else 0.0
    # T = g (sum of (N - mu)^2/2 + n mu/2 - n/2) in each part.
    shift = sum(g * (n * n / values - n) / 2 for (n, values), g in zip(draws, weights, strict=True))
    wanted = (1 - _BEYOND) * failure

    def too_small(s: float) -> bool:
        """Whether the tail at s is still too likely; T is 1 at least where there is a pair at all."""
        tail, middle = _tail(parts, s, step)
        return tail > wanted or middle + shift < step / 2

    low, high = 0.0, 1e-6
    while too_small(high):
        low, high = high, 2 * high
        if high > _STEEPEST:  # counts that K does not leave out cannot give so many pairs
            return math.floor(_tail(parts, high, step)[1] + shift + 1e-3) + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    limit = _tail(parts, high, step)[1] + shift + step / 2
    return math.ceil(limit - 1e-9) if step else limit


def _tail(parts: list[_Part], s: float, step: float) -> tuple[float, float]:
    """Return the tail from L'(s) on, and L'(s)."""
    found = [(part.values, part.plain, *part.at(s)) for part in parts]
    log, first = (sum(b * one[i] for b, *one in found) for i in (1, 2))
    second = sum(b * (ss - sa * sa / aa) for b, _, _, _, ss, sa, aa in found)
    ratio = math.prod(aa / plain for _, plain, *_, aa in found)
    r = math.sqrt(max(0.0, 2 * (s * first - log)))
    if r < 1e-3 or second <= 0:
        return 0.5, first
    u = (2 * math.sinh(min(s, 600.0) / 2) if step else s) * math.sqrt(second * ratio)
    z = r + math.log(u / r) / r
    return math.erfc(z / math.sqrt(2)) / 2, first
