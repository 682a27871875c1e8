"""`ldp-simulate heavy-hitters`: which items of a domain too large to list are found, beside the truth.

Items are planted at multiples of D_opt = sqrt(n v_opt) sqrt(2 ln(2|X|/beta)), beta = 0.05. D_opt is the error
of an optimal oracle that estimates the whole domain; a protocol of one round is not expected to find much rarer items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Domain, Item
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.to_json import item_json
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.heavy_hitters import DecodeLimits, HeavyHitters, decode
from ldp_server.heavy_hitters.dictionary import MOST_ITEMS, Dictionary
from ldp_server.heavy_hitters.planner import DEFAULT_MEMORY, SketchPlan, create, plan
from ldp_server.heavy_hitters.promise import BETA
from ldp_server.oracles.base import binomial_variance
from simulator.engine import Counted, Job, count, run_seed
from simulator.experiments.options import SimulationOptions
from simulator.machine import Stopwatch, check_memory, peak_rss_mb
from simulator.metrics import mean
from simulator.population.kinds import Planted, Population
from simulator.population.naming import NamedRanks, naming
from simulator.population.text import NamedPopulation, read
from simulator.shapes import HeavyHittersRun

__all__ = ["BACKGROUND", "MECHANISMS", "HittersRun", "Search", "run"]

MECHANISMS = ("auto", "expander-sketch", "prefix-tree", "tree-sketch")
BACKGROUND = "mixture:0.8*zipf:1.1:10000+0.2*singletons"
MAX_PLANTED = 1000


@dataclass(frozen=True)
class Search:
    """The inputs of the experiment. Population and mechanism are those of `options`; the domain is `domain`."""

    options: SimulationOptions
    domain: Domain
    plant: tuple[float, ...] = (1.2, 1.4, 1.6)
    """Multiples of D_opt."""
    each: int = 2
    """Items at each multiple."""
    decoder: str | None = None
    """None: the mechanism's own."""
    style: str = "random"
    """What string items look like: see simulator/population/naming.py."""
    beta: float = BETA
    """Failure probability of the list."""
    dictionary: int = 0
    """Candidates: the planted items, and others that nobody holds. 0: there is no dictionary."""
    exploratory: bool = False
    """Whether a part of the list may be false."""
    named: tuple[float, ...] | None = None
    """The multiples whose planted items are candidates; None: all are."""

    @property
    def unit(self) -> float:
        """D_opt."""
        return d_opt(self.options.users, float(Epsilon.parse(self.options.epsilon)), self.domain.size)


@dataclass(frozen=True)
class HittersRun:
    """The result: the object that `--json` prints, and the first run's answer."""

    shape: HeavyHittersRun
    answer: HeavyHitters
    inner_error: float
    """Standard deviation of the inner oracle for an item that nobody holds, if all users count for it."""


@dataclass(frozen=True)
class _Planted:
    """The planted items of one run: ranks 1, 2, ... of its population."""

    collection: Collection
    multiples: tuple[float, ...]
    naming: NamedRanks

    def indexes(self) -> Iterator[tuple[float, int]]:
        """Each item's multiple of D_opt and index."""
        ranks = np.arange(1, len(self.multiples) + 1, dtype=np.uint64)
        return zip(self.multiples, to_ints(self.naming.indexes(ranks)), strict=True)


@dataclass
class _Tally:
    """Sums over all runs."""

    found: dict[float, list[bool]]
    listed: int
    false: int
    squares: list[float]
    """Squares of (estimate - truth) divided by the inner oracle's standard deviation."""
    covered: list[bool]
    complete: list[bool]
    """Of each run, whether all planted items above the threshold for all at once were listed."""


def run(search: Search, progress: Callable[[int], None] | None = None) -> HittersRun:
    """Simulate, decode, compare."""
    options = search.options
    background = read(options.population, options.users, seed=options.seed)
    if background.items is None and background.population.distinct == 0 and not search.plant:
        raise InvalidSpec("nothing to find: plant items with --plant, or choose a population with items in common")
    population, multiples = _planted(search, background)
    named = naming(
        search.domain, population.distinct, _items(background, multiples), seed=options.seed, style=search.style
    )
    _check_dictionary(search, multiples)
    chosen = _plan(search)
    check_memory(chosen.memory_bytes, options.processes)
    watch, tally = Stopwatch(), _Tally({m: [] for m in dict.fromkeys(multiples)}, 0, 0, [], [], [])
    answers, rows = list[HeavyHitters](), list[dict[str, Any]]()
    for number in range(options.runs):
        collection = create("simulation", search.domain, options.epsilon, chosen, opens=1, closes=2, nonce=number)
        seed = run_seed(options.seed, number)
        job = Job(collection, population, named, options.users, seed, options.copies)
        counted = count(job, processes=options.processes, progress=progress)
        watch.merge(counted.seconds)
        truth, planted = _truth(counted, named), _Planted(collection, multiples, named)
        words = _dictionary(search, planted, truth, number)
        with watch.stage("decode"):
            found = _decoded(search, collection, counted, words)
        answers.append(found)
        _score(tally, found, truth, planted)
        rows = rows if number else _rows(answers[0], truth, search)
    shape = _shape(search, chosen, tally, watch, rows, answers[0])
    shape["variance_factor"] = mean([one.independence.variance_factor for one in answers])
    shape["warned"] = mean([float(bool(one.independence.warnings)) for one in answers])
    return HittersRun(shape, answers[0], _inner_error(collection, options.users))


def _decoded(search: Search, collection: Collection, counted: Counted, words: Dictionary | None) -> HeavyHitters:
    return decode(
        collection,
        counted.oracle,
        decoder=search.decoder,
        beta=search.beta,
        dictionary=words,
        limits=DecodeLimits(exploratory=search.exploratory),
    )


def _plan(search: Search) -> SketchPlan:
    options = search.options
    return plan(
        options.users,
        search.domain,
        options.epsilon,
        beta=search.beta,
        memory=options.memory or DEFAULT_MEMORY,
        mechanism=options.mechanism,
        dictionary=search.dictionary,
        copies=options.copies,
    )


def _is_named(search: Search, multiple: float) -> bool:
    """Whether the planted items at this multiple are candidates."""
    return search.named is None or multiple in search.named


def _check_dictionary(search: Search, multiples: Sequence[float]) -> None:
    """Refuse a dictionary that cannot be filled."""
    least, most = sum(_is_named(search, multiple) for multiple in multiples), min(MOST_ITEMS, search.domain.size // 2)
    if search.dictionary and not least <= search.dictionary <= most:
        raise InvalidSpec(
            f"--dictionary is the number of candidates: at least the {least} planted items, at most {most:,}"
        )


def _dictionary(search: Search, planted: _Planted, truth: dict[int, int], number: int) -> Dictionary | None:
    """Return the planted items with as many items that nobody holds as there are to be."""
    if not search.dictionary:
        return None
    domain, rng = search.domain, np.random.default_rng([search.options.seed, number, 18])
    indexes = dict.fromkeys(index for multiple, index in planted.indexes() if _is_named(search, multiple))
    width = (domain.bits + 7) // 8
    while len(indexes) < search.dictionary:
        index = int.from_bytes(rng.bytes(width), "little") % domain.size
        if index and index not in truth:
            indexes[index] = None
    return Dictionary(from_ints(indexes, domain.bits), np.full(len(indexes), -math.log(len(indexes))))


def _items(background: NamedPopulation, multiples: Sequence[float]) -> tuple[Item, ...] | None:
    """The items of a population that names them, the planted ones first."""
    if background.items is None:
        return None
    return (*(f"planted {i}" for i in range(len(multiples))), *background.items)


def _support(collection: Collection) -> tuple[float, float]:
    """The probabilities that a holder's and another user's report support an item, in the sketch's inner oracle."""
    inner: Any = getattr(collection.randomizer, "inner")  # noqa: B009 - every sketch has one
    p, s = inner.support
    return float(p), float(s)


def _inner_error(collection: Collection, users: int) -> float:
    p, s = _support(collection)
    return math.sqrt(users * s * (1 - s)) / (p - s)


def _planted(search: Search, background: NamedPopulation) -> tuple[Population, tuple[float, ...]]:
    """The population with its planted items, and the multiple of D_opt of each."""
    if not search.plant:
        return background.population, ()
    if min(search.plant) <= 0 or search.each < 1 or len(search.plant) * search.each > MAX_PLANTED:
        raise InvalidSpec(f"plant up to {MAX_PLANTED} items, at multiples of D_opt above 0")
    multiples = tuple(m for m in search.plant for _ in range(search.each))
    holders = [round(m * search.unit) for m in multiples]
    if sum(holders) > search.options.users:
        needed = _users_for(search, sum(multiples))
        raise InvalidSpec(
            f"the planted items need {sum(holders):,} users in all, of {search.options.users:,}: plant fewer or lower, "
            f"raise epsilon, or take at least {needed:,} users"
        )
    return Planted(holders, background.population, search.options.users), multiples


def _users_for(search: Search, total: float) -> int:
    """The n with total D_opt(n) = n; D_opt grows with the square root of n."""
    return math.ceil((total * search.unit / math.sqrt(search.options.users)) ** 2)


def _truth(counted: Counted, named: NamedRanks) -> dict[int, int]:
    """How many users hold each index, without the items of single users."""
    ranks = np.flatnonzero(counted.held)
    indexes = named.indexes(ranks.astype(np.uint64))
    return dict(zip(to_ints(indexes), (int(n) for n in counted.held[ranks]), strict=True))


def _score(tally: _Tally, answer: HeavyHitters, truth: dict[int, int], planted: _Planted) -> None:
    """Add one run."""
    index_of = planted.collection.domain.index
    listed = {index_of(item.item) for item in answer.items}
    frequent = []
    for multiple, index in planted.indexes():
        tally.found[multiple].append(index in listed)
        if answer.threshold_all is not None and truth.get(index, 0) >= answer.threshold_all:
            frequent.append(index in listed)
    if frequent:
        tally.complete.append(all(frequent))
    p, s = _support(planted.collection)
    tally.listed += len(answer.items)
    for item in answer.items:
        held = truth.get(index_of(item.item), 0)
        tally.false += not held
        tally.covered.append(item.low <= held <= item.high)
        if held:
            spread = float(binomial_variance(held, answer.reports, p, s))
            tally.squares.append((item.estimate - held) ** 2 / spread)


def _rows(answer: HeavyHitters, truth: dict[int, int], search: Search) -> list[dict[str, Any]]:
    """The list, with the truth beside it."""
    held = [truth.get(search.domain.index(item.item), 0) for item in answer.items]
    return [
        {
            "item": item_json(item.item),
            "truth": users,
            "multiple": users / search.unit,
            "estimate": item.estimate,
            "standard_error": item.standard_error,
            "low": item.low,
            "high": item.high,
        }
        for item, users in zip(answer.items, held, strict=True)
    ]


def _smallest(tally: _Tally) -> float | None:
    """The smallest multiple from which on every planted item was listed."""
    smallest = None
    for multiple in sorted(tally.found, reverse=True):
        if not all(tally.found[multiple]):
            break
        smallest = multiple
    return smallest


def _shape(
    search: Search,
    chosen: SketchPlan,
    tally: _Tally,
    watch: Stopwatch,
    rows: list[dict[str, Any]],
    answer: HeavyHitters,
) -> HeavyHittersRun:
    recall = {f"{m:g}": sum(hits) / len(hits) for m, hits in tally.found.items()}
    return {
        "mechanism": chosen.mechanism,
        "parameters": chosen.parameters,
        "d_opt": search.unit,
        "beta": search.beta,
        "threshold_all": answer.threshold_all,
        "exploratory": search.exploratory,
        "candidates": search.dictionary,
        "threshold_candidates": None if answer.dictionary is None else answer.dictionary.each,
        "all_listed": sum(tally.complete) / len(tally.complete) if tally.complete else None,
        "recall": recall,
        "listed": tally.listed / search.options.runs,
        "false_items": tally.false / search.options.runs,
        "rmse_over_oracle": math.sqrt(sum(tally.squares) / len(tally.squares)) if tally.squares else None,
        "coverage": sum(tally.covered) / len(tally.covered) if tally.covered else None,
        "smallest_all_found": _smallest(tally),
        "copies": search.options.copies,
        "variance_factor": 1.0,
        "warned": 0.0,
        "seconds": {
            "randomize": watch.seconds["randomize"] / search.options.runs,
            "accumulate": watch.seconds["aggregate"] / search.options.runs,
            "decode": watch.seconds["decode"] / search.options.runs,
        },
        "peak_rss_mb": peak_rss_mb(),
        "list": rows,
    }
