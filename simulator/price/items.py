"""Questions about items: listed ones, groups of them, and items that nobody has listed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from ldp_client.protocol.domain import Categories, Domain, Strings
from ldp_server.answers import estimates
from ldp_server.answers.choose import choose
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.curator.people import Record
from ldp_server.curator.releases.choosing import Choosing
from ldp_server.curator.releases.gap_max import GapMax, ObviousAnswer
from ldp_server.curator.releases.histogram import LaplaceHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.curator.releases.sanitizing.points import PointSanitizer
from ldp_server.curator.releases.stability import StabilityHistogram
from ldp_server.curator.releases.top import LaplaceTop
from ldp_server.curator.workloads.knorm.counts import KNormCounts
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.oracles import oracle_for
from simulator import crowd
from simulator.hybrid.choices import FrequentItems, MostFrequentItem
from simulator.hybrid.kinds import Floats, ListedItems, People, counted_reports
from simulator.price.question import DELTA, OfHybrid, OneItem, PricedQuestion, SharesOfAny

__all__ = ["Groups", "ItemShares", "ModalItem", "MostFrequent", "TopItems", "UnknownItems", "hitters"]

_STEP = 1 << 16
_ITEMS = ListedItems.ITEMS
_ENDS = (8, 16, 32, 48)
"""Of nested groups: the first items up to each of these."""


class _Listed(OfHybrid):
    """Questions about 64 listed items."""

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [[_ITEMS[index - 1] for index in people.tolist()]]


class ItemShares(_Listed):
    """Frequencies of listed items."""

    hybrid = ListedItems
    text, local = "the share of each of 64 items", "a frequency oracle over the list"
    releases: ClassVar = {"histogram": lambda epsilon: LaplaceHistogram(_ITEMS, epsilon)}


def _close(users: int, rng: np.random.Generator) -> People:
    """Items that are nearly as frequent as each other: the most frequent one has 3.7%, the next 3.0%."""
    weights = np.arange(1, len(_ITEMS) + 1) ** -0.3
    return rng.choice(np.arange(1, len(_ITEMS) + 1), users, p=weights / weights.sum())


class _CloseMost(MostFrequentItem):
    """The most frequent of items that are close."""

    def people(self, rng: np.random.Generator) -> People:
        return _close(self.users, rng)


class _CloseTop(FrequentItems):
    """The eight most frequent of items that are close."""

    def people(self, rng: np.random.Generator) -> People:
        return _close(self.users, rng)


class MostFrequent(_Listed):
    """The most frequent of the listed items."""

    hybrid, repeats = _CloseMost, 5
    text = "which of 64 items with close frequencies is the most frequent, the share that is missed"
    local = "a frequency oracle over the list"
    releases: ClassVar = {
        "gap-max": lambda epsilon: GapMax(_ITEMS, epsilon),
        "obvious-answer": lambda epsilon: ObviousAnswer(_ITEMS, epsilon),
    }


class TopItems(_Listed):
    """The eight most frequent of the listed items."""

    hybrid, repeats = _CloseTop, 2
    text = "which 8 of 64 items with close frequencies are the most frequent, the share that is missed"
    local = "a frequency oracle over the list"
    releases: ClassVar = {"top": lambda epsilon: LaplaceTop(_ITEMS, FrequentItems.how_many, epsilon)}


class Groups(PricedQuestion):
    """Nested groups of items: each device reports the smallest group that has its item."""

    text = "how many people hold one of the items of each of 4 nested groups, as a share"
    local = "a frequency oracle over the parts of the groups"
    releases: ClassVar = {"overlapping": lambda epsilon: KNormCounts(tuple(_ITEMS[:end] for end in _ENDS), epsilon)}

    def people(self, rng: np.random.Generator) -> People:
        return ListedItems(self.users, self.epsilon).people(rng)

    def truth(self, people: People) -> Floats:
        return np.array([float((people <= end).mean()) for end in _ENDS])

    def reported(self, people: People, seed: int) -> Floats:
        part = np.searchsorted(_ENDS, people, "left") + 1
        held = np.where(part > len(_ENDS), 0, part)
        return self._sums(held, seed)

    def _sums(self, held: People, seed: int) -> Floats:
        names = tuple(f"part {place}" for place in range(len(_ENDS)))
        chosen = choose(len(held), len(names) + 1, self.epsilon)
        asked = counted_reports(Categories(names), chosen.mechanism, self.epsilon, chosen.parameters, held, seed)
        told = estimates.given_items(*asked, names)
        return np.cumsum([row.estimate for row in told.rows]) / told.reports

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [[_ITEMS[index - 1] for index in people.tolist()]]


def hitters(domain: Domain, places: np.ndarray[Any, Any], epsilon: str, seed: int) -> dict[Any, float]:
    """Return the items that reports find without a list, with their shares; `places` are indexes of the domain."""
    chosen = plan(len(places), domain, epsilon)
    asked = create("price", domain, epsilon, chosen, opens=0, closes=1)
    oracle, randomizer = oracle_for(asked), asked.randomizer
    for reports in crowd.simulate(randomizer, places, seed):
        for start in range(0, len(reports), _STEP):
            oracle.accumulate(pack(reports[start : start + _STEP], randomizer.report_bytes))
    found = decode(asked, oracle)
    return {item.item: item.estimate / len(places) for item in found.items}


class UnknownItems(SharesOfAny):
    """Frequencies of strings that nobody has listed."""

    text = "the share of any string of up to 4 bytes, without a list: the largest error"
    local = "a sketch for heavy hitters"
    NAMES = tuple(f"w{place:03x}" for place in range(2000))
    domain = Strings(4)
    releases: ClassVar = {
        "items": lambda epsilon: StabilityHistogram(epsilon, DELTA),
        "all-items": lambda epsilon: PointSanitizer(Fraction(1, 5), epsilon, DELTA),
    }

    def weights(self) -> Floats:
        """Return how frequent each string is."""
        found = 1 / np.arange(1, len(self.NAMES) + 1) ** 1.2
        return np.asarray(found / found.sum(), np.float64)

    def people(self, rng: np.random.Generator) -> People:
        return rng.choice(len(self.NAMES), self.users, p=self.weights())

    def truth(self, people: People) -> dict[str, float]:
        counts = np.bincount(people, minlength=len(self.NAMES)) / len(people)
        return {name: float(share) for name, share in zip(self.NAMES, counts, strict=True) if share}

    def reported(self, people: People, seed: int) -> Any:
        return hitters(self.domain, index_items(self.domain, self.NAMES)[people], self.epsilon, seed)

    def columns(self, people: People) -> Sequence[Sequence[Record]]:
        return [[self.NAMES[place] for place in people.tolist()]]


class ModalItem(OneItem, UnknownItems):
    """The most frequent of strings that nobody has listed."""

    text = "the most frequent string of up to 4 bytes, without a list: the share that is missed"
    repeats = 2
    releases: ClassVar = {
        "mode": lambda epsilon: Mode(epsilon, DELTA),
        "frequent-item": lambda epsilon: Choosing(Fraction(1, 10), epsilon, DELTA),
    }

    def weights(self) -> Floats:
        """Five strings that are close, 12% to 10%, and many rare ones."""
        close = [0.12, 0.115, 0.11, 0.105, 0.1]
        rest = np.ones(len(self.NAMES) - len(close))
        return np.concatenate([close, rest / rest.sum() * (1 - sum(close))])

    def reported(self, people: People, seed: int) -> str | None:
        found = super().reported(people, seed)
        return max(found, key=lambda name: found[name]) if found else None

    def error(self, found: str | None, truth: dict[str, float]) -> float:
        return max(truth.values()) - truth.get(found or "", 0.0)
