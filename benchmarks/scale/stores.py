"""The stores by themselves: durable batches a second, in turns, and readers beside writers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from benchmarks.row import Row, row
from benchmarks.server.processes import Program, finish
from ldp_server.store import Admission, NewCollection, Store
from ldp_server.store.engines import VARIABLE, open_store

__all__ = ["beside_writers", "closing", "rates"]

SHAPES = (
    ("1,000 reports a batch, groups of 128", 128, 4000, 60, ((1, ">= 0.85"), (2, ">= 1.3"))),
    ("single reports, groups of 64", 64, 4, 400, ((1, ">= 1.7"), (2, None))),
    ("single reports, groups of 512", 512, 4, 150, ((1, ">= 2.0"), (2, None))),
)
"""Name, batches of a group, bytes of a batch, groups, and how many connections with the ratio to reach."""


def _add(store: Store) -> int:
    log = store.writer()
    number = log.add(NewCollection(os.urandom(32), b"benchmark", False, Admission(), 1)).number
    log.close()
    return number


def _appenders(address: str, data: Path, number: int, shape: tuple[int, int, int], count: int) -> list[Program]:
    os.environ[VARIABLE] = address
    try:
        arguments = (str(number), *map(str, shape), str(data))
        return [Program("benchmarks.scale.appender", *arguments) for _ in range(count)]
    finally:
        del os.environ[VARIABLE]


def _rate(address: str, data: Path, shape: tuple[int, int, int], count: int) -> float:
    """Return batches a second of so many appenders at once."""
    programs = _appenders(address, data, _add(open_store(address, data)), shape, count)
    found: list[dict[str, float]] = [{}] * count

    def one(place: int) -> None:
        found[place] = finish(programs[place])

    threads = [threading.Thread(target=one, args=(place,)) for place in range(count)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(one["batches"] for one in found) / max(time.perf_counter() - started, 1e-9)


class _Upkeep:
    """Lays blocks as `ldp-server upkeep` does, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._log = store.writer()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._main)
        self._thread.start()

    def _main(self) -> None:
        while not self._ends.wait(0.2):
            while self._log.gather():
                pass

    def end(self) -> None:
        self._ends.set()
        self._thread.join()
        self._log.close()


def rates(address: str, data: Path, rounds: int) -> Iterator[Row]:
    """SQLite and PostgreSQL in turns."""
    for name, group, length, groups, wanted in SHAPES:
        shape = (group, length, groups)
        sqlite: list[float] = []
        shared: dict[int, list[float]] = {count: [] for count, _ in wanted}
        kept: list[float] = []
        for _ in range(rounds):
            sqlite.append(_rate("", data, shape, 1))
            for count, found in shared.items():
                found.append(_rate(address, data, shape, count))
            upkeep = _Upkeep(open_store(address, data))
            kept.append(_rate(address, data, shape, 1))
            upkeep.end()
        yield row(f"SQLite, {name}", median(sqlite), "batches/s")
        for count, target in wanted:
            ratios = [one / other for one, other in zip(shared[count], sqlite, strict=True)]
            connections = f"{count} connection{'s' if count > 1 else ''}"
            yield row(f"PostgreSQL, {name}, {connections}", median(shared[count]), "batches/s")
            yield row(f"PostgreSQL / SQLite, {name}, {connections}", median(ratios), "ratio", target)
        ratios = [one / other for one, other in zip(kept, sqlite, strict=True)]
        yield row(f"PostgreSQL / SQLite, {name}, 1 connection, with upkeep beside", median(ratios), "ratio")


def beside_writers(address: str, data: Path) -> Iterator[Row]:
    """A reader that reads again and again while two write and one lays blocks: what it misses, how long it waits."""
    store = open_store(address, data)
    number, upkeep, reader = _add(store), _Upkeep(store), store.reader()
    programs = _appenders(address, data, number, (64, 4, 300), 2)
    threads = [threading.Thread(target=finish, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    seen: set[bytes] = set()
    last = 0
    waits: list[float] = []
    while any(thread.is_alive() for thread in threads) or len(waits) < 3:
        for batches in reader.read(number, last):
            seen.update(batch.batch_id for batch in batches)
            last = batches[-1].sequence
        before = time.perf_counter()
        reader.last(number)
        reader.count(number)
        waits.append(time.perf_counter() - before)
    upkeep.end()
    for batches in reader.read_all(number, last):
        seen.update(batch.batch_id for batch in batches)
    yield row("reader behind writers: batches missed", 2 * 64 * 300 - len(seen), "batches", "<= 0")
    cut = quantiles(waits, n=100)[98] * 1000
    yield row("reader behind writers: wait for where the log ends (p99)", cut, "ms", "<= 50")
    reader.close()


def closing(address: str, data: Path) -> Iterator[Row]:
    """Close while four append: what is there when closing has returned is all that ever will be."""
    store = open_store(address, data)
    number, keeper = _add(store), store.writer()
    programs = _appenders(address, data, number, (64, 4, 400), 4)
    threads = [threading.Thread(target=finish, args=(program,)) for program in programs]
    for thread in threads:
        thread.start()
    period = number
    while keeper.count(period) < 4 * 64 + 2000:
        time.sleep(0.005)
    before = time.perf_counter()
    keeper.close_collection(number, 1)
    seconds, there = time.perf_counter() - before, keeper.count(period)
    for thread in threads:
        thread.join()
    yield row(
        "closed under load from 4: counted after the close returned", keeper.count(period) - there, "batches", "<= 0"
    )
    yield row("closed under load from 4: seconds until it returned", seconds, "s")
    keeper.close()
