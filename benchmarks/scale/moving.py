"""Moving a store, with the comparison at its end, beside the rate at which the new store takes the same batches."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from benchmarks.row import Row, row
from ldp_server.moving import move, open_end
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store import Admission, NewCollection, ReportLog, Submission
from ldp_server.store.engines import open_store

__all__ = ["moving"]

SHAPES = (("1,000 reports a batch", 1000, 4000, 128), ("single reports", 1, 4, 512))
"""Name, reports and bytes of a batch, batches of a group."""


def _database(server: PrivatePostgres, name: str) -> str:
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.address(name)


def _ingest(log: ReportLog, batches: int, length: int, group: int) -> float:
    """Return the seconds until everything is durable, and in blocks as a move makes them."""
    number = log.add(NewCollection(os.urandom(32), b"benchmark", False, Admission(), 1)).number
    payloads = [os.urandom(length) for _ in range(batches)]
    submissions = [Submission(number, os.urandom(16), hashlib.sha256(p).digest()[:16], p) for p in payloads]
    started = time.perf_counter()
    for start in range(0, batches, group):
        log.append(submissions[start : start + group])
        log.tend()
        if start // 1024 != (start + group) // 1024:
            log.gather()
    log.finish(number)
    return time.perf_counter() - started


def moving(server: PrivatePostgres, folder: Path, reports: int) -> Iterator[Row]:
    """There and back. `reports` is how many there are in large batches; of single ones a hundredth."""
    for turn, (name, together, length, group) in enumerate(SHAPES):
        batches = reports // together if together > 1 else reports // 100
        data, back = folder / f"moved{turn}", folder / f"back{turn}"
        between, beside = _database(server, f"moved{turn}"), _database(server, f"beside{turn}")
        store = open_store(beside, folder)
        store.prepare()
        seconds = {}
        log = store.writer()
        seconds["PostgreSQL"] = _ingest(log, batches, length, group)
        log.close()
        embedded = open_store("", data)
        with embedded.serving():
            log = embedded.writer()
            seconds["SQLite"] = _ingest(log, batches, length, group)
            log.close()
        for into, old, new in (("PostgreSQL", str(data), between), ("SQLite", between, str(back))):
            started = time.perf_counter()
            move(open_end(old), open_end(new), lambda *_: None)
            taken = time.perf_counter() - started
            text = f"migrate to {into} and compare, {batches * together:,} reports, {name}"
            yield row(text, batches * together / taken, "reports/s")
            yield row(f"{text}: rate / rate at which {into} takes them", seconds[into] / taken, "ratio", ">= 0.3")
