"""How many people are below each of the given cuts: counts of a tree over the bins between the cuts.

The m cuts make m + 1 bins. A tree with b children a node stands above them; each level is a histogram, and replacing
one record moves two counts of each level by 1. With L levels below the root (which is the public number of people) the
L1 sensitivity is 2 L, and the squared L2 sensitivity is 2 L too:

    laplace     scale 2 L / epsilon     epsilon-private
    gaussian    sigma^2 = L / rho       rho-zCDP

A count below a cut is a sum of whole nodes, at most b - 1 of each level. b is chosen from m alone, for the smallest
variance of such a sum.

Accuracy. All m intervals hold at once with probability 95%: a sum of j draws exceeds w with probability at most
E[e^(sZ)]^j e^(-sw) for each s > 0, and each cut gets 5% / (2m) on each side. The truth grows from cut to cut, so each
end of an interval also holds for the cuts after it, or before it; and the counts are made monotone by the least change
(isotonic regression) within their intervals.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, gaussian_scale, laplace_scale
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow

__all__ = ["GaussianThresholds", "LaplaceThresholds", "isotonic", "laplace_log_mgf", "levels_of", "sum_width"]

_NOTE = "people with a number below each cut; all intervals hold at once with probability 95%"
_MOST_CUTS = 100_000


def levels_of(bins: int, branching: int) -> int:
    """Return how many levels a tree over the bins has below its root."""
    levels, width = 1, branching
    while width < bins:
        levels, width = levels + 1, width * branching
    return levels


def _branching(bins: int) -> int:
    """The variance of a sum of nodes is (b - 1) L nodes of variance L^2."""
    return min(range(2, 65), key=lambda b: (min(b - 1, bins) * levels_of(bins, b) ** 3, b))


@dataclass(frozen=True)
class _Thresholds(CentralMechanism):
    kind: ClassVar[str] = "thresholds"
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.cuts) <= _MOST_CUTS or any(a >= b for a, b in zip(self.cuts, self.cuts[1:], strict=False)):
            raise InvalidSpec(f"cuts: give 1 to {_MOST_CUTS:,} whole numbers, each larger than the one before")

    @property
    def levels(self) -> int:
        bins = len(self.cuts) + 1
        return levels_of(bins, _branching(bins))

    def _answer(
        self, records: Sequence[Record], noisy: Callable[[list[int]], list[int]], log_mgf: Callable[[float], float]
    ) -> Outcome:
        branching, people = _branching(len(self.cuts) + 1), len(records)
        counts = [0] * (len(self.cuts) + 1)
        for number in whole_numbers(records, "the column"):
            counts[bisect_right(self.cuts, number)] += 1
        tree = [counts]
        for _ in range(self.levels - 1):
            below = tree[0]
            tree.insert(0, [sum(below[i : i + branching]) for i in range(0, len(below), branching)])
        flat = noisy([count for level in tree for count in level])
        starts = [sum(len(level) for level in tree[:depth]) for depth in range(len(tree))]
        sums, nodes = [], []
        for bins in range(1, len(self.cuts) + 1):
            parts = _nodes(bins, branching, self.levels)
            sums.append(sum(flat[starts[depth] + place] for depth, place in parts))
            nodes.append(len(parts))
        widths = {j: sum_width(j, log_mgf, BETA / (2 * len(self.cuts))) for j in set(nodes)}
        return _rows(self.cuts, sums, [widths[j] for j in nodes], people)


@dataclass(frozen=True)
class LaplaceThresholds(_Thresholds):
    """Cumulative counts with discrete Laplace noise."""

    epsilon: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        scale = laplace_scale(2 * self.levels, self.epsilon)
        return self._answer(records, lambda values: draws.laplace(values, scale), laplace_log_mgf(scale))


@dataclass(frozen=True)
class GaussianThresholds(_Thresholds):
    """Cumulative counts with discrete Gaussian noise, whose moments are at most those of the normal law."""

    rho: Fraction

    @property
    def price(self) -> CentralPrice:
        return CentralPrice(rho=self.rho)

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        sigma = gaussian_scale(2 * self.levels, self.rho)
        return self._answer(records, lambda v: draws.gaussian(v, sigma), lambda s: s * s * sigma * sigma / 2)


def _nodes(bins: int, branching: int, levels: int) -> list[tuple[int, int]]:
    """Return depth and place of the nodes that make up the first so many bins."""
    found, start = [], 0
    for depth in range(levels):
        width = branching ** (levels - 1 - depth)
        while start + width <= bins:
            found.append((depth, start // width))
            start += width
    return found


def laplace_log_mgf(scale: float) -> Callable[[float], float]:
    """Return ln E[e^(sZ)] of discrete Laplace noise, as a function of s > 0."""
    q = math.exp(-1 / scale)

    def log_mgf(s: float) -> float:
        if s * scale >= 1:
            return math.inf
        return 2 * math.log1p(-q) - math.log1p(-q * math.exp(s)) - math.log1p(-q * math.exp(-s))

    return log_mgf


def sum_width(nodes: int, log_mgf: Callable[[float], float], beta: float) -> int:
    """Return a w that the sum of so many draws exceeds with probability at most beta."""
    points = [math.exp(k / 16) for k in range(-400, 65)]
    return math.floor(min((nodes * log_mgf(s) - math.log(beta)) / s for s in points))


def isotonic(values: Sequence[int]) -> list[float]:
    """Return the nondecreasing sequence nearest to the values, by pooling neighbours that are out of order."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, size = float(value), 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            total, size = total + pools[-1][0], size + pools[-1][1]
            pools.pop()
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]


def _rows(cuts: Sequence[int], sums: Sequence[int], widths: Sequence[int], people: int) -> Outcome:
    lows = [max(0, value - width) for value, width in zip(sums, widths, strict=True)]
    highs = [min(people, value + width) for value, width in zip(sums, widths, strict=True)]
    for i in range(1, len(cuts)):
        lows[i] = max(lows[i], lows[i - 1])
        highs[-1 - i] = min(highs[-1 - i], highs[-i])
    rows = []
    for cut, value, low, high in zip(cuts, isotonic(sums), lows, highs, strict=True):
        ends = (low, high) if low <= high else (0, people)  # the 5%: the intervals contradict each other
        rows.append(ReleasedRow(cut, min(max(round(value), ends[0]), ends[1]), *ends))
    return Outcome(tuple(rows), _NOTE)
