"""The exact law of a central mechanism: its own code is run once for every outcome of its draws.

Each draw of noise is cut where its tail is below `cut`. What is cut off is counted in `lost`, so a bound from the law
holds up to it. `smallest_delta` is the hockey stick: the smallest delta at which two laws are (epsilon, delta)-close.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

from ldp_server.curator.draws import Draws
from ldp_server.curator.laws import (
    exponential_law,
    gaussian_half_width,
    gaussian_law,
    laplace_half_width,
    laplace_law,
    laplace_tail,
    permute_and_flip_law,
)
from ldp_server.curator.people import Record
from ldp_server.curator.releases.base import CentralMechanism

__all__ = [
    "Laws",
    "OutcomeLaw",
    "every_data_set",
    "every_law",
    "largest_loss",
    "law_of",
    "neighbours",
    "smallest_delta",
    "worst_delta",
    "worst_divergence",
]

Chances = tuple[tuple[int, float], ...]


@lru_cache(maxsize=256)
def _laplace(scale: float, cut: float) -> Chances:
    width = laplace_half_width(scale, cut)
    return tuple((z, laplace_law(scale, z)) for z in range(-width, width + 1))


@lru_cache(maxsize=256)
def _gaussian(sigma: float, cut: float) -> Chances:
    width = gaussian_half_width(sigma, cut)
    return tuple((z, gaussian_law(sigma, z)) for z in range(-width, width + 1))


class _Scripted(Draws):
    """Follows a list of choices; beyond its end it takes the first choice and notes the others."""

    def __init__(self, script: tuple[int, ...], cut: float, thresholds: Mapping[float, int]) -> None:
        self._script, self._cut, self._at, self._thresholds = script, cut, 0, thresholds
        self.chance = 1.0
        self.others: list[tuple[int, ...]] = []
        self._taken: list[int] = []

    def _choose(self, chances: Sequence[tuple[int, float]]) -> int:
        if self._at < len(self._script):
            choice = self._script[self._at]
        else:
            choice = 0
            self.others += [(*self._taken, other) for other in range(1, len(chances))]
        self._at += 1
        self._taken.append(choice)
        value, chance = chances[choice]
        self.chance *= chance
        return value

    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        if (threshold := self._thresholds.get(scale)) is not None:
            return [self._compared(value, scale, threshold) for value in values]
        return [value + self._choose(_laplace(scale, self._cut)) for value in values]

    def _compared(self, value: int, scale: float, threshold: int) -> int:
        """One of two numbers: all that are at the threshold or above, and all below, have one outcome."""
        passed = laplace_tail(scale, threshold - value)
        return self._choose(((threshold, passed), (threshold - 1, 1 - passed)))

    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        return [value + self._choose(_gaussian(sigma, self._cut)) for value in values]

    def select(self, scores: Sequence[int], scale: float) -> int:
        return self._choose(list(enumerate(permute_and_flip_law(scores, scale))))

    def exponential(self, scores: Sequence[int], scale: float) -> int:
        return self._choose(list(enumerate(exponential_law(scores, scale))))

    def uniform(self, count: int) -> int:
        return self._choose([(value, 1 / count) for value in range(count)])


@dataclass(frozen=True)
class OutcomeLaw:
    """The probability of each outcome, and the probability that was cut off."""

    chances: dict[Hashable, float]
    lost: float


def law_of(
    run: Callable[[Draws], Hashable], cut: float = 1e-9, thresholds: Mapping[float, int] | None = None
) -> OutcomeLaw:
    """Return the law of what `run` returns.

    `thresholds`: Laplace noise of these scales is only ever compared with the threshold (is it at least this?).
    """
    found: dict[Hashable, float] = defaultdict(float)
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        draws = _Scripted(waiting.pop(), cut, thresholds or {})
        found[run(draws)] += draws.chance
        waiting += draws.others
    return OutcomeLaw(dict(found), max(0.0, 1 - math.fsum(found.values())))


def smallest_delta(one: OutcomeLaw, other: OutcomeLaw, epsilon: float) -> float:
    """Return the smallest delta with P(S) <= e^epsilon Q(S) + delta for all S; what was cut off is taken away."""
    factor = math.exp(epsilon)
    sums = (max(0.0, p - factor * other.chances.get(outcome, 0.0)) for outcome, p in one.chances.items())
    return max(0.0, math.fsum(sums) - factor * other.lost)


def largest_loss(one: OutcomeLaw, other: OutcomeLaw) -> float:
    """Return the largest |log of the ratio| of an outcome's probabilities, over the outcomes that both laws list."""
    both = [(p, other.chances[outcome]) for outcome, p in one.chances.items() if outcome in other.chances]
    return max(abs(math.log(p / q)) for p, q in both)


def every_data_set(items: Sequence[Record], people: int) -> Iterator[tuple[Record, ...]]:
    """Every data set of so many people, each of whom holds one of the items or none; the order does not matter."""
    return combinations_with_replacement([*items, None], people)


def neighbours(data: tuple[Record, ...], items: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
    """Every data set in which one person's record is another one."""
    for place in dict.fromkeys(data):
        for item in [*items, None]:
            if item != place:
                found = list(data)
                found[found.index(place)] = item
                yield _sorted(found)


Laws = dict[tuple[Record, ...], OutcomeLaw]


def every_law(mechanism: CentralMechanism, items: Sequence[Record], people: int, cut: float = 1e-8) -> Laws:
    """Return the law of a mechanism for every data set of this size."""
    laws: Laws = {}
    for data in every_data_set(items, people):
        laws[_sorted(data)] = law_of(lambda draws, data=data: _outcome(mechanism, data, draws), cut)  # type: ignore[misc]
    return laws


def worst_delta(laws: Laws, items: Sequence[Record], epsilon: float) -> float:
    """Return the largest `smallest_delta` over all neighbours."""
    return max(smallest_delta(laws[a], laws[b], epsilon) for a in laws for b in neighbours(a, items))


def worst_divergence(laws: Laws, items: Sequence[Record], order: float) -> float:
    """Return the largest Renyi divergence of an order over all neighbours; what was cut off counts for nothing."""
    return max(_divergence(laws[a], laws[b], order) for a in laws for b in neighbours(a, items))


def _divergence(one: OutcomeLaw, other: OutcomeLaw, order: float) -> float:
    both = ((p, other.chances[outcome]) for outcome, p in one.chances.items() if outcome in other.chances)
    return math.log(math.fsum(p**order * q ** (1 - order) for p, q in both)) / (order - 1)


def _sorted(data: Sequence[Record]) -> tuple[Record, ...]:
    return tuple(sorted(data, key=lambda record: (record is None, str(record))))


def _outcome(mechanism: CentralMechanism, data: Sequence[Record], draws: Draws) -> Hashable:
    """What leaves: the items with their counts. Intervals follow from them and from what is public."""
    return tuple((row.item, row.count) for row in mechanism.run(data, draws).rows)
