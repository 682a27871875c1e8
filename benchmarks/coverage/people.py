"""The grid of everything that is not the frequency of an item of a list: averages, ranges, quantiles, attributes, sets.

The narrowest valid interval is 1.96 standard deviations of the point value, measured over the runs, to both sides. For
quantiles, which are whole numbers, there are no widths.
"""

from __future__ import annotations

import itertools
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
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage
from ldp_server.oracles import Oracle

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
        truth = float(((values >= first) & (values <= last)).sum())
        tallies[f"range {first} to {last}"].add_one((found.low, found.high), found.estimate, truth)
    bins = numbers.bins_answer(collection, oracle, 12, coverage=Coverage.TOGETHER).ranges
    truths = [((values >= one.first) & (values <= one.last)).sum() for one in bins]
    right = all(one.low <= truth <= one.high for one, truth in zip(bins, truths, strict=True))
    tallies["12 bins together"].add_flag(right)
    for share in (0.1, 0.5, 0.9):
        place = numbers.quantile(collection, oracle, share)
        true = int(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)])
        tallies[f"quantile {share}"].add_flag(place.low <= true <= place.high)
    wanted = list(range(0, _LAST, 20))
    found_items = estimates.given_items(collection, oracle, wanted)
    low, high = (np.asarray(found_items.rows.columns[name], float) for name in ("low", "high"))
    tallies["each integer"].add(low, high, np.array([(values == item).sum() for item in wanted], np.float64))


def _ask_attributes(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    for place, row in enumerate(attributes_answer(collection, oracle).rows):
        tallies[f"attribute {place}" if place in (0, 5) else "other attributes"].add_one(
            (row.low, row.high), row.estimate, float((held >> place & 1).sum())
        )
    right = [
        row.low <= (held >> place & 1).sum() <= row.high
        for place, row in enumerate(attributes_answer(collection, oracle, together=True).rows)
    ]
    tallies["attributes together"].add_flag(all(right))


def _ask_sets(collection: Collection, oracle: Oracle, held: Values, tallies: Tallies) -> None:
    _ask_attributes(collection, oracle, held, tallies)
    pairs = list(itertools.combinations(range(_ATTRIBUTES), 2))
    for (one, two), row in zip(pairs, attributes_answer(collection, oracle, pairs=True).rows, strict=True):
        truth = float((held >> one & held >> two & 1).sum())
        tallies["first pair" if (one, two) == (0, 1) else "other pairs"].add_one(
            (row.low, row.high), row.estimate, truth
        )
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
