"""Online answers: the divergence of a stretch, pure epsilon beside rho, and cells that are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.curator.workloads import binary
from benchmarks.row import Row, row
from ldp_server.curator.draws import Draws
from ldp_server.curator.laws import laplace_law, laplace_tail
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.online import GaussianOnline, OnlineTables, printed_threshold
from ldp_server.curator.workloads.universe import Workload

__all__ = ["Drawn", "drawn_errors", "rows", "stretch_divergence"]

_DELTA = Fraction(1, 10**6)
_RHO = Fraction(17, 1000)
"""Epsilon 1 at delta 1e-6."""


def stretch_divergence(epsilon: float, near: int, order: float) -> float:
    """Return the Renyi divergence of a stretch: which of so many cells is the first far one, or none.

    All cells are 0 apart in one data set and 1 in the other, or the first half of them and then the other way round.
    """
    half = near // 2
    ways = (([0] * near, [1] * near), ([0] * half + [1] * (near - half), [1] * half + [0] * (near - half)))
    laws = [[_first_far(epsilon, apart) for apart in way] for way in ways]
    return max(_divergence(*pair, order) for one, other in laws for pair in ((one, other), (other, one)))


def _first_far(epsilon: float, apart: list[int]) -> npt.NDArray[np.float64]:
    """The law of the first far cell; its last entry is that there is none."""
    scale, asked = 2 / epsilon, 4 / epsilon
    threshold = round(2 * scale)
    bars = np.arange(-math.ceil(30 * scale), math.ceil(34 * scale))
    weights = np.array([laplace_law(scale, int(bar) - threshold) for bar in bars])
    far = {z: np.array([laplace_tail(asked, int(bar) - z) for bar in bars]) for z in (0, 1)}
    found = []
    for z in apart:
        found.append(float(weights @ far[z]))
        weights = weights * (1 - far[z])
    return np.array([*found, float(weights.sum())])


def _divergence(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], order: float) -> float:
    return math.log(float((one**order * other ** (1 - order)).sum())) / (order - 1)


@dataclass(frozen=True)
class Drawn:
    """What a release over drawn cells gave."""

    error: float
    """The mean error of the cells that the fit answers, as a share of the people."""
    updates: int
    inside: float
    """Which part of the intervals held, of the cells that have one."""


def drawn_errors(
    kind: str, cells: int, draws: Draws, fields: int = 30, people: int = 100_000, epsilon: int = 1
) -> Drawn:
    """Release tables of fields that are 1, 2 and 3 apart; 60 updates at the rho of epsilon 1, delta 1e-6.

    For another epsilon it is as many times rho, squared.
    """
    rng, count = np.random.default_rng(31), people
    if kind == "smooth":
        chances = rng.uniform(0.35, 0.65, (3, fields))[rng.choice(3, count)]
        records = ((rng.random((count, fields)) < chances) @ (1 << np.arange(fields))).tolist()
    else:
        records = rng.integers(0, 1 << fields, 3)[rng.choice(3, count)].tolist()
    work = Workload(
        binary(fields), tuple((f"f{k}", f"f{(k + apart) % fields}") for apart in (1, 2, 3) for k in range(fields))
    )
    outcome = GaussianOnline(work, _RHO * epsilon**2, 60, cells).run(records, draws)
    truth = np.concatenate([work.counted(table, records) for table in range(len(work.tables))]).tolist()
    answered = zip(outcome.rows, truth, outcome.details["updated"], strict=True)
    off = [abs((row.count or 0) - one) for row, one, updated in answered if not updated]
    told = [(row, one) for row, one in zip(outcome.rows, truth, strict=True) if row.low is not None]
    held = [row.low <= one <= (row.high or 0) for row, one in told if row.low is not None]
    return Drawn(float(np.mean(off)) / count, sum(outcome.details["updated"]), float(np.mean(held)))


def rows() -> Iterator[Row]:
    """Yield the rows."""
    for epsilon in (0.3, 1.0):
        worst = max(stretch_divergence(epsilon, 300, order) / order for order in (1.1, 2.0, 4.0, 16.0))
        name = f"audit, online, a stretch of epsilon {epsilon:g}, 300 cells near: realised rho / declared"
        yield row(name, worst / (epsilon**2 / 2), "", "<= 1")
    work = Workload(binary(16), (("f0", "f1"),))
    for updates in (10, 100, 1000):
        pure, rho = OnlineTables(work, Fraction(1), updates), GaussianOnline(work, _RHO, updates)
        name = f"online, {updates:,} updates: threshold of epsilon 1, delta 1e-6 over that of epsilon 1"
        yield row(name, rho.threshold / pure.threshold, "", "<= 0.6" if updates >= 100 else None)
    printed = printed_threshold(1 << 16, 697, 1.0, float(_DELTA), 10**6)
    yield row(
        "online as printed, 697 queries, 2^16 cells, a million people: threshold as a share", printed, "", ">= 0.5"
    )
    ours = GaussianOnline(work, _RHO, 100).threshold / 10**6
    yield row("online, 100 updates, the same: threshold as a share", ours, "", "<= 0.01")
    for kind in ("smooth", "spiky"):
        for cells in (1 << 8, 1 << 12, 1 << 16):
            found = drawn_errors(kind, cells, ExactDraws())
            name = f"online over {cells:,} of 2^30 cells, {kind} people"
            yield row(f"{name}: mean error of a cell that the fit answers", found.error, "")
            yield row(f"{name}: intervals that hold, of those that are given", found.inside, "", ">= 0.95")
