"""Two databases as one store, beside one: batches a second, processor time of the busiest PostgreSQL, the same counts.

All servers are on this machine. So the rate says what the machine gives, and the processor time of the busiest server
what two machines would.
"""

from __future__ import annotations

import hashlib
import os
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.row import Row, row
from benchmarks.scale.meter import Meter
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store import Admission, NewCollection, Store, Submission, Ticket
from ldp_server.store.engines import open_store
from ldp_server.store.sharded.commit import ShardedCommit
from ldp_server.worker.counts import CountsCache

__all__ = ["shards"]

BATCHES = 40_000
AT_ONCE = 1024
"""Batches that wait at the same time."""
KEEP = 1 << 28
Submissions = Sequence[Submission]


class _Place:
    """A store on servers of its own, with a meter for each."""

    def __init__(self, stack: ExitStack, disk: Path, folder: Path, settings: Sequence[str], count: int) -> None:
        self.servers = [stack.enter_context(PrivatePostgres(disk, *settings)) for _ in range(count)]
        self.store: Store = open_store(" ".join(one.address() for one in self.servers), folder)
        self.store.prepare()
        self.meters = [Meter(one, one.address()) for one in self.servers]
        for one in self.meters:
            stack.callback(one.close)
        self.folder = folder
        folder.mkdir()

    def take(self, collection: Collection, batches: Submissions) -> tuple[float, float, bytes]:
        """Return batches a second, the busiest server's seconds of processor time, and the counts."""
        log = self.store.writer()
        new = NewCollection(collection.id, collection.spec_bytes, False, Admission(), 1)
        known = log.record_of(collection.id)
        number = log.add(new).number if known is None else known.number
        log.close()
        before = [one.seconds() for one in self.meters]
        seconds = self._appended([one._replace(collection=number) for one in batches])
        spent = [one.seconds() - start for one, start in zip(self.meters, before, strict=True)]
        busiest = max(0.01, *spent)  # the clock of the processor time has ticks of 0.01
        reader = self.store.reader()
        counts = CountsCache(reader, self.folder, keep_bytes=KEEP).get(number).oracle.to_bytes()
        reader.close()
        return len(batches) / seconds, busiest, counts

    def _appended(self, batches: Submissions) -> float:
        """Seconds until all are durable, with so many at once under way."""
        settled: queue.Queue[Ticket] = queue.Queue()
        logs = self.store.writers()

        def deliver(group: list[Ticket], _: float) -> None:
            for one in group:
                settled.put(one)

        commit = ShardedCommit(logs, lambda _, payloads: [True] * len(payloads), deliver, lambda _: len(logs))
        commit.start()
        started = time.perf_counter()
        for place, one in enumerate(batches):
            if place >= AT_ONCE:
                settled.get()
            commit.submit(Ticket(one, 1, lambda _: None))
        for _ in range(min(AT_ONCE, len(batches))):
            settled.get()
        seconds = time.perf_counter() - started
        commit.stop()
        for log in logs:
            log.close()
        return seconds


def _question(turn: int) -> Collection:
    parameters = {"q": 3, "t": 4}
    return Collection.create(
        f"Round {turn}?", Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters=parameters
    )


def _prepared(collection: Collection, count: int) -> list[Submission]:
    """Batches of one report each."""
    randomizer, found = collection.randomizer, []
    width, bound = randomizer.report_bytes, randomizer.bound
    for _ in range(count):
        payload = (int.from_bytes(os.urandom(8), "big") % bound).to_bytes(width, "little")
        found.append(Submission(0, os.urandom(16), hashlib.sha256(payload).digest()[:16], payload))
    return found


def shards(disk: Path, folder: Path, settings: Sequence[str], rounds: int, count: int = BATCHES) -> Iterator[Row]:
    """One database and two, in turns, with the same batches."""
    with ExitStack() as stack:
        one = _Place(stack, disk, folder / "one", settings, 1)
        two = _Place(stack, disk, folder / "two", settings, 2)
        rates: dict[int, list[float]] = {1: [], 2: []}
        busy: dict[int, list[float]] = {1: [], 2: []}
        differ = 0
        for turn in range(rounds):
            collection = _question(turn)
            batches, counts = _prepared(collection, count), []
            for number, place in ((1, one), (2, two)):
                rate, seconds, found = place.take(collection, batches)
                rates[number].append(rate)
                busy[number].append(seconds)
                counts.append(found)
            differ += counts[0] != counts[1]
        for number, name in ((1, "1 database"), (2, "2 databases")):
            yield row(f"intake of single reports through writer threads, {name}", median(rates[number]), "batches/s")
        pairs = [zip(rates[2], rates[1], strict=True), zip(busy[1], busy[2], strict=True)]
        ratios, room = ([first / second for first, second in pair] for pair in pairs)
        yield row("intake, 2 databases / 1, both on this machine", median(ratios), "ratio")
        yield row("processor time of the busiest PostgreSQL, 1 database / 2", median(room), "ratio")
        yield row("counts from 2 databases and from 1 that are not equal to the bit", differ, "rounds", "<= 0")
