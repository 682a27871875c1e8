"""How well the order of arrival shows which answers to two questions come from one device.

300 devices answer two questions while they are offline. Each comes back at a random moment within `back`, and its
client delivers over the wire to a real server. The devices' clocks are simulated, so hours take seconds. Then somebody
reads the server's log: the k-th answer to one question is paired with the k-th answer to the other. (The closest in
rank is all that the log holds: it has no times and no addresses.) Chance pairs one device in 300.

The log is read in three ways: row by row (`rows`), by the bytes of its pages, and by the bytes of the write-ahead log
(benchmarks/layout.py). And at three moments: when the devices have sent, after the server's next background round, and
when the server has stopped.

`burst` sends everything that is overdue at once, as clients did before; the delay of a client that stays online is the
same. A device that comes back when nobody else does is seen to send twice within the delay: no pause hides that.
"""

from __future__ import annotations

import heapq
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.layout import from_pages, from_wal, matches
from benchmarks.row import Options, Row, row
from ldp_client import Categories, Client, Collection, LedgerFiles, Policy, Sending, Sources
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Batch, BatchOutcome
from ldp_client.testing import ManualClock
from ldp_server.testing import ServerProcess

__all__ = ["MOMENTS", "WAYS", "paired", "run"]

DEVICES = 300
HOUR = 3600.0
ROUND = 45.0
"""Seconds until a background round has surely begun and ended."""
MOMENTS = ("just sent", "after a background round", "after a stop")
WAYS = ("rows", "pages", "write-ahead log")
CASES = (("all within a minute", 60.0), ("within an hour", HOUR), ("within a day", 24 * HOUR))


class _Shared(GrpcTransport):
    """One connection that all devices share: the log says nothing about connections, and 300 take time."""

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        return super().submit(list(batches), timeout)

    def close(self) -> None:
        """Do nothing: the devices share the connection, and `end` closes it."""

    def end(self) -> None:
        super().close()


def _questions(now: int) -> list[Collection]:
    domain, opens, closes = Categories(("yes", "no")), now - 86_400, now + 30 * 86_400
    return [
        Collection.create(text, domain, "randomized-response", "1", opens=opens, closes=closes)
        for text in ("First?", "Second?")
    ]


def paired(devices: int, back: float, *, burst: bool, wait: float = ROUND) -> dict[tuple[str, str], float]:
    """Return which part of the devices is paired correctly, at each moment and in each way of reading the log."""
    now = int(time.time())
    found = {}
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data") as server:
        questions = _questions(now)
        with server.analyst() as analyst:
            for question in questions:
                analyst.create(question)
        transport = _Shared(server.target, tls=False)
        owners: dict[bytes, tuple[int, int]] = {}
        clients = [_device(Path(folder), number, transport, now, questions, owners) for number in range(devices)]
        _deliver(clients, now + 2 * HOUR, back, burst=burst)  # by then everything is overdue
        transport.end()
        for moment in MOMENTS:
            if moment == MOMENTS[1]:
                time.sleep(wait)
            elif moment == MOMENTS[2]:
                server.stop()
            copy = _copied(Path(folder) / "data", Path(folder) / moment)
            log, wal = copy / "log.db", copy / "log.db-wal"
            pairs = _by_rows(log, owners), from_pages(log, owners), from_wal(wal, owners)
            found.update({(moment, way): one / devices for way, one in zip(WAYS, pairs, strict=True)})
    return found


def _copied(data: Path, target: Path) -> Path:
    target.mkdir()
    for name in ("log.db", "log.db-wal"):
        if (data / name).exists():
            shutil.copy(data / name, target / name)
    return target


def _device(
    folder: Path,
    number: int,
    transport: _Shared,
    now: int,
    questions: list[Collection],
    owners: dict[bytes, tuple[int, int]],
) -> tuple[Client, ManualClock]:
    clock = ManualClock(float(now))
    client = Client(
        transport,
        storage=LedgerFiles(folder / str(number)),
        policy=Policy(max_epsilon="1", budget="2", period="30 days", lifetime="2"),
        sending=Sending(background=False),
        sources=Sources(clock=clock),
    )
    for question in questions:
        client.report(question, "yes")
    which = {question.id: place for place, question in enumerate(questions)}
    with sqlite3.connect(folder / str(number) / "ledger.sqlite") as db:
        rows = db.execute("SELECT batch_id, collection_id FROM outbox").fetchall()
    db.close()
    owners.update((batch_id, (which[collection_id], number)) for batch_id, collection_id in rows)
    return client, clock


def _deliver(clients: Sequence[tuple[Client, ManualClock]], start: float, back: float, *, burst: bool) -> None:
    """Let each device come back at a random moment, and send its reports when they are due."""
    draw = random.SystemRandom()
    moments = [(start + draw.uniform(0.0, back), number) for number in range(len(clients))]
    heapq.heapify(moments)
    while moments:
        moment, number = heapq.heappop(moments)
        client, clock = clients[number]
        clock.jump(moment)
        if burst:
            client._sender._spread = 0.0
        delivery = client.flush(30.0)
        if delivery.error is not None:
            raise delivery.error
        following = client.outbox().next_due
        if following is None:
            client.close(0)
        else:
            heapq.heappush(moments, (max(following, moment), number))


def _by_rows(log: Path, owners: dict[bytes, tuple[int, int]]) -> int:
    """Read the rows in the order in which the log numbers them. (A copy: SQLite writes beside what it reads.)"""
    copy = log.parent / "rows"
    copy.mkdir()
    for path in list(log.parent.glob("log.db*")):
        shutil.copy(path, copy / path.name)
    with sqlite3.connect(copy / log.name) as db:
        order = [batch_id for (batch_id,) in db.execute("SELECT batch_id FROM batches ORDER BY position")]
        if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recent'").fetchone():  # older logs have no such table
            order += [batch_id for (batch_id,) in db.execute("SELECT batch_id FROM recent ORDER BY place")]
    db.close()
    return matches(order, owners)


def run(options: Options) -> Iterator[Row]:
    """Measure the pairs that are found, in bursts and apart."""
    runs = 5 if options.full else 1
    for name, back in CASES:
        for burst in (True, False):
            found = [paired(DEVICES, back, burst=burst) for _ in range(runs)]
            how = "in a burst" if burst else "apart"
            for moment in MOMENTS:
                for way in WAYS:
                    rate = 100 * sum(one[moment, way] for one in found) / runs
                    yield row(f"{DEVICES} devices, back {name}, sending {how}, {moment}: paired by {way}", rate, "%")
