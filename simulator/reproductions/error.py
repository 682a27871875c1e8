"""`ldp-simulate reproduce error`: the error of the expander sketch and of an exhaustive scan.

The error is measured against the number of users n, epsilon, the size of the domain |X| and the failure probability
beta. The sketch's *error* is the frequency from which an item is listed with probability 1 - beta. Items are planted on
a ladder of multiples of D_opt. Where the share of listed items crosses 1 - beta is found by maximum likelihood, under
the normal law; each run has hashes of its own. The scan's error is the (1 - beta) quantile of the largest error over
the whole domain, of estimates by the best linear hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.privacy.yardsticks import d_opt, lower_bound_shape, optimal_scan_error
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.heavy_hitters.planner import plan
from simulator.experiments import frequencies, heavy_hitters
from simulator.experiments.heavy_hitters import Search
from simulator.experiments.options import SimulationOptions
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["error"]

BETA = 0.05
LADDER = (0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
FINE = tuple(round(0.7 + 0.05 * i, 2) for i in range(20))


_SWEEPS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "users": ((30_000, 100_000, 300_000), (1_000_000,)),
    "epsilon": (("1", "2", "4"), ("0.5", "3")),
    "bits": ((16, 20, 32, 64), (12, 48)),
}
"""The values of each axis, and those that only the full form has."""


def _values(axis: str, full: bool) -> list[Any]:
    few, more = _SWEEPS[axis]
    return sorted(few + more if full else few, key=float)


@dataclass(frozen=True)
class _Point:
    """A point of the error plots."""

    users: int = 300_000
    epsilon: str = "2"
    bits: int = 20
    beta: float = BETA

    @property
    def size(self) -> int:
        return 1 << self.bits

    @property
    def unit(self) -> float:
        """D_opt."""
        return d_opt(self.users, float(self.epsilon), self.size, self.beta)

    def row(self, **values: float | None) -> dict[str, Any]:
        """Return what was measured, beside what theory says."""
        epsilon = float(self.epsilon)
        return {
            "users": self.users,
            "epsilon": self.epsilon,
            "bits": self.bits,
            "beta": self.beta,
            **values,
            "d_opt": self.unit,
            "optimal_scan": optimal_scan_error(self.users, epsilon, self.size, self.beta),
            "shape": lower_bound_shape(self.users, epsilon, self.size, self.beta),
        }


def _listed(point: _Point, ladder: Sequence[float], runs: int, seed: int) -> list[tuple[float, int, int]]:
    """Run the expander sketch; return (multiple of D_opt at beta = 0.05, items planted, items listed)."""
    options = SimulationOptions(
        point.users,
        point.epsilon,
        population="zipf:1.1:1000",
        mechanism="expander-sketch",
        runs=runs,
        seed=seed,
    )
    search = Search(options, Integers(1, point.size - 1), tuple(ladder), each=1)
    recall = heavy_hitters.run(search).shape["recall"]
    return [(m, runs, round(runs * recall[f"{m:g}"])) for m in ladder]


def _center(hits: Sequence[tuple[float, int, int]], slope: float) -> float:
    """The multiple that is listed with probability 1/2, by maximum likelihood; `slope` is D_opt in standard errors."""
    law = NormalDist()

    def loss(center: float) -> float:
        total = 0.0
        for multiple, planted, listed in hits:
            p = min(max(law.cdf(slope * (multiple - center)), 1e-9), 1 - 1e-9)
            total -= listed * math.log(p) + (planted - listed) * math.log(1 - p)
        return total

    return min((0.5 + 0.005 * i for i in range(400)), key=loss)


def _slope(point: _Point) -> float:
    """How many standard errors of the sketch's inner oracle D_opt is."""
    chosen = plan(point.users, Integers(1, point.size - 1), point.epsilon, mechanism="expander-sketch")
    inner = LinearHash(Epsilon(point.epsilon), 2, chosen.parameters["q"], chosen.parameters["t"])
    p, s = (float(x) for x in inner.support)
    spread = math.sqrt(point.users * s * (1 - s)) / (p - s)
    return d_opt(point.users, float(point.epsilon), point.size) / spread


def _sketch_error(point: _Point, runs: int, seed: int) -> float:
    """The frequency from which an item is listed with probability 1 - beta."""
    slope, unit = _slope(point), d_opt(point.users, float(point.epsilon), point.size)
    center = _center(_listed(point, LADDER, runs, seed), slope)
    return (center + NormalDist().inv_cdf(1 - point.beta) / slope) * unit


def _scan_errors(point: _Point, runs: int, seed: int) -> list[float]:
    """The largest error over the whole domain, for each run."""
    options = SimulationOptions(point.users, point.epsilon, str(point.size), "zipf:1.1:1000", "linear-hash", seed=seed)
    return [e.max_error for e in frequencies.run(replace(options, runs=runs, memory=1 << 30)).errors]


def error(runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False) -> Reproduction:
    """Vary n, epsilon, |X| and beta, each from the same point: 300,000 users, epsilon = 2, |X| = 2^20, beta = 0.05.

    By default 2 runs of each point and a few points; `full` takes 6 runs and more points.
    """
    runs = runs or (6 if full else 2)
    tell, base = progress or (lambda _steps: None), _Point()
    rows: Rows = []

    def measured(point: _Point) -> dict[str, Any]:
        sketch = _sketch_error(point, runs, seed)
        scan = None
        if point.bits <= 22:
            scan = float(np.quantile(_scan_errors(point, 6 * runs, seed), 1 - point.beta))
        tell(1)
        return point.row(sketch=sketch, scan=scan)

    sweeps = {axis: [replace(base, **{axis: value}) for value in _values(axis, full)] for axis in _SWEEPS}
    known: dict[_Point, dict[str, Any]] = {}
    for name, points in sweeps.items():
        for point in points:
            if point not in known:
                known[point] = measured(point)
            rows.append({"sweep": name, **known[point]})
    rows += [{"sweep": "beta", **row} for row in _betas(base, runs, seed)]
    tell(1)
    return Reproduction(tuple(_error_panels(rows)), rows)


def _betas(base: _Point, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """The error against the failure probability, from counts of missed items; no normal law is assumed here."""
    tries = 20 * runs
    hits = _listed(base, FINE, tries, seed + 1)
    scans = _scan_errors(base, 40 * runs, seed + 1)
    unit = d_opt(base.users, float(base.epsilon), base.size)
    for beta in (0.3, 0.1, 0.05, 0.02, 0.01):
        if beta * tries < 1:
            continue
        good = [m for i, (m, _, _) in enumerate(hits) if all(n - k <= beta * n for _, n, k in hits[i:])]
        sketch = good[0] * unit if good else None
        scan = float(np.quantile(scans, 1 - beta)) if beta * len(scans) >= 1 else None
        yield replace(base, beta=beta).row(sketch=sketch, scan=scan)


_AXES = {
    "users": ("users n", True, "error against the number of users"),
    "epsilon": ("epsilon of a report", True, "error against epsilon"),
    "bits": ("log2 of the domain's size |X|", False, "error against the size of the domain"),
    "beta": ("failure probability beta", True, "error against the failure probability"),
}
_LINES = (
    ("sketch", "expander sketch, measured", False),
    ("scan", "exhaustive scan, measured", False),
    ("d_opt", "D_opt", True),
    ("optimal_scan", "ideal scan, exact", True),
    ("shape", "shape of the bounds (constant unknown)", True),
)


def _error_panels(rows: Rows) -> Iterator[Panel]:
    for axis, (label, log_x, title) in _AXES.items():
        mine = [row for row in rows if row["sweep"] == axis]
        if not mine:
            continue
        series = []
        for key, name, theory in _LINES:
            known = [row for row in mine if row[key] is not None]
            x = [float(row[axis]) for row in known]
            series.append(Series(name, x, [float(row[key]) for row in known], theory=theory))
        yield Panel(title, label, "error, users", series, log_x, log_y=True)
