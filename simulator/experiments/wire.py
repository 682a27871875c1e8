"""`ldp-simulate wire`: a crowd over real gRPC to a real server process, with faults; exactly once or not.

Every sender is a process with the client library's gateway and a connection of its own, and streams batches (a batch
of one report is a device's). What was sent is counted here, by the same oracle, from the same bytes. At the end the
server must have counted every distinct report that was sent inside the window, once, and its estimates must be the
very numbers that this oracle gives.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.managers import SyncManager
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.sending.transport import Batch
from ldp_server.answers.shapes import WireRun
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for, restore
from simulator import crowd
from simulator.engine import Job, blocks_of, draw_block, pool
from simulator.experiments.frequencies import FrequencySetting, prepare
from simulator.experiments.options import SimulationOptions
from simulator.metrics import Errors, measure
from simulator.wire.faults import Faults
from simulator.wire.sender import Entry, Sent, send
from simulator.wire.server_process import Operator, ServerProcess

__all__ = ["Outcome", "Remote", "run"]

DAY = 86_400
PATIENCE = 120.0
"""Seconds, besides those that sending takes at the slowest."""
SLOWEST = 500.0
"""Reports a second."""
MAX_DOMAIN = 1 << 20
SHOWN = 12


@dataclass(frozen=True)
class Remote:
    """A server that runs already."""

    target: str
    token_file: Path


@dataclass(frozen=True)
class Outcome:
    """The object that `--json` prints, and the server's answers beside the truth."""

    shape: WireRun
    errors: Errors
    top: list[dict[str, Any]]
    same_estimates: bool
    """Whether the server's estimates are the numbers that an oracle here gives for what was sent."""


@dataclass
class _Part:
    """What one sender sent inside the window, and what it saw."""

    state: bytes
    held: npt.NDArray[np.int64]
    late: list[Entry]
    sent: Sent


def run(
    wanted: SimulationOptions,
    faults: Faults,
    *,
    batch: int = 1000,
    remote: Remote | None = None,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Start, send, kill, end, compare."""
    if remote is not None and faults.kill_after is not None:
        raise InvalidSpec("kill-server needs a server of its own: leave out --server")
    setting = prepare(wanted)
    if setting.naming.table is not None or setting.naming.domain.size > MAX_DOMAIN:
        raise InvalidSpec(f"wire compares every estimate with the truth: --domain is at most {MAX_DOMAIN} here")
    if not 1 <= batch <= 250_000:
        raise InvalidSpec("a batch has 1 to 250000 reports")
    with ExitStack() as stack:
        operator, process = _open(stack, remote)
        collection = _collection(setting, wanted)
        operator.create(collection)
        job = Job(collection, setting.population, setting.naming, wanted.users, wanted.seed)
        started = time.perf_counter()
        killer = _killer(stack, process, faults)
        target = remote.target if remote is not None else process.target if process is not None else ""
        parts = _send_all(job, faults, batch, target, wanted.processes, progress)
        seconds = time.perf_counter() - started
        if killer is not None:
            killer.join()
        operator.close(collection)
        late = send(target, [entry for part in parts for entry in part.late], PATIENCE + wanted.users / SLOWEST)
        return _compare(job, setting, parts, late, operator, process.restarts if process else 0, seconds)


def _open(stack: ExitStack, remote: Remote | None) -> tuple[Operator, ServerProcess | None]:
    if remote is not None:
        return Operator(remote.target, remote.token_file), None
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-wire-"))
    process = stack.enter_context(ServerProcess(Path(folder) / "data"))
    return process.operator(), process


def _collection(setting: FrequencySetting, wanted: SimulationOptions) -> Collection:
    """A question that is open now."""
    now = int(time.time())
    return Collection.create(
        f"simulation over the wire, {time.time_ns()}",
        setting.naming.domain,
        setting.mechanism,
        wanted.epsilon,
        parameters=setting.parameters,
        opens=now - DAY,
        closes=now + DAY,
    )


def _killer(stack: ExitStack, process: ServerProcess | None, faults: Faults) -> threading.Thread | None:
    """A thread that kills the server when its time has come; leaving the stack calls it off."""
    if process is None or faults.kill_after is None:
        return None
    called_off = threading.Event()

    def kill() -> None:
        if not called_off.wait(faults.kill_after):
            process.kill()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    stack.callback(called_off.set)
    return thread


def _send_all(
    job: Job, faults: Faults, batch: int, target: str, processes: int, progress: Callable[[int], None] | None
) -> list[_Part]:
    """A sender a process; block b belongs to sender b modulo their number."""
    blocks = blocks_of(job.users)
    processes = min(processes, len(blocks))
    with get_context("forkserver").Manager() as manager, pool(processes) as executor:
        told = _queue(manager)
        futures: list[Future[_Part]] = [
            executor.submit(_sender, job, faults, batch, target, blocks[place::processes], told)
            for place in range(processes)
        ]
        while not all(future.done() for future in futures):
            try:
                reports = told.get(timeout=0.2)
            except Empty:
                continue
            if progress is not None:
                progress(reports)
        return [future.result() for future in futures]


def _queue(manager: SyncManager) -> Queue[int]:
    return manager.Queue()  # type: ignore[return-value]  # a proxy with the same methods


def _sender(job: Job, faults: Faults, batch: int, target: str, blocks: range, told: Queue[int]) -> _Part:
    """One process: prepare and send, block by block."""
    part = _Part(b"", np.zeros(job.population.distinct + 1, np.int64), [], Sent())
    oracle = oracle_for(job.collection)
    waiting = 0

    def tell(reports: int) -> None:
        nonlocal waiting
        waiting += reports
        if waiting >= 20_000:
            told.put(waiting)
            waiting = 0

    timeout = PATIENCE + job.users / SLOWEST
    part.sent = send(target, _entries(job, faults, batch, blocks, oracle, part), timeout, tell)
    told.put(waiting)
    part.state = oracle.to_bytes()
    return part


def _entries(job: Job, faults: Faults, batch: int, blocks: range, oracle: Oracle, part: _Part) -> Iterator[Entry]:
    """A sender's batches; what goes out inside the window is counted here too, once."""
    randomizer = job.collection.randomizer
    width = randomizer.report_bytes
    step = min(batch, MAX_PAYLOAD // width)
    for block in blocks:
        ranks = draw_block(job, block)
        (reports,) = crowd.simulate(randomizer, job.naming.indexes(ranks), job.seed, block)
        starts = range(0, len(reports), step)
        plan = faults.plan(job.seed, block, len(starts))
        ids = np.random.Generator(np.random.SFC64(np.random.SeedSequence([job.seed, block, 5]))).bytes(16 * len(starts))
        for number, start in enumerate(starts):
            payload = pack(reports[start : start + step], width)
            prepared = Batch(job.collection.id, ids[16 * number : 16 * number + 16], payload)
            entry = Entry(prepared, len(payload) // width, bool(plan.drop[number]))
            if plan.late[number]:
                part.late.append(Entry(prepared, entry.reports))
                continue
            oracle.accumulate(payload)
            part.held += np.bincount(ranks[start : start + step].astype(np.intp), minlength=len(part.held))
            yield entry
            if plan.duplicate[number]:
                yield Entry(prepared, 0)


def _compare(
    job: Job,
    setting: FrequencySetting,
    parts: list[_Part],
    late: Sent,
    operator: Operator,
    restarts: int,
    seconds: float,
) -> Outcome:
    oracle = oracle_for(job.collection)
    for part in parts:
        oracle.merge(restore(job.collection, part.state))
    held = np.sum([part.held for part in parts], axis=0)
    truth = np.zeros(setting.naming.domain.size, np.int64)
    truth[: len(held)] = held
    sent = oracle.reports
    counted = operator.counted(job.collection)
    answer = operator.estimates(job.collection)
    theirs = np.asarray(answer.estimates, np.float64)
    errors = measure(oracle, theirs, truth, float(job.collection.epsilon), whole=True)
    same = bool(np.array_equal(theirs, oracle.estimate_all()))
    rejected: Counter[str] = Counter(late.rejected)
    for part in parts:
        rejected.update(part.sent.rejected)
    shape: WireRun = {
        "users": job.users,
        "reports_sent": sent,
        "reports_counted": counted,
        "exactly_once": counted == sent,
        "duplicates_refused": sum(part.sent.duplicates for part in parts),
        "rejected": dict(rejected),
        "restarts": restarts,
        "seconds": seconds,
        "reports_per_second": sent / seconds,
    }
    order = np.argsort(-truth, kind="stable")[:SHOWN]
    top = [
        {
            "item": setting.naming.item(int(rank)),
            "truth": int(truth[rank]),
            "estimate": float(theirs[rank]),
            "low": float(answer.lows[rank]),
            "high": float(answer.highs[rank]),
        }
        for rank in order
    ]
    return Outcome(shape, errors, top, same)
