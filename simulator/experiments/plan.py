"""`ldp-simulate plan`: what each mechanism promises, how many users a wish takes, and whether the promise is kept.

An item held by a share f of n users has an estimate of f n with standard deviation sqrt(n v). It is *told apart* when
its interval, valid for all of the domain at once (the item was not known beforehand), excludes 0 with probability 95%:
f n >= (z + 1.645) sqrt(n v), z the two-sided quantile at 5%/|X|. So the users needed are n = v ((z + 1.645)/f)^2.

For items of a domain far too large to list, the planner of heavy hitters promises the frequency from which an item is
*listed* with probability 95%; `verify_sketches` plants items at just that frequency, and counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.team_sketch import TeamSketch
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.domain import Domain
from ldp_server.answers.choose import Alternative, alternatives
from ldp_server.heavy_hitters.planner import SketchPlan, create, plans
from ldp_server.heavy_hitters.promise import least_users
from simulator.experiments import frequencies, heavy_hitters
from simulator.experiments.frequencies import SimulationOptions, prepare
from simulator.experiments.heavy_hitters import BACKGROUND, Search
from simulator.machine import check_memory
from simulator.shapes import PlanRow

__all__ = ["Verified", "rows", "sketch_rows", "verify", "verify_sketches"]

FALSE_ITEMS = 0.05
PLANTED = 4
_POWER = 1.6448536269514722
TOLERANCE = 0.10
"""A promise is kept when the measured error is at most so much larger."""


@dataclass(frozen=True)
class Verified:
    """The rows with what came out."""

    rows: list[PlanRow]
    kept: bool


def _reach(size: int) -> float:
    """Standard deviations at which an item of so many is told apart from nothing."""
    return -NormalDist().inv_cdf(0.025 / size) + _POWER


def _row(found: Alternative, wanted: SimulationOptions, size: int, frequency: float | None) -> PlanRow:
    reach = _reach(size)
    per_user = found.standard_error**2 / wanted.users
    needed = None if frequency is None else math.ceil(per_user * (reach / frequency) ** 2)
    return {
        "mechanism": found.mechanism,
        "parameters": found.parameters,
        "users": wanted.users,
        "epsilon": wanted.epsilon,
        "domain": size,
        "standard_error": found.standard_error,
        "variance_over_optimum": found.variance_over_optimum,
        "smallest_share": reach * found.standard_error / wanted.users,
        "users_needed": needed,
        "report_bits": found.report_bits,
        "report_bytes": found.report_bytes,
        "memory_bytes": found.memory_bytes,
        "seconds": found.seconds,
        "remark": found.remark,
    }


def rows(wanted: SimulationOptions, frequency: float | None = None) -> list[PlanRow]:
    """The chooser's table; `frequency` is the share of users whose item is to be told apart."""
    if frequency is not None and not 0 < frequency <= 1:
        raise InvalidSpec("a wanted frequency is a share of the users, such as 0.01")
    size = prepare(wanted).naming.domain.size
    table = alternatives(wanted.users, size, wanted.epsilon, memory=wanted.memory)
    return [_row(found, wanted, size, frequency) for found in table]


def verify(table: list[PlanRow], wanted: SimulationOptions, progress: Callable[[int], None] | None = None) -> Verified:
    """Simulate every line and set the outcome beside the promise."""
    kept = True
    for row in table:
        parameters = tuple(row["parameters"].items())
        found = frequencies.run(replace(wanted, mechanism=row["mechanism"], parameters=parameters), progress)
        shape = found.shape
        promised = row["variance_over_optimum"]
        row["measured_error"] = row["standard_error"] * math.sqrt(shape["mse_over_optimum"] / promised)
        row["measured_seconds"] = shape["seconds"]["aggregate"] + shape["seconds"]["estimate"]
        row["kept"] = row["measured_error"] <= (1 + TOLERANCE) * row["standard_error"]
        kept = kept and row["kept"]
    return Verified(table, kept)


def sketch_rows(wanted: SimulationOptions, domain: Domain, frequency: float | None = None) -> list[PlanRow]:
    """The planner's table of heavy hitters."""
    if frequency is not None and not 0 < frequency <= 1:
        raise InvalidSpec("a wanted frequency is a share of the users, such as 0.01")
    found = plans(wanted.users, domain, wanted.epsilon, false_items=FALSE_ITEMS, memory=wanted.memory)
    return [_sketch_row(line, wanted, domain, frequency) for line in found]


def _sketch_row(line: SketchPlan, wanted: SimulationOptions, domain: Domain, frequency: float | None) -> PlanRow:
    sketch = create("plan", domain, wanted.epsilon, line, opens=1, closes=2).randomizer
    assert isinstance(sketch, TeamSketch)  # noqa: S101 - every plan of heavy hitters is one
    p, s = (float(x) for x in sketch.inner.support)
    per_user = s * (1 - s) / (p - s) ** 2
    if line.mechanism == "prefix-tree":
        per_user *= sketch.teams  # the last level's users only
    needed = None
    if frequency is not None:
        log_items = math.log(domain.size)
        needed = least_users(sketch, line.decoder, log_items, FALSE_ITEMS, frequency)
    return {
        "mechanism": line.mechanism,
        "parameters": line.parameters,
        "users": wanted.users,
        "epsilon": wanted.epsilon,
        "domain": domain.size,
        "standard_error": math.sqrt(wanted.users * per_user),
        "variance_over_optimum": per_user / v_opt(float(sketch.epsilon)),
        "smallest_share": line.reliable / wanted.users,
        "users_needed": needed,
        "report_bits": line.report_bits,
        "report_bytes": line.report_bytes,
        "memory_bytes": line.memory_bytes,
        "seconds": line.seconds,
        "remark": line.promise,
    }


def verify_sketches(
    table: list[PlanRow], wanted: SimulationOptions, domain: Domain, progress: Callable[[int], None] | None = None
) -> Verified:
    """Plant items at the promised frequency, and count how many are listed.

    A promise is broken when so few would be listed with probability below 1% if each were with probability 95%.
    """
    kept = True
    for row in table:
        share = row["smallest_share"]
        each = min(PLANTED, int(0.5 / share)) if share < 1 else 0
        if not each:
            continue  # it promises nothing at so few users
        check_memory(row["memory_bytes"])
        unit = heavy_hitters.Search(wanted.users, domain, wanted.epsilon).unit
        search = Search(
            users=wanted.users,
            domain=domain,
            epsilon=wanted.epsilon,
            plant=(share * wanted.users / unit,),
            each=each,
            population=BACKGROUND,
            mechanism=row["mechanism"],
            runs=wanted.runs,
            seed=wanted.seed,
            processes=wanted.processes,
            memory=wanted.memory,
        )
        found = heavy_hitters.run(search, progress)
        shape = found.shape
        (recall,) = shape["recall"].values()
        row["measured_recall"] = recall
        row["measured_error"] = (shape["rmse_over_oracle"] or 0.0) * found.inner_error
        row["measured_seconds"] = shape["seconds"]["accumulate"] + shape["seconds"]["decode"]
        row["kept"] = _not_too_few(round(recall * each * wanted.runs), each * wanted.runs)
        kept = kept and row["kept"]
    return Verified(table, kept)


def _not_too_few(listed: int, planted: int) -> bool:
    """Whether `listed` or fewer of `planted` have a probability of 1% or more at 95% each."""
    k = np.arange(listed + 1)
    log_choose = [math.lgamma(planted + 1) - math.lgamma(i + 1) - math.lgamma(planted - i + 1) for i in k]
    terms = np.array(log_choose) + k * math.log(0.95) + (planted - k) * math.log(0.05)
    return bool(np.exp(terms).sum() >= 0.01)
