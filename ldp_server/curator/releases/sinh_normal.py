"""Sinh-normal noise on integers: Gaussian near 0, with a tail that falls doubly exponentially.

    X = A arsinh(G / A),   G normal with deviation sigma               (Bun, Dwork, Rothblum, Steinke 2018, Prop. 4)

Here G is a discrete Gaussian of deviation m sigma on the integers, drawn exactly, and X is rounded to an integer by
integer thresholds: Z >= t if and only if G >= T(t) = ceil(m A sinh((t - 1/2) / A)). So the law of Z is known exactly:
P(Z >= t) = P(G >= T(t)), whatever rounding computed T.

Privacy. D_a(Z || Z + 1) is summed from that law. It is infinite from a = 1 / (1 - e^(-2/A)) on. (rho, omega)-tCDP needs
D_a <= rho a for 1 < a < omega. D_a grows with a, so it is enough that D at each point of a grid of orders is at most
rho times the point before it, where the first interval begins at 1. The grid is 2% wide. sigma is the smallest that
passes; A is the one of several with the shortest tail. Theorem 17's constants (16 rho, A / 8) are not used: they are
loose by an order of magnitude, and the side condition printed in Corollary 18 (omega >= 1 / (8 sqrt(rho))) is too weak:
at rho = .01, omega = 1.25 its noise has D_a = 1.82 (rho/2) a. So omega >= 1 / sqrt(2 rho) is demanded here.

The discrete Gaussian's tail at t is that of the normal law at t - 1/2, up to a relative error below 10^-9 since its
deviation is at least 2^20 (Euler and Maclaurin); the divergence is raised by 10^-8 for it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws

__all__ = ["SinhNormal", "largest_ratio"]

_GRAIN = 1 << 20
_STEP = 1.02
_MARGIN = 1e-8
_REACH = 60.0
"""The law is summed up to this many deviations of G, where a probability is below e^-1700."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SinhNormal:
    """Noise with the parameters A and sigma; m follows from sigma."""

    A: float
    sigma: float
    _thresholds: list[int] = field(default_factory=list, compare=False, repr=False)

    @property
    def grain(self) -> int:
        """m: how many steps of G there are to 1."""
        return math.ceil(_GRAIN / self.sigma)

    def threshold(self, t: int) -> int:
        """T(t) for t >= 1."""
        while len(self._thresholds) < t:
            x = (len(self._thresholds) + 0.5) / self.A
            if x < 30:
                self._thresholds.append(math.ceil(self.grain * self.A * math.sinh(x)))
            else:  # larger than any float: e^x / 2 is sinh to all digits that there are
                self._thresholds.append(math.ceil(Decimal(self.grain * self.A) * Decimal(x).exp() / 2))
        return self._thresholds[t - 1]

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        """Add noise to each value."""
        steps = draws.gaussian([0] * len(values), self.grain * self.sigma)
        longest, t = max(map(abs, steps)), 1
        while self.threshold(t) <= longest:
            t += 1
        found = [bisect_right(self._thresholds, abs(step)) for step in steps]
        return [v + (z if step >= 0 else -z) for v, z, step in zip(values, found, steps, strict=True)]

    def log_law(self) -> Floats:
        """Return ln P(Z = t) for t = 0, 1, ... up to where it can no longer matter."""
        width, tails = self.grain * self.sigma, [0.0]
        while (self.threshold(len(tails)) - 0.5) / width < _REACH:
            tails.append(_log_tail((self.threshold(len(tails)) - 0.5) / width))
        tails.append(_log_tail((self.threshold(len(tails)) - 0.5) / width))
        middle = math.log1p(-2 * math.exp(tails[1]))
        rest = [a + math.log(-math.expm1(b - a)) for a, b in pairwise(tails[1:])]
        return np.array([middle, *rest])

    def half_width(self, beta: float) -> int:
        """Return the smallest w with P(|Z| > w) <= beta."""
        width, t = self.grain * self.sigma, 1
        while math.log(2) + _log_tail((self.threshold(t) - 0.5) / width) > math.log(beta):
            t += 1
        return t - 1

    @property
    def variance(self) -> float:
        """The variance of Z."""
        law = np.exp(self.log_law())
        return float(2 * np.sum(np.arange(len(law)) ** 2 * law))

    @classmethod
    def calibrated(cls, rho: Fraction, omega: Fraction) -> SinhNormal:
        """Return the noise that makes a number that moves by 1 (rho, omega)-tCDP."""
        return _calibrated(float(rho) * (1 - 1e-12), float(omega) * (1 + 1e-12))


@lru_cache(maxsize=32)
def _calibrated(rho: float, omega: float) -> SinhNormal:
    least = -2 / math.log1p(-1 / omega)
    found = [made for factor in (1.05, 1.2, 1.5, 2, 3, 4) if (made := _smallest(least * factor, rho, omega))]
    if not found:
        raise InvalidSpec("no sinh-normal noise is known for this rho and omega: give a larger --omega")
    return min(found, key=lambda noise: noise.half_width(1e-6))


def _smallest(A: float, rho: float, omega: float) -> SinhNormal | None:
    low, high = 0.5 / math.sqrt(2 * rho), 4 / math.sqrt(2 * rho)
    if largest_ratio(SinhNormal(A, high), omega) > rho:
        return None
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if largest_ratio(SinhNormal(A, middle), omega) <= rho else (middle, high)
    return SinhNormal(A, high)


def largest_ratio(noise: SinhNormal, omega: float) -> float:
    """Return a bound of D_a(Z || Z + 1) / a over 1 < a < omega."""
    points = math.ceil(math.log(omega) / math.log(_STEP))
    orders = np.minimum(_STEP ** np.arange(1, points + 1), omega)
    half = noise.log_law()
    law = np.concatenate([half[:0:-1], half])
    # Q(z) = P(z - 1). Where it leaves the list, the terms of P are below e^-1700 or Q is the larger one.
    p, q = law[1:], law[:-1]
    terms = orders[:, None] * q[None, :] + (1 - orders)[:, None] * p[None, :]
    largest = terms.max(axis=1)
    if np.any(terms[:, -1] > largest - 60):  # the sum does not settle: at or beyond the order from which it is infinite
        return math.inf
    divergence = (largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))) / (orders - 1) + _MARGIN
    return float(np.max(divergence / np.concatenate([[1.0], orders[:-1]])))


def _log_tail(x: float) -> float:
    """Return ln P(N > x) of the standard normal law for x >= 0."""
    if x < 25:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    return -x * x / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log1p(-(x**-2) + 3 * x**-4 - 15 * x**-6)
