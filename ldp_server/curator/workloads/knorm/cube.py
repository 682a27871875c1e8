"""Counts of any conditions that may hold together: the K-norm mechanism of a cube.

A query is a table cell or several of them: how many people are in one of the cells? Replacing a record may move each of
the d answers by 1, in any combination at worst, so the answers of two neighbours differ by a vector of the cube
K = [-1, 1]^d, and nothing more is used of them. Laplace noise has scale d / epsilon on each. The K-norm mechanism
(Hardt and Talwar 2010) draws one vector Z with

    P(Z = z) proportional to q^|z|,     |z| the largest coordinate, q = e^(-1 / scale), scale = 1 / epsilon.

Privacy. |z| is a norm and the answers move by at most 1 in it, so the probability of an outcome changes by a factor of
at most 1 / q = e^epsilon.

The draw is exact on integers. q^|z| is proportional to sum over k >= |z| of q^k, so Z is uniform in the cube
{-k ... k}^d where k has the law P(k) proportional to (2 k + 1)^d q^k. And (2 k + 1)^d = sum over j of b_j C(k, j) with
integers b_j >= 0, the forward differences of (2 k + 1)^d at 0; C(k, j) q^k is the law of j plus j + 1 geometric draws,
up to its sum q^j / (1 - q)^(j + 1). So j is drawn first, with probability proportional to b_j q^j / (1 - q)^(j + 1),
then k, then Z. The weights of j are floats in the exponential mechanism, scores of 2^-40: relative errors of at most
2^-38 that do not depend on any record, by which the density changes by that factor at most, for every z. epsilon is
taken down by 2^-36, which covers the ratio of two of them.

A geometric draw comes from a Laplace draw z: z if z >= 0, else -z - 1. P(z = k) + P(z = -k - 1) is proportional to
q^k (1 + q).

Accuracy. The standard deviation of a coordinate is about (d + 1) / (sqrt(3) epsilon), beside sqrt(2) d / epsilon:
40% of Laplace's for many queries. The interval of each answer holds with probability 95%: P(|Z_1| > t) is a sum over k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale

__all__ = ["MARGIN", "CubeNoise"]

_MOST_TERMS = 20_000_000
_FINE = 1 << 40
MARGIN = Fraction(1, 1 << 36)
"""By how much epsilon is taken down."""


@dataclass(frozen=True)
class CubeNoise:
    """d integers with probability proportional to e^(-largest / scale)."""

    count: int
    epsilon: Fraction

    @cached_property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon - MARGIN)

    @cached_property
    def differences(self) -> list[int]:
        """The b_j."""
        values = [(2 * k + 1) ** self.count for k in range(self.count + 1)]
        found = []
        while values:
            found.append(values[0])
            values = [b - a for a, b in pairwise(values)]
        return found

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        """Return the values with noise."""
        k = self.reach(draws)
        return [value + draws.uniform(2 * k + 1) - k for value in values]

    def reach(self, draws: Draws) -> int:
        """Draw k: the noise is uniform in a cube that reaches so far."""
        rate = 1 / self.scale
        step, stop = -rate - math.log(-math.expm1(-rate)), -math.log(-math.expm1(-rate))
        logs = [math.log(b) + j * step + stop for j, b in enumerate(self.differences)]
        top = max(logs)
        j = draws.exponential([round((one - top) * _FINE) for one in logs], float(_FINE))
        noise = draws.laplace([0] * (j + 1), self.scale)
        return j + sum(z if z >= 0 else -z - 1 for z in noise)

    @cached_property
    def _reaches(self) -> npt.NDArray[np.float64]:
        """P(k), as far as it matters."""
        most = math.ceil(self.scale * (self.count + 40 + 12 * math.sqrt(self.count))) + 2
        if most > _MOST_TERMS:
            raise InvalidSpec("the noise of this release would be too large: give a larger epsilon")
        k = np.arange(most, dtype=np.float64)
        logs = self.count * np.log(2 * k + 1) - k / self.scale
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def variance(self) -> float:
        """Of each coordinate: that of a uniform one of 2 k + 1 numbers is k (k + 1) / 3."""
        k = np.arange(len(self._reaches), dtype=np.float64)
        return float(self._reaches @ (k * (k + 1))) / 3

    def half_width(self, beta: float) -> int:
        """Return a w with P(|Z_1| > w) <= beta."""
        chances = self._reaches
        k = np.arange(len(chances), dtype=np.float64)

        def outside(w: int) -> float:
            return float((chances[w + 1 :] * 2 * (k[w + 1 :] - w) / (2 * k[w + 1 :] + 1)).sum())

        low, high = 0, len(chances)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if outside(middle) <= beta * 0.999 else (middle + 1, high)
        return low
