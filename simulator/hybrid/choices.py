"""Kinds of questions whose answers are not merged: which items are the most frequent, and who is below some numbers.

The error of a choice is what it misses: the share of the item that is the most frequent less that of the named one, or
the same for the k most frequent ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.collection import Collection
from ldp_server.answers import estimates, numbers
from ldp_server.curator.draws import Draws
from ldp_server.curator.people import Record as Held
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.gap_max import GapMax
from ldp_server.curator.releases.thresholds import LaplaceThresholds
from ldp_server.curator.releases.top import LaplaceTop
from ldp_server.oracles.base import Oracle
from simulator.hybrid.kinds import Floats, HybridKind, ListedItems, MedianNumber, People, released_content

__all__ = ["BelowNumbers", "FrequentItems", "MostFrequentItem"]


class _Chosen(ListedItems):
    """Items that are chosen by their counts, out of 64."""

    merges = False
    repeats = 5
    how_many: ClassVar[int]

    @abstractmethod
    def made(self, epsilon: Fraction) -> CentralMechanism: ...

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = self.made(epsilon)
        records: list[Held] = [self.ITEMS[index - 1] for index in people.tolist()]
        return released_content(made, made.run(records, draws), len(people))

    def of_reports(self, told: estimates.Estimates) -> Floats:
        counts = np.array([row.estimate for row in told.rows])
        return np.asarray(np.argsort(-counts, kind="stable")[: self.how_many], np.float64)

    def of_release(self, content: dict[str, Any]) -> Floats:
        return self._places([str(row["item"]["text"]) for row in content["rows"]])

    def _places(self, items: Sequence[str]) -> Floats:
        return np.array([self.ITEMS.index(item) for item in items], np.float64)

    def error(self, found: Floats, truth: Floats) -> float:
        """Return the share of the people that the best choice has more than this one."""
        best = np.sort(truth)[::-1][: self.how_many].sum()
        return float(best - truth[found.astype(np.intp)].sum())


class MostFrequentItem(_Chosen):
    """The most frequent item."""

    text = "which of 64 items is the most frequent, the share that is missed"
    how_many = 1

    def made(self, epsilon: Fraction) -> CentralMechanism:
        return GapMax(self.ITEMS, epsilon)


class FrequentItems(_Chosen):
    """The eight most frequent items."""

    text = "which 8 of 64 items are the most frequent, the share that is missed"
    how_many = 8

    def made(self, epsilon: Fraction) -> CentralMechanism:
        return LaplaceTop(self.ITEMS, self.how_many, epsilon)


class BelowNumbers(MedianNumber):
    """How many people have a number below each of some cuts."""

    repeats = 3
    text = "the share of numbers below each of 15 cuts, from 0 to 1,023"
    CUTS = tuple(range(64, 1024, 64))

    def truth(self, people: People) -> Floats:
        return np.searchsorted(np.sort(people - 1), self.CUTS, "left") / len(people)

    def released(self, people: People, epsilon: Fraction, draws: Draws) -> dict[str, Any]:
        made = LaplaceThresholds(self.CUTS, epsilon)
        return released_content(made, made.run([*(people - 1).tolist()], draws), len(people))

    def of_reports(self, told: tuple[Collection, Oracle]) -> Floats:
        found = numbers.ranges_answer(told[0], told[1], [(0, cut - 1) for cut in self.CUTS])
        return np.array([row.estimate for row in found.ranges]) / found.reports

    of_release = HybridKind.of_release
    error = HybridKind.error
