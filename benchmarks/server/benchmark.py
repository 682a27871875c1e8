"""The collection server: throughput beside a handler that discards, latency, memory, restart, queries.

Clients run in processes of their own and share the machine's cores with the server. Everything is durable: a batch
counts when its acknowledgement, given after the fsync, has come back. Rates of the durable server and of the
discarding one are measured in turns; a ratio is the median over the turns of the ratio within a turn, so that a
neighbour who comes and goes disturbs both. The discarding handler is the plain one (read, answer) or a pipelined one,
whichever gives the lower ratio.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import grpc

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Strings
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_server.answers.choose import choose
from ldp_server.store import DataDirectory
from ldp_server.worker.decoding import can_decode

__all__ = ["run"]

ROUNDS = 5
STREAM_BATCHES = 6000
UNARY_BATCHES = 6000
FILL = 10_000
"""Batches of 1,000 reports: 10^7 reports."""


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)}


def _rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Process:
    """A program that says one line when it is ready."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        )
        self.pid = self._process.pid
        self.first = self.line()

    def line(self) -> str:
        """The next line."""
        if self._process.stdout is None:
            raise AssertionError("started with pipes")
        return self._process.stdout.readline().strip()

    def say(self, text: str) -> None:
        """Write a line to it."""
        if self._process.stdin is None:
            raise AssertionError("started with pipes")
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def end(self, number: int = signal.SIGTERM) -> None:
        """Stop it and wait."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class _Server:
    """A durable server, and the calls that the measurements need."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.start()

    def start(self) -> None:
        """Start the process; ready when it says where it listens."""
        arguments = ["serve", "--data", str(self.data), "--listen", "127.0.0.1:0", "--json"]
        self.process = _Process("-m", "ldp_server", *arguments)
        self.target = json.loads(self.process.first)["listening"]["collector"]

    def call(self, method: str, request: Any) -> Any:
        """One analyst's call; a stream comes back as a list."""
        token = DataDirectory(self.data).local_token.read_text().strip()
        options = [("grpc.max_receive_message_length", 64 << 20)]
        with grpc.insecure_channel(self.target, options) as channel:
            stub: Any = analyst_pb2_grpc.AnalystStub(channel)  # type: ignore[no-untyped-call]  # generated
            found = getattr(stub, method)(request, metadata=(("authorization", f"Bearer {token}"),))
            return list(found) if hasattr(found, "__next__") else found

    def create(self, collection: Collection) -> None:
        """Enter a collection."""
        self.call("CreateCollection", pb.CreateCollectionRequest(spec_bytes=collection.spec_bytes))


def _load(target: str, collection: Collection, mode: str, reports: int, batches: int, **options: Any) -> _Process:
    """A client that has prepared its batches and waits for the start."""
    arguments = {
        "target": target,
        "collection": collection.id.hex(),
        "mode": mode,
        "width": collection.randomizer.report_bytes,
        "bound": collection.randomizer.bound,
        "reports": reports,
        "batches": batches,
        **options,
    }
    client = _Process("-m", "benchmarks.server.load", *(f"--{name}={value}" for name, value in arguments.items()))
    if client.first != "prepared":
        raise RuntimeError("the load client did not start")
    return client


def _finish(client: _Process) -> dict[str, float]:
    client.say("go")
    line = client.line()
    client.end()
    if not line:
        raise RuntimeError("the load client failed")
    found: dict[str, float] = json.loads(line)
    return found


def _rate(target: str, collection: Collection, mode: str, reports: int, batches: int, **options: Any) -> float:
    found = _finish(_load(target, collection, mode, reports, batches, **options))
    return found["batches"] / found["seconds"]


def _question(text: str) -> Collection:
    best = choose(10_000_000, 65_537, "1")
    return Collection.create(
        text, Integers(1, 65_536), best.mechanism, "1", opens=0, closes=1 << 33, parameters=best.parameters
    )


def run(options: Options) -> Iterator[Row]:
    """Measure everything; `--full` takes twice the rounds."""
    rounds = ROUNDS * (2 if options.full else 1)
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as folder:
        yield from _throughput(Path(folder) / "throughput", rounds)
        yield from _size(Path(folder) / "size")
        yield from _many(Path(folder) / "many")
        yield from _latency(Path(folder) / "latency")


def _throughput(data: Path, rounds: int) -> Iterator[Row]:
    collection = _question("throughput")
    with ExitStack() as stack:
        server = _Server(data)
        stack.callback(server.process.end)
        server.create(collection)
        plain = _Process("-m", "benchmarks.server.discard")
        stack.callback(plain.end)
        pipelined = _Process("-m", "benchmarks.server.discard", "--pipelined")
        stack.callback(pipelined.end)
        targets = {
            "durable": (server.target, server.process.pid),
            "discard": (f"127.0.0.1:{plain.first}", plain.pid),
            "pipelined": (f"127.0.0.1:{pipelined.first}", pipelined.pid),
        }
        rates: dict[tuple[str, str], list[float]] = {}
        cpu: dict[tuple[str, str], list[float]] = {}
        shapes: dict[str, tuple[int, int, dict[str, int]]] = {
            "stream": (1000, STREAM_BATCHES, {}),
            "unary": (1, UNARY_BATCHES, {"clients": 64}),
        }
        for _ in range(rounds):
            for mode, (reports, batches, more) in shapes.items():
                for name, (target, pid) in targets.items():
                    if (mode, name) == ("unary", "pipelined"):
                        continue
                    before = _cpu_seconds(pid)
                    found = _rate(target, collection, mode, reports, batches, **more)
                    rates.setdefault((mode, name), []).append(found)
                    cpu.setdefault((mode, name), []).append((_cpu_seconds(pid) - before) / batches * 1e6)

    def ratio(mode: str, name: str) -> float:
        pairs = zip(rates[mode, "durable"], rates[mode, name], strict=True)
        return median(durable / discard for durable, discard in pairs)

    stream = median(rates["stream", "durable"])
    discard = max(median(rates["stream", "discard"]), median(rates["stream", "pipelined"]))
    unary, thrown = median(rates["unary", "durable"]), median(rates["unary", "discard"])
    lower = min(ratio("stream", "discard"), ratio("stream", "pipelined"))
    yield row("stream of 1,000-report batches, durable / discarding", lower, "ratio", ">= 0.6")
    yield row("the same, durable", stream * 1000, "reports/s", ">= 1000000", ("reports/s, discarding", discard * 1000))
    stick = ("us, discarding", min(median(cpu["stream", "discard"]), median(cpu["stream", "pipelined"])))
    yield row("server's CPU for one of these batches", median(cpu["stream", "durable"]), "us", None, stick)
    yield row("unary, one report each, 64 clients, durable / discarding", ratio("unary", "discard"), "ratio", ">= 0.7")
    yield row("the same, durable", unary, "reports/s", None, ("calls/s, discarding", thrown))
    stick = ("us, discarding", median(cpu["unary", "discard"]))
    yield row("server's CPU for one of these calls", median(cpu["unary", "durable"]), "us", None, stick)


def _size(data: Path) -> Iterator[Row]:
    collection = _question("size")
    ask = pb.EstimateRequest(collection_id=collection.id, all=pb.AllItems())
    server = _Server(data)
    try:
        server.create(collection)
        _finish(_load(server.target, collection, "stream", 1000, FILL))
        server.call("Estimate", ask)
        small, child_small = _rss_mb(server.process.pid), _child_rss(server.process.pid)
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            found = server.call("Estimate", ask)
            taken.append(time.perf_counter() - started)
        if found.reports != FILL * 1000:
            raise RuntimeError(f"{found.reports} reports were counted, {FILL * 1000} acknowledged")
        yield row("all 65,536 categories, n = 10^7, warm, nothing new", median(taken), "s", "<= 0.2")
        taken = []
        for _ in range(5):
            _finish(_load(server.target, collection, "stream", 1000, 20))
            started = time.perf_counter()
            server.call("Estimate", ask)
            taken.append(time.perf_counter() - started)
        yield row("the same, 20 new batches since", median(taken), "s", "<= 0.2")
        _finish(_load(server.target, collection, "stream", 1000, FILL))
        server.call("Estimate", ask)
        large, child_large = _rss_mb(server.process.pid), _child_rss(server.process.pid)
        yield row("server's memory, 2 x 10^7 reports less 10^7", large - small, "MB", "<= 4", ("MB at 10^7", small))
        growth = child_large - child_small
        yield row("estimating child's memory, the same", growth, "MB", "<= 4", ("MB at 10^7", child_small))
    finally:
        server.process.end(signal.SIGKILL)
    started = time.perf_counter()
    server.start()
    ready = time.perf_counter() - started
    try:
        yield row("restart to ready after kill -9, 2 x 10^7 reports stored", ready, "s", "<= 5")
        started = time.perf_counter()
        server.call("Estimate", ask)
        cold = time.perf_counter() - started
        yield row("first query after it", cold, "s")
    finally:
        server.process.end()


def _child_rss(parent: int) -> float:
    """The memory of the estimating child."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            return _rss_mb(int(path.parent.name))
    return 0.0


def _many(data: Path) -> Iterator[Row]:
    collection = _question("many streams")
    server = _Server(data)
    try:
        server.create(collection)
        _finish(_load(server.target, collection, "stream", 1000, 500))
        before = _rss_mb(server.process.pid)
        client = _load(server.target, collection, "many", 1000, 1000 + 20_000, idle=1000, clients=200)
        found = _finish(client)
        after = _rss_mb(server.process.pid)
    finally:
        server.process.end()
    complete = float(found["reports"] == 20_000_000)
    yield row("1,000 idle and 200 active streams: all acknowledged", complete, "1 is yes", ">= 1")
    yield row("memory for them", after - before, "MB", "<= 256", ("MB before", before))
    yield row("active streams together", 20_000_000 / found["seconds"], "reports/s")


def _latency(data: Path) -> Iterator[Row]:
    """Acknowledgements at a steady load of 200 batches a second, without and with a decode next to it."""
    if not can_decode("expander-sketch"):
        return
    planner = importlib.import_module("ldp_server.heavy_hitters.planner")
    domain = Strings(8)
    chosen = planner.plan(1_000_000, domain, "1", mechanism="expander-sketch")
    collection: Collection = planner.create("latency", domain, "1", chosen, opens=0, closes=1 << 33)
    server = _Server(data)
    try:
        server.create(collection)
        _finish(_load(server.target, collection, "stream", 1000, 1000))
        quiet, busy = [], []
        for _ in range(7):
            quiet.append(_finish(_load(server.target, collection, "stream", 1000, 1000, rate=200))["p99"])
            client = _load(server.target, collection, "stream", 1000, 1000, rate=200)
            with _Decoding(server, collection) as decoding:
                busy.append(_finish(client)["p99"])
            if not decoding.finished:
                raise RuntimeError("no decode finished during the measurement")
    finally:
        server.process.end()
    ratio = median(busy_one / quiet_one for busy_one, quiet_one in zip(busy, quiet, strict=True))
    stick = ("ms, p99 without", median(quiet) * 1000)
    yield row("p99 acknowledgement, heavy-hitter decode running / not", ratio, "ratio", "<= 2")
    yield row("p99 acknowledgement with a decode running", median(busy) * 1000, "ms", None, stick)


class _Decoding:
    """Decodes one after the other, in a thread that only waits for the server."""

    def __init__(self, server: _Server, collection: Collection) -> None:
        self._server = server
        self._request = pb.HeavyHittersRequest(collection_id=collection.id)
        self._stop = False
        self.finished = 0
        self._thread = threading.Thread(target=self._main)

    def _main(self) -> None:
        while not self._stop:
            self._server.call("HeavyHitters", self._request)
            self.finished += 1

    def __enter__(self) -> _Decoding:
        self._thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()
