"""Periods in which the list of the period before is the dictionary: what lasts is listed, and false items do not last.

The same users hold the same items in every period and send a new report in each. Near-copies of the planted items, as
the only candidates, stand for false items that an earlier list had for cells which they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.hitters.trials import BETA, Trial, TrialSetting, collect, judged, population, side_by_side
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.dictionary import Dictionary
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["earlier_rows"]

USERS = 10**6
SEEDS = 930_000
CROWD = TrialSetting(
    Integers(0, (1 << 64) - 1), USERS, "4", planted=tuple(np.linspace(0.85, 1.05, 90, dtype=float).tolist())
)
LONG = TrialSetting(Strings(16), USERS, "1").plant((0.6, 0.8, 1.0, 1.1, 1.2), 2)
NEAR = TrialSetting(Strings(16), USERS, "1").plant((1.0, 1.1, 1.2, 1.4), 2)


@dataclass(frozen=True)
class _Periods:
    """The lists of one chain of periods."""

    without: list[Trial]
    with_earlier: list[Trial]


def _chain(setting: TrialSetting, periods: int, seed: int) -> _Periods:
    collection = setting.collection(seed)
    indexes, truth, planted = population(setting, seed)
    found = _Periods([], [])
    earlier: Dictionary | None = None
    for period in range(periods):
        oracle, seconds = collect(collection, indexes, 100 * seed + period)
        for lists, words in ((found.without, None), (found.with_earlier, earlier)):
            answer = decode(collection, oracle, beta=BETA, dictionary=words)
            lists.append(judged(setting, collection, answer, truth, planted, seconds))
        items = [hit.item for hit in answer.items]
        earlier = replace(Dictionary.of(collection.domain, items), related=True) if items else None
    return found


def _listed_copies(related: bool, seed: int) -> tuple[int, int, int]:
    """Return how many near-copies were listed, of how many, and how many of the items that they are copies of."""
    collection = NEAR.collection(seed)
    indexes, _, planted = population(NEAR, seed)
    oracle, _ = collect(collection, indexes, seed)
    near = _near_copies(collection, oracle, planted, seed)
    words = Dictionary.of(collection.domain, [collection.domain.item(index) for index in near])
    found = decode(collection, oracle, beta=BETA, dictionary=replace(words, related=related))
    listed = {collection.domain.index(hit.item) for hit in found.items}
    return len(listed & set(near)), len(near), len(listed & set(planted))


def _near_copies(collection: Collection, oracle: object, planted: list[int], seed: int) -> list[int]:
    """Return elements of the domain that differ from the planted ones in their last payload."""
    if not isinstance(oracle, TeamSketchOracle):
        raise TypeError("near-copies are those of a sketch")
    code, domain = bulk_code(oracle.sketch), collection.domain
    messages = code.messages(from_ints(planted, domain.bits))
    messages[:, -1] ^= np.random.default_rng(seed).integers(1, 1 << code.widths[-1], len(messages))
    return [index for index in to_ints(code.indexes(messages)) if 0 < index < domain.size]


def earlier_rows(options: Options) -> Iterator[Row]:
    """Yield recall and false items with and without the list of the period before, and what near-copies do."""
    chains, periods = (6, 5) if options.full else (2, 3)
    for name, setting in (("64-bit, eps=4, 90 items at 0.85 to 1.05", CROWD), ("16 bytes, eps=1, 10 items", LONG)):
        found = side_by_side(name, partial(_chain, setting, periods), range(SEEDS, SEEDS + chains))
        for kind, lists in (
            ("no dictionary", [one.without[-1] for one in found]),
            ("earlier list", [one.with_earlier[-1] for one in found]),
        ):
            hits = [hit for one in lists for _, hit in one.planted]
            yield row(f"{name}: {kind}, planted items listed of {len(hits)}, period {periods}", sum(hits), "")
        later = [one for each in found for one in each.with_earlier[1:]]
        inside = [held for one in later for held in one.covered]
        name_of = f"{name}: earlier list"
        yield row(f"{name_of}, false items, {len(later)} lists", sum(one.false for one in later) / len(later), "a run")
        yield row(f"{name_of}, coverage of listed items, {len(inside)}", sum(inside) / max(1, len(inside)), "")
    for related in (False, True):
        work = partial(_listed_copies, related)
        copies = side_by_side("near-copies as candidates", work, range(SEEDS, SEEDS + chains))
        listed, every, true = (sum(column) for column in zip(*copies, strict=True))
        kind = "tested as an earlier list" if related else "tested as any dictionary"
        yield row(f"16 bytes, eps=1: near-copies {kind}, listed of {every}", listed, "")
        yield row(f"16 bytes, eps=1: near-copies {kind}, items listed of {8 * chains}", true, "")
