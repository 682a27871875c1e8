"""Which answers to several questions come from one device: what a curious operator of the collection server can tell.

300 devices answer three questions. Each comes back at a random moment, opens a connection and sends its three reports.
The operator writes down all that there is to see: the connection, the moment, the order of the batches, and the order
of the reports in a batch. (log.db holds less than that: it is made from it, and `python -m benchmarks pairing` measures
what is left.) Then answers to two questions are paired in three ways:

    connection   those that came on one connection; one of them at random if there are several
    time         the nearest in time; one of them at random if there are several
    order        the k-th answer to one question and the k-th to the other

Without a relay the devices call the collection server. With one they call a real relay process, which releases a
question's reports when all 300 are there. Chance pairs one in 300. The rows with a relay give the distance from chance
in standard errors: if pairs are random, the number of right ones in one pairing has variance 1.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from benchmarks.anonymity.relay import relay_settings
from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories
from ldp_client.protocol.sealing import seal, sealed_bytes
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc, relay_pb2_grpc
from ldp_server.testing import RelayProcess

__all__ = ["WAYS", "linked", "run"]

DEVICES, QUESTIONS = 300, 3
WAYS = ("connection", "time", "order")
PATIENCE = 300.0
_TICK = 0.05


@dataclass(frozen=True)
class _Seen:
    """One sealed report as the operator saw it. What is sealed stands for what it says: nothing that tells who."""

    digest: bytes
    connection: str
    moment: float
    place: tuple[int, int]


class _Curious(collector_pb2_grpc.CollectorServicer):
    """A collection server that writes everything down."""

    def __init__(self, questions: list[Collection]) -> None:
        self._questions = {one.id: one for one in questions}
        self._lock = threading.Lock()
        self._batches = 0
        self.seen: dict[bytes, list[_Seen]] = defaultdict(list)

    def GetCollection(self, request: Any, context: Any) -> collector_pb2.GetCollectionResponse:  # noqa: ARG002
        return collector_pb2.GetCollectionResponse(spec_bytes=self._questions[request.collection_id].spec_bytes)

    def Submit(self, request: Any, context: Any) -> collector_pb2.SubmitResponse:
        question = self._questions[request.collection_id]
        width = sealed_bytes(question.randomizer.report_bytes)
        units = [request.payload[i : i + width] for i in range(0, len(request.payload), width)]
        with self._lock:
            now, self._batches = time.perf_counter(), self._batches + 1
            for number, unit in enumerate(units):
                seen = _Seen(sha256(unit).digest(), context.peer(), now, (self._batches, number))
                self.seen[question.id].append(seen)
        accepted = collector_pb2.Accepted(reports=len(units))
        return collector_pb2.SubmitResponse(batch_id=request.batch_id, accepted=accepted)

    def complete(self) -> bool:
        with self._lock:
            return all(len(self.seen[one]) >= DEVICES for one in self._questions)


def _questions() -> list[Collection]:
    return [
        Collection.create(
            f"Question {number}?", Categories(("yes", "no")), "randomized-response", "1", opens=0, closes=1 << 33,
            smallest_batch=DEVICES,
        )
        for number in range(QUESTIONS)
    ]  # fmt: skip


def _send(target: str, stub: Any, questions: list[Collection], owners: dict[bytes, int]) -> None:
    """Let the devices come back one after the other, in a random order, each on a connection of its own."""
    draw = random.SystemRandom()
    public = X25519PrivateKey.generate().public_key().public_bytes_raw()
    for device in draw.sample(range(DEVICES), DEVICES):
        with grpc.insecure_channel(target, (("grpc.use_local_subchannel_pool", 1),)) as channel:
            connection = stub(channel)
            for question in questions:
                unit = seal(b"\x01", question.id, public)
                owners[sha256(unit).digest()] = device
                request = collector_pb2.SubmitRequest(
                    collection_id=question.id, batch_id=draw.randbytes(16), payload=unit
                )
                connection.Submit(request, timeout=PATIENCE)


def linked(*, relay: bool) -> dict[str, list[int]]:
    """Return how many devices are paired rightly in each way, for each two questions."""
    questions = _questions()
    owners: dict[bytes, int] = {}
    curious = _Curious(questions)
    server = grpc.server(ThreadPoolExecutor(4))
    collector_pb2_grpc.add_CollectorServicer_to_server(curious, server)  # type: ignore[no-untyped-call]  # generated
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        with tempfile.TemporaryDirectory(prefix="hearsay-bench-") as folder:
            if not relay:
                _send(target, collector_pb2_grpc.CollectorStub, questions, owners)
            else:
                with RelayProcess(relay_settings(Path(folder), target, questions, "2 seconds")) as process:
                    _send(process.target, relay_pb2_grpc.RelayStub, questions, owners)
                    until = time.monotonic() + PATIENCE
                    while not curious.complete():
                        if time.monotonic() > until:
                            raise TimeoutError("the relay has not passed everything on")
                        time.sleep(_TICK)
    finally:
        server.stop(None)
    found: dict[str, list[int]] = {way: [] for way in WAYS}
    for one, other in combinations(questions, 2):
        for way in WAYS:
            found[way].append(_right(way, curious.seen[one.id], curious.seen[other.id], owners))
    return found


def _right(way: str, first: list[_Seen], second: list[_Seen], owners: dict[bytes, int]) -> int:
    """How many pairs are right."""
    draw = random.SystemRandom()
    if way == "order":
        order = sorted(first, key=lambda seen: seen.place), sorted(second, key=lambda seen: seen.place)
        pairs = list(zip(*order, strict=True))
    else:
        pairs = [(one, draw.choice(_nearest(way, one, second))) for one in first]
    return sum(owners[one.digest] == owners[other.digest] for one, other in pairs)


def _nearest(way: str, one: _Seen, others: list[_Seen]) -> list[_Seen]:
    if way == "connection":
        return [other for other in others if other.connection == one.connection] or others
    least = min(abs(other.moment - one.moment) for other in others)
    return [other for other in others if abs(other.moment - one.moment) == least]


def run(options: Options) -> Iterator[Row]:
    """Measure the pairs that are found, without and with a relay."""
    runs = 10 if options.full else 3
    for relay in (False, True):
        found = [linked(relay=relay) for _ in range(runs)]
        for way in WAYS:
            counts = [count for one in found for count in one[way]]
            rate = 100 * sum(counts) / (DEVICES * len(counts))
            how = "with a relay" if relay else "without a relay"
            yield row(f"{DEVICES} devices, {QUESTIONS} questions, {how}: paired by {way}", rate, "%")
            if relay:
                errors = (sum(counts) - len(counts)) / len(counts) ** 0.5
                yield row(f"the same, from chance ({100 / DEVICES:.2f}%)", errors, "standard errors", "<= 3")
