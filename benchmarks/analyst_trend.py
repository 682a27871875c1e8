"""A year of weeks: how long a trend, a change and a comparison take over 52 periods, after counting.

A real server process, real reports through real packing, answers over gRPC. The question is about a domain of 65,536
items. `rows` is for whoever has a server with other benchmarks of analysts; `run` starts one of its own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection, Schedule
from ldp_client.protocol.domain import Integers
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Batch
from ldp_server.analyst import Analyst
from ldp_server.arrays.packing import pack
from ldp_server.testing import ServerProcess
from simulator.crowd import simulate

__all__ = ["rows", "run"]

WEEK = 7 * 86_400
PERIODS = 52
USERS = 20_000
"""In each period."""
BATCH = 1000
ITEMS = tuple(range(1, 11))
RUNS = 5


def run(options: Options) -> Iterator[Row]:
    """Start a server, and measure."""
    del options
    with tempfile.TemporaryDirectory(prefix="hearsay-trend-") as folder, ServerProcess(Path(folder) / "d") as server:
        yield from rows(server)


def rows(server: ServerProcess) -> Iterator[Row]:
    """Measure on a server that runs; it gets a collection of its own."""
    collection = _filled(server)
    with server.analyst() as analyst:
        yield row("trend: first question, with counting", _seconds(lambda: _trend(analyst, collection), 1), "s")
        name = f"{PERIODS} periods x {len(ITEMS)} items of 65,536"
        yield row(f"trend: {name}, counted", _seconds(lambda: _trend(analyst, collection)), "s", "<= 1")
        changing = _seconds(lambda: analyst.change(collection, items=ITEMS))
        yield row(f"change: {name}, counted", changing, "s", "<= 1")
        sides = (collection, _last(PERIODS)), (collection, _last(1))
        yield row("compare: two periods", _seconds(lambda: analyst.compare(*sides, items=ITEMS)), "s", "<= 1")
        whole = _seconds(lambda: analyst.estimate(collection, items=ITEMS))
        yield row(f"estimate: all {PERIODS} periods together", whole, "s", "<= 1")
        yield row("periods: list", _seconds(lambda: analyst.periods(collection)), "s", "<= 1")


def _last(back: int) -> int:
    return int(time.time()) // WEEK - back


def _filled(server: ServerProcess) -> Collection:
    """Make a collection with reports in each of the last weeks."""
    now = int(time.time())
    collection = Collection.create(
        "Which one, every week?",
        Integers(1, 65_535),
        "linear-hash",
        "1",
        parameters={"q": 3, "t": 11},
        opens=now - (PERIODS + 1) * WEEK,
        closes=now + WEEK,
        schedule=Schedule(WEEK, PERIODS),
    )
    with server.analyst() as analyst:
        analyst.create(collection, unlisted=True)
    coins = np.random.default_rng(1)
    gateway = Gateway(server.target, tls=False)
    for week in range(1, PERIODS + 1):
        indexes = coins.zipf(1.5, USERS).clip(0, 65_535).astype(np.uint64)
        for reports in simulate(collection.randomizer, indexes, seed=week):
            width = collection.randomizer.report_bytes
            parts = [pack(reports[start : start + BATCH], width) for start in range(0, len(reports), BATCH)]
            batches = [Batch(collection.id, coins.bytes(16), part, period=_last(week)) for part in parts]
            for _ in gateway.send(batches, 120):
                pass
    gateway.close()
    return collection


def _trend(analyst: Analyst, collection: Collection) -> object:
    return analyst.trend(collection, items=ITEMS, together=True)


def _seconds(ask: Callable[[], object], runs: int = RUNS) -> float:
    """The median of the times of some calls."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - start)
    return median(taken)
