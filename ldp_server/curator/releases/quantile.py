"""A median or another quantile of whole numbers, whose range may be unknown and huge: the exponential mechanism.

For the quantile p of m numbers, let below(k) and up_to(k) count the numbers below k and up to k. The score of k is

    q(k) = - max(0, below(k) - p m, p m - up_to(k)),

how many ranks k is away from the quantile; a value that many people share is as good as one of a kind. Replacing one
record moves below and up_to by at most 1, so q as well. The mechanism returns k of a range of T values with
probability proportional to e^(epsilon q / 2): epsilon-private (Lemma 2.26 of Beimel, Nissim, Stemmer), for any range.

q is constant on 2 m + 1 segments: the values that occur, and the gaps between them. So a segment s is drawn with
probability proportional to length(s) e^(epsilon q / 2), and then a value in it, each as likely. This is exact on
integers: with p = N / D, the score u = S D q + round(scale ln length) goes into the exponential mechanism with `scale`.
Where there are many segments, a block of them is drawn first, with the score round(scale ln sum e^(u / scale)), and
then a segment of the block. Each of the two roundings errs by at most 1, float logarithms included. So the
log-probability of a value is (S D q + e) / scale up to the normaliser, |e| <= 2, and moves within a range of
2 (S D + 4) / scale. This is epsilon for scale = 2 (S D + 4) / epsilon. S = 65,536 makes the 4 worth nothing.

Use. With probability 1 - beta the value is at most (2 / epsilon) ln(T / beta) ranks away from the best in the range.
For T = 2^64, epsilon = 1 and beta = 5% that is 95 people. The promise of the note is this bound. Numbers outside the
range count as the nearest end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws, laplace_scale
from ldp_server.curator.people import Record, whole_numbers
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, CentralMechanism, Outcome, ReleasedRow

__all__ = ["FINEST", "MOST_BITS", "STEPS", "ExponentialQuantile", "drawn_index"]

STEPS = 1 << 16
"""S: how many units of the exponential mechanism's score there are to one of q."""
MOST_BITS = 8_192
FINEST = 1000
_SMALL = 1 << 60
"""Numbers below it fit into a machine's integers, and so do the gaps between them."""
_BLOCK = 1024

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExponentialQuantile(CentralMechanism):
    """A quantile of whole numbers between -2^bits and 2^bits."""

    kind: ClassVar[str] = "quantile"
    at: Fraction
    """p, such as 1/2 for the median."""
    bits: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.at < 1 or self.at.denominator > FINEST:
            raise InvalidSpec("--at lies between 0 and 1, in thousandths or coarser, such as 0.5")
        if not 1 <= self.bits <= MOST_BITS:
            raise InvalidSpec(f"--bits: 1 to {MOST_BITS:,}")

    @property
    def price(self) -> CentralPrice:
        return CentralPrice.selection(self.epsilon)

    @property
    def ranks(self) -> int:
        """By how many ranks the value may be off, with probability 95%."""
        return math.floor(2 / float(self.epsilon) * ((self.bits + 1) * math.log(2) - math.log(BETA))) + 1

    def run(self, records: Sequence[Record], draws: Draws) -> Outcome:
        reach = (1 << self.bits) - 1
        numbers = whole_numbers(records, "the column")
        if min(numbers) < -reach or max(numbers) > reach:
            numbers = [min(max(number, -reach), reach) for number in numbers]
        scale = laplace_scale(2 * (STEPS * self.at.denominator + 4), self.epsilon)
        small = min(numbers) > -_SMALL and max(numbers) < _SMALL
        found = (_small_segments if small else _segments)(numbers, reach, self.at)
        index = drawn_index(STEPS * found.scores + np.rint(scale * found.logs).astype(np.int64), scale, draws)
        first, length = found.segment(index)
        value = first + draws.uniform(length)
        note = (
            f"the quantile {float(self.at):g} of whole numbers: with probability 95% at most {self.ranks:,} people "
            "away in rank"
        )
        return Outcome((ReleasedRow(value),), note)


class _Segments(NamedTuple):
    """The segments: first those before and behind all numbers, which may be huge, then the others."""

    outer: list[tuple[int, int]]
    """First value, and how many values it has."""
    firsts: Any
    lengths: Any
    scores: Whole
    """D q of the values of each segment, the outer ones first."""
    logs: npt.NDArray[np.float64]
    """The logarithms of their lengths."""

    def segment(self, index: int) -> tuple[int, int]:
        """Return first value and length."""
        if index < len(self.outer):
            return self.outer[index]
        place = index - len(self.outer)
        return int(self.firsts[place]), int(self.lengths[place])


def _outer(lowest: int, highest: int, reach: int, target: int, finest: int, people: int) -> list[tuple[int, int, int]]:
    """Return first value, length and score of what lies before and behind all numbers."""
    ends = ((-reach, lowest + reach, -target), (highest + 1, reach - highest, target - finest * people))
    return [end for end in ends if end[1]]


def _small_segments(numbers: Sequence[int], reach: int, at: Fraction) -> _Segments:
    """The segments around numbers that fit into a machine's integers."""
    finest, people, target = at.denominator, len(numbers), at.numerator * len(numbers)
    values, counts = np.unique(np.array(numbers, np.int64), return_counts=True)
    up_to = finest * np.cumsum(counts)
    points = -np.maximum(0, np.maximum(up_to - finest * counts - target, target - up_to))
    lengths = np.diff(values) - 1
    full = lengths > 0
    gaps = -np.abs(up_to[:-1] - target)[full]
    lengths = np.concatenate([np.ones(len(values), np.int64), lengths[full]])
    outer = _outer(int(values[0]), int(values[-1]), reach, target, finest, people)
    return _Segments(
        [(first, length) for first, length, _ in outer],
        np.concatenate([values, (values[:-1] + 1)[full]]),
        lengths,
        np.concatenate([np.array([score for *_, score in outer], np.int64), points, gaps]),
        np.concatenate([[math.log(length) for _, length, _ in outer], np.log(lengths)]),
    )


def _segments(numbers: Sequence[int], reach: int, at: Fraction) -> _Segments:
    """The same for numbers of any size."""
    firsts, lengths, scores = [], [], []
    target, finest, below = at.numerator * len(numbers), at.denominator, 0
    values = sorted(Counter(numbers).items())
    start = values[0][0]
    for value, held in values:
        up_to = below + held
        if start < value:
            firsts.append(start)
            lengths.append(value - start)
            scores.append(-abs(finest * below - target))
        firsts.append(value)
        lengths.append(1)
        scores.append(-max(0, finest * below - target, target - finest * up_to))
        start, below = value + 1, up_to
    outer = _outer(values[0][0], values[-1][0], reach, target, finest, len(numbers))
    logs = [math.log(length) for length in [*(length for _, length, _ in outer), *lengths]]
    marks = np.array([*(score for *_, score in outer), *scores], np.int64)
    return _Segments([(first, length) for first, length, _ in outer], firsts, lengths, marks, np.array(logs))


def drawn_index(units: Whole, scale: float, draws: Draws) -> int:
    """Draw an index with probability proportional to e^(units / scale), by blocks if there are many."""
    if len(units) <= 2 * _BLOCK:
        return draws.exponential(units.tolist(), scale)
    starts = np.arange(0, len(units), _BLOCK)
    largest = np.maximum.reduceat(units, starts)
    inside = np.add.reduceat(np.exp((units - np.repeat(largest, np.diff([*starts, len(units)]))) / scale), starts)
    start = int(starts[draws.exponential((largest + np.rint(scale * np.log(inside)).astype(np.int64)).tolist(), scale)])
    return start + draws.exponential(units[start : start + _BLOCK].tolist(), scale)
