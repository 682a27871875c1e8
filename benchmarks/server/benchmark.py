"""The collection server: throughput beside a handler that discards, latency, memory, restart, queries.

Clients run in processes of their own and share the machine's cores with the server. Everything is durable: a batch
counts when its acknowledgement has come back, and the server gives it after the fsync. Rates of the durable server and
of the discarding one are measured in turns. A ratio is the median over the turns of the ratio within a turn, so that
other work on the machine disturbs both alike. The discarding handler is the plain one (read, answer) or a pipelined
one, whichever gives the lower ratio.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.row import Options, Row, row
from benchmarks.server.processes import Program, child_rss_mb, cpu_seconds, finish, load, rate, rss_mb
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.analyst import Analyst
from ldp_server.answers.choose import choose
from ldp_server.heavy_hitters import planner
from ldp_server.testing import ServerProcess

__all__ = ["run"]

ROUNDS = 5
STREAM_BATCHES = 6000
UNARY_BATCHES = 6000
FILL = 10_000
"""Batches of 1,000 reports: 10^7 reports."""


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


class _Rates:
    """Batches a second and the server's CPU time a batch, in turns over servers and modes."""

    def __init__(self, collection: Collection, servers: dict[str, tuple[str, int]]) -> None:
        self._collection, self._servers = collection, servers
        self._rates: dict[tuple[str, str], list[float]] = {}
        self._cpu: dict[tuple[str, str], list[float]] = {}

    def measure(self, mode: str, server: str) -> None:
        """Measure one server once: a stream of 1,000-report batches, or unary calls with a report each."""
        target, pid = self._servers[server]
        before = cpu_seconds(pid)
        if mode == "stream":
            batches = STREAM_BATCHES
            found = rate(target, self._collection, mode, 1000, batches)
        else:
            batches = UNARY_BATCHES
            found = rate(target, self._collection, mode, 1, batches, clients=64)
        self._rates.setdefault((mode, server), []).append(found)
        self._cpu.setdefault((mode, server), []).append((cpu_seconds(pid) - before) / batches * 1e6)

    def rate(self, mode: str, server: str) -> float:
        return median(self._rates[mode, server])

    def cpu(self, mode: str, server: str) -> float:
        return median(self._cpu[mode, server])

    def ratio(self, mode: str, server: str) -> float:
        """The durable server's rate over another's, within each turn."""
        pairs = zip(self._rates[mode, "durable"], self._rates[mode, server], strict=True)
        return median(durable / discard for durable, discard in pairs)


def _throughput(data: Path, rounds: int) -> Iterator[Row]:
    collection = _question("throughput")
    discard = "benchmarks.server.discard"
    with (
        ServerProcess(data) as server,
        server.analyst() as analyst,
        Program(discard) as plain,
        Program(discard, "--pipelined") as pipelined,
    ):
        analyst.create(collection)
        servers = {
            "durable": (server.target, server.pid),
            "discard": (f"127.0.0.1:{plain.first}", plain.pid),
            "pipelined": (f"127.0.0.1:{pipelined.first}", pipelined.pid),
        }
        rates = _Rates(collection, servers)
        for _ in range(rounds):
            for name in servers:
                rates.measure("stream", name)
            for name in ("durable", "discard"):
                rates.measure("unary", name)
    yield from _throughput_rows(rates)


def _throughput_rows(rates: _Rates) -> Iterator[Row]:
    lower = min(rates.ratio("stream", "discard"), rates.ratio("stream", "pipelined"))
    yield row("stream of 1,000-report batches, durable / discarding", lower, "ratio", ">= 0.6")
    discard = max(rates.rate("stream", "discard"), rates.rate("stream", "pipelined"))
    stream = rates.rate("stream", "durable") * 1000
    yield row("the same, durable", stream, "reports/s", ">= 1000000", ("reports/s, discarding", discard * 1000))
    stick = ("us, discarding", min(rates.cpu("stream", "discard"), rates.cpu("stream", "pipelined")))
    yield row("server's CPU for one of these batches", rates.cpu("stream", "durable"), "us", None, stick)
    unary = rates.ratio("unary", "discard")
    yield row("unary, one report each, 64 clients, durable / discarding", unary, "ratio", ">= 0.7")
    stick = ("calls/s, discarding", rates.rate("unary", "discard"))
    yield row("the same, durable", rates.rate("unary", "durable"), "reports/s", None, stick)
    stick = ("us, discarding", rates.cpu("unary", "discard"))
    yield row("server's CPU for one of these calls", rates.cpu("unary", "durable"), "us", None, stick)


def _size(data: Path) -> Iterator[Row]:
    collection = _question("size")
    server = ServerProcess(data).start()
    try:
        with server.analyst() as analyst:
            analyst.create(collection)
            yield from _queries(server, analyst, collection)
        server.kill()
        started = time.perf_counter()
        server.start()
        ready = time.perf_counter() - started
        yield row("restart to ready after kill -9, 2 x 10^7 reports stored", ready, "s", "<= 5")
        with server.analyst() as analyst:
            yield row("first query after it", _timed_estimate(analyst, collection), "s")
    finally:
        server.stop()


def _queries(server: ServerProcess, analyst: Analyst, collection: Collection) -> Iterator[Row]:
    """Time estimates over 10^7 reports, and compare the memory at 10^7 and at twice as many."""
    finish(load(server.target, collection, "stream", 1000, FILL))
    counted = analyst.estimate(collection, every_item=True).reports
    if counted != FILL * 1000:
        raise RuntimeError(f"{counted} reports were counted, {FILL * 1000} acknowledged")
    small, child_small = rss_mb(server.pid), child_rss_mb(server.pid)
    taken = [_timed_estimate(analyst, collection) for _ in range(5)]
    yield row("all 65,536 categories, n = 10^7, counts in memory, no new batches", median(taken), "s", "<= 0.2")
    taken = []
    for _ in range(5):
        finish(load(server.target, collection, "stream", 1000, 20))
        taken.append(_timed_estimate(analyst, collection))
    yield row("the same, 20 new batches since", median(taken), "s", "<= 0.2")
    finish(load(server.target, collection, "stream", 1000, FILL))
    analyst.estimate(collection, every_item=True)
    large, child_large = rss_mb(server.pid), child_rss_mb(server.pid)
    yield row("server's memory, 2 x 10^7 reports less 10^7", large - small, "MB", "<= 4", ("MB at 10^7", small))
    growth = child_large - child_small
    yield row("estimating child's memory, the same", growth, "MB", "<= 4", ("MB at 10^7", child_small))


def _timed_estimate(analyst: Analyst, collection: Collection) -> float:
    started = time.perf_counter()
    analyst.estimate(collection, every_item=True)
    return time.perf_counter() - started


def _many(data: Path) -> Iterator[Row]:
    collection = _question("many streams")
    settings = data.with_suffix(".toml")
    settings.write_text("[limits]\ncalls = 2000\nidle_seconds = 600\n", encoding="utf-8")
    with ServerProcess(data, "--config", str(settings)) as server, server.analyst() as analyst:
        analyst.create(collection)
        finish(load(server.target, collection, "stream", 1000, 500))
        before = rss_mb(server.pid)
        found = finish(load(server.target, collection, "many", 1000, 1000 + 20_000, idle=1000, clients=200))
        after = rss_mb(server.pid)
    complete = float(found["reports"] == 20_000_000)
    yield row("1,000 idle and 200 active streams: all acknowledged", complete, "1 is yes", ">= 1")
    yield row("memory for them", after - before, "MB", "<= 256", ("MB before", before))
    yield row("active streams together", 20_000_000 / found["seconds"], "reports/s")


def _latency(data: Path) -> Iterator[Row]:
    """Acknowledgements at a steady load of 200 batches a second, without and with a decode next to it."""
    domain = Strings(8)
    chosen = planner.plan(1_000_000, domain, "1", mechanism="expander-sketch")
    collection = planner.create("latency", domain, "1", chosen, opens=0, closes=1 << 33)
    quiet, busy = [], []
    with ServerProcess(data) as server, server.analyst() as analyst:
        analyst.create(collection)
        finish(load(server.target, collection, "stream", 1000, 1000))
        for _ in range(7):
            quiet.append(finish(load(server.target, collection, "stream", 1000, 1000, rate=200))["p99"])
            client = load(server.target, collection, "stream", 1000, 1000, rate=200)
            with _Decoding(analyst, collection) as decoding:
                busy.append(finish(client)["p99"])
            if not decoding.finished:
                raise RuntimeError("no decode finished during the measurement")
    ratio = median(busy_one / quiet_one for busy_one, quiet_one in zip(busy, quiet, strict=True))
    stick = ("ms, p99 without", median(quiet) * 1000)
    yield row("p99 acknowledgement, heavy-hitter decode running / not", ratio, "ratio", "<= 2")
    yield row("p99 acknowledgement with a decode running", median(busy) * 1000, "ms", None, stick)


class _Decoding:
    """Decodes one after the other, in a thread that only waits for the server."""

    def __init__(self, analyst: Analyst, collection: Collection) -> None:
        self._analyst, self._collection = analyst, collection
        self._stop = False
        self.finished = 0
        self._thread = threading.Thread(target=self._main)

    def _main(self) -> None:
        while not self._stop:
            self._analyst.heavy_hitters(self._collection)
            self.finished += 1

    def __enter__(self) -> _Decoding:
        self._thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()
