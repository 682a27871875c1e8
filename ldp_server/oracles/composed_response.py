"""The oracle of composed randomized response: attributes, pairs and the full table, by one Walsh-Hadamard transform.

With C[y] the counts, corrected for the words that are left over (n s_y / N of each answer), the character of
a set S, chi_S = sum over y of C[y] (-1)^(y . S), has mean l_|S| times that of the truth
(ldp_client/mechanisms/composed_response.py). Attribute i: (n - chi_i/l_1)/2, variance n (1/l_1^2 - 1)/4
whatever is held. A pair: the sum over reports of

    Z(y) = (1 - chi_i(y)/l_1 - chi_j(y)/l_1 + chi_ij(y)/l_2)/4,

whose variance is (sum of E[Z^2]) - f, and the first term is read off the reports. The full table: all
characters divided by their eigenvalues, transformed back; the weight of a report at distance d in it is
`_kernel[d]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.composed_response import ComposedResponse, krawtchouk
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import AttributesOracle, Floats, FrequencyOracle, Share
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.support import SupportLaw

__all__ = ["ComposedResponseOracle"]


def _walsh_hadamard(values: Floats) -> Floats:
    """Sums with signs (-1)^(x . S), for every S."""
    size, step = len(values), 1
    out = values.copy()
    while step < size:
        pairs = out.reshape(-1, 2, step)
        out = np.concatenate((pairs[:, :1] + pairs[:, 1:], pairs[:, :1] - pairs[:, 1:]), axis=1).reshape(-1)
        step *= 2
    return out


class ComposedResponseOracle(AttributesOracle, FrequencyOracle):
    """Counts of whole answers."""

    kind: ClassVar[type[ComposedResponse]] = ComposedResponse

    def __init__(self, randomizer: ComposedResponse) -> None:
        super().__init__(randomizer)
        k = randomizer.k
        self._k = k
        self._eigenvalues = np.array([float(randomizer.eigenvalue(w)) for w in range(k + 1)])
        self._spare = randomizer.spare
        self._total = 1 << randomizer.word_bits
        self._weights = np.bitwise_count(np.arange(randomizer.size, dtype=np.uint64)).astype(np.intp)
        sizes = np.array([math.comb(k, w) for w in range(k + 1)], np.float64)
        mass = np.array([float(m) / self._total for m in randomizer.weights])
        characters = np.array([[krawtchouk(k, w, d) for w in range(k + 1)] for d in range(k + 1)], np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._kernel = (characters / self._eigenvalues).sum(axis=1) / randomizer.size
        self._invertible = bool(np.all(np.isfinite(self._kernel)))
        self._law = mass * sizes
        self._answers = mass
        self._characters: Floats | None = None

    def _forget(self) -> None:
        self._characters = None

    def characters(self) -> Floats:
        """chi_S for every set S, kept until the counts change."""
        if self._characters is None:
            size = self.randomizer.size
            extra = self._spare // size + (np.arange(size) < self._spare % size)
            self._characters = _walsh_hadamard(self.counts.values - self.reports * (extra / self._total))
        return self._characters

    def attribute_counts(self) -> tuple[Floats, Floats]:
        """Return estimates and variances of every attribute."""
        singles = self.characters()[1 << np.arange(self._k)]
        kept = self._eigenvalues[1]
        return (self.reports - singles / kept) / 2, np.full(self._k, self.reports * (1 / kept**2 - 1) / 4)

    def attribute_intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return them from the exact law of yes and no; the words that are left over are too few to matter."""
        return self.attribute_law.intervals(self.attribute_counts()[0], tail)

    @property
    def attribute_law(self) -> SupportLaw:
        """The law of how many reports have one attribute."""
        kept = float(self._eigenvalues[1])
        return SupportLaw(self.reports, (1 + kept) / 2, (1 - kept) / 2)

    def pair(self, one: int, two: int) -> Share:
        """Return an estimate of how many users hold both attributes."""
        if one == two or not (0 <= one < self._k and 0 <= two < self._k):
            raise InvalidSpec("a pair is two different attributes of the domain")
        first, second = self._eigenvalues[1], self._eigenvalues[2]
        answers = np.arange(self.randomizer.size)
        x, y = 1 - 2 * (answers >> one & 1), 1 - 2 * (answers >> two & 1)
        weight = (1 - (x + y) / first + x * y / second) / 4
        chi = self.characters()
        total = (self.reports - (chi[1 << one] + chi[1 << two]) / first + chi[1 << one | 1 << two] / second) / 4
        spread = float(self.counts.values @ weight**2) - float(np.clip(total, 0, self.reports))
        return Share((one, two), float(total), math.sqrt(max(0.0, spread)))

    def estimate(self, indexes: Indexes) -> Floats:
        """Unbiased estimates of how many users hold exactly these sets."""
        return self.estimate_all()[indexes.astype(np.intp)]

    def estimate_all(self) -> Floats:
        """Unbiased estimates of every set of attributes."""
        if not self._invertible:
            raise InvalidSpec("this shell hides some combinations of attributes altogether: ask for attributes")
        return _walsh_hadamard(self.characters() / self._eigenvalues[self._weights]) / self.randomizer.size

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return an upper bound: exact for the holders of the set, the worst distance for all others."""
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        squares = [self._second_moment(distance) for distance in range(self._k + 1)]
        return f * (squares[0] - 1) + (self.reports - f) * max(squares[1:])

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        """Return them from the counts: the sum of the squared weights of all reports, less the holders' share.

        A weight has mean 1 for a holder of the set and 0 for all others, so this variance is unbiased for any crowd,
        and smaller than `variance`, which takes all others to be at the worst distance.
        """
        squares = _walsh_hadamard(np.square(self._kernel)[self._weights])
        sums = _walsh_hadamard(squares * _walsh_hadamard(self.counts.values.astype(np.float64))) / len(squares)
        held = np.clip(estimates, 0, self.reports)
        return np.asarray(np.sqrt(np.maximum(0.0, sums[indexes.astype(np.intp)] - held)))

    def _second_moment(self, distance: int) -> float:
        """E[kernel^2] of a report whose truth is this far from the set asked about."""
        k, total = self._k, 0.0
        for flips in range(k + 1):
            for shared in range(max(0, flips + distance - k), min(flips, distance) + 1):
                ways = math.comb(distance, shared) * math.comb(k - distance, flips - shared)
                total += ways * self._answers[flips] * self._kernel[distance + flips - 2 * shared] ** 2
        rest = self._spare / self._total
        sizes = np.array([math.comb(k, w) for w in range(k + 1)])
        return float(total + rest * (sizes @ self._kernel**2) / self.randomizer.size)

    def chances(self) -> Sequence[Chance]:
        """An answer is as likely as its distance from the item makes it; every distance is possible."""
        left, more = divmod(self._spare, self.randomizer.size)
        most = float(self._answers.max()) + (left + (more > 0)) / self._total
        return (Chance(self.counts.values, self.reports, most, float(self._answers.min()) + left / self._total),)

    @property
    def law(self) -> SupportLaw | None:
        """The exact law where all sets but the true one are answered alike: the shell of a very large epsilon."""
        told, other = float(self._answers[0]), float(self._answers[1])
        if told <= other or not np.allclose(self._answers[1:], other, rtol=1e-9, atol=0):
            return None
        return SupportLaw(self.reports, told, other)

    @property
    def skewness(self) -> float:
        """The skewness of the estimate of a set that nobody holds, with all users spread evenly over the others."""
        if not self.reports:
            return 0.0
        shares = np.array([math.comb(self._k, w) for w in range(self._k + 1)]) / self.randomizer.size
        third, second = float(shares @ self._kernel**3), float(shares @ self._kernel**2)
        return third / math.sqrt(second) ** 3 / math.sqrt(self.reports)
