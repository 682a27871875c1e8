"""Sealed reports: seal and open per second of one processor, and a server that takes them from a relay.

The yardstick is X25519 itself: opening needs one exchange, sealing one exchange and one new key pair. Rates are medians
over rounds, measured in turns with the yardstick, of CPU time and not of the clock.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import grpc
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.sealing import seal
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_server.sealing.keys import SealingKey, new_key
from ldp_server.sealing.opening import OpeningJob, open_units
from ldp_server.testing import ServerProcess

__all__ = ["run"]

UNITS, ROUNDS = 3000, 5
BATCH = 2000
OPEN = ">= 15000"
_DAY = 86_400


def question() -> Collection:
    """A question over a thousand categories; a report has two bytes."""
    parameters = {"q": 3, "t": 7}
    return Collection.create(
        "Which?", Integers(1, 1000), "linear-hash", "1", opens=0, closes=1 << 33, parameters=parameters,
        smallest_batch=100,
    )  # fmt: skip


def _rate(work: Callable[[], object], count: int) -> float:
    start = time.process_time()
    work()
    return count / (time.process_time() - start)


def run(options: Options) -> Iterator[Row]:
    """Measure sealing, opening and a server."""
    yield from _one_core(ROUNDS * (3 if options.full else 1))
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as folder:
        yield from _server(Path(folder), 50 if options.full else 10)


def _one_core(rounds: int) -> Iterator[Row]:
    collection, key = question(), SealingKey(os.urandom(32), 1 << 33)
    public, report = key.public.public_key, bytes(collection.randomizer.report_bytes)
    peer = X25519PublicKey.from_public_bytes(X25519PrivateKey.generate().public_key().public_bytes_raw())
    own = X25519PrivateKey.generate()
    units = [seal(report, collection.id, public) for _ in range(UNITS)]
    job = OpeningJob(
        collection.id, len(report), collection.randomizer.bound, ((key.private_key, 1 << 33),), 0, b"".join(units)
    )
    work: dict[str, Callable[[], object]] = {
        "exchange": lambda: [own.exchange(peer) for _ in range(UNITS)],
        "seal": lambda: [seal(report, collection.id, public) for _ in range(UNITS)],
        "open": lambda: open_units(job),
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, one in work.items():
            found[name].append(_rate(one, UNITS))
    stick = ("X25519 exchanges per second", median(found["exchange"]))
    yield row("bytes of a sealed report of two bytes", len(units[0]), "bytes", "<= 59")
    yield row("reports sealed per second of a processor", median(found["seal"]), "/s", yardstick=stick)
    yield row("reports opened per second of a processor", median(found["open"]), "/s", OPEN, yardstick=stick)


def _server(folder: Path, batches: int) -> Iterator[Row]:
    """A stream of sealed batches, as a relay sends it, beside the same reports unsealed."""
    sealed = question()
    data = {key: value for key, value in sealed.to_dict().items() if key not in {"id", "relay"}}
    plain = Collection.from_dict(data)
    key = new_key(folder / "keys", 90 * _DAY, int(time.time()))
    (folder / "server.toml").write_text(f'[sealing]\nkeys = "{folder / "keys"}"\n')
    width, bound = sealed.randomizer.report_bytes, sealed.randomizer.bound
    reports = [(number % bound).to_bytes(width, "little") for number in range(BATCH)]
    with ServerProcess(folder / "data", "--config", str(folder / "server.toml")) as server:
        with server.analyst() as analyst:
            analyst.create(sealed)
            analyst.create(plain)
        payloads = [b"".join(seal(one, sealed.id, key.public.public_key) for one in reports) for _ in range(batches)]
        plain_rate = _stream(server.target, plain, [b"".join(reports)] * batches)
        rate = _stream(server.target, sealed, payloads)
        again = _stream(server.target, sealed, payloads)
        with server.analyst() as analyst:
            taken = analyst.show(sealed).reports
    stick = ("the same reports unsealed", plain_rate)
    yield row("sealed reports durable per second, one opening process", rate, "/s", yardstick=stick)
    yield row("sealed reports that come again, per second", again, "/s", yardstick=stick)
    yield row("sealed reports lost or counted twice, of those sent twice", abs(taken - BATCH * batches), "", "<= 0")


def _stream(target: str, collection: Collection, payloads: list[bytes]) -> float:
    """Reports acknowledged per second over one stream."""
    requests = [
        collector_pb2.SubmitRequest(collection_id=collection.id, batch_id=os.urandom(16), payload=payload)
        for payload in payloads
    ]
    with grpc.insecure_channel(target) as channel:
        stub = collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated
        start = time.perf_counter()
        answers = list(stub.SubmitStream(iter(requests), wait_for_ready=True))
        seconds = time.perf_counter() - start
    if not all(answer.WhichOneof("outcome") == "accepted" for answer in answers):
        raise AssertionError("every batch is taken")
    return BATCH * len(payloads) / seconds
