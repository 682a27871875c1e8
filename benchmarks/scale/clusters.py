"""Recounts and decodes on a Dask cluster of two worker processes, beside one loop in this process (extra `dask`)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.row import Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.offline import Engine, FilePart, count_part, dask_cluster, merged, parts_of, results
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle

__all__ = ["clusters"]

ROUNDS, WORKERS = 2, 2
PIECE = 3_000_000


def clusters(folder: Path, reports: int) -> Iterator[Row]:
    """Reports of 24 bits in a file: a bare loop, two workers, and two of which one is killed. Nothing without Dask."""
    if importlib.util.find_spec("distributed") is None:
        return
    local_cluster = importlib.import_module("distributed").LocalCluster  # an extra
    collection = Collection.create(
        "Again?", Integers(1, 1 << 20), "linear-hash", "1", opens=0, closes=1 << 33, parameters={"q": 3, "t": 15}
    )
    path = _file(folder / "again", collection, reports)
    with (
        local_cluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        dask_cluster(cluster.scheduler_address) as engine,
    ):
        list(results(engine, _ready, range(4 * WORKERS)))  # imports, which a cluster in use has behind it
        yield from _beside_a_loop(engine, collection, path, reports)
        parts = parts_of(collection, [path], WORKERS, path.stat().st_size // (5 * WORKERS))
        found = results(engine, count_part, parts)
        first = next(found)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        total = merged(collection, (oracle for _, oracle in [first, *found]))
        differ = total.to_bytes() != _loop(collection, path).to_bytes()
        yield row("Dask, a worker killed at work: counts differ from the loop's", float(differ), "0 or 1", "<= 0")


def _beside_a_loop(engine: Engine, collection: Collection, path: Path, reports: int) -> Iterator[Row]:
    ratios, rates, states = [], [], set()
    parts = parts_of(collection, [path], WORKERS)
    for _ in range(ROUNDS):
        alone, counted = _timed(partial(_loop, collection, path))
        states.add(counted.to_bytes())
        together, counted = _timed(partial(_on, engine, collection, parts))
        states.add(counted.to_bytes())
        ratios.append(alone / together)
        rates.append(reports / together)
    yield row(f"Dask, {WORKERS} workers: {reports:,} reports counted", median(rates), "reports/s")
    yield row(f"Dask, {WORKERS} workers / bare loop", median(ratios), "ratio", ">= 0.7")
    yield row("Dask: counts differ from the loop's", float(len(states) > 1), "0 or 1", "<= 0")


def _file(path: Path, collection: Collection, reports: int) -> Path:
    coins, randomizer = np.random.default_rng(), collection.randomizer
    with path.open("wb") as file:
        for start in range(0, reports, PIECE):
            some = coins.integers(0, randomizer.bound, min(PIECE, reports - start), dtype=np.uint64)
            file.write(pack(some, randomizer.report_bytes))
    return path


def _loop(collection: Collection, path: Path) -> Oracle:
    oracle = oracle_for(collection)
    with path.open("rb") as file:
        while data := file.read(collection.randomizer.report_bytes * PIECE):
            oracle.accumulate(data)
    return oracle


def _on(engine: Engine, collection: Collection, parts: list[FilePart]) -> Oracle:
    return merged(collection, (oracle for _, oracle in results(engine, count_part, parts)))


def _timed(work: Callable[[], Oracle]) -> tuple[float, Oracle]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def _ready(_: int) -> int:
    time.sleep(0.05)
    return len(count_part.__module__)
