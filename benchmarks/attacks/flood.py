"""One address opens streams and leaves them, sends messages without their ends, and asks for lists without reading."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from benchmarks.attacks.http2 import RawConnection
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_server.testing import ServerProcess

__all__ = ["answered", "idle_streams", "rss", "unfinished_messages", "unread_lists"]


def rss(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def answered(server: ServerProcess, collection_id: bytes) -> float:
    """Seconds until an app's call is answered; infinite if it is not within ten."""
    started = time.monotonic()
    try:
        with grpc.insecure_channel(server.target, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub = collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated
            stub.GetCollection(collector_pb2.GetCollectionRequest(collection_id=collection_id), timeout=10)
    except grpc.RpcError:
        return float("inf")
    return time.monotonic() - started


@contextmanager
def _connections(server: ServerProcess, count: int, window: int = 65_535) -> Iterator[list[RawConnection]]:
    port = int(server.target.rpartition(":")[2])
    made = [RawConnection(port, initial_window=window) for _ in range(count)]
    try:
        for one in made:
            one.listen(0.2)
        yield made
    finally:
        for one in made:
            one.close()


@contextmanager
def idle_streams(server: ServerProcess, streams: int, connections: int = 3) -> Iterator[list[RawConnection]]:
    """Hold streams open on which nothing is sent."""
    with _connections(server, connections) as made:
        for one in made:
            for _ in range(streams // connections):
                one.open("/ldp.v1.Collector/SubmitStream")
            one.listen(1.0)
        time.sleep(3.0)  # the server takes them in
        yield made


def unfinished_messages(server: ServerProcess, calls: int, size: int, seconds: float, method: str = "Submit") -> int:
    """Send messages without their last byte; return by how many bytes the server grew at most."""
    before = most = rss(server.pid)
    per = 150
    until = time.monotonic() + seconds
    with _connections(server, -(-calls // per)) as made:
        owed: dict[tuple[RawConnection, int], int] = {}
        head = b"\x00" + size.to_bytes(4, "big")
        for one in made:
            for _ in range(per):
                owed[one, one.open(f"/ldp.v1.Collector/{method}", head)] = size - 1
        while time.monotonic() < until:
            moved = 0
            for (one, number), left in owed.items():
                sent = one.feed(number, left)
                owed[one, number] = left - sent
                moved += sent
            for one in made:
                one.listen(0.01)
            most = max(most, rss(server.pid))
            if not moved:
                time.sleep(0.05)
    return most - before


def unread_lists(server: ServerProcess, calls: int, seconds: float) -> int:
    """Ask for the public list and never read it; return by how many bytes the server grew at most."""
    before = most = rss(server.pid)
    until = time.monotonic() + seconds
    with _connections(server, -(-calls // 90), window=0) as made:
        for one in made:
            for _ in range(90):
                one.open("/ldp.v1.Collector/ListCollections", bytes(5), end=True)
        while time.monotonic() < until:
            for one in made:
                one.listen(0.05)
            most = max(most, rss(server.pid))
    return most - before
