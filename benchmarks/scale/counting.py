"""Counting out of PostgreSQL beside a bare loop, and answers of both stores."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.row import Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.store import Admission, NewCollection, ReportLog, Submission
from ldp_server.store.checkpoints import drop_checkpoint
from ldp_server.store.engines import open_store
from ldp_server.worker.period_counts import PeriodCounter

__all__ = ["counting"]

BATCH, GROUP = 10_000, 100


def _payloads(collection: Collection, reports: int) -> list[bytes]:
    coins, bound = np.random.default_rng(), collection.randomizer.bound
    width = collection.randomizer.report_bytes
    return [pack(coins.integers(0, bound, BATCH, dtype=np.uint64), width) for _ in range(reports // BATCH)]


def counting(address: str, data: Path, reports: int) -> Iterator[Row]:
    """Reports of 24 bits: read, checked, counted, and their checkpoint written; beside `Oracle.accumulate` alone."""
    parameters = {"q": 3, "t": 15}
    collection = Collection.create(
        "How fast?", Integers(1, 1 << 20), "linear-hash", "1", opens=0, closes=1 << 33, parameters=parameters
    )
    payloads = _payloads(collection, reports)
    bare = oracle_for(collection)
    started = time.perf_counter()
    for start in range(0, len(payloads), GROUP):
        bare.accumulate(b"".join(payloads[start : start + GROUP]))
    loop = time.perf_counter() - started
    states = {bare.to_bytes()}
    for name, where, target in (("SQLite", "", None), ("PostgreSQL", address, ">= 0.3")):
        log = open_store(where, data).writer()
        seconds = _fill(log, collection, payloads)
        text = f"{name}: reports taken in groups of {GROUP} x {BATCH:,}, and laid"
        yield row(text, reports / seconds, "reports/s")
        seconds, state = _count(log, collection, data)
        states.add(state)
        text = f"{name}: {reports:,} reports counted and checkpointed, rate / bare loop"
        yield row(text, loop / seconds, "ratio", target)
        log.close()
    differ = float(len(states) > 1)
    yield row("counts of the bare loop, of SQLite and of PostgreSQL differ", differ, "0 or 1", "<= 0")


def _fill(log: ReportLog, collection: Collection, payloads: list[bytes]) -> float:
    """Return the seconds until everything is durable, and in blocks."""
    number = log.add(NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1)).number
    started = time.perf_counter()
    for start in range(0, len(payloads), GROUP):
        group = payloads[start : start + GROUP]
        log.append([Submission(number, os.urandom(16), hashlib.sha256(p).digest()[:16], p) for p in group])
        log.tend()
    log.finish(number)
    return time.perf_counter() - started


def _count(log: ReportLog, collection: Collection, data: Path) -> tuple[float, bytes]:
    """Return the seconds of counting from nothing, and the counts."""
    record = log.record_of(collection.id)
    period = None if record is None else log.period(record.number)
    if period is None:
        raise AssertionError("it was just filled")
    states = data / "states"
    states.mkdir(exist_ok=True)
    drop_checkpoint(states, collection.id, 0)
    counter = PeriodCounter(log, states)
    started = time.perf_counter()
    counts = counter.load(period, collection)
    counter.advance(counts, None)
    counter.save(counts)
    return time.perf_counter() - started, counts.oracle.to_bytes()
