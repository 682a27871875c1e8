"""The client: the cost of importing it, of a report, of feeding a server through a gateway, and of installing it.

Every time is shown beside a yardstick from the same run. The yardstick of an import is bare Python. That of a report is
one fsync'd commit of SQLite on the same disk, and the two take turns. That of a gateway is a bare stub that sends the
same bytes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import grpc

from benchmarks.row import Options, Row, row
from ldp_client.client import Client
from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Strings
from ldp_client.protocol.packing import pack
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_client.sending.gateway import Gateway
from ldp_client.sending.transport import Batch
from ldp_client.testing import FakeCollector
from ldp_client.trust.policy import Policy
from ldp_server.testing import ServerProcess

ROOT = Path(__file__).parent.parent
ITEM = "www.example.org"
REPORTS = 1_000_000
PER_BATCH = 1_000


def run(options: Options) -> Iterator[Row]:
    """Yield every row."""
    yield from imports()
    yield from reporting(3_000 if options.full else 1_000)
    yield from feeding(5 if options.full else 3)
    yield from sizes()


def question(number: int) -> Collection:
    """Return a new question for each number, so that the client has to make a report."""
    return Collection.create(
        "Which home page do you use?",
        Strings(16),
        "hashtogram",
        "1",
        opens=1_700_000_000,
        closes=4_000_000_000,
        parameters={"rows": 8, "q": 3, "t": 7},
        nonce=number,
    )


def policy() -> Policy:
    """Return a policy with a budget that is large enough for all reports."""
    return Policy(max_epsilon="1", budget="100000", period="30 days", lifetime="200000")


# -- imports

_PROBE = """
import sys, time
start = time.process_time()
{work}
taken = time.process_time() - start
with open("/proc/self/status") as status:
    rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
print(taken * 1000, rss / 1024)
"""
_CONNECTED = """
storage = {directory!r} + "/" + str(time.time_ns())
from ldp_client import Client, Collection, Policy, Sending
policy = Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")
client = Client({target!r}, storage=storage, policy=policy, tls=False, delay=0,
                sending=Sending(background=False))
client.report(Collection.from_bytes({spec!r}), "www.example.org")
assert client.flush(30).accepted == 1
"""


def probe(work: str, cache: str, runs: int = 9) -> tuple[float, float]:
    """Milliseconds of CPU and megabytes of a fresh interpreter that does `work`; medians.

    With byte code in `cache`, as an installed package has it; the first run writes it and is not counted.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    found = []
    for _ in range(runs + 1):
        text = subprocess.run(
            [sys.executable, "-c", _PROBE.format(work=work)],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=environment,
        ).stdout
        milliseconds, megabytes = text.split()
        found.append((float(milliseconds), float(megabytes)))
    return median(ms for ms, _ in found[1:]), median(mb for _, mb in found[1:])


def imports() -> Iterator[Row]:
    """The cost of the import, and of a client that has sent its first report."""
    with tempfile.TemporaryDirectory() as directory:
        yield from _imports(directory)


def _imports(directory: str) -> Iterator[Row]:
    cache = f"{directory}/cache"
    bare_ms, bare_mb = probe("pass", cache)
    ms, mb = probe("import ldp_client", cache)
    yield row("import ldp_client, over bare Python", ms - bare_ms, "ms of CPU", "<= 30")
    yield row("import ldp_client, memory over bare Python", mb - bare_mb, "MB", "<= 15", ("bare Python", bare_mb))
    use = "from ldp_client import Client, Collection, Policy"
    ms, mb = probe(use, cache)
    yield row("the three names that an app uses, over bare Python", ms - bare_ms, "ms of CPU")
    yield row("the three names, memory over bare Python", mb - bare_mb, "MB")
    grpc_ms, grpc_mb = probe("import grpc", cache)
    collection = question(0)
    with real_server(Path(directory) / "server", [collection]) as target:
        work = _CONNECTED.format(target=target, directory=directory, spec=collection.spec_bytes)
        ms, mb = probe(work, cache)
    stick = ("import grpc", grpc_ms)
    yield row("connected, first report acknowledged, over bare Python", ms - bare_ms, "ms of CPU", "<= 80", stick)
    yield row(
        "connected, memory over bare Python", mb - bare_mb, "MB", "<= 35", ("import grpc, over bare", grpc_mb - bare_mb)
    )


# -- reporting


def timed(work: Callable[[], object]) -> float:
    """Microseconds of one call."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6


def quantile(times: Sequence[float], share: float) -> float:
    """The value below which `share` of the times lie."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def committer(path: Path) -> Callable[[], object]:
    """Return a function that makes one fsync'd commit of a small row: the least cost of anything durable."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE reports (report BLOB)")

    def commit() -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO reports VALUES (?)", (b"abc",))
        db.execute("COMMIT")

    return commit


def randomize(collection: Collection) -> bytes:
    """The part of a report that every client must do."""
    return collection.randomize(ITEM, draw_words(collection.randomizer.words))


class Pair:
    """A client and its yardstick on new files, with times in microseconds that were taken in turns."""

    def __init__(self, directory: Path, collections: Iterator[Collection]) -> None:
        self.collections = collections
        self.yardstick, storage = directory / "yardstick.sqlite", directory / "durable"
        self.ledger = storage / "ledger.sqlite"
        self.commit = committer(self.yardstick)
        self.client = Client(FakeCollector(), storage=storage, policy=policy())
        self.turn()  # the files are made now

    def turn(self) -> tuple[float, float]:
        """Time one commit and one report."""
        collection = next(self.collections)
        return timed(self.commit), timed(lambda: self.client.report(collection, ITEM))

    def settle(self) -> None:
        """Continue until both are in the steady state, in which SQLite reuses its log."""
        logs = [(path, log_number(path)) for path in (self.yardstick, self.ledger)]
        for _ in range(SETTLING):
            self.turn()
            if all(log_number(path) != number for path, number in logs):
                return
        raise RuntimeError("SQLite does not reuse its log")


def log_number(path: Path) -> bytes:
    """How often SQLite has started to reuse its write-ahead log (SQLite's file format says where the number is)."""
    with path.with_name(path.name + "-wal").open("rb") as log:
        return log.read(16)[12:]


FRESH = 300
"""So few reports that both logs still grow: the client's is reused after some 600, the yardstick's after 1,000."""
SETTLING = 2_000
"""More turns than either log needs until it is reused."""


def reporting(count: int) -> Iterator[Row]:
    """Durable reports beside bare commits, turn by turn; then leased ones. The background thread is on throughout.

    A commit that makes SQLite's log longer can take twice as long as one that reuses the log. So both sides are always
    in the same state. In one row the logs of both grow. In the other both are in the steady state and reuse their logs.
    In the steady state an fsync is cheapest, and the client's own work is the largest part.

    On a machine without an idle core, a thread that has waited for the disk then waits for a core, often for
    milliseconds. Every ratio is then near 1 and says nothing. So the first row says how many cores were idle, and the
    time of a report beyond that of a commit is given in microseconds, too.
    """
    collections = iter([question(number) for number in range(3 * count + 2 * SETTLING)])  # an app has them by now, too
    start, idle_before = time.perf_counter(), idle_seconds()
    rows = list(_durable(count, collections))
    idle = (idle_seconds() - idle_before) / (time.perf_counter() - start)
    yield row("idle cores while durable reports were timed (with none, the ratios flatter)", idle, "cores", ">= 0.5")
    yield from rows
    with tempfile.TemporaryDirectory(dir=ROOT) as directory:
        yield from _leased(f"{directory}/leased", [next(collections) for _ in range(count)])


def idle_seconds() -> float:
    """Return how many seconds all cores together have been idle or waiting for a disk (Linux)."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def _durable(count: int, collections: Iterator[Collection]) -> Iterator[Row]:
    times: list[tuple[float, float]] = []
    for _ in range(count // FRESH):
        with tempfile.TemporaryDirectory(dir=ROOT) as directory:
            pair = Pair(Path(directory), collections)
            times += [pair.turn() for _ in range(FRESH)]
            pair.client.close()
    yield from _ratios(times, "both logs growing")
    with tempfile.TemporaryDirectory(dir=ROOT) as directory:
        pair = Pair(Path(directory), collections)
        pair.settle()
        times = [pair.turn() for _ in range(count)]
        pair.client.close()
        yield from _ratios(times, "steady state (SQLite reuses its log)")
        yield from _tails(times)


def _ratios(times: Sequence[tuple[float, float]], state: str) -> Iterator[Row]:
    commit, report = (median(side) for side in zip(*times, strict=True))
    stick = ("fsync'd commit, median microseconds", commit)
    yield row(f"report, durable, median, in fsync'd commits, {state}", report / commit, "ratio", "<= 1.5")
    yield row(f"report, durable, median, {state}", report, "microseconds", None, stick)
    yield row(f"report, durable, beyond a commit, {state}", report - commit, "microseconds")


def _tails(times: Sequence[tuple[float, float]]) -> Iterator[Row]:
    commits, reports = zip(*times, strict=True)
    slow, own = quantile(reports, 0.99), quantile(commits, 0.99)
    yield row("report, durable, p99, in fsync'd commits, steady state", slow / median(commits), "ratio", "<= 5")
    yield row("report, durable, p99, in p99s of an fsync'd commit", slow / own, "ratio")


def _leased(storage: str, collections: Sequence[Collection]) -> Iterator[Row]:
    lease = str(len(collections) // 4)
    client = Client(FakeCollector(), storage=storage, policy=policy(), lease=lease)
    reports = [timed(lambda: client.report(c, ITEM)) for c in collections]  # noqa: B023 - called at once
    client.close()
    yield row("report, leased, median", median(reports), "microseconds", "<= 50")
    yield row("report, leased, p99", quantile(reports, 0.99), "microseconds")
    plain = [timed(lambda: randomize(c)) for c in collections]  # noqa: B023 - as above
    yield row("of these, randomizing and packing, median", median(plain), "microseconds")


# -- feeding a server


@contextlib.contextmanager
def real_server(data: Path, collections: Sequence[Collection]) -> Iterator[str]:
    """A server in a process of its own, on its embedded store, that knows the collections; yields its address."""
    with ServerProcess(data, environment={"OMP_NUM_THREADS": "1"}) as server, server.analyst() as analyst:
        for collection in collections:
            analyst.create(collection)
        yield server.target


def prepared(collection: Collection) -> list[bytes]:
    """A million reports in payloads of a thousand (a hundred different ones, over and over)."""
    randomizer = collection.randomizer
    payloads = [
        pack((randomizer.randomize(i, draw_words(randomizer.words)) for i in range(PER_BATCH)), randomizer.report_bytes)
        for _ in range(100)
    ]
    return [payloads[i % 100] for i in range(REPORTS // PER_BATCH)]


def feeding(runs: int) -> Iterator[Row]:
    """The gateway, and a bare stub with the same bytes, one after the other, several times."""
    collection = question(0)
    payloads = prepared(collection)

    def batches() -> list[Batch]:
        return [Batch(collection.id, os.urandom(16), payload) for payload in payloads]

    with (
        tempfile.TemporaryDirectory(dir=ROOT) as directory,
        real_server(Path(directory) / "data", [collection]) as target,
    ):
        through_stub(target, batches())  # the first run warms the server up and is not counted
        pairs = [(through_gateway(target, batches()), through_stub(target, batches())) for _ in range(runs)]
    ours, bare = median(p[0] for p in pairs), median(p[1] for p in pairs)
    ratio = median(p[0] / p[1] for p in pairs)
    yield row("gateway, a million reports through one stream", ours, "reports/s", None, ("bare stub", bare))
    yield row("gateway over bare stub, median of the runs' ratios", ratio, "ratio", ">= 0.7")


def through_gateway(target: str, batches: Sequence[Batch]) -> float:
    """Reports a second through the gateway."""
    gateway = Gateway(target, tls=False)
    start = time.perf_counter()
    accepted = sum(getattr(outcome, "reports", 0) for outcome in gateway.send(batches, 120.0))
    taken = time.perf_counter() - start
    gateway.close()
    return _rate(accepted, taken)


def through_stub(target: str, batches: Sequence[Batch]) -> float:
    """Reports a second through a bare stub."""
    requests = [
        collector_pb2.SubmitRequest(collection_id=b.collection_id, batch_id=b.batch_id, payload=b.payload)
        for b in batches
    ]
    with grpc.insecure_channel(target) as channel:
        start = time.perf_counter()
        replies = collector_pb2_grpc.CollectorStub(channel).SubmitStream(iter(requests))  # type: ignore[no-untyped-call]
        accepted = sum(reply.accepted.reports for reply in replies)
        taken = time.perf_counter() - start
    return _rate(accepted, taken)


def _rate(accepted: int, seconds: float) -> float:
    if accepted != REPORTS:
        raise RuntimeError(f"only {accepted} reports were accepted")
    return REPORTS / seconds


# -- size


def sizes() -> Iterator[Row]:
    """The sizes of what an app ships: the client's files and its dependencies, as installed here, without byte code."""
    own = sum(file.stat().st_size for file in (ROOT / "ldp_client").rglob("*.py"))
    yield row("installed size of ldp_client", own / 1e6, "MB")
    total = own
    for name in dependencies("grpcio", "protobuf", "cryptography"):
        files = importlib.metadata.files(name) or []
        size = sum(path.stat().st_size for path in map(_located, files) if path.suffix != ".pyc" and path.is_file())
        total += size
        yield row(f"installed size of {name}", size / 1e6, "MB")
    yield row("installed size of the client with its dependencies", total / 1e6, "MB")


def _located(file: importlib.metadata.PackagePath) -> Path:
    return Path(str(file.locate()))


def dependencies(*names: str) -> list[str]:
    """The distributions that these need, themselves first; optional extras left out."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # needed elsewhere only (another system, an older Python)
        found.append(name)
        waiting += [re.split(r"[^A-Za-z0-9_.-]", need)[0] for need in needed if "extra ==" not in need]
    return found
