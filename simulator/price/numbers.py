"""Questions about numbers: averages, quantiles, and how many lie in a range."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from ldp_client.mechanisms import hierarchy
from ldp_client.protocol.domain import Field, Integers
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism, Outcome
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.quantiles import InteriorPoint, RecursiveQuantile
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
from ldp_server.curator.releases.thresholds import LaplaceThresholds
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, ranges_of
from ldp_server.oracles import as_frequency
from simulator.hybrid.choices import BelowNumbers
from simulator.hybrid.kinds import Floats, MeanNumber, MedianNumber, People, counted_reports
from simulator.price.question import DELTA, OfHybrid, PricedQuestion

__all__ = ["AllRanges", "AllThresholds", "InsidePoint", "ListedThresholds", "Median", "NumberAverage", "number_counts"]

_HALF = Fraction(1, 2)
_BITS = 10
_FAR = "the range is 2^10 numbers: reports answer about no range of hundreds of bits, and the release does"


def number_counts(people: People, count: int, epsilon: str, seed: int) -> Floats:
    """Return how many users hold each of the numbers 0 ... count - 1, from a tree over them; `people` hold indexes."""
    parameters = hierarchy.design(epsilon, count)
    _, oracle = counted_reports(Integers(0, count), "hierarchy", epsilon, parameters, people, seed)
    return np.asarray(as_frequency(oracle).estimate_all())[1:]


class _Numbers(OfHybrid):
    """Questions about numbers, each held as its distance from the lowest, from 1."""

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [(people - 1).tolist()]


class NumberAverage(_Numbers):
    """An average."""

    hybrid, repeats = MeanNumber, 10
    text, local = "the average of numbers from 0 to 100, over 100", "a randomized number each"
    releases: ClassVar = {"average": lambda epsilon: LaplaceAverage(0, 100, epsilon)}


class ListedThresholds(_Numbers):
    """How many numbers lie below listed cuts."""

    hybrid, repeats = BelowNumbers, 3
    text, local = "the share of numbers below each of 15 cuts, from 0 to 1,023", "a tree over the numbers"
    releases: ClassVar = {"thresholds": lambda epsilon: LaplaceThresholds(BelowNumbers.CUTS, epsilon)}


class Median(_Numbers):
    """A median."""

    hybrid, repeats = MedianNumber, 10
    text, local = "the median of numbers from 0 to 1,023, its rank as a share", "a tree over the numbers"
    remark = f"recursive-quantile: {_FAR}"
    releases: ClassVar = {
        "quantile": lambda epsilon: ExponentialQuantile(_HALF, _BITS, epsilon),
        "recursive-quantile": lambda epsilon: RecursiveQuantile(_HALF, _BITS, epsilon, DELTA),
    }


class InsidePoint(PricedQuestion):
    """A point inside the data, where all numbers are close together."""

    text = "a number between the smallest and the largest, all within 8 of 1,024: the share of runs that miss"
    local, remark, repeats = "the median of a tree over the numbers", _FAR, 20
    releases: ClassVar = {"interior-point": lambda epsilon: InteriorPoint(_BITS, epsilon, DELTA)}

    def people(self, rng: np.random.Generator) -> People:
        return int(rng.integers(1 << _BITS)) // 8 * 8 + rng.integers(0, 8, self.users)

    def truth(self, people: People) -> tuple[int, int]:
        return int(people.min()), int(people.max())

    def reported(self, people: People, seed: int) -> int | None:
        held = number_counts(people + 1, 1 << _BITS, self.epsilon, seed)
        return int(np.argmax(np.cumsum(held) >= held.sum() / 2))

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [people.tolist()]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> int | None:
        del made, people
        return int(str(outcome.rows[0].item)) if outcome.rows else None

    def error(self, found: int | None, truth: tuple[int, int]) -> float:
        return float(found is None or not truth[0] <= found <= truth[1])


class AllThresholds(PricedQuestion):
    """How many numbers lie below any threshold."""

    text = "the share of numbers below any threshold, from 0 to 1,023: the largest error"
    local = "a tree over the numbers"
    releases: ClassVar = {"all-thresholds": lambda epsilon: NumberSanitizer(Fraction(1, 20), _BITS, epsilon)}

    def people(self, rng: np.random.Generator) -> People:
        return MedianNumber(self.users, self.epsilon).people(rng) - 1

    def truth(self, people: People) -> Floats:
        return np.cumsum(np.bincount(people, minlength=1 << _BITS)) / len(people)

    def reported(self, people: People, seed: int) -> Floats:
        return np.cumsum(number_counts(people + 1, 1 << _BITS, self.epsilon, seed)) / len(people)

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [people.tolist()]

    def released(self, made: CentralMechanism, outcome: Outcome, people: int) -> Floats:
        del made
        held = np.zeros(1 << _BITS)
        for row in outcome.rows:
            held[min(max(int(str(row.item)), 0), len(held) - 1)] += row.count or 0
        return np.cumsum(held) / people

    def error(self, found: Floats, truth: Floats) -> float:
        return float(np.abs(found - truth).max())


_COUNT = 63
_AGES = Fields((Field("age", Integers(0, _COUNT)),))


@cache
def _all_ranges(epsilon: Fraction) -> LinearAnswers:
    """Return the release of all ranges; its strategy is sought once."""
    return LinearAnswers(LinearQueries(_AGES, tuple(ranges_of(_AGES, "age"))), Price(epsilon=epsilon))


class AllRanges(PricedQuestion):
    """How many numbers lie in any range, by the strategy that errs least."""

    text, local = "the share of numbers in each range of 63 values", "a tree over the numbers"
    releases: ClassVar = {"linear": _all_ranges}

    def people(self, rng: np.random.Generator) -> People:
        return np.asarray((MedianNumber(self.users, self.epsilon).people(rng) - 1) * _COUNT // 1024, np.int64)

    def truth(self, people: People) -> Floats:
        return self._ranges(np.bincount(people, minlength=_COUNT) / len(people))

    def _ranges(self, shares: Floats) -> Floats:
        """The share of each range, in the order of the release: by the first value, then by the last."""
        below = np.concatenate([[0.0], np.cumsum(shares)])
        first, last = np.triu_indices(_COUNT)
        return np.asarray(below[last + 1] - below[first])

    def reported(self, people: People, seed: int) -> Floats:
        return self._ranges(number_counts(people + 1, _COUNT, self.epsilon, seed) / len(people))

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [people.tolist()]
