"""Noise with the shape of what one person can really move: the K-norm mechanism of any small polytope.

Let V be the answers that one person may give to d counts, as vectors of 0 and 1. Replacing a record moves the counts by
v - v' with v, v' in V. K is the convex hull of all v - v'. The K-norm mechanism (Hardt and Talwar 2010) has the density
e^(-epsilon |z|_K), |z|_K being the smallest r with z in r K. Here the noise Z is on integers, and

    P(Z = z) proportional to q^(|z|_K rounded up),    q = e^(-1 / scale), scale = 1 / epsilon

Privacy. |z + v - v'|_K <= |z|_K + 1, rounded up too. So the probability of an outcome changes by at most 1/q =
e^epsilon.

The draw is exact. q^(rounded up) is proportional to the sum of q^k over all k with z in k K, so Z is uniform on the
lattice points of k K, where k has the law P(k) proportional to L(k) q^k, L(k) being their number. By Ehrhart and
Stanley (polytope.py) L(k) = sum over j of h_j C(k - j + d, d) with integers h_j >= 0. So k is j plus d + 1 geometric
draws, where j has probability proportional to h_j q^j: one of h_0 + ... + h_d tokens is drawn, and kept if a geometric
draw is at least j. For d = 1 that is Laplace noise. A point of k K is drawn from the box around it until one lies
inside.

Accuracy. How many points of k K have the value t of one count is, for 0 <= t <= k, a polynomial in t and k - t for even
k - t, and another one for odd (the corners of the slice lie on edges between the values -1, 0 and 1). It is known from
a few slices, as integer differences, and the sum over k has a closed form. So the law of the error of each count is
known, and its variance and interval with it. A count that is a sum of others with whole factors gets that sum of their
noise.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.workloads.knorm.polytope import Polytope, lattice_box

__all__ = ["MOST_DIMENSIONS", "HullNoise", "geometric", "hull_noise"]

MOST_DIMENSIONS = 4
_MOST_TERMS = 20_000_000

Integer = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def hull_noise(answers: Sequence[Sequence[int]], epsilon: Fraction) -> HullNoise | None:
    """Return the noise for counts to which one person may give these answers; None where it is not worked out."""
    vectors = np.unique(np.array(answers, np.int64), axis=0)
    rank = int(np.linalg.matrix_rank(vectors - vectors[0]))  # that of all moves, which are many more
    if not 1 <= rank <= MOST_DIMENSIONS:
        return None
    moves = np.unique((vectors[:, None] - vectors[None, :]).reshape(-1, vectors.shape[1]), axis=0)
    for chosen in combinations(range(moves.shape[1]), rank):
        factors = _factors(moves, list(chosen))
        if factors is not None:
            return HullNoise(Polytope(np.unique(moves[:, list(chosen)], axis=0)), factors, epsilon)
    return None


def _factors(moves: Integer, chosen: list[int]) -> Integer | None:
    """Return each count as a sum of the chosen ones, with whole factors; None if there are none."""
    part = moves[:, chosen].astype(np.float64)
    if np.linalg.matrix_rank(part) < len(chosen):
        return None
    found = np.rint(np.linalg.lstsq(part, moves.astype(np.float64), rcond=None)[0]).astype(np.int64)
    return np.asarray(found.T) if np.array_equal(moves[:, chosen] @ found, moves) else None


@dataclass(frozen=True, eq=False)
class HullNoise:
    """Noise of the shape of a polytope, for counts that are sums of its coordinates."""

    body: Polytope
    factors: Integer
    """A row for each count."""
    epsilon: Fraction

    @cached_property
    def scale(self) -> float:
        return laplace_scale(1, self.epsilon)

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        """Return the values with noise."""
        noise = self.factors @ np.array(self.point(self.reach(draws), draws))
        return [int(value) + int(one) for value, one in zip(values, noise, strict=True)]

    def reach(self, draws: Draws) -> int:
        """Draw k: the noise is a point of k K."""
        while (found := self.attempt(draws)) is None:
            pass
        return found + sum(geometric(draws.laplace([0] * (self.body.dimension + 1), self.scale)))

    def attempt(self, draws: Draws) -> int | None:
        """Draw a j, or nothing."""
        ends = [*accumulate(self.body.series)]
        j = bisect_right(ends, draws.uniform(ends[-1]))
        return j if j == 0 or next(geometric(draws.laplace([0], self.scale))) >= j else None

    def point(self, k: int, draws: Draws) -> list[int]:
        """Draw a lattice point of k K."""
        while True:
            tried = [draws.uniform(2 * k + 1) - k for _ in range(self.body.dimension)]
            if self.body.holds(np.array([tried]), k)[0]:
                return tried

    def law(self, count: int) -> Floats:
        """Return P(error of a count = t) for t = 0, 1, 2, ..., until what is left is below 1e-12."""
        rate = 1 / self.scale
        terms = math.ceil(self.scale * (45 + 6 * self.body.dimension)) + 2
        if terms > _MOST_TERMS:
            raise InvalidSpec("the noise of this release would be too large: give a larger epsilon")
        t = np.arange(terms, dtype=np.float64)
        found = np.zeros(terms)
        for (odd, a, b), times in self.slices(count).items():
            power, rest = -2 * b * rate - odd * rate, -(b + 1) * math.log(-math.expm1(-2 * rate))
            found += times * math.exp(power + rest) * _choose(t, a)
        top = math.log(sum(h * math.exp(-j * rate) for j, h in enumerate(self.body.series)))
        return np.asarray(found * np.exp(-rate * t + (self.body.dimension + 1) * math.log(-math.expm1(-rate)) - top))

    @cached_property
    def _small(self) -> tuple[Integer, list[npt.NDArray[np.bool_]]]:
        """The points of a box, and which of them lie in k K."""
        box = lattice_box(self.body.dimension, 2 * self.body.dimension - 1)
        return box, [self.body.holds(box, k) for k in range(2 * self.body.dimension)]

    def slices(self, count: int) -> dict[tuple[int, int, int], int]:
        """Return how many points of k K give a count the error t: sum of these times C(t, a) C((k - t) // 2, b)."""
        d = self.body.dimension
        box, inside = self._small
        values = box @ self.factors[count]
        found = {}
        for odd in (0, 1):
            table = [[int((values[inside[i + 2 * j + odd]] == i).sum()) for j in range(d - i)] for i in range(d)]
            for a in range(d):
                for b in range(d - a):
                    found[odd, a, b] = sum(
                        (-1) ** (a - i + b - j) * math.comb(a, i) * math.comb(b, j) * table[i][j]
                        for i in range(a + 1)
                        for j in range(b + 1)
                    )
        return found

    @cached_property
    def laws(self) -> list[Floats]:
        """The law of each count's error."""
        return [self.law(count) for count in range(len(self.factors))]

    @property
    def variances(self) -> list[float]:
        """Of each count's error."""
        return [2 * float(law @ np.square(np.arange(len(law), dtype=np.float64))) for law in self.laws]

    def half_width(self, count: int, beta: float) -> int:
        """Return the smallest w with P(|error| > w) <= beta."""
        left = 2 * np.cumsum(self.laws[count][::-1])[::-1]
        return int(np.argmax(left[1:] <= beta * (1 - 1e-9)))


def geometric(laplace: Sequence[int]) -> Iterator[int]:
    """Geometric draws out of Laplace draws: P(z = k) + P(z = -k - 1) is proportional to q^k."""
    return (z if z >= 0 else -z - 1 for z in laplace)


def _choose(t: Floats, a: int) -> Floats:
    """C(t, a)."""
    found = np.ones(len(t))
    for k in range(a):
        found = found * (t - k) / (k + 1)
    return found
