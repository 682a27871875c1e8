"""Averages, quantiles and ranges of numbers, in the unit of the collection's domain.

    average, quantile, count_between     one number each, from an oracle
    average_answer, quantiles_answer,
    ranges_answer, bins_answer           whole answers: with the reports, the confidence and what it is about

Several quantiles or ranges have intervals that hold for each of them alone (Coverage.EACH) or for all of them at once
(Coverage.TOGETHER, Bonferroni: each may err with its part of 1 - confidence). Ends lie within the domain and counts
within 0 and the number of reports: the truth does too. With `every_look`, those of averages and ranges are right at
every number of reports at once (every_look.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.every_look import average_ends, range_ends
from ldp_server.answers.more import more_for_half
from ldp_server.oracles.base import Oracle, TooFewReports, Unsupported
from ldp_server.oracles.bounded_number import Average, BoundedNumberOracle
from ldp_server.oracles.hierarchy import HierarchyOracle, Quantile
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = [
    "AverageAnswer",
    "Between",
    "QuantilesAnswer",
    "Range",
    "RangesAnswer",
    "average",
    "average_answer",
    "bins_answer",
    "count_between",
    "quantile",
    "quantiles_answer",
    "ranges_answer",
    "share_of",
]

Between = tuple[int, int]
"""The first and the last integer of a range."""


_MOST = 1000


@dataclass(frozen=True)
class Range:
    """How many users' numbers lie in a range."""

    first: int
    last: int
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class AverageAnswer:
    """The average number of those who have one."""

    reports: int
    confidence: float
    average: Average
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""
    more_for_half: int | None = None
    """How many more reports half the error takes."""
    independence: Independence = INDEPENDENT


@dataclass(frozen=True)
class QuantilesAnswer:
    """The numbers at or below which given shares of the numbers lie."""

    reports: int
    confidence: float
    coverage: Coverage
    holders: float
    """How many users have a number at all: the shares are shares of these."""
    quantiles: tuple[Quantile, ...]
    more_for_half: int | None = None
    """How many more reports half the error takes, as a share of the users."""
    independence: Independence = INDEPENDENT


@dataclass(frozen=True)
class RangesAnswer:
    """How many numbers lie in each of some ranges."""

    reports: int
    confidence: float
    coverage: Coverage
    holders: float
    """How many users have a number at all."""
    ranges: tuple[Range, ...]
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""
    more_for_half: int | None = None
    """How many more reports half the error takes, as a share of the users."""
    independence: Independence = INDEPENDENT


def _integers(collection: Collection) -> Integers:
    if not isinstance(collection.domain, Integers):
        raise Unsupported("averages, quantiles and ranges are asked of a domain of integers")
    return collection.domain


def _tree(oracle: Oracle, asked: str) -> HierarchyOracle:
    if not isinstance(oracle, HierarchyOracle):
        raise Unsupported(f"{oracle.randomizer.name} gives no {asked}: a collection with hierarchy does")
    return oracle


def average(collection: Collection, oracle: Oracle, *, confidence: float = 0.95) -> Average:
    """Return the average number of those who have one."""
    if not isinstance(oracle, BoundedNumberOracle):
        raise Unsupported(f"{oracle.randomizer.name} gives no average: a collection with bounded-number does")
    honest, seen = accepted(oracle)
    lowest, found = _integers(collection).lowest, honest.average(seen.confidence(confidence))
    return replace(
        found,
        estimate=found.estimate + lowest,
        standard_error=seen.error(found.standard_error),
        low=found.low + lowest,
        high=found.high + lowest,
    )


def quantile(collection: Collection, oracle: Oracle, share: float, *, confidence: float = 0.95) -> Quantile:
    """Return the number at or below which this share of the numbers lie; share 0.5 is the median."""
    tree, seen = accepted(_tree(oracle, "quantiles"))
    lowest, found = _integers(collection).lowest, tree.quantile(share, seen.confidence(confidence))
    return replace(found, estimate=found.estimate + lowest, low=found.low + lowest, high=found.high + lowest)


def count_between(collection: Collection, oracle: Oracle, first: int, last: int, *, confidence: float = 0.95) -> Range:
    """Return how many users' numbers lie from `first` to `last`."""
    lowest, (tree, seen) = _integers(collection).lowest, accepted(_tree(oracle, "ranges"))
    found = tree.between(first - lowest, last - lowest)
    ends = found.interval(seen.confidence(confidence))
    low, high = (min(max(end, 0.0), float(tree.reports)) for end in ends)
    return Range(first, last, found.count, seen.error(found.error), low, high)


def average_answer(
    collection: Collection, oracle: Oracle, *, confidence: float = 0.95, every_look: bool = False
) -> AverageAnswer:
    """Answer the question for the average. The ends of its interval lie within the domain."""
    found = average(collection, oracle, confidence=confidence)
    _some_reports(oracle)
    domain = _integers(collection)
    if every_look and isinstance(oracle, BoundedNumberOracle):
        ends = average_ends(oracle, (1 - confidence) / 2)
        found = replace(found, low=domain.lowest + ends[0], high=domain.lowest + ends[1])
    low, high = (min(max(end, domain.lowest), domain.highest) for end in (found.low, found.high))
    honest, seen = accepted(oracle)
    found = replace(found, low=float(low), high=float(high))
    return AverageAnswer(honest.reports, confidence, found, every_look, more_for_half(honest), seen)


def quantiles_answer(
    collection: Collection,
    oracle: Oracle,
    shares: Iterable[float] = (0.5,),
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
) -> QuantilesAnswer:
    """Answer the question for several quantiles."""
    (tree, seen), wanted = accepted(_tree(oracle, "quantiles")), list(shares)
    if not 1 <= len(wanted) <= _MOST:
        raise InvalidSpec(f"ask for 1 to {_MOST} quantiles, such as 0.5")
    _some_reports(oracle)
    each = share_of(confidence, coverage, len(wanted))
    found = tuple(quantile(collection, tree, share, confidence=each) for share in wanted)
    return QuantilesAnswer(tree.reports, confidence, coverage, tree.holders(), found, more_for_half(tree), seen)


def ranges_answer(
    collection: Collection,
    oracle: Oracle,
    between: Iterable[Between],
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    every_look: bool = False,
) -> RangesAnswer:
    """Answer the question for the numbers between bounds."""
    (tree, seen), wanted = accepted(_tree(oracle, "ranges")), list(between)
    if not 1 <= len(wanted) <= _MOST:
        raise InvalidSpec(f"ask for 1 to {_MOST} ranges")
    domain = _integers(collection)
    if not all(domain.lowest <= first <= last <= domain.highest for first, last in wanted):
        raise InvalidSpec(f"a range lies within {domain.lowest} to {domain.highest}, its ends in order")
    _some_reports(oracle)
    each = share_of(confidence, coverage, len(wanted))
    found = tuple(count_between(collection, tree, first, last, confidence=each) for first, last in wanted)
    if every_look:
        found = tuple(_at_every_look(tree, one, domain.lowest, (1 - each) / 2) for one in found)
    more = more_for_half(tree)
    return RangesAnswer(tree.reports, confidence, coverage, tree.holders(), found, every_look, more, seen)


def _at_every_look(tree: HierarchyOracle, one: Range, lowest: int, tail: float) -> Range:
    """The intervals of a range, widened by copies as all others."""
    ends = range_ends(tree, one.first - lowest, one.last - lowest, tail)
    middle, low, high = (np.array([end]) for end in (one.estimate, *ends))
    low, high = accepted(tree)[1].stretched(middle, low, high, tree.reports)
    return replace(one, low=float(low[0]), high=float(high[0]))


def bins_answer(
    collection: Collection,
    oracle: Oracle,
    bins: int,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    every_look: bool = False,
) -> RangesAnswer:
    """Answer the question for a histogram of the whole domain."""
    _tree(oracle, "ranges")
    wanted = _bins(_integers(collection), bins)
    return ranges_answer(collection, oracle, wanted, confidence=confidence, coverage=coverage, every_look=every_look)


def share_of(confidence: float, coverage: Coverage, intervals: int) -> float:
    """Return the confidence of each of so many intervals: that of all of them together, or of it alone."""
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    return confidence if coverage is Coverage.EACH else 1 - (1 - confidence) / max(1, intervals)


def _bins(domain: Integers, bins: int) -> Sequence[Between]:
    """Cut a domain into so many ranges, alike but for one integer."""
    most = min(domain.count, _MOST)
    if not 1 <= bins <= most:
        raise InvalidSpec(f"a histogram of this domain has 1 to {most} bins")
    cuts = [domain.lowest + domain.count * i // bins for i in range(bins + 1)]
    return [(first, after - 1) for first, after in pairwise(cuts)]


def _some_reports(oracle: Oracle) -> None:
    if not oracle.reports:
        raise TooFewReports("this collection has no reports yet")
