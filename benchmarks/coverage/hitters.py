"""The grid of sketches over 2^32 items: items that are listed as heavy hitters, and items that are asked about by name.

Cells are those in which the planner says that the sketch lists something. A third of the users hold one of 30 items,
with shares that fall like 1/rank, the others an item of their own; or half, or 95%, of the users hold the first item.
The narrowest valid interval is 1.96 standard errors of the estimate, which follow from the truth, to both sides.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.coverage.laws import packed
from benchmarks.coverage.tally import Tally
from benchmarks.row import Row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates
from ldp_server.heavy_hitters.decode import decode
from ldp_server.heavy_hitters.planner import plans
from ldp_server.oracles import FrequencyOracle, as_frequency

__all__ = ["SketchCell", "cells"]

_DOMAIN = Integers(0, (1 << 32) - 1)
_NAMED = 30
_EVALUATION = 0xC0FFEE
_MEMORY = 1 << 27
_HASHTOGRAM = {"1": (8, 3, 8), "4": (8, 79, 2)}

Values = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def _held(crowd: str, users: int, seed: int) -> Values:
    """The users' indexes."""
    rng = np.random.default_rng(seed)
    held = rng.integers(1, _DOMAIN.count, users)
    named = (np.arange(1, _NAMED + 1) << 20).astype(np.int64)
    if crowd != "zipf":
        held[: int(float(crowd) * users)] = named[0]
        return held
    weights = 1 / np.arange(1.0, _NAMED + 1)
    some = rng.choice(named, users // 3, p=weights / weights.sum())
    held[: len(some)] = some
    return held


@dataclass(frozen=True)
class SketchCell:
    """A sketch with its parameters, and who holds what."""

    mechanism: str
    parameters: dict[str, int]
    epsilon: str
    users: int
    crowd: str

    @property
    def name(self) -> str:
        return f"{self.mechanism} 2^32 items n={self.users} eps={self.epsilon} {self.crowd}"

    def measure(self, runs: int) -> Iterator[Row]:
        """Return the rows."""
        seed = zlib.crc32(self.name.encode()) ^ _EVALUATION
        held = _held(self.crowd, self.users, seed)
        found, counts = np.unique(held, return_counts=True)
        truth = dict(zip(found.tolist(), counts.tolist(), strict=True))
        tallies: dict[str, Tally] = defaultdict(Tally)
        for run in range(runs):
            collection = Collection.create(
                "?",
                _DOMAIN,
                self.mechanism,
                self.epsilon,
                parameters=self.parameters,
                opens=0,
                closes=1,
                nonce=(seed + run) & 0xFFFF,
            )
            oracle = as_frequency(packed(collection, held.astype(np.uint64), seed + run))
            _named(collection, oracle, truth, tallies)
            if self.mechanism != "hashtogram":
                _listed(collection, oracle, truth, tallies)
        for kind, tally in tallies.items():
            yield from tally.rows(f"{self.name}: {kind}")


def _named(collection: Collection, oracle: FrequencyOracle, truth: dict[int, int], tallies: dict[str, Tally]) -> None:
    """Ask about the items that many hold, and about as many that nobody holds."""
    items = [(1 << 20) * place - 1 + other for place in range(1, _NAMED + 1) for other in (0, 12_345)]
    held = np.array([truth.get(item + 1, 0) for item in items], np.float64)
    found = estimates.given_items(collection, oracle, items)
    low, high, raw = (np.asarray(found.rows.columns[name], float) for name in ("low", "high", "estimate"))
    tallies["each item"].add(low, high, held)
    tallies["each item"].narrowest += _width(oracle, raw, held)


def _listed(collection: Collection, oracle: FrequencyOracle, truth: dict[int, int], tallies: dict[str, Tally]) -> None:
    hitters = decode(collection, oracle).items
    if not hitters:
        return
    held = np.array([truth.get(collection.domain.index(h.item), 0) for h in hitters], np.float64)
    raw = np.array([h.estimate for h in hitters])
    low, high = np.array([(h.low, h.high) for h in hitters]).T
    tallies["each listed item"].add(low, high, held)
    tallies["each listed item"].narrowest += _width(oracle, raw, held)
    low, high = np.array([(h.surest_low, h.surest_high) for h in hitters]).T
    tallies["all listed items"].add(low, high, held, together=True)


def _width(oracle: FrequencyOracle, raw: Floats, held: Floats) -> float:
    reach = 1.96 * np.sqrt(oracle.variance(held))
    ends = np.clip([raw - reach, raw + reach], 0, oracle.reports)
    return float((ends[1] - ends[0]).mean())


def cells(*, full: bool) -> list[tuple[SketchCell, int]]:
    """Return the cells, each with its number of runs."""
    found: list[tuple[SketchCell, int]] = []
    for epsilon, users in (("1", 300_000), ("4", 30_000), ("4", 300_000)) if full else (("4", 30_000),):
        offered = {
            one.mechanism: one.parameters for one in plans(users, _DOMAIN, epsilon, memory=_MEMORY) if one.enough
        }
        offered["hashtogram"] = dict(zip(("rows", "q", "t"), _HASHTOGRAM[epsilon], strict=True))
        for mechanism, parameters in offered.items():
            for crowd in ("zipf", "0.5", "0.95"):
                found.append((SketchCell(mechanism, parameters, epsilon, users, crowd), 40 if full else 4))
    return found
