"""A quantile, or a point inside the data, of whole numbers from a range of thousands of bits: RecConcave.

The score is the one of quantile.py, D times: with p = N / D,

    q(k) = - max(0, D below(k) - N m, N m - D up_to(k)).

One record moves it by at most D. It is quasi-concave on every data set, and its largest value is 0, the promise. So
concave.py gives the privacy, (epsilon, delta) for replacement, and the error: with probability 95% the value is at most
w / D ranks away from the quantile.

The exponential mechanism of quantile.py needs no delta and is better for small ranges: its error grows with the bits of
a number, this one with their logarithm. `ExponentialQuantile.ranks` and `RecursiveQuantile.ranks` compare the two
before anything is released. At epsilon = 1 and delta = 1e-6 they cross near 280 bits.

An interior point is a value with a record at or below it and one at or above it. A median is one if its error is below
half of the people. So a data set on which the error would be as large as the rank of the quantile is refused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow
from ldp_server.curator.releases.quantile import FINEST, MOST_BITS
from ldp_server.curator.releases.ranges.concave import ConcaveSearch, concave_search
from ldp_server.curator.releases.ranges.steps import Stretch

__all__ = [
    "SMALL_NUMBER",
    "InteriorPoint",
    "RecursiveQuantile",
    "check_range",
    "held_inside",
    "in_growing_order",
    "rank_stretches",
]

SMALL_NUMBER = 1 << 62
"""Numbers below it fit into a machine's integers."""


@dataclass(frozen=True)
class RecursiveQuantile(CentralMechanism):
    """A quantile of whole numbers between -2^bits and 2^bits."""

    kind: ClassVar[str] = "recursive-quantile"
    at: Fraction
    """p, such as 1/2 for the median."""
    bits: int
    epsilon: Fraction
    delta: Fraction
    depth: int = 2
    """N."""

    def __post_init__(self) -> None:
        if not 0 < self.at < 1 or self.at.denominator > FINEST:
            raise InvalidSpec("--at lies between 0 and 1, in thousandths or coarser, such as 0.5")
        check_range(self.bits, self.delta)
        if not 1 <= self.depth <= 4:
            raise InvalidSpec("the depth of the recursion is 1 to 4")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.pure(self.epsilon, self.delta)

    def search(self) -> ConcaveSearch:
        """Return the mechanism with its budgets."""
        return concave_search((2 << self.bits) - 1, self.epsilon, self.delta, self.at.denominator, self.depth, BETA)

    @property
    def ranks(self) -> int:
        """By how many ranks the value may be off, with probability 95%."""
        return self.search().error // self.at.denominator

    @property
    def smallest(self) -> int:
        return int(self.search().error / (self.at.denominator * min(self.at, 1 - self.at))) + 1

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        reach = (1 << self.bits) - 1
        numbers = held_inside(whole_numbers(records, "the column"), reach)
        search = self.search()
        target = self.at.numerator * len(numbers)
        score = rank_stretches(numbers, self.at.denominator, target, (-reach, reach), 2 * search.error)
        value = search.solve(score, 0, draws)
        if value is None:
            return Outcome((), "nothing: this happens with probability 5% at most")
        return Outcome((ReleasedRow(value),), self._said())

    def _said(self) -> str:
        return (
            f"the quantile {float(self.at):g} of whole numbers: with probability 95% at most {self.ranks:,} people "
            "away in rank"
        )


@dataclass(frozen=True)
class InteriorPoint(RecursiveQuantile):
    """A value between the smallest and the largest number of the people."""

    kind: ClassVar[str] = "interior-point"
    at: Fraction = field(default=Fraction(1, 2), init=False)

    def _said(self) -> str:
        return "with probability 95% somebody's number is at most this, and somebody's at least this"


def check_range(bits: int, delta: Fraction | None) -> None:
    """Check what all releases about huge ranges need."""
    if not 1 <= bits <= MOST_BITS:
        raise InvalidSpec(f"--bits: 1 to {MOST_BITS:,}")
    if delta is not None and not 0 < delta <= Fraction(1, 10):
        raise InvalidSpec("this release needs a delta above 0 and small, such as 1e-6 (--delta)")


def in_growing_order(numbers: Sequence[int]) -> list[int]:
    """Return numbers sorted; small ones by numpy, which is faster."""
    if numbers and min(numbers) > -SMALL_NUMBER and max(numbers) < SMALL_NUMBER:
        found: list[int] = np.sort(np.array(numbers, np.int64)).tolist()
        return found
    return sorted(numbers)


def held_inside(numbers: Sequence[int], reach: int) -> list[int]:
    """Return the numbers in growing order; one outside the range becomes the nearest end."""
    found = in_growing_order(numbers)
    if found and (found[0] < -reach or found[-1] > reach):
        return [min(max(number, -reach), reach) for number in found]
    return found


def rank_stretches(
    numbers: Sequence[int], finest: int, target: int, ends: tuple[int, int], depth: int
) -> list[Stretch]:
    """Return q as stretches over the range, for sorted numbers: D is `finest`, N m is `target`.

    Scores below -depth may be wrong, but are below it: only numbers with a rank near the target are looked at.
    """
    low = max(0, (target - depth) // finest - 1)
    high = min(len(numbers), -(-(target + depth) // finest) + 1)
    found, start, below = [], ends[0], bisect_left(numbers, numbers[low]) if low < len(numbers) else len(numbers)
    for value in dict.fromkeys(numbers[low:high]):
        up_to = bisect_right(numbers, value)
        found.append(Stretch(start, value - start, -abs(finest * below - target)))
        found.append(Stretch(value, 1, -max(0, finest * below - target, target - finest * up_to)))
        start, below = value + 1, up_to
    found.append(Stretch(start, ends[1] + 1 - start, -abs(finest * below - target)))
    return [stretch for stretch in found if stretch.length]
