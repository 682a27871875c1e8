"""`ldp-simulate reproduce`: what the papers say, measured; the plots and tables of docs/.

    error       the error of the expander sketch and of an exhaustive scan, against n, epsilon, |X| and beta
    costs       server time and memory, user time and report bits, as exponents
    responses   one bit against the optimal response, over epsilon

The sketch's *error* is the frequency from which an item is listed with probability 1 - beta: items are planted on a
ladder of multiples of D_opt, and where the share of those that are listed crosses 1 - beta is found by maximum
likelihood on the normal law (each run has hashes of its own). The scan's is the (1 - beta) quantile of the largest
error over the whole domain, of estimates by the best linear hash.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from typing import Any

import numpy as np

from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.privacy.yardsticks import d_opt, lower_bound_shape, optimal_scan_error, v_opt
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import choose
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from simulator.engine import Job, count, run_seed
from simulator.experiments import frequencies, heavy_hitters
from simulator.experiments.heavy_hitters import Search
from simulator.experiments.options import SimulationOptions
from simulator.population.naming import naming
from simulator.population.text import read
from simulator.report.plots import Panel, Series

__all__ = ["PAGES", "Reproduction", "costs", "error", "responses"]

BETA = 0.05
LADDER = (0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
FINE = tuple(round(0.7 + 0.05 * i, 2) for i in range(20))
Progress = Callable[[int], None]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Reproduction:
    """Plots, and the table behind them."""

    panels: tuple[Panel, ...]
    rows: Rows


@dataclass(frozen=True)
class _Point:
    """One setting of the error plots."""

    users: int = 300_000
    epsilon: str = "2"
    bits: int = 20
    beta: float = BETA

    @property
    def size(self) -> int:
        """|X|."""
        return 1 << self.bits

    @property
    def unit(self) -> float:
        """D_opt."""
        return d_opt(self.users, float(self.epsilon), self.size, self.beta)

    def row(self, **values: float | None) -> dict[str, Any]:
        """What theory says, and what was measured."""
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
    """(multiple of D_opt at beta = 0.05, planted, listed) over some runs of the expander sketch."""
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
    """The multiple that is listed half of the time, by maximum likelihood; `slope` standard errors make a multiple."""
    law = NormalDist()

    def loss(center: float) -> float:
        total = 0.0
        for multiple, planted, listed in hits:
            p = min(max(law.cdf(slope * (multiple - center)), 1e-9), 1 - 1e-9)
            total -= listed * math.log(p) + (planted - listed) * math.log(1 - p)
        return total

    return min((0.5 + 0.005 * i for i in range(400)), key=loss)


def _slope(point: _Point) -> float:
    """How many standard errors one multiple of D_opt is, for the sketch's own response."""
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
    """The largest error over the whole domain, run by run."""
    wanted = SimulationOptions(point.users, point.epsilon, str(point.size), "zipf:1.1:1000", "linear-hash", seed=seed)
    wanted = replace(wanted, runs=runs, memory=1 << 30)
    return [e.max_error for e in frequencies.run(wanted).errors]


def error(runs: int = 6, seed: int = 1, progress: Progress | None = None) -> Reproduction:
    """Four sweeps from one base point: 300,000 users, epsilon = 2, |X| = 2^20, beta = 0.05."""
    tell, base = progress or (lambda _steps: None), _Point()
    rows: Rows = []

    def measured(point: _Point) -> dict[str, Any]:
        sketch = _sketch_error(point, runs, seed)
        scan = None
        if point.bits <= 22:
            scan = float(np.quantile(_scan_errors(point, 6 * runs, seed), 1 - point.beta))
        tell(1)
        return point.row(sketch=sketch, scan=scan)

    sweeps = {
        "users": [replace(base, users=n) for n in (30_000, 100_000, 300_000, 1_000_000)],
        "epsilon": [replace(base, epsilon=e) for e in ("0.5", "1", "2", "3", "4")],
        "bits": [replace(base, bits=b) for b in (12, 16, 20, 32, 48, 64)],
    }
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
    """The error against the failure probability, from counts of misses: no normal law is assumed."""
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


def _exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


def costs(runs: int = 3, seed: int = 1, progress: Progress | None = None, most: int = 10_000_000) -> Reproduction:
    """Table 1 of the paper, measured: 64-bit items, epsilon = 1; then longer items."""
    tell, rows = progress or (lambda _steps: None), Rows()
    sizes = [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= most]
    for users in sizes:
        rows.append({"sweep": "users", **_cost(users, 8, runs, seed)})
        tell(1)
    for length in (8, 16, 32, 64):
        rows.append({"sweep": "length", **_user_cost(_question(1_000_000, length), length, runs)})
        tell(1)
    return Reproduction(tuple(_cost_panels(rows)), rows)


def _question(users: int, length: int) -> Collection:
    domain = Strings(length)
    return create("costs", domain, "1", plan(users, domain, "1"), opens=1, closes=2)


def _user_cost(collection: Collection, length: int, runs: int) -> dict[str, Any]:
    """One report by the client's own code, with coins of the operating system."""
    randomizer, taken = collection.randomizer, []
    indexes = [collection.domain.index(str(i).zfill(length)[:length]) for i in range(2000)]
    for _ in range(runs):
        start = time.thread_time()
        for index in indexes:
            randomizer.randomize(index, draw_words(randomizer.words)).to_bytes(randomizer.report_bytes, "little")
        taken.append((time.thread_time() - start) / len(indexes))
    return {
        "item_bytes": length,
        "mechanism": randomizer.name,
        "user_us": 1e6 * median(taken),
        "report_bits": randomizer.report_bits,
    }


def _cost(users: int, length: int, runs: int, seed: int) -> dict[str, Any]:
    """Counting and decoding, medians of some runs."""
    collection = _question(users, length)
    background = read(heavy_hitters.BACKGROUND, users, seed=seed)
    named = naming(collection.domain, background.population.distinct, None, seed=seed)
    counting, decoding, state = [], [], 0
    for number in range(runs if users < 10_000_000 else 1):
        counted = count(Job(collection, background.population, named, users, run_seed(seed, number)))
        start = time.process_time()
        decode(collection, counted.oracle)
        decoding.append(time.process_time() - start)
        counting.append(counted.seconds["aggregate"])
        state = counted.oracle.counts.values.nbytes
    return {
        "users": users,
        **_user_cost(collection, length, runs),
        "count_seconds": median(counting),
        "decode_seconds": median(decoding),
        "server_seconds": median(counting) + median(decoding),
        "state_mb": state / 1e6,
    }


_COSTS = (
    ("server_seconds", "server: counting and decoding", "CPU seconds", "users", "O~(n)"),
    ("count_seconds", "server: counting alone", "CPU seconds", "users", "O~(n)"),
    ("state_mb", "server: counts in memory", "MB", "users", "O~(sqrt n)"),
    ("user_us", "user: one report", "CPU microseconds", "users", "O~(1)"),
    ("user_us", "user: one report, by length", "CPU microseconds", "length", "polylog"),
    ("report_bits", "report, by length", "bits", "length", "O~(1)"),
)


_FLAT = 4.0
"""A cost that grows by less is shown from zero."""


def _cost_panels(rows: Rows) -> Iterator[Panel]:
    for key, title, label, sweep, paper in _COSTS:
        mine = [row for row in rows if row["sweep"] == sweep]
        axis = "users" if sweep == "users" else "item_bytes"
        x, y = [float(row[axis]) for row in mine], [float(row[key]) for row in mine]
        if len(x) < 2:
            continue
        slope = round(_exponent(x, y), 2) + 0.0
        x_label = "users n" if sweep == "users" else "longest item, bytes"
        name = f"{title} (paper: {paper})\nfitted exponent {slope:+.2f}"
        flat = max(y) < _FLAT * min(y)
        line = [Series("measured", x, y)]
        yield Panel(name, x_label, label, line, log_x=True, log_y=not flat, y_from=0 if flat else None)


def responses(runs: int = 5, seed: int = 1, progress: Progress | None = None) -> Reproduction:
    """Mean square error of one-bit and of optimal responses, as a multiple of n v_opt; d = 1,024, n = 50,000."""
    tell, rows = progress or (lambda _steps: None), Rows()
    for epsilon in ("0.25", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"):
        value = float(epsilon)
        best = choose(50_000, 1024, epsilon)
        row: dict[str, Any] = {"epsilon": value, "best": best.mechanism, **best.parameters}
        row["one_bit_theory"] = (math.exp(value) + 1) ** 2 / (math.exp(value) - 1) ** 2 / v_opt(value)
        row["best_theory"] = best.variance_over_optimum
        for name, mechanism, parameters in (
            ("one_bit", "linear-hash", (("q", 2), ("t", 10))),
            ("best", best.mechanism, tuple(best.parameters.items())),
        ):
            wanted = SimulationOptions(50_000, epsilon, "1024", "zipf:1.1", mechanism, parameters, runs, seed)
            shape = frequencies.run(wanted).shape
            row[f"{name}_measured"], row[f"{name}_bits"] = shape["mse_over_optimum"], shape["report_bits"]
        rows.append(row)
        tell(1)
    x = [row["epsilon"] for row in rows]

    def column(key: str) -> list[float]:
        return [float(row[key]) for row in rows]

    ratio = Panel(
        "error of one estimate",
        "epsilon of a report",
        "mean square error / (n v_opt)",
        [
            Series("one bit (q = 2), measured", x, column("one_bit_measured")),
            Series("chooser's pick, measured", x, column("best_measured")),
            Series("one bit, (e+1)^2 / 4e", x, column("one_bit_theory"), theory=True),
            Series("chooser's pick, theory", x, column("best_theory"), theory=True),
        ],
        log_y=True,
    )
    size = Panel(
        "size of a report",
        "epsilon of a report",
        "bits",
        [Series("one bit (q = 2)", x, column("one_bit_bits")), Series("chooser's pick", x, column("best_bits"))],
        y_from=0,
    )
    return Reproduction((ratio, size), rows)


PAGES: dict[str, tuple[Callable[..., Reproduction], int]] = {
    "error": (error, 14),
    "costs": (costs, 8),
    "responses": (responses, 11),
}
"""Each page's function and its number of steps."""
