"""`ldp-simulate frequencies`: the estimates of a frequency oracle, beside the truth.

`prepare` and `build` are also where the other experiments get their population and their collection from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import DEFAULT_MEMORY, alternatives
from ldp_server.answers.to_json import item_json
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import FrequencyOracle, as_frequency
from ldp_server.oracles.independence.judge import accepted, widening
from ldp_server.oracles.independence.result import Independence
from simulator.engine import Job, count, run_seed
from simulator.experiments.options import MAX_RUNS, MAX_USERS, MECHANISMS, SimulationOptions
from simulator.machine import Stopwatch, peak_rss_mb
from simulator.metrics import ALPHA, Errors, floor_of, mean, measure
from simulator.population.kinds import Population
from simulator.population.naming import NamedRanks, naming, parse_domain
from simulator.population.text import read
from simulator.shapes import FrequenciesRun

__all__ = ["Frequencies", "FrequencySetting", "build", "prepare", "run"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

PROBES = 1000
"""Estimated items of a domain too large to list: so many that users hold, and so many that nobody holds."""
TOP = 25
"""How many of the most popular items are kept."""
BARE_ITEMS = 1023
"""Items of a population such as zipf:1.1 where neither it nor --domain says how many there are."""


@dataclass(frozen=True)
class Frequencies:
    """The result: the object that `--json` prints, and what tables and plots need besides."""

    shape: FrequenciesRun
    errors: tuple[Errors, ...]
    top: tuple[dict[str, Any], ...]
    """The most popular items of the first run: truth, estimate and 95% interval."""
    standard_error: float
    """That of an item which nobody holds, in the last run."""
    independence: Independence
    """What the first run's reports show of copies."""


@dataclass(frozen=True)
class FrequencySetting:
    """A population with its items, and the mechanism for their domain."""

    population: Population
    naming: NamedRanks
    mechanism: str
    parameters: dict[str, int]


def prepare(options: SimulationOptions) -> FrequencySetting:
    """Read the population and the domain, and choose the mechanism."""
    if not 1 <= options.users <= MAX_USERS or not 1 <= options.runs <= MAX_RUNS:
        raise InvalidSpec(f"simulate 1 to {MAX_USERS} users in 1 to {MAX_RUNS} runs")
    domain = None if options.domain is None else parse_domain(options.domain)
    listed = domain is not None and domain.size <= 1 << 24
    room = domain.size - 1 if domain is not None and listed else None
    named = read(
        options.population,
        options.users,
        domain_items=room,
        bare_items=BARE_ITEMS if domain is None else None,
        seed=options.seed,
    )
    if domain is None and named.items is None:
        if named.population.has_singles:
            raise InvalidSpec("singletons need a domain too large to list, such as --domain 4294967296")
        domain = parse_domain(str(max(2, named.population.distinct + 1)))
    names = naming(domain, named.population.distinct, named.items, seed=options.seed)
    mechanism, parameters = _choose(options, names.domain, _skew(named.population))
    return FrequencySetting(named.population, names, mechanism, parameters)


def _skew(population: Population) -> float:
    """The sum of the squared shares of all items, if it is known; else what the chooser assumes."""
    shares = getattr(population, "shares", None)
    return 0.05 if shares is None else min(1.0, float((shares**2).sum()))


def _choose(options: SimulationOptions, domain: Domain, skew: float) -> tuple[str, dict[str, int]]:
    if options.mechanism not in MECHANISMS:
        raise InvalidSpec(f"unknown mechanism {options.mechanism!r}: one of {', '.join(MECHANISMS)}")
    if options.parameters:
        if options.mechanism == "auto":
            raise InvalidSpec("parameters belong to a mechanism: name it with --mechanism")
        return options.mechanism, dict(options.parameters)
    table = alternatives(
        options.users, domain.size, options.epsilon, memory=options.memory or DEFAULT_MEMORY, skew=skew
    )
    fitting = [a for a in table if options.mechanism in ("auto", a.mechanism)]
    if not fitting:
        known = ", ".join(dict.fromkeys(a.mechanism for a in table))
        raise InvalidSpec(f"{options.mechanism} does not suit a domain of {domain.size} elements; these do: {known}")
    return fitting[0].mechanism, dict(fitting[0].parameters)


def build(setting: FrequencySetting, epsilon: str, run: int = 0) -> Collection:
    """Return the collection of a run; its nonce gives each run hashes of its own."""
    return Collection.create(
        "simulation",
        setting.naming.domain,
        setting.mechanism,
        Epsilon.parse(epsilon),
        parameters=setting.parameters,
        opens=1,
        closes=2,
        nonce=run % 65_536,
    )


def run(options: SimulationOptions, progress: Callable[[int], None] | None = None) -> Frequencies:
    """Simulate, estimate, compare."""
    setting = prepare(options)
    watch, errors, top, error = Stopwatch(), list[Errors](), tuple[dict[str, Any], ...](), 0.0
    seen = list[Independence]()
    collection = build(setting, options.epsilon)
    for number in range(options.runs):
        collection = build(setting, options.epsilon, number)
        seed = run_seed(options.seed, number)
        job = Job(collection, setting.population, setting.naming, options.users, seed, options.copies)
        counted = count(job, processes=options.processes, progress=progress)
        watch.merge(counted.seconds)
        oracle, independence = accepted(as_frequency(counted.oracle))
        seen.append(independence)
        with watch.stage("estimate"):
            indexes, raw, truth = _estimates(oracle, counted.held, setting.naming)
        errors.append(measure(oracle, raw, truth, float(collection.epsilon), indexes))
        error = widening(oracle).error(float(np.sqrt(oracle.variance(0.0))))
        if not number:
            top = _top(oracle, setting.naming, (indexes, raw, truth[: len(counted.held)]))
    shape = _shape(options, setting, collection, errors, watch)
    shape["variance_factor"] = mean([one.variance_factor for one in seen])
    shape["warned"] = mean([float(bool(one.warnings)) for one in seen])
    return Frequencies(shape, tuple(errors), top, error, seen[0])


def _estimates(oracle: FrequencyOracle, held: Counts, named: NamedRanks) -> tuple[Indexes, Floats, Counts]:
    """Indexes, estimates and truth, of all elements or, if the domain cannot be listed, of PROBES + PROBES items."""
    if named.table is None:
        truth = np.zeros(named.domain.size, np.int64)
        truth[: len(held)] = held
        return np.arange(named.domain.size, dtype=np.uint64), oracle.estimate_all(), truth
    ranks = np.arange(min(PROBES + 1, len(held)), dtype=np.uint64)
    # The items of users beyond the last one: nobody holds them.
    nobody = np.arange((1 << 63) + (1 << 62), (1 << 63) + (1 << 62) + PROBES, dtype=np.uint64)
    indexes = named.indexes(np.concatenate([ranks, nobody]))
    return indexes, oracle.estimate(indexes), np.concatenate([held[: len(ranks)], np.zeros(PROBES, np.int64)])


def _top(
    oracle: FrequencyOracle, named: NamedRanks, found: tuple[Indexes, Floats, Counts]
) -> tuple[dict[str, Any], ...]:
    indexes, raw, truth = found
    order = np.argsort(-truth, kind="stable")[:TOP]
    widened = widening(oracle)
    errors = widened.errors(oracle.standard_errors(indexes[order], raw[order]))
    low, high = oracle.intervals(indexes[order], raw[order], widened.tail(ALPHA / 2))
    return tuple(
        {
            "item": item_json(named.item(int(rank))),
            "truth": int(truth[rank]),
            "estimate": float(raw[rank]),
            "standard_error": float(errors[i]),
            "low": float(low[i]),
            "high": float(high[i]),
        }
        for i, rank in enumerate(order)
    )


def _shape(
    options: SimulationOptions,
    setting: FrequencySetting,
    collection: Collection,
    errors: list[Errors],
    watch: Stopwatch,
) -> FrequenciesRun:
    size, epsilon = setting.naming.domain.size, collection.epsilon
    better = [e.norm_sub_mse_over_optimum for e in errors if e.norm_sub_mse_over_optimum is not None]
    return {
        "mechanism": setting.mechanism,
        "parameters": setting.parameters,
        "users": options.users,
        "epsilon": epsilon.text,
        "domain": size,
        "report_bits": collection.randomizer.report_bits,
        "mse_over_optimum": mean([e.mse_over_optimum for e in errors]),
        "norm_sub_mse_over_optimum": mean(better) if better else None,
        "max_error": mean([e.max_error for e in errors]),
        "lower_bound": floor_of(options.users, float(epsilon), size),
        "coverage": mean([e.coverage for e in errors]),
        "copies": options.copies,
        "variance_factor": 1.0,
        "warned": 0.0,
        "seconds": {
            "randomize": watch.seconds["randomize"] / options.runs,
            "aggregate": watch.seconds["aggregate"] / options.runs,
            "estimate": watch.seconds["estimate"] / options.runs,
        },
        "peak_rss_mb": peak_rss_mb(),
    }
