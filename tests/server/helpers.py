"""A real server, in this process with a clock of the test's or in one of its own, and the real client's stubs."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.v1 import analyst_pb2, analyst_pb2_grpc, collector_pb2, collector_pb2_grpc
from ldp_server.child import safe_command
from ldp_server.config import Config
from ldp_server.service.assemble import CollectionServer
from ldp_server.store import AccessFile
from ldp_server.testing import ServedProcess
from ldp_server.testing import ServerProcess as RealServerProcess
from tests.server.commands import Started, run_command

ROOT = Path(__file__).parents[2]
NOW = 1_800_000_000


class Clock:
    """Wall-clock time as the test says."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def resident_bytes(pid):
    """The memory of a process that is not swapped out."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def make_collection(text="How many?", count=40, opens=0, closes=1 << 33, q=3, t=4, epsilon="2", **more):
    return Collection.create(
        text,
        Integers(1, count),
        "linear-hash",
        epsilon,
        opens=opens,
        closes=closes,
        parameters={"q": q, "t": t},
        **more,
    )


def payload(collection, reports=1, start=None):
    """Valid reports; random ones, or counting up from `start`."""
    width, bound = collection.randomizer.report_bytes, collection.randomizer.bound
    if start is None and width < 8:
        values = np.frombuffer(os.urandom(8 * reports), "<u8") % np.uint64(bound)
        return values.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()
    if start is None:
        values = [int.from_bytes(os.urandom(8), "big") % bound for _ in range(reports)]
    else:
        values = [(start + i) % bound for i in range(reports)]
    return b"".join(value.to_bytes(width, "little") for value in values)


def batch(collection, reports=1, **fields):
    return collector_pb2.SubmitRequest(
        **{
            "collection_id": collection.id,
            "batch_id": os.urandom(16),
            "payload": payload(collection, reports),
            **fields,
        }
    )


def reason(response) -> str:
    assert response.WhichOneof("outcome") == "refusal", response
    return collector_pb2.Reason.Name(response.refusal.reason)


def taken(response):
    assert response.WhichOneof("outcome") == "accepted", response
    return response.accepted


def bearer(token: str):
    return (("authorization", f"Bearer {token}"),)


class Live:
    """A server in this process."""

    def __init__(self, server: CollectionServer, token: str, channel) -> None:
        self.server = server
        self.token = token
        self.channel = channel
        self.collector = collector_pb2_grpc.CollectorStub(channel)
        self.analyst = analyst_pb2_grpc.AnalystStub(channel)
        self.auth = bearer(token)

    async def create(self, collection, **fields):
        request = analyst_pb2.CreateCollectionRequest(spec_bytes=collection.spec_bytes, **fields)
        return await self.analyst.CreateCollection(request, metadata=self.auth)

    async def show(self, collection):
        request = analyst_pb2.ShowCollectionRequest(collection_id=collection.id)
        return await self.analyst.ShowCollection(request, metadata=self.auth)

    async def call(self, method, collection, **fields):
        kind = {
            "Estimate": analyst_pb2.EstimateRequest,
            "HeavyHitters": analyst_pb2.HeavyHittersRequest,
            "Export": analyst_pb2.ExportRequest,
        }.get(method, analyst_pb2.CollectionRequest)
        return await getattr(self.analyst, method)(kind(collection_id=collection.id, **fields), metadata=self.auth)

    async def counts(self, collection):
        """The oracle's state, through Export: exact."""
        request = analyst_pb2.ExportRequest(collection_id=collection.id, kind=analyst_pb2.COUNTS)
        return b"".join([piece.data async for piece in self.analyst.Export(request, metadata=self.auth)])


@asynccontextmanager
async def live(data: Path, *, clock=None, channel=None, config: Config | None = None, spans=None, **changes):
    config = replace(config or Config(), data=data, **changes).with_listen("127.0.0.1:0")
    clock = clock or Clock()
    server = CollectionServer(config, clock=clock, spans=spans)
    await server.start()
    try:
        access = AccessFile(data / "access.db", clock)
        token = access.create(f"test-{os.urandom(4).hex()}", "manage")
        access._db.execute("UPDATE tokens SET expires = 1 << 60")  # tests set the clock as they like
        access.close()
        make = channel or (lambda port: grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        async with make(server.port) as opened:
            yield Live(server, token, opened)
    finally:
        await server.stop(grace=1)


# The limit is set by a process of its own: to fork this one, where gRPC runs, may hang or warn.
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


def launched(process, command, log):
    """Fork a process of `ldp_server.testing` in the place of a fresh interpreter."""
    start = len(safe_command("ldp_server"))
    if command[:start] != safe_command("ldp_server") or "GRPC_TRACE" in process._environment:
        return ServedProcess._launch(process, command, log)  # gRPC reads its own variables when it is imported
    return Started(command[start:], process._environment, log)


class ServerProcess(RealServerProcess):
    """A server in a process of its own, with what the tests here ask of it. It is forked, unless a limit is set first.

    `ldp_server.testing` starts a fresh interpreter; tests/server/test_testing.py has tests of that.
    """

    def __init__(self, data: Path, *options: str, file_limit: int | None = None, **more) -> None:
        before = () if file_limit is None else (sys.executable, "-c", LIMITED, str(file_limit))
        super().__init__(data, *options, before=before, **more)

    def _launch(self, command, log):
        return launched(self, command, log)

    @property
    def auth(self):
        return bearer((self.data / "local.token").read_text().strip())

    def channel(self):
        return grpc.insecure_channel(self.target)

    def create(self, collection) -> None:
        with self.analyst() as analyst:
            analyst.create(collection)

    def reports(self, collection) -> int:
        with self.analyst() as analyst:
            return analyst.show(collection).reports


def cli(*arguments: str, data: Path | None = None, stdin: str | None = None, timeout: float = 400):
    """Run `ldp-server` as a user would."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return run_command([*arguments, *(["--data", str(data)] if data else [])], environment, stdin, timeout)


async def send(server, requests):
    return [response async for response in server.collector.SubmitStream(iter(requests))]


PATIENCE = 120.0
"""Seconds until a condition that must come true is given up: generous, because the machine may be busy."""


async def until(condition, seconds=PATIENCE):
    """Wait for a condition while the server in this process goes on."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.02)


def tries(seconds=PATIENCE):
    """Yield as long as something is worth another try, with a pause before each but the first."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        time.sleep(0.02)
        yield


def wait_until(test, seconds=PATIENCE):
    for _ in tries(seconds):
        if test():
            return
    raise AssertionError("it never came true")
