"""The walk of one report and of one question: how many modules, function calls and write transactions each passes.

What is counted:

- A *call* is an event "call" of `sys.setprofile` for a function of ldp_client or ldp_server: each call of a Python
  function, each start and each resumption of a generator or coroutine. Generated code (protocol/v1), other libraries
  and functions in C are not counted.
- A *module* is passed if it holds at least one of these functions.
- A *write transaction* is a BEGIN IMMEDIATE on a connection to the ledger, as SQLite traces it.

The walk of a report begins with `Client.report`. It ends when the outbox is empty and the sender's thread rests again,
after the report was accepted by a real server in a process of its own, over gRPC. The client has reported before, to
another question, and was at rest. It has no delay, no lease and no signed list; the mechanism is randomized response.

The walk of a question is one `ldp-server estimate ID --top 2 --json` by the first digits of the collection's id. The
server has answered such a question before, with another confidence: the child computes this one. The token is
checked as always. There are three processes: the one that asks (the command line), the one that serves (all its
threads; its log shows warnings only), and the child that counts. Here the first two are threads of this process. The
child's work is done once more in this process, on the same data, to count it. The server also does things of its own
once in a while, so the least of a few questions counts.

The counts say how much a reader has to follow. They are no measure of speed.
"""

from __future__ import annotations

import asyncio
import io
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from benchmarks.row import Options, Row, row
from ldp_client import Categories, Client, Collection, Policy
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst import Analyst
from ldp_server.cli.main import cli, load
from ldp_server.config import Config
from ldp_server.service.assemble import CollectionServer
from ldp_server.store import AccessFile, DataDirectory, SqliteReader
from ldp_server.testing import ServerProcess
from ldp_server.worker.__main__ import Child
from ldp_server.worker.counts import CountsCache
from ldp_server.worker.messages import AskEstimate, read_question, write_message

__all__ = ["QuestionWalk", "ReportWalk", "Steps", "question_walk", "report_walk", "run"]

ROOT = Path(__file__).parent.parent
REPORT_MODULES, REPORT_CALLS = 14, 100
QUESTION_MODULES, QUESTION_CALLS = 16, 72
"""The most that a walk may pass (a question: in the serving process). To raise one, give the reason in
docs/architecture.md."""
_QUESTIONS = 5
_PATIENCE = 30.0


@dataclass
class Steps:
    """The calls of a walk, by module and function."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.calls.total()

    @property
    def modules(self) -> Counter[str]:
        """The calls by module."""
        found: Counter[str] = Counter()
        for (module, _), count in self.calls.items():
            found[module] += count
        return found

    def __add__(self, other: Steps) -> Steps:
        return Steps(self.calls + other.calls)


class _Profile:
    """A profile function that counts while `on`, for each thread."""

    def __init__(self) -> None:
        self.on = False
        self.threads: dict[str, Steps] = {}
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not self.on or event != "call":
            return
        module = self._module(frame.f_code.co_filename)
        if module is not None:
            steps = self.threads.setdefault(threading.current_thread().name, Steps())
            steps.calls[module, frame.f_code.co_name] += 1

    def _module(self, file: str) -> str | None:
        if file not in self._names:
            own = file.startswith((f"{ROOT}/ldp_client/", f"{ROOT}/ldp_server/")) and "/protocol/v1/" not in file
            self._names[file] = str(Path(file).relative_to(ROOT)) if own else None
        return self._names[file]

    @contextmanager
    def counting(self) -> Iterator[dict[str, Steps]]:
        """Count within the block; yield what is counted, by thread."""
        self.threads = {}
        sys.setprofile(self)
        self.on = True
        try:
            yield self.threads
        finally:
            self.on = False
            sys.setprofile(None)


@contextmanager
def _profiled_threads() -> Iterator[_Profile]:
    """Yield a profile that the threads started within the block have, too."""
    profile = _Profile()
    threading.setprofile(profile)
    try:
        yield profile
    finally:
        threading.setprofile(None)


def _question(text: str) -> Collection:
    domain = Categories(("a", "b", "c"))
    return Collection.create(text, domain, "randomized-response", "1", opens=1_700_000_000, closes=4_000_000_000)


# -- a report


@dataclass(frozen=True)
class ReportWalk:
    """The walk of one report in the client."""

    steps: Steps
    write_transactions: int


def report_walk() -> ReportWalk:
    """Report once to a real server and count."""
    first, second = _question("Which?"), _question("And which?")
    with (
        tempfile.TemporaryDirectory() as directory,
        ServerProcess(Path(directory) / "server") as server,
        server.analyst() as analyst,
        _profiled_threads() as profile,
    ):
        for collection in (first, second):
            analyst.create(collection)
        policy = Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")
        client = Client(server.target, storage=f"{directory}/app", policy=policy, tls=False, delay=0)
        try:
            client.report(first, "a")
            _wait_until_sent(client)
            return _count_report(profile, client, second)
        finally:
            client.close()


def _count_report(profile: _Profile, client: Client, collection: Collection) -> ReportWalk:
    statements: list[str] = []
    for link in (client._storage._front, client._storage._back):
        if link.db is not None:
            link.db.set_trace_callback(statements.append)
    with profile.counting() as threads:
        client.report(collection, "b")
        _wait_until_sent(client)
    walk = ReportWalk(sum(threads.values(), Steps()), statements.count("BEGIN IMMEDIATE"))
    if client.outbox().counters != {"accepted": 2}:
        raise RuntimeError(f"two reports were not accepted: {client.outbox().counters}")
    return walk


def _wait_until_sent(client: Client) -> None:
    """Wait until the outbox is empty and the sender's thread sleeps, without a call of the client."""
    with sqlite3.connect(client._storage.path) as db:
        _wait_for(lambda: client._sender._sleeps_until > 0 and not db.execute("SELECT 1 FROM outbox").fetchall())
    db.close()


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"what was waited for did not happen within {_PATIENCE:g} seconds")
        time.sleep(0.02)


# -- a question


@dataclass(frozen=True)
class QuestionWalk:
    """The walk of one question, in each of its three processes."""

    asking: Steps
    serving: Steps
    child: Steps

    @property
    def grpc_calls(self) -> int:
        return self.asking.calls["ldp_server/analyst/connection.py", "call"]

    @property
    def child_questions(self) -> int:
        return self.serving.calls["ldp_server/worker/messages.py", "write_message"]

    @property
    def total(self) -> Steps:
        return self.asking + self.serving + self.child


def question_walk() -> QuestionWalk:
    """Ask a server in this process for an estimate, and count."""
    load()
    collection = _question("Which?")
    prefix = collection.id.hex()[:12]
    with tempfile.TemporaryDirectory() as directory, _profiled_threads() as profile:
        data, token = Path(directory) / "data", Path(directory) / "token"
        with _Serving(data) as serving:
            serving.create(collection, token)
            command = ["estimate", prefix, "--top", "2", "--json", "--server", serving.address]
            walks = []
            for number in range(1 + _QUESTIONS):
                fresh = ["--confidence", f"0.9{number}"]
                with profile.counting() as threads, redirect_stdout(io.StringIO()):
                    cli.main([*command, *fresh, "--token-file", str(token)], standalone_mode=False)
                    time.sleep(0.1)  # the server ends the call after it has answered
                asking = threads.pop(threading.current_thread().name)
                walks.append((asking, sum(threads.values(), Steps())))
        asking, served = min(walks[1:], key=lambda walk: walk[1].total)
        return QuestionWalk(asking, served, _count_child(profile, data, prefix))


def _count_child(profile: _Profile, data: Path, prefix: str) -> Steps:
    """Answer the same question as the child does."""
    directory = DataDirectory(data)
    child = Child(CountsCache(SqliteReader(directory.log), directory.states, keep_bytes=1 << 20), lambda *_: None)
    request = pb.EstimateRequest(id_prefix=prefix)
    request.top.count = 2
    frame = write_message(AskEstimate(1), request.SerializeToString())
    for _ in range(2):
        with profile.counting() as threads:
            asked = read_question(io.BytesIO(frame))
            if asked is not None:
                write_message(*child.answer(*asked))
    return threads[threading.current_thread().name]


class _Serving:
    """A server in a thread of this process."""

    def __init__(self, data: Path) -> None:
        config = Config(data=data)
        self._config = replace(config, collector=replace(config.collector, listen="127.0.0.1:0"))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="serving")
        self._started = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self.address = ""

    async def _serve(self) -> None:
        server, loop = CollectionServer(self._config), asyncio.get_running_loop()
        await server.start()
        self.address = f"127.0.0.1:{server.analyst_port}"
        self._stop = lambda: loop.call_soon_threadsafe(server.request_stop)
        self._started.set()
        await server.wait()
        await server.stop()

    def create(self, collection: Collection, token: Path) -> None:
        """Create a collection with a new token, which is left in a file."""
        with closing(AccessFile(DataDirectory(self._config.data).access, time.time)) as access:
            token.write_text(access.create("walk", "create"), encoding="ascii")
        with Analyst(self.address, token=token) as analyst:
            analyst.create(collection)

    def __enter__(self) -> _Serving:
        self._thread.start()
        if not self._started.wait(_PATIENCE):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()


# -- rows


def run(_: Options) -> Iterator[Row]:
    """Yield the counts, and the calls of each module."""
    report = report_walk()
    yield row("report: write transactions until it is settled", report.write_transactions, "transactions", "<= 2")
    yield row("report: modules of the client", len(report.steps.modules), "modules", f"<= {REPORT_MODULES}")
    yield row("report: calls in the client", report.steps.total, "calls", f"<= {REPORT_CALLS}")
    yield from _by_module("report", report.steps)
    question = question_walk()
    serving, whole = question.serving, question.total
    yield row("question: gRPC calls", question.grpc_calls, "calls", "<= 1")
    yield row("question: questions to the child", question.child_questions, "questions", "<= 1")
    yield row("question: modules in the serving process", len(serving.modules), "modules", f"<= {QUESTION_MODULES}")
    yield row("question: calls in the serving process", serving.total, "calls", f"<= {QUESTION_CALLS}")
    yield row("question: modules in all three processes", len(whole.modules), "modules")
    yield row("question: calls in all three processes", whole.total, "calls")
    yield from _by_module("question, serving process", serving)


def _by_module(what: str, steps: Steps) -> Iterator[Row]:
    for module, count in sorted(steps.modules.items()):
        yield row(f"{what}: calls in {module}", count, "calls")
