"""A fresh server that is attacked, and what others notice of the attack.

The server treats loopback addresses as it treats addresses of the internet (`LIMITED`), so that 127.0.0.2 is an
attacker with an address of its own. Everybody else calls from 127.0.0.1.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.row import Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_server.testing import ServerProcess

__all__ = ["LIMITED", "PATIENCE", "Target", "asked", "attacked"]

ADMISSION = "[admission]\n"
LIMITED = f"{ADMISSION}limit_this_machine = true\n"
"""Who calls from this machine has no privileges."""
Kind = Literal["open", "certificate", "linkable-token", "unlinkable-token"]
PATIENCE = 10.0
"""Seconds after which a call counts as not answered."""
_MB = 1e6


def asked(text: str = "How many?") -> Collection:
    """Return a small collection that is always open."""
    return Collection.create(
        text, Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4}
    )


class Target:
    """A running server with one collection."""

    def __init__(self, server: ServerProcess, collection: Collection) -> None:
        self.server = server
        self.collection = collection
        self._before = self._memory("VmRSS")

    @property
    def port(self) -> int:
        return int(self.server.target.rpartition(":")[2])

    def create(self, collections: list[Collection], admission: Kind = "open") -> None:
        """Create more collections."""
        with self.server.analyst() as analyst:
            for collection in collections:
                analyst.create(collection, admission=admission)

    def mark(self) -> None:
        """Measure memory from here on."""
        Path(f"/proc/{self.server.pid}/clear_refs").write_text("5")  # the peak begins anew
        self._before = self._memory("VmRSS")

    def grown(self) -> float:
        """By how many megabytes the serving process grew at most since `mark`."""
        return max(0.0, self._memory("VmHWM") - self._before) / _MB

    def _memory(self, field: str) -> float:
        for line in Path(f"/proc/{self.server.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024.0
        raise AssertionError(f"no {field}")

    def health(self) -> float:
        """Seconds until a health check says that the server serves; `PATIENCE` if it does not."""

        def check(channel: grpc.Channel) -> bool:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

        return self._seconds(check)

    def submit(self) -> float:
        """Seconds until an app's batch is acknowledged; `PATIENCE` if it is not."""
        width = self.collection.randomizer.report_bytes
        request = collector_pb2.SubmitRequest(
            collection_id=self.collection.id, batch_id=os.urandom(16), payload=bytes(width)
        )

        def send(channel: grpc.Channel) -> bool:
            stub = collector_pb2_grpc.CollectorStub(channel)  # type: ignore[no-untyped-call]  # generated
            return bool(stub.Submit(request, timeout=PATIENCE).WhichOneof("outcome") == "accepted")

        return self._seconds(send)

    def question(self) -> float:
        """Seconds until an operator's question is answered; `PATIENCE` if it is not."""

        def ask(_: grpc.Channel) -> bool:
            with self.server.analyst() as analyst:
                return bool(analyst.estimate(self.collection, items=[1, 2]).rows)

        return self._seconds(ask)

    def _seconds(self, work: Callable[[grpc.Channel], bool]) -> float:
        started = time.monotonic()
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        while time.monotonic() - started < PATIENCE:
            try:
                with grpc.insecure_channel(self.server.target, options) as channel:
                    if work(channel):
                        return time.monotonic() - started
            except Exception:  # whatever the reason: "not now" is asked again
                time.sleep(0.2)
        return PATIENCE

    def served(self, when: str) -> Iterator[Row]:
        """Rows: how long health checks, batches and questions of others take. Each is asked for up to `PATIENCE`."""
        for name, measure in (("health check", self.health), ("Submit", self.submit), ("question", self.question)):
            yield row(f"{name} of others {when}", measure(), "s", f"<= {PATIENCE / 2}")


@contextmanager
def attacked(settings: str = "", admission: Kind = "open", *, here_is_limited: bool = True) -> Iterator[Target]:
    """Start a server with these settings, which begin in the table [admission]; it ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.toml"
        file.write_text((LIMITED if here_is_limited else ADMISSION) + settings, encoding="utf-8")
        with ServerProcess(Path(folder) / "data", "--config", str(file)) as server:
            collection = asked()
            target = Target(server, collection)
            target.create([collection], admission)
            if admission == "open":
                target.submit()
            target.question()  # the child process has started
            target.mark()
            yield target
            server.kill()  # an attack may still be under way
