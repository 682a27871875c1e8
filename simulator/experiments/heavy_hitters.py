"""`ldp-simulate heavy-hitters`: which items of a huge domain are listed, beside the truth.

Items are planted at multiples of D_opt = sqrt(n v_opt) sqrt(2 ln(2|X|/beta)), beta = 0.05: the error that an optimal
oracle evaluated on the whole domain would have. No one-round protocol is expected to list items much rarer than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Domain, Item
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.to_json import item_json
from ldp_server.arrays.items import to_ints
from ldp_server.heavy_hitters import HeavyHitters, decode
from ldp_server.heavy_hitters.planner import DEFAULT_MEMORY, SketchPlan, create, plan
from ldp_server.oracles.base import binomial_variance
from simulator.engine import Counted, Job, count, run_seed
from simulator.machine import Stopwatch, check_memory, peak_rss_mb
from simulator.population.kinds import Planted
from simulator.population.naming import Naming, naming
from simulator.population.text import NamedPopulation, read
from simulator.shapes import HeavyHittersRun

__all__ = ["BACKGROUND", "MECHANISMS", "HittersRun", "Search", "run"]

MECHANISMS = ("auto", "expander-sketch", "prefix-tree", "tree-sketch")
BACKGROUND = "mixture:0.8*zipf:1.1:10000+0.2*singletons"
MAX_PLANTED = 1000


@dataclass(frozen=True)
class Search:
    """What to simulate."""

    users: int
    domain: Domain
    epsilon: str = "1"
    plant: tuple[float, ...] = (1.2, 1.4, 1.6)
    each: int = 2
    """Items at every multiple."""
    population: str = BACKGROUND
    mechanism: str = "auto"
    decoder: str | None = None
    style: str = "random"
    runs: int = 1
    seed: int = 1
    processes: int = 1
    memory: int = DEFAULT_MEMORY

    @property
    def unit(self) -> float:
        """D_opt."""
        return d_opt(self.users, float(Epsilon.parse(self.epsilon)), self.domain.size)


@dataclass(frozen=True)
class HittersRun:
    """What came out: the object that `--json` prints, and the first run's answer."""

    shape: HeavyHittersRun
    answer: HeavyHitters
    plan: SketchPlan
    inner_error: float
    """The standard deviation that the inner oracle has for an item nobody holds, if all users count for it."""


@dataclass
class _Tally:
    """All runs together."""

    found: dict[float, list[bool]]
    listed: int
    false: int
    squares: list[float]
    """Of (estimate - truth) over the inner oracle's standard deviation."""
    covered: list[bool]


def run(
    search: Search, progress: Callable[[int], None] | None = None, note: Callable[[str], None] | None = None
) -> HittersRun:
    """Simulate, decode, compare."""
    background = read(search.population, search.users, seed=search.seed)
    if background.items is None and background.population.distinct == 0 and not search.plant:
        raise InvalidSpec("nothing to find: plant items with --plant, or choose a population with items in common")
    population, multiples = _planted(search, background)
    items = None
    if background.items is not None:
        items = (*(f"planted {i}" for i in range(len(multiples))), *background.items)
    named = naming(search.domain, population.distinct, items, seed=search.seed, style=search.style)
    chosen = plan(search.users, search.domain, search.epsilon, memory=search.memory, mechanism=search.mechanism)
    check_memory(chosen.memory_bytes, search.processes)
    watch, tally = Stopwatch(), _Tally({m: [] for m in dict.fromkeys(multiples)}, 0, 0, [], [])
    first: HeavyHitters | None = None
    rows: list[dict[str, Any]] = []
    collection = create("simulation", search.domain, search.epsilon, chosen, opens=1, closes=2)
    for number in range(search.runs):
        if number:
            collection = create("simulation", search.domain, search.epsilon, chosen, opens=1, closes=2, nonce=number)
        job = Job(collection, population, named, search.users, run_seed(search.seed, number))
        counted = count(job, processes=search.processes, progress=progress)
        watch.merge(counted.seconds)
        with watch.stage("decode"):
            answer = decode(collection, counted.oracle, decoder=search.decoder, progress=_stages(note))
        truth = _truth(counted, named)
        _score(tally, answer, truth, collection, multiples, named)
        if first is None:
            first, rows = answer, _rows(answer, truth, search.unit, search.domain.index)
    assert first is not None  # noqa: S101 - there was at least one run
    return HittersRun(_shape(search, chosen, tally, watch, rows), first, chosen, _inner_error(collection, search.users))


def _inner_error(collection: Collection, users: int) -> float:
    inner: Any = getattr(collection.randomizer, "inner")  # noqa: B009 - every sketch has one
    p, s = (float(x) for x in inner.support)
    return math.sqrt(users * s * (1 - s)) / (p - s)


def _stages(note: Callable[[str], None] | None) -> Callable[[str, float], None]:
    def say(stage: str, part: float) -> None:
        if note is not None:
            note(f"{stage} {part:.0%}")

    return say


def _planted(search: Search, background: NamedPopulation) -> tuple[Planted | Any, tuple[float, ...]]:
    """The population with its planted items, and each one's multiple."""
    if not search.plant:
        return background.population, ()
    if min(search.plant) <= 0 or search.each < 1 or len(search.plant) * search.each > MAX_PLANTED:
        raise InvalidSpec(f"plant up to {MAX_PLANTED} items, at multiples of D_opt above 0")
    multiples = tuple(m for m in search.plant for _ in range(search.each))
    holders = [round(m * search.unit) for m in multiples]
    if sum(holders) > search.users:
        needed = _users_for(search, sum(multiples))
        raise InvalidSpec(
            f"the planted items need {sum(holders):,} users in all, of {search.users:,}: plant fewer or lower, "
            f"raise epsilon, or take at least {needed:,} users"
        )
    return Planted(holders, background.population, search.users), multiples


def _users_for(search: Search, total: float) -> int:
    """N with total D_opt(n) = n: D_opt grows with the square root."""
    return math.ceil((total * search.unit / math.sqrt(search.users)) ** 2)


def _truth(counted: Counted, named: Naming) -> dict[int, int]:
    """How many users hold each index; items of single users are left out."""
    ranks = np.flatnonzero(counted.held)
    indexes = named.indexes(ranks.astype(np.uint64))
    return dict(zip(to_ints(indexes), (int(n) for n in counted.held[ranks]), strict=True))


def _score(
    tally: _Tally,
    answer: HeavyHitters,
    truth: dict[int, int],
    collection: Collection,
    multiples: Sequence[float],
    named: Naming,
) -> None:
    """Add one run."""
    index_of = collection.domain.index
    listed = {index_of(item.item) for item in answer.items}
    planted = to_ints(named.indexes(np.arange(1, len(multiples) + 1, dtype=np.uint64)))
    for multiple, index in zip(multiples, planted, strict=True):
        tally.found[multiple].append(index in listed)
    inner: Any = getattr(collection.randomizer, "inner")  # noqa: B009 - every sketch has one
    p, s = (float(x) for x in inner.support)
    tally.listed += len(answer.items)
    for item in answer.items:
        held = truth.get(index_of(item.item), 0)
        tally.false += not held
        tally.covered.append(item.low <= held <= item.high)
        if held:
            spread = float(binomial_variance(held, answer.reports, p, s))
            tally.squares.append((item.estimate - held) ** 2 / spread)


def _rows(
    answer: HeavyHitters, truth: dict[int, int], unit: float, index: Callable[[Item], int]
) -> list[dict[str, Any]]:
    """The list with the truth beside it."""
    return [
        {
            "item": item_json(item.item),
            "truth": truth.get(index(item.item), 0),
            "multiple": truth.get(index(item.item), 0) / unit,
            "estimate": item.estimate,
            "standard_error": item.standard_error,
            "low": item.low,
            "high": item.high,
        }
        for item in answer.items
    ]


def _shape(
    search: Search, chosen: SketchPlan, tally: _Tally, watch: Stopwatch, rows: list[dict[str, Any]]
) -> HeavyHittersRun:
    recall = {f"{m:g}": sum(hits) / len(hits) for m, hits in tally.found.items()}
    smallest = None
    for multiple in sorted(tally.found, reverse=True):
        if not all(tally.found[multiple]):
            break
        smallest = multiple
    return {
        "mechanism": chosen.mechanism,
        "parameters": chosen.parameters,
        "d_opt": search.unit,
        "recall": recall,
        "listed": tally.listed / search.runs,
        "false_items": tally.false / search.runs,
        "rmse_over_oracle": math.sqrt(sum(tally.squares) / len(tally.squares)) if tally.squares else None,
        "coverage": sum(tally.covered) / len(tally.covered) if tally.covered else None,
        "smallest_all_found": smallest,
        "seconds": {
            "randomize": watch.seconds["randomize"] / search.runs,
            "accumulate": watch.seconds["aggregate"] / search.runs,
            "decode": watch.seconds["decode"] / search.runs,
        },
        "peak_rss_mb": peak_rss_mb(),
        "list": rows,
    }
