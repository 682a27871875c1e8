"""Noise on how many people have each pattern of answers, where their sum is public: in any dimension.

Every person has one of m patterns: which of the groups that person's item is in. Replacing a record takes one person
from a pattern to another one: the counts of the patterns move by e_i - e_j, and their sum stays. Of the convex hull K
of these moves, |z|_K = |z|_1 / 2 for all z with the sum 0. The noise Z is on integers with the sum 0, and

    P(Z = z) proportional to e^(-|z|_1 / (2 scale)),    scale = 1 / epsilon

Privacy. |z + e_i - e_j|_1 <= |z|_1 + 2, so the probability of an outcome changes by at most e^epsilon. The counts of
groups are sums of those of patterns: post-processing.

If no pattern follows from the others (the moves have the rank m - 1), the counts of the groups tell the whole noise.
So it is the K-norm mechanism of hull.py, without its limit of four dimensions.

The draw is exact. The law is that of m independent Laplace draws of scale 2 / epsilon, given that their sum is 0. So
m - 1 of them are drawn, the last one is minus their sum S, and all are kept with probability e^(-|S| / (2 scale)): if a
geometric draw is at least |S|. About .56 / sqrt(m - 1) of all attempts are kept, whatever epsilon is.

Accuracy. A group that has s of the patterns gets the sum T of s of the draws. With f_s the law of a sum of s
independent draws, P(T = t) is proportional to f_s(t) f_(m - s)(t). f_s is worked out from its Fourier transform,
((1 - r)^2 / (1 - 2 r cos w + r^2))^s with r = e^(-1 / (2 scale)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.workloads.knorm.hull import geometric

__all__ = ["ExclusiveNoise", "exclusive_noise"]

_MOST_TERMS = 1 << 22

Integer = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def exclusive_noise(answers: Sequence[Sequence[int]], epsilon: Fraction) -> ExclusiveNoise | None:
    """Return the noise for counts to which one person may give these answers; None where it is not worked out."""
    patterns = np.unique(np.array(answers, np.int64), axis=0)
    found = ExclusiveNoise(patterns, epsilon)
    return found if len(patterns) > 1 and found.terms <= _MOST_TERMS else None


@dataclass(frozen=True, eq=False)
class ExclusiveNoise:
    """Noise for counts that are sums of counts of patterns, each person having one of them."""

    patterns: Integer
    """A row for each pattern, a column for each count."""
    epsilon: Fraction

    @cached_property
    def scale(self) -> float:
        """Of each of the draws: 2 / epsilon."""
        return 2 * laplace_scale(1, self.epsilon)

    def add(self, values: Sequence[int], draws: Draws) -> list[int]:
        """Return the values with noise."""
        while (found := self.attempt(draws)) is None:
            pass
        noise = self.patterns.T @ np.array(found, np.int64)
        return [int(value) + int(one) for value, one in zip(values, noise, strict=True)]

    def attempt(self, draws: Draws) -> list[int] | None:
        """Draw the noise of all patterns, or nothing."""
        found = draws.laplace([0] * (len(self.patterns) - 1), self.scale)
        left = -sum(found)
        return [*found, left] if next(geometric(draws.laplace([0], self.scale))) >= abs(left) else None

    @property
    def terms(self) -> int:
        """Up to which size errors are looked at: what is beyond has a probability below 1e-12."""
        return math.ceil(self.scale * (40 + 8 * math.sqrt(2 * len(self.patterns)))) + 2

    def _sum_law(self, many: int) -> Floats:
        """Return f_s(t) for t = 0, 1, 2, ..."""
        r, size = math.exp(-1 / self.scale), 2 * self.terms
        waves = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
        transform = ((1 - r) ** 2 / (1 - 2 * r * waves + r * r)) ** many
        return np.maximum(np.fft.irfft(transform, size)[: self.terms], 0.0)

    def law(self, count: int) -> Floats:
        """Return P(error of a count = t) for t = 0, 1, 2, ..."""
        patterns, inside = len(self.patterns), int(self.patterns[:, count].sum())
        if inside in (0, patterns):
            return np.array([1.0, 0.0])
        found = self._sum_law(inside) * self._sum_law(patterns - inside)
        return np.asarray(found / (2 * found.sum() - found[0]), np.float64)

    @cached_property
    def laws(self) -> list[Floats]:
        """The law of each count's error; counts with as many patterns have the same."""
        sizes = self.patterns.sum(axis=0).tolist()
        known = {size: self.law(sizes.index(size)) for size in dict.fromkeys(sizes)}
        return [known[size] for size in sizes]

    @property
    def variances(self) -> list[float]:
        """Of each count's error."""
        return [2 * float(law @ np.square(np.arange(len(law), dtype=np.float64))) for law in self.laws]

    def half_width(self, count: int, beta: float) -> int:
        """Return the smallest w with P(|error| > w) <= beta."""
        left = 2 * np.cumsum(self.laws[count][::-1])[::-1]
        return int(np.argmax(left[1:] <= beta * (1 - 1e-9)))
