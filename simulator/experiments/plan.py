"""`ldp-simulate plan`: what each mechanism promises, how many users a wish takes, and whether the promise is kept.

An item held by a share f of n users has an estimate of f n with standard deviation sqrt(n v). It is *told apart* when
its interval, valid for all of the domain at once (the item was not known beforehand), excludes 0 with probability 95%:
f n >= (z + 1.645) sqrt(n v), z the two-sided quantile at 5%/|X|. So the users needed are n = v ((z + 1.645)/f)^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from ldp_client.errors import InvalidSpec
from ldp_server.chooser import Alternative, alternatives
from ldp_server.shapes import PlanRow
from simulator.experiments import frequencies
from simulator.experiments.frequencies import Wanted, prepare

__all__ = ["Verified", "rows", "verify"]

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


def _row(found: Alternative, wanted: Wanted, size: int, frequency: float | None) -> PlanRow:
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


def rows(wanted: Wanted, frequency: float | None = None) -> list[PlanRow]:
    """The chooser's table; `frequency` is the share of users whose item is to be told apart."""
    if frequency is not None and not 0 < frequency <= 1:
        raise InvalidSpec("a wanted frequency is a share of the users, such as 0.01")
    size = prepare(wanted).naming.domain.size
    table = alternatives(wanted.users, size, wanted.epsilon, memory=wanted.memory)
    return [_row(found, wanted, size, frequency) for found in table]


def verify(table: list[PlanRow], wanted: Wanted, progress: Callable[[int], None] | None = None) -> Verified:
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
