"""A signed list at its bound: what a reader fetches, how long it computes, how much memory it needs; lists that lie.

The publisher and the client are the real ones. The messages between them are serialised and parsed, and go over no
network: creating 100,000 collections on a server would take an hour of commits.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.attacks.attack import Attack
from benchmarks.row import Row, row
from ldp_client import Categories, Client, Collection, LdpError, Policy, Sending
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.sending.transport import Batch, BatchOutcome, ListPart
from ldp_client.trust.signed_list import MAX_LISTED, PART_IDS
from ldp_server.service.signed_list import ListPublisher
from ldp_server.store import Admission, CollectionRecord

__all__ = ["ATTACKS", "Wire", "refused_lies"]

_LIMITS: dict[str, Any] = {"max_epsilon": "1", "budget": "1", "period": "1 day", "lifetime": "1"}
_MB = 1e6
_GRPC_DEFAULT = 4 << 20
"""The most bytes of a message that gRPC takes by default."""


class Wire:
    """A transport to a publisher: it counts bytes, and can change what is sent."""

    def __init__(self, publisher: ListPublisher) -> None:
        self.publisher = publisher
        self.bytes = 0
        self.largest = 0
        self.meddle: Callable[[ListPart], ListPart] = lambda part: part

    def list_collections(self, part: int, timeout: float) -> ListPart:
        del timeout
        data = self.publisher.response(part)
        self.bytes += len(data)
        self.largest = max(self.largest, len(data))
        answer = pb.ListCollectionsResponse.FromString(data)
        signed = answer.signed_list
        return self.meddle(ListPart(answer.ids, signed.list_bytes, signed.signature, signed.public_key))

    def submit(self, batches: Sequence[Batch], timeout: float) -> Iterator[BatchOutcome]:
        del batches, timeout
        return iter(())

    def get_collection(self, collection_id: bytes, timeout: float) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""

    def forked(self) -> None:
        """Nothing is held."""


def _id(number: int) -> bytes:
    return sha256(number.to_bytes(8, "little")).digest()


def _enter(publisher: ListPublisher, start: int, end: int) -> None:
    for number in range(start, end):
        record = CollectionRecord(number + 1, _id(number), b"", True, Admission(), 0, None, None)
        publisher.put(record)


@contextmanager
def _reader(wire: Wire, key: Ed25519PrivateKey) -> Iterator[Client]:
    policy = Policy(**_LIMITS, list_keys=[key.public_key().public_bytes_raw()])
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(wire, storage=Path(folder) / "ldp", policy=policy, sending=Sending(background=False)) as client,
    ):
        yield client


def _memory() -> float:
    """Return the peak of this process's memory in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / _MB for line in lines if line.startswith("VmHWM:"))


def _with_specs_inside(count: int) -> int:
    """Return how many bytes a list has that holds every spec twice: a question with 100 answers to choose from."""
    answers = Categories(tuple(f"answer number {number}" for number in range(100)))
    asked = Collection.create("Which answer?", answers, "randomized-response", "1", opens=0, closes=1)
    return 2 * count * len(asked.spec_bytes)


def _grow() -> Iterator[Row]:
    key = Ed25519PrivateKey.generate()
    publisher = ListPublisher(key, None)
    wire = Wire(publisher)
    _enter(publisher, 0, MAX_LISTED - 1)
    started = time.thread_time()
    for number in range(MAX_LISTED):
        _id(number)
    yardstick = (f"{MAX_LISTED:,} SHA-256, s", time.thread_time() - started)
    with _reader(wire, key) as client:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before, started = _memory(), time.thread_time()
        client.refresh(600.0)
        taken, grown = time.thread_time() - started, _memory() - before
        inside = (f"every spec of {MAX_LISTED:,} twice, MB", _with_specs_inside(MAX_LISTED) / _MB)
        yield row(f"bytes of a list of {MAX_LISTED:,}, for a new device", wire.bytes / _MB, "MB", "<= 4", inside)
        yield row("bytes of the largest answer", wire.largest, "bytes", f"<= {_GRPC_DEFAULT}")
        yield row("CPU of a new device, check and store", taken, "s", None, yardstick)
        yield row("memory of a new device, growth", grown, "MB", "<= 60")
        _enter(publisher, MAX_LISTED - 1, MAX_LISTED)
        wire.bytes = 0
        client.refresh(600.0)
        yield row("bytes when one collection was added", wire.bytes, "bytes", "<= 70000")


def refused_lies(count: int) -> tuple[int, int]:
    """Show a device that holds a list of `count` ids lists that contradict it; return lies and accepted lies."""
    key = Ed25519PrivateKey.generate()
    honest = ListPublisher(key, None)
    _enter(honest, 0, count)
    wire = Wire(honest)
    forks = [_fork(key, ids) for ids in _histories(count)]
    accepted = 0
    with _reader(wire, key) as client:
        client.refresh()
        held = client.listed()
        for wire.publisher in forks:
            accepted += _accepts(client)
        wire.publisher = honest
        meddling: list[Callable[[ListPart], ListPart]] = [
            lambda part: part._replace(ids=part.ids[:-32]),
            lambda part: part._replace(ids=part.ids + _id(-1 + (1 << 40))),
            lambda part: part._replace(ids=part.ids[32:64] + part.ids[:32] + part.ids[64:]),
            lambda part: part._replace(signature=bytes(64)),
        ]
        for wire.meddle in meddling:
            accepted += _accepts(client)
        accepted += client.listed() != held
    return len(forks) + len(meddling), accepted


def _histories(count: int) -> list[list[bytes]]:
    """Histories that the same key signs for some devices only."""
    ids = [_id(number) for number in range(count)]
    new = _id(1 << 32)
    return [ids[:-1], [*ids[1:], new], [ids[1], ids[0], *ids[2:], new], [*ids[:-1], new], [*ids[:-1], new, ids[-1]]]


def _fork(key: Ed25519PrivateKey, ids: list[bytes]) -> ListPublisher:
    publisher = ListPublisher(key, None)
    for number, one in enumerate(ids, 1):
        publisher.put(CollectionRecord(number, one, b"", True, Admission(), 0, None, None))
    return publisher


def _accepts(client: Client) -> bool:
    try:
        client.refresh()
    except LdpError:
        return False
    return True


def _lie() -> Iterator[Row]:
    for count in (10, PART_IDS + 10):
        lies, accepted = refused_lies(count)
        yield row(f"lists accepted of {lies} that contradict the {count:,} ids held", accepted, "lists", "<= 0")


ATTACKS = (
    Attack("signed-list-size", "an operator whose list of collections grows to its bound", _grow),
    Attack("signed-list-lies", "a server that shows a device another history of the list", _lie),
)
