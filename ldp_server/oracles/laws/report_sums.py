r"""The law of a sum over reports, and the interval that follows: how many users hold an item of a set A.

A report has a weight w, the number of items of A that it supports. A user's weight has one law if the user holds an
item of A and another if not. The laws depend on which items the users hold, but their means do not: that is why the sum
of the estimates is unbiased. With F users in A, the sum S of all weights is that of F draws of the first law and n - F
of the second. The interval is

    { F in 0 .. n : P_F(S >= S_seen) > tail  and  P_F(S <= S_seen) > tail },

as for one item (support.py), of which this is the general case: A of one item has weights 0 and 1. A normal law with a
variance from the counts fails where few reports support many items of A at once: by chance none of them may have come.

The two laws are made from `inside` and `outside`, the best guess at what users hold. The guess has one weak point. Many
items outside A, each held by few, may share all heavy reports with A, and no estimate of a single item shows it. So the
law outside is a mixture of `outside` and `heavy`, the law of users who share as many heavy reports as is possible. The
part of `heavy` is its mean after looking at how often each weight came, beforehand being as likely to be small as
large.

P_F is exact for whole-numbered weights: the law's Fourier series, over a window of 20 standard deviations and six of
the largest weights. Where that window is longer than 2^16, the first 2,048 terms are summed; the others say how the law
is spread over steps much smaller than its standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["SumLaw", "different", "with_mean"]

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

_PARTS = np.linspace(0.0, 1.0, 17)
"""The parts of `heavy` that are compared."""
_WINDOW = 1 << 16
_TERMS = 1 << 11
_GROUPS = 1 << 12
_NOTHING = -36.0
"""A term of the series whose logarithm is below this is left out."""
_LEAST_TAIL = 1e-10
"""The series is not exact enough for smaller tails: their ends are those of this tail, moved out in proportion to the
tail's logarithm. Those of the normal law, and of a law with longer tails, lie nearer."""


def different(weights: npt.NDArray[np.int32]) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the different weights in rising order, and for every report which of them it has.

    If there are more than 4,096, neighbours are taken together, each group for its mean.
    """
    lowest = int(weights.min())
    often = np.bincount(weights - lowest)
    there = often > 0
    group = np.cumsum(there) - 1
    group = group * min(_GROUPS, int(group[-1]) + 1) // (int(group[-1]) + 1)
    values = np.arange(lowest, lowest + len(often), dtype=np.float64)
    means = np.bincount(group, often * values) / np.bincount(group, often)
    return means, group[weights - lowest].astype(np.intp)


def with_mean(law: Floats, weights: Floats, mean: float) -> Floats:
    """Return a law that adds up to 1 and has this mean, from one that does nearly: single precision is not enough."""
    law = np.maximum(law, 0.0) / float(np.maximum(law, 0.0).sum())
    off = weights - float(law @ weights)
    spread = float(law @ np.square(off))
    return law * (1 + off * (mean - float(law @ weights)) / spread) if spread > 0 else law


@dataclass(frozen=True)
class SumLaw:
    """The law of the sum of the reports' weights."""

    reports: int
    weights: Floats
    """The different weights, whole numbers in rising order."""
    seen: Floats
    """How many reports had each weight."""
    inside: Floats
    """The law of the weight of a user with an item of A."""
    outside: Floats
    """The law of the weight of any other user, as far as known."""
    heavy: Floats
    """The same for a user whose item shares as many heavy reports with A as possible."""

    @cached_property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.seen @ self.weights)

    @cached_property
    def _means(self) -> tuple[float, float]:
        return float(self.inside @ self.weights), float(self.outside @ self.weights)

    def part(self, holders: float) -> float:
        """Return the part of `heavy` in the law outside, if so many users hold an item of A."""
        came = self.seen > 0
        share = holders / self.reports
        others = (1 - _PARTS[:, None]) * self.outside[came] + _PARTS[:, None] * self.heavy[came]
        logs = np.log(np.maximum(share * self.inside[came] + (1 - share) * others, 1e-300)) @ self.seen[came]
        likely = np.exp(logs - logs.max())
        return float(likely @ _PARTS / likely.sum())

    def variance(self, holders: float) -> float:
        """Return the variance of the sum if so many users hold an item of A."""
        part, squares = self.part(holders), np.square(self.weights)
        others = (1 - part) * self.outside + part * self.heavy
        held, other = float(self.inside @ squares), float(others @ squares)
        return max(
            0.0, holders * (held - self._means[0] ** 2) + (self.reports - holders) * (other - self._means[1] ** 2)
        )

    @cached_property
    def _length(self) -> int:
        """The length of the window."""
        spread = math.sqrt(max(self.variance(0.0), self.variance(float(self.reports))))
        return 1 << math.ceil(math.log2(20 * spread + 6 * float(np.ptp(self.weights)) + 64))

    @cached_property
    def _series(self) -> tuple[npt.NDArray[np.int64], Complex, Complex, Complex]:
        """Numbers of terms, and the three laws' terms."""
        length, laws = self._length, (self.inside, self.outside, self.heavy)
        if length <= _WINDOW:
            places = self.weights.astype(np.int64) % length
            series = [np.fft.rfft(np.bincount(places, law, length)) for law in laws]
        else:
            turns = np.exp(-2j * np.pi / length * np.outer(np.arange(_TERMS), self.weights))
            series = [turns @ law for law in laws]
        with np.errstate(divide="ignore"):
            large = np.log(np.max(np.abs(series), axis=0)) * self.reports > _NOTHING
        numbers = np.flatnonzero(large)
        inside, outside, heavy = (one[numbers] for one in series)
        return numbers, inside, outside, heavy

    def _below(self, holders: int, limit: float) -> float:
        """P(S <= limit), for a whole number."""
        length, (numbers, inside, outside, heavy) = self._length, self._series
        mean = holders * self._means[0] + (self.reports - holders) * self._means[1]
        start = math.floor(mean) - length // 2
        if not start <= limit < start + length:
            return float(limit >= start)
        part = self.part(holders)
        others = (1 - part) * outside + part * heavy
        terms = np.power(inside, holders) * np.power(others, self.reports - holders)
        turn = 2 * np.pi * numbers / length
        ends = np.exp(1j * turn * start), np.exp(1j * turn * (limit + 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = np.where(numbers == 0, limit + 1 - start, (ends[0] - ends[1]) / (1 - np.exp(1j * turn)))
        twice = np.where((numbers == 0) | (2 * numbers == length), 1.0, 2.0)
        return float((twice * (terms * sums).real).sum() / length)

    def _least(self, fits: Callable[[int], bool]) -> int:
        """The least number of holders that fits, all larger ones fitting too; all users if none does."""
        least, most = 0, self.reports
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if fits(middle) else (middle + 1, most)
        return least

    def interval(self, tail: float) -> tuple[float, float]:
        """Return the interval for how many users hold an item of A; each end errs with probability `tail`."""
        if not self.reports:
            return 0.0, 0.0
        n, used = self.reports, max(tail, _LEAST_TAIL)
        up, down = math.ceil(self.total - 1e-6), math.floor(self.total + 1e-6)
        low = float(self._least(lambda f: 1 - self._below(f, up - 1) > used))
        high = float(n - self._least(lambda f: self._below(n - f, down) > used))
        high = max(low, high)
        if tail < used:
            point = (self.total - n * self._means[1]) / (self._means[0] - self._means[1])
            further = math.log(max(tail, 1e-300)) / math.log(used)
            low, high = (point + (end - point) * further for end in (min(low, point), max(high, point)))
        return max(0.0, low), min(float(n), high)
