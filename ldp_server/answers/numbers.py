"""Averages, quantiles and ranges of numbers, in the unit of the collection's domain."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers
from ldp_server.oracles.base import Oracle
from ldp_server.oracles.bounded_number import Average, BoundedNumberOracle
from ldp_server.oracles.hierarchy import HierarchyOracle, Quantile

__all__ = ["Range", "average", "count_between", "quantile"]


@dataclass(frozen=True)
class Range:
    """How many users' numbers lie in a range."""

    first: int
    last: int
    estimate: float
    standard_error: float
    """An upper bound."""


def _lowest(collection: Collection) -> int:
    if not isinstance(collection.domain, Integers):
        raise InvalidSpec("averages and quantiles are asked of an integers domain")
    return collection.domain.lowest


def average(collection: Collection, oracle: Oracle, *, confidence: float = 0.95) -> Average:
    """Return the average number of those who have one."""
    if not isinstance(oracle, BoundedNumberOracle):
        raise InvalidSpec("an average is asked with the mechanism bounded-number")
    lowest, found = _lowest(collection), oracle.average(confidence)
    return replace(found, estimate=found.estimate + lowest, low=found.low + lowest, high=found.high + lowest)


def quantile(collection: Collection, oracle: Oracle, share: float, *, confidence: float = 0.95) -> Quantile:
    """Return the number at or below which this share of the numbers lie; share 0.5 is the median."""
    if not isinstance(oracle, HierarchyOracle):
        raise InvalidSpec("a quantile is asked with the mechanism hierarchy")
    lowest, found = _lowest(collection), oracle.quantile(share, confidence)
    return replace(found, estimate=found.estimate + lowest, low=found.low + lowest, high=found.high + lowest)


def count_between(collection: Collection, oracle: Oracle, first: int, last: int) -> Range:
    """Return how many users' numbers lie from `first` to `last`."""
    if not isinstance(oracle, HierarchyOracle):
        raise InvalidSpec("a range is counted with the mechanism hierarchy")
    lowest = _lowest(collection)
    return Range(first, last, *oracle.between(first - lowest, last - lowest))
