"""`ldp-simulate reproduce costs`: server time and memory, user time and report bits, with fitted exponents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters import decode
from ldp_server.heavy_hitters.planner import create, plan
from simulator.engine import Job, count, run_seed
from simulator.experiments.heavy_hitters import BACKGROUND
from simulator.population.naming import naming
from simulator.population.text import read
from simulator.report.plots import Panel, Series
from simulator.reproductions.reproduction import Progress, Reproduction, Rows

__all__ = ["costs"]


def _exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of x in y: the slope of log y against log x, by least squares."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


def costs(runs: int | None = None, seed: int = 1, progress: Progress | None = None, full: bool = False) -> Reproduction:
    """Measure the costs for 64-bit items and epsilon = 1, then those of longer items; `full` adds ten million users."""
    tell, rows, runs = progress or (lambda _steps: None), Rows(), runs or (3 if full else 1)
    sizes = (10_000, 100_000, 1_000_000, 10_000_000) if full else (10_000, 100_000, 1_000_000)
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
    """The cost of a report by the client's own code, with random words of the operating system."""
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
    """The cost of counting and decoding: the medians of some runs."""
    collection = _question(users, length)
    background = read(BACKGROUND, users, seed=seed)
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
"""A cost that grows by a smaller factor is drawn from zero."""


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
