"""The grid of everything that is not the frequency of an item of a list: averages, ranges, quantiles, attributes, sets.

The narrowest valid interval is 1.96 standard deviations of the point value, measured over the runs, to both sides. For
quantiles, which are whole numbers, there are no widths.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.coverage.laws import packed
from benchmarks.coverage.tally import Tally
from benchmarks.row import Row
from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, composed_response, hierarchy
from ldp_client.protocol.domain import Attributes, Domain, Integers
from ldp_server.answers import estimates, numbers
from ldp_server.oracles import AttributesOracle, Oracle

__all__ = ["PeopleCell", "cells"]

Tallies = dict[str, Tally]
Values = npt.NDArray[np.int64]

_LAST = 500
_RANGES = ((0, 250), (100, 150), (37, 437))
_ATTRIBUTES = 8
_EPSILONS = ("0.3", "1", "3", "10")
_EVALUATION = 0xC0FFEE
_SLOW = 40


@dataclass(frozen=True)
class PeopleCell:
    """A mechanism with its parameters, and what its users hold."""

    mechanism: str
    parameters: dict[str, int]
    domain: Domain
    epsilon: str
    users: int
    crowd: str
    indexes: Callable[[np.random.Generator, int], Values]
    """The users' indexes in the domain."""
    ask: Callable[[Collection, Oracle, Values, Tallies], None]

    @property
    def name(self) -> str:
        return f"{self.mechanism} n={self.users} eps={self.epsilon} {self.crowd}"

    def measure(self, runs: int) -> Iterator[Row]:
        """Return the rows."""
        name = self.name
        seed = zlib.crc32(name.encode()) ^ _EVALUATION
        held = self.indexes(np.random.default_rng(seed), self.users)
        tallies: Tallies = defaultdict(Tally)
        for run in range(runs):
            collection = Collection.create(
                "?",
                self.domain,
                self.mechanism,
                self.epsilon,
                parameters=self.parameters,
                opens=0,
                closes=1,
                nonce=(seed + run) & 0xFFFF,
            )
            self.ask(collection, packed(collection, held.astype(np.uint64), seed + run), held, tallies)
        for kind, tally in tallies.items():
            yield from tally.rows(f"{name}: {kind}")


def _ask_average(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    found = numbers.average(collection, oracle)
    tallies["average"].add_one((found.low, found.high), found.estimate, float(held.mean()) - 1)


def _ask_tree(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    values = held - 1
    for first, last in _RANGES:
        found = numbers.count_between(collection, oracle, first, last)
        reach, truth = 1.96 * found.standard_error, float(((values >= first) & (values <= last)).sum())
        ends = found.estimate - reach, found.estimate + reach
        tallies[f"range {first} to {last}"].add_one(ends, found.estimate, truth)
    for share in (0.1, 0.5, 0.9):
        place = numbers.quantile(collection, oracle, share)
        true = int(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)])
        tallies[f"quantile {share}"].add_flag(place.low <= true <= place.high)
    wanted = list(range(0, _LAST, 20))
    found_items = estimates.given_items(collection, oracle, wanted)
    low, high = (np.asarray(found_items.rows.columns[name], float) for name in ("low", "high"))
    tallies["each integer"].add(low, high, np.array([(values == item).sum() for item in wanted], np.float64))


def _ask_attributes(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    if not isinstance(oracle, AttributesOracle):
        raise TypeError(f"{collection.randomizer.name} has no attributes")
    for share in oracle.attributes():
        place = share.attributes[0]
        truth = float((held >> place & 1).sum())
        tallies[f"attribute {place}" if place in (0, 5) else "other attributes"].add_one(
            share.interval(), share.estimate, truth
        )


def _ask_sets(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    _ask_attributes(collection, oracle, held, tallies)
    try:
        found = estimates.every_item(collection, oracle)
    except InvalidSpec:  # some shells hide combinations of attributes
        return
    low, high = (np.asarray(found.rows.columns[name], float) for name in ("low", "high"))
    tallies["each set"].add(low, high, np.bincount(held, minlength=collection.domain.size).astype(float))


def _both_ends(rng: np.random.Generator, users: int) -> Values:
    del rng
    return np.arange(users) % 2 * _LAST + 1


def _bell(rng: np.random.Generator, users: int) -> Values:
    return np.clip(rng.normal(200, 60, users), 0, _LAST).astype(np.int64) + 1


def _some_attributes(rng: np.random.Generator, users: int) -> Values:
    """The first attribute is held by 2%, each further one by more."""
    chances = np.linspace(0.02, 0.9, _ATTRIBUTES)
    return np.asarray((rng.random((users, _ATTRIBUTES)) < chances) @ (1 << np.arange(_ATTRIBUTES)))


def _numbers(epsilon: str, users: int) -> Iterator[PeopleCell]:
    for crowd, indexes in (("both ends", _both_ends), ("bell", _bell)):
        line = Integers(0, _LAST + 1)
        yield PeopleCell(
            "bounded-number", bounded_number.design(epsilon), line, epsilon, users, crowd, indexes, _ask_average
        )
        parameters = hierarchy.design(epsilon, _LAST + 1)
        yield PeopleCell("hierarchy", parameters, line, epsilon, users, crowd, indexes, _ask_tree)


def _attributes(epsilon: str, users: int) -> Iterator[PeopleCell]:
    names = Attributes(tuple(f"a{i}" for i in range(_ATTRIBUTES)))
    crowd = f"{_ATTRIBUTES} attributes"
    yield PeopleCell("sampled-attribute", {}, names, epsilon, users, crowd, _some_attributes, _ask_attributes)
    parameters = composed_response.design(epsilon, _ATTRIBUTES)
    yield PeopleCell("composed-response", parameters, names, epsilon, users, crowd, _some_attributes, _ask_sets)


def cells(*, full: bool) -> list[tuple[PeopleCell, int]]:
    """Return the cells, each with its number of runs."""
    found: list[tuple[PeopleCell, int]] = []
    for epsilon in _EPSILONS if full else ("1", "3"):
        for users, runs in ((1000, 600), (30_000, 300), (1_000_000, 60)) if full else ((5000, 100),):
            for cell in (*_numbers(epsilon, users), *_attributes(epsilon, users)):
                slow = cell.mechanism == "hierarchy" and epsilon == "10"  # its levels have large primes
                found.append((cell, min(runs, _SLOW) if slow else runs))
    return found
