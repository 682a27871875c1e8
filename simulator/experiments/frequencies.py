"""`ldp-simulate frequencies`: how well a frequency oracle does, beside the truth."""

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
from ldp_server.answers.estimates import interval
from ldp_server.answers.to_json import item_json
from ldp_server.oracles import Oracle
from simulator.engine import Counted, Job, count, run_seed
from simulator.machine import Stopwatch, peak_rss_mb
from simulator.metrics import Z95, Errors, floor_of, mean, measure
from simulator.population.kinds import Population
from simulator.population.naming import Naming, naming, parse_domain
from simulator.population.text import read
from simulator.shapes import FrequenciesRun

__all__ = ["MECHANISMS", "Frequencies", "FrequencySetting", "SimulationOptions", "build", "prepare", "run"]

Floats = npt.NDArray[np.float64]

MECHANISMS = ("auto", "randomized-response", "linear-hash", "hashtogram")
PROBES = 1000
SHOWN = 25
MAX_USERS = 1_000_000_000
MAX_RUNS = 10_000


@dataclass(frozen=True)
class SimulationOptions:
    """What to simulate."""

    users: int
    epsilon: str = "1"
    domain: str | None = None
    population: str = "zipf:1.1"
    mechanism: str = "auto"
    parameters: tuple[tuple[str, int], ...] = ()
    runs: int = 1
    seed: int = 1
    processes: int = 1
    memory: int = DEFAULT_MEMORY


@dataclass(frozen=True)
class Frequencies:
    """What came out: the object that `--json` prints, and what plots and tables need besides."""

    shape: FrequenciesRun
    errors: tuple[Errors, ...]
    top: tuple[dict[str, Any], ...]
    """The most popular items with their truth, estimate and 95% interval, in the first run."""
    standard_error: float
    """Of an item that nobody holds, in the last run."""


@dataclass(frozen=True)
class FrequencySetting:
    """A population over a domain, named, and the mechanism that suits it."""

    population: Population
    naming: Naming
    mechanism: str
    parameters: dict[str, int]


def prepare(wanted: SimulationOptions) -> FrequencySetting:
    """Read population and domain, and choose the mechanism."""
    if not 1 <= wanted.users <= MAX_USERS or not 1 <= wanted.runs <= MAX_RUNS:
        raise InvalidSpec(f"simulate 1 to {MAX_USERS} users in 1 to {MAX_RUNS} runs")
    domain = None if wanted.domain is None else parse_domain(wanted.domain)
    listed = domain is not None and domain.size <= 1 << 24
    room = domain.size - 1 if domain is not None and listed else None
    named = read(wanted.population, wanted.users, domain_items=room, seed=wanted.seed)
    if domain is None and named.items is None:
        if named.population.has_singles:
            raise InvalidSpec("singletons need a domain too large to list, such as --domain 4294967296")
        domain = parse_domain(str(max(2, named.population.distinct + 1)))
    names = naming(domain, named.population.distinct, named.items, seed=wanted.seed)
    mechanism, parameters = _choose(wanted, names.domain, _skew(named.population))
    return FrequencySetting(named.population, names, mechanism, parameters)


def _skew(population: Population) -> float:
    """The sum of the squared shares where it is known; else what the chooser assumes."""
    shares = getattr(population, "shares", None)
    return 0.05 if shares is None else min(1.0, float((shares**2).sum()))


def _choose(wanted: SimulationOptions, domain: Domain, skew: float) -> tuple[str, dict[str, int]]:
    if wanted.mechanism not in MECHANISMS:
        raise InvalidSpec(f"unknown mechanism {wanted.mechanism!r}: one of {', '.join(MECHANISMS)}")
    if wanted.parameters:
        if wanted.mechanism == "auto":
            raise InvalidSpec("parameters belong to a mechanism: name it with --mechanism")
        return wanted.mechanism, dict(wanted.parameters)
    table = alternatives(wanted.users, domain.size, wanted.epsilon, memory=wanted.memory, skew=skew)
    fitting = [a for a in table if wanted.mechanism in ("auto", a.mechanism)]
    if not fitting:
        known = ", ".join(dict.fromkeys(a.mechanism for a in table))
        raise InvalidSpec(f"{wanted.mechanism} does not suit a domain of {domain.size} elements; these do: {known}")
    return fitting[0].mechanism, dict(fitting[0].parameters)


def build(setting: FrequencySetting, epsilon: str, run: int = 0) -> Collection:
    """The run's collection: the nonce gives every run hashes of its own."""
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


def run(wanted: SimulationOptions, progress: Callable[[int], None] | None = None) -> Frequencies:
    """Simulate, estimate, compare."""
    setting = prepare(wanted)
    watch, errors, top, error = Stopwatch(), list[Errors](), tuple[dict[str, Any], ...](), 0.0
    collection = build(setting, wanted.epsilon)
    for number in range(wanted.runs):
        collection = build(setting, wanted.epsilon, number)
        job = Job(collection, setting.population, setting.naming, wanted.users, run_seed(wanted.seed, number))
        counted = count(job, processes=wanted.processes, progress=progress)
        watch.merge(counted.seconds)
        with watch.stage("estimate"):
            raw, truth = _estimates(counted, setting.naming)
        errors.append(measure(counted.oracle, raw, truth, float(collection.epsilon), whole=counted.oracle.can_list))
        error = float(np.sqrt(counted.oracle.variance(0.0)))
        if not number:
            top = _top(counted, setting.naming, raw, truth)
    return Frequencies(_shape(wanted, setting, collection, errors, watch), tuple(errors), top, error)


def _estimates(counted: Counted, named: Naming) -> tuple[Floats, npt.NDArray[np.int64]]:
    """All estimates of a domain that can be listed; else of the 1,000 first items and of 1,000 that nobody holds."""
    oracle, held = counted.oracle, counted.held
    if named.table is None:
        truth = np.zeros(named.domain.size, np.int64)
        truth[: len(held)] = held
        return oracle.estimate_all(), truth
    ranks = np.arange(min(PROBES + 1, len(held)), dtype=np.uint64)
    # Nobody holds them: they are the own items of users beyond the last.
    nobody = np.arange((1 << 63) + (1 << 62), (1 << 63) + (1 << 62) + PROBES, dtype=np.uint64)
    raw = oracle.estimate(named.indexes(np.concatenate([ranks, nobody])))
    return raw, np.concatenate([held[: len(ranks)], np.zeros(PROBES, np.int64)])


def _top(counted: Counted, named: Naming, raw: Floats, truth: npt.NDArray[np.int64]) -> tuple[dict[str, Any], ...]:
    oracle: Oracle = counted.oracle
    known = min(len(truth), len(counted.held))
    order = np.argsort(-truth[:known], kind="stable")[:SHOWN]
    errors = np.sqrt(oracle.variance(raw[order]))
    low, high = interval(raw[order], errors, oracle.skewness, Z95)
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
    wanted: SimulationOptions, setting: FrequencySetting, collection: Collection, errors: list[Errors], watch: Stopwatch
) -> FrequenciesRun:
    size, epsilon = setting.naming.domain.size, collection.epsilon
    better = [e.norm_sub_mse_over_optimum for e in errors if e.norm_sub_mse_over_optimum is not None]
    return {
        "mechanism": setting.mechanism,
        "parameters": setting.parameters,
        "users": wanted.users,
        "epsilon": epsilon.text,
        "domain": size,
        "report_bits": collection.randomizer.report_bits,
        "mse_over_optimum": mean([e.mse_over_optimum for e in errors]),
        "norm_sub_mse_over_optimum": mean(better) if better else None,
        "max_error": mean([e.max_error for e in errors]),
        "lower_bound": floor_of(wanted.users, float(epsilon), size),
        "coverage": mean([e.coverage for e in errors]),
        "seconds": {
            "randomize": watch.seconds["randomize"] / wanted.runs,
            "aggregate": watch.seconds["aggregate"] / wanted.runs,
            "estimate": watch.seconds["estimate"] / wanted.runs,
        },
        "peak_rss_mb": peak_rss_mb(),
    }
