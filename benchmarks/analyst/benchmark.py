"""What an analyst waits for: simple questions, pages of many items, data frames and files.

Simple questions. One client keeps 16 calls open to a server in a process of its own, and to a bare gRPC handler in
another, which gives the same bytes without a look at the question. Both are asked in turns, and a ratio is the median
of the ratios within a turn. A turn takes about a second, so that other work on the machine disturbs both alike. The
same is said of the processor time of the serving process, which other work disturbs less. The question is for the ten
most frequent of 100 categories. It is asked again and again without new reports ("asked again"), or with another
confidence each time ("new each time"), which the child has to compute.

Pages and tables are of 65,536 categories. Their yardstick is the time in which numpy sorts 2^20 numbers. On a machine
that others use, the processor time says more than the time that went by.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from benchmarks.server.processes import Program, child_pid, cpu_seconds
from ldp_client import Categories, Collection
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.analyst import Analyst, CollectionEstimates
from ldp_server.answers.choose import choose
from ldp_server.arrays.packing import pack
from ldp_server.testing import ServerProcess
from simulator.crowd import simulate

__all__ = ["run"]

TURNS = 15
QUESTIONS = 600
ITEMS = 65_536
REPEATS = 7


def run(options: Options) -> Iterator[Row]:
    """Measure everything; `--full` takes four times the turns."""
    with tempfile.TemporaryDirectory(prefix="hearsay-bench-", dir=Path.cwd()) as folder:
        data = Path(folder) / "data"
        with ServerProcess(data) as server, server.analyst() as analyst:
            yield from _questions(server, analyst, TURNS * (4 if options.full else 1))
            yield from _pages(server, analyst)


def _collection(server: ServerProcess, analyst: Analyst, items: int, users: int) -> Collection:
    """A collection of so many categories with reports of simulated users."""
    chosen = choose(users, items + 1, "1")
    domain = Categories(tuple(f"name {number}" for number in range(items)))
    collection = Collection.create(
        f"Which of {items}?", domain, chosen.mechanism, "1", opens=0, closes=1 << 33, parameters=chosen.parameters
    )
    analyst.create(collection)
    held = np.random.default_rng(5).integers(1, items + 1, users, dtype=np.uint64)
    gateway, coins = Gateway(server.target, tls=False), np.random.default_rng()
    for reports in simulate(collection.randomizer, held, seed=5):
        packed = [pack(reports[i : i + 5000], collection.randomizer.report_bytes) for i in range(0, len(reports), 5000)]
        outcomes = gateway.send([Batch(collection.id, coins.bytes(16), payload) for payload in packed], 60)
        if not all(isinstance(outcome, Accepted) for outcome in outcomes):
            raise RuntimeError("a batch was not accepted")
    gateway.close()
    return collection


# -- simple questions


class _Asked:
    """Rates and processor time of the server and of the bare handler, in turns."""

    def __init__(self, token: Path) -> None:
        self._token = token
        self.rates: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def ask(self, name: str, target: str, pid: int, question: Path, questions: int) -> None:
        """Let a client of its own ask, and note how fast the answers came."""
        before = cpu_seconds(pid)
        arguments = [target, str(question), str(self._token), str(questions)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.analyst.asking", *arguments], capture_output=True, text=True, check=True
        )
        self.rates.setdefault(name, []).append(float(done.stdout))
        self.cpu.setdefault(name, []).append((cpu_seconds(pid) - before) / questions)

    def ratio(self, name: str) -> float:
        """The rate of one over that of the bare handler, within each turn."""
        return median(one / bare for one, bare in zip(self.rates[name], self.rates["bare"], strict=True))

    def cpu_ratio(self, name: str) -> float:
        """The processor time of the bare handler over that of the serving process."""
        return median(bare / one for one, bare in zip(self.cpu[name], self.cpu["bare"], strict=True))


def _questions(server: ServerProcess, analyst: Analyst, turns: int) -> Iterator[Row]:
    collection = _collection(server, analyst, 100, 20_000)
    folder = server.data.parent
    again, fresh, response = (folder / name for name in ("again", "fresh", "response"))
    again.write_bytes(_sized(_question(collection, 0.95)))
    response.write_bytes(_response(analyst, collection))
    asked = _Asked(server.data / "local.token")
    with Program("benchmarks.analyst.bare", str(response)) as bare:
        for turn in range(turns):
            fresh.write_bytes(b"".join(_sized(_question(collection, 0.5 + (96 * turn + i) * 5e-5)) for i in range(96)))
            asked.ask("again", server.target, server.pid, again, QUESTIONS)
            asked.ask("bare", f"127.0.0.1:{bare.first}", bare.pid, again, QUESTIONS)
            asked.ask("fresh", server.target, server.pid, fresh, 96)
    stick = ("a bare gRPC handler, questions/s", median(asked.rates["bare"]))
    yield row("simple questions, asked again", median(asked.rates["again"]), "questions/s", None, stick)
    yield row("simple questions, asked again: rate over a bare gRPC handler's", asked.ratio("again"), "ratio", ">= 0.5")
    cpu = 1e6 * median(asked.cpu["again"])
    bare_cpu = ("microseconds of a bare gRPC handler", 1e6 * median(asked.cpu["bare"]))
    yield row("processor time of the serving process a question", cpu, "microseconds", None, bare_cpu)
    yield row("the same: a bare handler's processor time over it", asked.cpu_ratio("again"), "ratio")
    yield row("simple questions, new each time", median(asked.rates["fresh"]), "questions/s", None, stick)
    yield row("simple questions, new each time: rate over a bare handler's", asked.ratio("fresh"), "ratio")


def _question(collection: Collection, confidence: float) -> bytes:
    request = pb.EstimateRequest(collection_id=collection.id, confidence=confidence)
    request.top.count = 10
    return bytes(request.SerializeToString())


def _sized(question: bytes) -> bytes:
    return len(question).to_bytes(4, "little") + question


def _response(analyst: Analyst, collection: Collection) -> bytes:
    """The bytes of the server's answer."""
    request = pb.EstimateRequest.FromString(_question(collection, 0.95))
    found = analyst._connection.call("Estimate", request, 60.0)
    return bytes(found.SerializeToString())


# -- pages and tables


def _pages(server: ServerProcess, analyst: Analyst) -> Iterator[Row]:
    collection = _collection(server, analyst, ITEMS, 200_000)
    answer = analyst.estimate(collection, every_item=True)  # counted from here on
    numbers = np.random.default_rng(7).random(1 << 20)
    sorting = _times(lambda: np.sort(numbers), time.perf_counter)
    stick = ("ms for numpy to sort 2^20 numbers", sorting)
    processes = _ThreeProcesses(server.pid)
    confidences = iter(np.linspace(0.8, 0.9, 2 * REPEATS + 2))

    def page() -> object:
        return analyst.estimate(collection, every_item=True, confidence=float(next(confidences)))

    name = f"all {ITEMS:,} items over gRPC, after counting"
    yield row(name, _times(page, time.perf_counter), "ms", "<= 300", stick)
    yield row(f"{name}: processor time of all three processes", _times(page, processes), "ms", "<= 300", stick)
    again = _times(lambda: analyst.estimate(collection, every_item=True), time.perf_counter)
    yield row("the same, just asked by somebody else", again, "ms", "<= 300", stick)
    yield from _tables(answer, numbers)


def _tables(answer: CollectionEstimates, numbers: npt.NDArray[np.float64]) -> Iterator[Row]:
    stick = ("ms of processor time for numpy to sort 2^20 numbers", _times(lambda: np.sort(numbers), time.process_time))
    for name, make, target in _forms(answer):
        text = f"{len(answer.rows):,} rows as {name}"
        yield row(f"{text}: processor time", _times(make, time.process_time), "ms", target, stick)
        yield row(text, _times(make, time.perf_counter), "ms", target)


class _ThreeProcesses:
    """The processor time of this process, of the server and of its child, in seconds."""

    def __init__(self, server: int) -> None:
        child = child_pid(server)
        self._others = [server] if child is None else [server, child]

    def __call__(self) -> float:
        return time.process_time() + sum(map(cpu_seconds, self._others))


def _forms(answer: CollectionEstimates) -> Iterator[tuple[str, Callable[[], object], str | None]]:
    yield "a data frame of pandas", lambda: answer.to_frame("pandas"), "<= 50"
    yield "a data frame of polars", lambda: answer.to_frame("polars"), "<= 50"
    yield "an Arrow table", lambda: answer.to_frame("arrow"), "<= 50"
    yield "numpy columns", lambda: answer.to_frame("numpy"), "<= 50"
    yield "Parquet", lambda: answer.to_parquet(io.BytesIO()), None
    yield "CSV", answer.to_csv, None


def _times(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The mean time of a piece of work in milliseconds, after one run that does not count.

    The mean, because the processor time of another process comes in steps of 10 ms.
    """
    work()
    started = clock()
    for _ in range(REPEATS):
        work()
    return 1000 * (clock() - started) / REPEATS
