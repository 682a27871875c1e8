"""One address, one certificate, or everybody behind one proxy: how many reports get in?"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import grpc

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.target import Target, attacked
from benchmarks.row import Row, row
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc

__all__ = ["ATTACKS", "stuff"]

_SECONDS = 10.0
_BATCH = 1000
"""Reports of one batch."""


def stuff(target: Target, seconds: float, metadata: tuple[tuple[str, str], ...] = ()) -> int:
    """Send batches over one stream as fast as they are taken; return how many reports were acknowledged."""
    until = time.monotonic() + seconds
    payload = bytes(target.collection.randomizer.report_bytes * _BATCH)
    room = threading.Semaphore(200)

    def requests() -> Iterator[collector_pb2.SubmitRequest]:
        while time.monotonic() < until and room.acquire(timeout=seconds):
            yield collector_pb2.SubmitRequest(
                collection_id=target.collection.id, batch_id=os.urandom(16), payload=payload
            )

    admitted = 0
    with grpc.insecure_channel(target.server.target, [("grpc.enable_http_proxy", 0)]) as channel:
        stub = collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated
        try:
            for answer in stub.SubmitStream(requests(), timeout=seconds, metadata=metadata):
                admitted += answer.accepted.reports
                room.release()
        except grpc.RpcError:
            pass  # its time is over
    return admitted


def _address() -> Iterator[Row]:
    with attacked() as target:
        admitted = stuff(target, _SECONDS)
        yield row(f"reports admitted from one address in {_SECONDS:.0f} s", admitted, "reports", "<= 12000")


ATTACKS = (Attack("stuffing", "one address sends as many reports as it can", _address),)
