"""One address makes the server hold bytes: messages without their last byte, and answers that nobody reads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.http2 import RawConnection
from benchmarks.attacks.target import Target, asked, attacked
from benchmarks.row import Row, row
from ldp_client import Categories, Collection
from ldp_client.protocol.v1 import collector_pb2

__all__ = ["ATTACKS", "unfinished_messages", "unread_answers"]

COLLECTOR = "/ldp.v1.Collector"
_BATCH_BYTES = 20_000
_CHUNK = 16_384
_ENOUGH = 2000.0
"""Megabytes at which an attack has succeeded and stops."""


def unfinished_messages(target: Target, messages: int, size: int, seconds: float, path: str) -> float:
    """Send messages without their last byte; return by how many megabytes the server grew at most."""
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        owed: dict[tuple[RawConnection, int], int] = {}
        made: list[RawConnection] = []
        while len(owed) < messages:
            made.append(stack.enter_context(closing(RawConnection(target.port))))
            for _ in range(min(made[-1].streams, 100, messages - len(owed))):
                owed[made[-1], made[-1].open(path, b"\x00" + size.to_bytes(4, "big"))] = size - 1
            if made[-1].closed:
                break
        while time.monotonic() < until and target.grown() < _ENOUGH:
            moved = 0
            for (one, number), left in owed.items():
                sent = one.feed(number, bytes(min(left, _CHUNK)))
                owed[one, number] = left - sent
                moved += sent
            for one in made:
                one.listen(0.001)
            if not moved:
                time.sleep(0.05)
    return target.grown()


def unread_answers(target: Target, calls: int, seconds: float, path: str, question: bytes = bytes(5)) -> float:
    """Ask and never read the answers; return by how many megabytes the server grew at most."""
    with ExitStack() as stack:
        asking = 0
        while asking < calls:
            one = stack.enter_context(closing(RawConnection(target.port, window=0)))
            count = min(one.streams, 100, calls - asking)
            for _ in range(count):
                one.open(path, question, end=True)
            asking += count
            if one.closed:
                break
        time.sleep(seconds)
    return target.grown()


def unread_acknowledgements(target: Target, streams: int, seconds: float) -> float:
    """Send batches on streams and read no answer; return by how many megabytes the server grew at most."""
    width = target.collection.randomizer.report_bytes
    request = collector_pb2.SubmitRequest(
        collection_id=target.collection.id, batch_id=bytes(16), payload=bytes(_BATCH_BYTES // width * width)
    )
    until = time.monotonic() + seconds
    with closing(RawConnection(target.port, window=0)) as one:
        numbers = [one.open(f"{COLLECTOR}/SubmitStream") for _ in range(min(one.streams, streams))]
        left = dict.fromkeys(numbers, b"")
        while time.monotonic() < until:
            for number in numbers:
                if not left[number]:
                    request.batch_id = os.urandom(16)
                    data = request.SerializeToString()
                    left[number] = b"\x00" + len(data).to_bytes(4, "big") + data
                sent = one.feed(number, left[number])
                left[number] = left[number][sent:]
            one.listen(0.001)
    return target.grown()


def _unfinished() -> Iterator[Row]:
    for name, size in (("4 MB", 4_000_000), ("1 MB", 1_000_000), ("0.25 MB", 250_000)):
        with attacked() as target:
            grown = unfinished_messages(target, 2000, size, 15.0, f"{COLLECTOR}/Submit")
            yield row(f"memory after 2,000 messages of {name} without their ends, growth", grown, "MB", "<= 300")
    with attacked() as target:
        grown = unfinished_messages(target, 2000, 4_000_000, 15.0, "/ldp.v1.Analyst/Estimate")
        yield row("memory after 2,000 questions of 4 MB without their ends, growth", grown, "MB", "<= 300")


def _unread() -> Iterator[Row]:
    with attacked() as target:
        target.create([asked(f"{number} " + "x" * 4000) for number in range(1000)])
        target.mark()
        grown = unread_answers(target, 180, 5.0, f"{COLLECTOR}/ListCollections")
        yield row("memory after 180 lists of 1,000 long questions that nobody reads, growth", grown, "MB", "<= 300")
    with attacked("[limits]\nidle_seconds = 2\n") as target:
        target.create([asked(f"{number} " + "x" * 4000) for number in range(1000)])
        target.mark()
        for _ in range(5):
            grown = unread_answers(target, 180, 3.0, f"{COLLECTOR}/ListCollections")
        yield row("memory after this again and again, beyond limits.idle_seconds, growth", grown, "MB", "<= 300")
        yield from target.served("afterwards")


def _unread_specs() -> Iterator[Row]:
    names = tuple(f"{number:012}" for number in range(70_000))
    shape = {"q": 3, "t": 11}
    large = Collection.create(
        "Which?", Categories(names), "linear-hash", "2", opens=0, closes=1 << 33, parameters=shape
    )
    request = collector_pb2.GetCollectionRequest(collection_id=large.id).SerializeToString()
    question = b"\x00" + len(request).to_bytes(4, "big") + request
    with attacked() as target:
        target.create([large])
        target.mark()
        grown = unread_answers(target, 360, 5.0, f"{COLLECTOR}/GetCollection", question)
        size = len(large.spec_bytes) / 1e6
        yield row(f"memory after 360 specs of {size:.1f} MB that nobody reads, growth", grown, "MB", "<= 300")


def _acknowledgements() -> Iterator[Row]:
    with attacked("reports_per_second = 0\n") as target:
        grown = unread_acknowledgements(target, 250, 15.0)
        yield row("memory after 250 streams whose answers nobody reads, growth", grown, "MB", "<= 300")


ATTACKS = (
    Attack("unfinished-messages", "one address sends 2,000 messages without their last byte", _unfinished),
    Attack("unread-answers", "one address asks for the list of collections 180 times and reads nothing", _unread),
    Attack("unread-specs", "one address asks for the largest spec 360 times and reads nothing", _unread_specs),
    Attack("unread-acknowledgements", "one address sends batches and never reads that they arrived", _acknowledgements),
)
