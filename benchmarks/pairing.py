"""How well the order of arrival shows which answers to two questions come from one device.

300 devices answer two questions while they are offline. Each comes back at a random moment within `back`, and its
client delivers over the wire to a real server. The devices' clocks are simulated, so hours take seconds. Then somebody
reads the server's log: the k-th answer to one question is paired with the k-th answer to the other. (The closest in
rank is all that the log holds: it has no times and no addresses.) Chance pairs one device in 300.

`burst` sends everything that is overdue at once, as clients did before; the delay of a client that stays online is the
same. A device that comes back when nobody else does is seen to send twice within the delay: no pause hides that.
"""

from __future__ import annotations

import heapq
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.row import Options, Row, row
from ldp_client import Categories, Client, Collection, LedgerFiles, Policy, Sending, Sources
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.sending.transport import Batch, BatchOutcome
from ldp_client.testing import ManualClock
from ldp_server.testing import ServerProcess

__all__ = ["paired", "run"]

DEVICES = 300
HOUR = 3600.0
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


def paired(devices: int, back: float, *, burst: bool) -> float:
    """Return which part of the devices the order of arrival pairs correctly."""
    now = int(time.time())
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data") as server:
        questions = _questions(now)
        with server.analyst() as analyst:
            for question in questions:
                analyst.create(question)
        transport = _Shared(server.target, tls=False)
        owners: dict[bytes, int] = {}
        clients = [_device(Path(folder), number, transport, now, questions, owners) for number in range(devices)]
        _deliver(clients, now + 2 * HOUR, back, burst=burst)  # by then everything is overdue
        transport.end()
        server.stop()
        return _matches(Path(folder) / "data" / "log.db", owners) / devices


def _device(
    folder: Path, number: int, transport: _Shared, now: int, questions: list[Collection], owners: dict[bytes, int]
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
    with sqlite3.connect(folder / str(number) / "ledger.sqlite") as db:
        owners.update((batch_id, number) for (batch_id,) in db.execute("SELECT batch_id FROM outbox"))
    db.close()
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


def _matches(log: Path, owners: dict[bytes, int]) -> int:
    with sqlite3.connect(log) as db:
        rows = db.execute("SELECT collection, batch_id FROM batches ORDER BY position").fetchall()
    db.close()
    order: dict[int, list[int]] = {}
    for collection, batch_id in rows:
        order.setdefault(collection, []).append(owners[batch_id])
    first, second = order.values()
    return sum(one == other for one, other in zip(first, second, strict=True))


def run(options: Options) -> Iterator[Row]:
    """Measure the pairs that are found, in bursts and apart."""
    runs = 5 if options.full else 1
    for name, back in CASES:
        for burst in (True, False):
            rate = sum(paired(DEVICES, back, burst=burst) for _ in range(runs)) / runs
            how = "in a burst" if burst else "apart"
            yield row(f"{DEVICES} devices, back {name}, sending {how}: paired", 100 * rate, "%")
