"""`ldp-simulate plan`: the error that each mechanism promises, the users that are needed, and a test of the promise.

The estimate of an item that a share f of n users hold has mean f n and standard deviation sqrt(n v). The item is *told
apart* from an item that nobody holds if its interval excludes 0 with probability 95%. The interval must hold for the
whole domain at once, as the item is not known beforehand. The condition is f n >= (z + 1.645) sqrt(n v), where z is the
two-sided quantile at 5%/|X|. The users needed are therefore n = v ((z + 1.645)/f)^2.

For a domain too large to list, the planner of heavy hitters promises the frequency from which an item is *listed* with
probability 95%. `verify_sketches` plants items at that frequency, and counts how many are listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.domain import Domain
from ldp_server.answers.choose import DEFAULT_MEMORY, Alternative, alternatives
from ldp_server.heavy_hitters.planner import SketchPlan, create, plans
from ldp_server.heavy_hitters.promise import BETA, least_users
from simulator.experiments import frequencies, heavy_hitters
from simulator.experiments.frequencies import prepare
from simulator.experiments.heavy_hitters import BACKGROUND, Search
from simulator.experiments.options import SimulationOptions
from simulator.machine import check_memory
from simulator.shapes import PlanRow

__all__ = ["rows", "sketch_rows", "verify", "verify_sketches"]

PLANTED = 4
"""Items that are planted at the promised frequency."""
_POWER = 1.6448536269514722
"""The quantile of 95%."""
TOLERANCE = 0.10
"""A promise is kept if the measured error is larger than the promised one by at most this part."""


def _reach(size: int) -> float:
    """How many standard deviations an item must hold to be told apart, in a domain of that size."""
    return -NormalDist().inv_cdf(0.025 / size) + _POWER


def _row(found: Alternative, options: SimulationOptions, size: int, frequency: float | None) -> PlanRow:
    reach = _reach(size)
    per_user = found.standard_error**2 / options.users
    needed = None if frequency is None else math.ceil(per_user * (reach / frequency) ** 2)
    return {
        "mechanism": found.mechanism,
        "parameters": found.parameters,
        "users": options.users,
        "epsilon": options.epsilon,
        "domain": size,
        "standard_error": found.standard_error,
        "variance_over_optimum": found.variance_over_optimum,
        "smallest_share": reach * found.standard_error / options.users,
        "users_needed": needed,
        "report_bits": found.report_bits,
        "report_bytes": found.report_bytes,
        "memory_bytes": found.memory_bytes,
        "seconds": found.seconds,
        "remark": found.remark,
    }


def rows(options: SimulationOptions, frequency: float | None = None) -> list[PlanRow]:
    """Return the chooser's table; `frequency` is the share of users of an item that is to be told apart."""
    if frequency is not None and not 0 < frequency <= 1:
        raise InvalidSpec("--frequency is a share of the users, above 0 and at most 1, such as 0.01")
    size = prepare(options).naming.domain.size
    table = alternatives(options.users, size, options.epsilon, memory=options.memory or DEFAULT_MEMORY)
    return [_row(found, options, size, frequency) for found in table]


def verify(table: list[PlanRow], options: SimulationOptions, progress: Callable[[int], None] | None = None) -> bool:
    """Simulate each row, add what was measured to it, and return whether all promises were kept."""
    kept = True
    for row in table:
        parameters = tuple(row["parameters"].items())
        found = frequencies.run(replace(options, mechanism=row["mechanism"], parameters=parameters), progress)
        shape = found.shape
        promised = row["variance_over_optimum"]
        row["measured_error"] = row["standard_error"] * math.sqrt(shape["mse_over_optimum"] / promised)
        row["measured_seconds"] = shape["seconds"]["aggregate"] + shape["seconds"]["estimate"]
        row["kept"] = row["measured_error"] <= (1 + TOLERANCE) * row["standard_error"]
        kept = kept and row["kept"]
    return kept


def sketch_rows(
    options: SimulationOptions, domain: Domain, frequency: float | None = None, beta: float = BETA, dictionary: int = 0
) -> list[PlanRow]:
    """Return the table of the planner of heavy hitters, for a dictionary of that size and the copies of `options`."""
    if frequency is not None and not 0 < frequency <= 1:
        raise InvalidSpec("--frequency is a share of the users, above 0 and at most 1, such as 0.01")
    found = plans(
        options.users,
        domain,
        options.epsilon,
        beta=beta,
        memory=options.memory or DEFAULT_MEMORY,
        dictionary=dictionary,
        copies=options.copies,
    )
    return [_sketch_row(line, options, domain, frequency) for line in found]


def _sketch_row(line: SketchPlan, options: SimulationOptions, domain: Domain, frequency: float | None) -> PlanRow:
    sketch = create("plan", domain, options.epsilon, line, opens=1, closes=2).randomizer
    assert isinstance(sketch, TeamSketch)  # noqa: S101 - every plan of heavy hitters is one
    p, s = (float(x) for x in sketch.inner.support)
    per_user = s * (1 - s) / (p - s) ** 2
    if line.mechanism == "prefix-tree":
        per_user *= sketch.teams  # the last level's users only
    needed = None
    if frequency is not None:
        log_items = math.log(domain.size)
        needed = math.ceil(line.factor * least_users(sketch, line.decoder, log_items, line.beta, frequency, line.part))
    row: PlanRow = {
        "mechanism": line.mechanism,
        "parameters": line.parameters,
        "users": options.users,
        "epsilon": options.epsilon,
        "domain": domain.size,
        "standard_error": math.sqrt(line.factor * options.users * per_user),
        "variance_over_optimum": line.factor * per_user / v_opt(float(sketch.epsilon)),
        "smallest_share": line.reliable / options.users,
        "users_needed": needed,
        "report_bits": line.report_bits,
        "report_bytes": line.report_bytes,
        "memory_bytes": line.memory_bytes,
        "seconds": line.seconds,
        "smallest_share_all": line.all_at_once / options.users if line.all_at_once <= options.users else None,
        "beta": line.beta,
        "remark": line.promise,
    }
    if line.dictionary:
        share = math.inf if line.candidate is None else line.candidate / options.users
        row["candidates"], row["smallest_share_candidates"] = line.dictionary, share if share <= 1 else None
    if line.copies:
        row["copies"], row["variance_factor"] = line.copies, line.factor
    return row


def verify_sketches(
    table: list[PlanRow], options: SimulationOptions, domain: Domain, progress: Callable[[int], None] | None = None
) -> bool:
    """Plant items at the promised frequency, count how many are listed, and return whether all promises were kept.

    A promise is broken if so few are listed that the probability of it is below 1% when each item is listed with
    probability 95%.
    """
    kept = True
    for row in table:
        shares = _promised_shares(row)
        each = min(PLANTED, int(0.5 / sum(shares))) if shares else 0
        if not each:
            continue  # it promises nothing at so few users
        check_memory(row["memory_bytes"])
        search = _search(row, options, domain, each)
        found = heavy_hitters.run(search, progress)
        shape, planted = found.shape, each * options.runs
        recall = [shape["recall"][f"{multiple:g}"] for multiple in search.plant]
        if search.named:
            row["measured_recall_candidates"] = recall[-1]
        if search.named != search.plant:
            row["measured_recall"] = recall[0]
        row["measured_error"] = (shape["rmse_over_oracle"] or 0.0) * found.inner_error
        row["measured_seconds"] = shape["seconds"]["accumulate"] + shape["seconds"]["decode"]
        row["kept"] = all(_not_too_few(round(part * planted), planted) for part in recall)
        kept = kept and row["kept"]
    return kept


def _promised_shares(row: PlanRow) -> list[float]:
    """Return the promised share of any item, and last that of a candidate; those that a frequency can have."""
    shares = (row["smallest_share"], row.get("smallest_share_candidates"))
    return [share for share in shares if share is not None and share < 1]


def _search(row: PlanRow, options: SimulationOptions, domain: Domain, each: int) -> Search:
    """Return the search for items that are planted at the promised shares; only the last ones are candidates."""
    planted = replace(options, population=BACKGROUND, mechanism=row["mechanism"])
    unit = Search(options, domain).unit
    multiples = tuple(share * options.users / unit for share in _promised_shares(row))
    candidates = row.get("smallest_share_candidates") is not None
    return Search(
        planted,
        domain,
        multiples,
        each,
        beta=row["beta"],
        dictionary=row["candidates"] if candidates else 0,
        named=multiples[-1:] if candidates else (),
    )


def _not_too_few(listed: int, planted: int) -> bool:
    """Whether `listed` or fewer of `planted` items has a probability of at least 1%, if each is listed with 95%."""
    k = np.arange(listed + 1)
    log_choose = [math.lgamma(planted + 1) - math.lgamma(i + 1) - math.lgamma(planted - i + 1) for i in k]
    terms = np.array(log_choose) + k * math.log(0.95) + (planted - k) * math.log(0.05)
    return bool(np.exp(terms).sum() >= 0.01)
