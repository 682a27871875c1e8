"""`ldp-simulate wire`: simulated users over real gRPC to a real server process, with faults.

At the end the server must have counted every report that was sent inside the window exactly once, and its estimates
must be the very numbers that an oracle here gives for the same bytes. With a schedule, each period by itself.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, CollectionEstimates
from ldp_server.oracles import Oracle, as_frequency, oracle_for, restore
from ldp_server.testing import ServerProcess
from simulator.engine import Job
from simulator.experiments.frequencies import FrequencySetting, prepare
from simulator.experiments.options import SimulationOptions
from simulator.metrics import Errors, measure
from simulator.shapes import WireRun
from simulator.wire.faults import Faults
from simulator.wire.sender import Sent, send
from simulator.wire.senders import SenderTask, SentPart, patience, send_all

__all__ = ["Remote", "WireResult", "run"]

DAY = 86_400
MAX_PERIODS = 400
MAX_BATCH = 250_000
MAX_DOMAIN = 1 << 20
SHOWN = 12


@dataclass(frozen=True)
class Remote:
    """A server that runs already."""

    target: str
    token_file: Path


@dataclass(frozen=True)
class WireResult:
    """The object that `--json` prints, and the server's answers beside the truth."""

    shape: WireRun
    errors: Errors
    top: list[dict[str, Any]]
    same_estimates: bool
    """Whether the server's estimates, also of each period, are those that an oracle here gives for what was sent."""


@dataclass(frozen=True)
class _Ended:
    """The state of the run after everything was sent."""

    parts: Sequence[SentPart]
    late: Sent
    counted: int
    answer: CollectionEstimates
    periods: dict[int, CollectionEstimates]
    """The answer for each period, if there is a schedule."""
    restarts: int
    seconds: float


def run(
    wanted: SimulationOptions,
    faults: Faults,
    *,
    batch: int = 1000,
    periods: int = 0,
    remote: Remote | None = None,
    progress: Callable[[int], None] | None = None,
) -> WireResult:
    """Start a server, send everybody's reports, kill the server, close the collection, and compare.

    With `periods`, the question has a schedule of a day, and each batch was made on one of the last so many days.
    """
    setting = _prepare(wanted, faults, batch, remote)
    if not 0 <= periods <= MAX_PERIODS:
        raise InvalidSpec(f"periods: 0 (no schedule) to {MAX_PERIODS}")
    with ExitStack() as stack:
        server = None if remote is not None else stack.enter_context(_own_server(stack))
        analyst = stack.enter_context(_analyst(remote, server))
        target = analyst.target if server is None else server.target
        collection = _collection(setting, wanted, periods)
        analyst.create(collection, unlisted=True)
        job = Job(collection, setting.population, setting.naming, wanted.users, wanted.seed)
        started = time.perf_counter()
        killer = _killer(stack, server, faults)
        parts = send_all(
            SenderTask(job, faults, batch, target, _made_in(collection, periods)), wanted.processes, progress
        )
        seconds = time.perf_counter() - started
        if killer is not None:
            killer.join()
        analyst.close_collection(collection)
        late = send(target, [batch for part in parts for batch in part.late], patience(wanted.users))
        counted = analyst.show(collection).reports
        answer = analyst.estimate(collection, every_item=True)
        apart = _apart(analyst, collection)
        ended = _Ended(parts, late, counted, answer, apart, server.restarts if server else 0, seconds)
    return _compare(job, setting, ended)


def _prepare(wanted: SimulationOptions, faults: Faults, batch: int, remote: Remote | None) -> FrequencySetting:
    if remote is not None and faults.kill_after is not None:
        raise InvalidSpec("kill-server needs a server of its own: leave out --server")
    setting = prepare(wanted)
    if setting.naming.table is not None or setting.naming.domain.size > MAX_DOMAIN:
        raise InvalidSpec(f"wire compares every estimate with the truth: --domain is at most {MAX_DOMAIN} here")
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidSpec(f"a batch has 1 to {MAX_BATCH} reports")
    return setting


def _own_server(stack: ExitStack) -> ServerProcess:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-wire-"))
    return ServerProcess(Path(folder) / "data")


def _analyst(remote: Remote | None, server: ServerProcess | None) -> Analyst:
    if remote is not None:
        return Analyst(remote.target, token=remote.token_file)
    assert server is not None  # noqa: S101 - one of the two is given
    return server.analyst()


def _made_in(collection: Collection, periods: int) -> tuple[int, ...]:
    """The periods in which batches are made: the last ones before the present, or no period."""
    if collection.schedule is None:
        return (0,)
    today = collection.schedule.period(int(time.time()))
    return tuple(range(today - periods + 1, today + 1))


def _apart(analyst: Analyst, collection: Collection) -> dict[int, CollectionEstimates]:
    """Ask for each period by itself."""
    if collection.schedule is None:
        return {}
    found = [line.period for line in analyst.periods(collection).rows]
    return {period: analyst.estimate(collection, every_item=True, periods=period) for period in found}


def _collection(setting: FrequencySetting, wanted: SimulationOptions, periods: int) -> Collection:
    """A question that is open now."""
    now = int(time.time())
    return Collection.create(
        f"simulation over the wire, {time.time_ns()}",
        setting.naming.domain,
        setting.mechanism,
        wanted.epsilon,
        parameters=setting.parameters,
        opens=now - DAY * max(1, periods),
        schedule=Schedule(DAY, periods) if periods else None,
        closes=now + DAY,
    )


def _killer(stack: ExitStack, server: ServerProcess | None, faults: Faults) -> threading.Thread | None:
    """Start a thread that kills and restarts the server when it is time, unless the stack is left before."""
    if server is None or faults.kill_after is None:
        return None
    called_off = threading.Event()

    def kill() -> None:
        if not called_off.wait(faults.kill_after):
            server.restart()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    stack.callback(called_off.set)
    return thread


def _compare(job: Job, setting: FrequencySetting, ended: _Ended) -> WireResult:
    """Compare the server's count and estimates with those of an oracle here, and with the truth."""
    oracles = _oracles(job, ended.parts)
    oracle = oracle_for(job.collection)
    for one in oracles.values():
        oracle.merge(one)
    held = np.sum([part.held for part in ended.parts], axis=0)
    truth = np.zeros(setting.naming.domain.size, np.int64)
    truth[: len(held)] = held
    theirs = np.asarray(ended.answer.rows.columns["estimate"], np.float64)
    everything = np.arange(oracle.randomizer.size, dtype=np.uint64)
    errors = measure(oracle, theirs, truth, float(job.collection.epsilon), everything)
    same = _same(ended.answer, oracle)
    if job.collection.schedule is not None:
        sent = {period: one for period, one in oracles.items() if one.reports}
        same = same and ended.periods.keys() == sent.keys()
        same = same and all(_same(answer, sent[period]) for period, answer in ended.periods.items())
    return WireResult(_shape(job.users, oracle.reports, ended), errors, _top(setting, truth, ended.answer), same)


def _same(answer: CollectionEstimates, oracle: Oracle) -> bool:
    """Whether an answer has the very numbers of an oracle here."""
    theirs = np.asarray(answer.rows.columns["estimate"], np.float64)
    return answer.reports == oracle.reports and bool(np.array_equal(theirs, as_frequency(oracle).estimate_all()))


def _oracles(job: Job, parts: Sequence[SentPart]) -> dict[int, Oracle]:
    """Count what was sent inside the window, period by period."""
    oracles: dict[int, Oracle] = {}
    for part in parts:
        for period, state in part.states.items():
            oracles.setdefault(period, oracle_for(job.collection)).merge(restore(job.collection, state))
    return oracles


def _shape(users: int, sent: int, ended: _Ended) -> WireRun:
    refused = Counter(ended.late.refused)
    for part in ended.parts:
        refused.update(part.sent.refused)
    return {
        "users": users,
        "reports_sent": sent,
        "reports_counted": ended.counted,
        "exactly_once": ended.counted == sent,
        "periods": len(ended.periods),
        "duplicates": sum(part.sent.duplicates for part in ended.parts),
        "refused": dict(refused),
        "restarts": ended.restarts,
        "seconds": ended.seconds,
        "reports_per_second": sent / ended.seconds,
    }


def _top(setting: FrequencySetting, truth: npt.NDArray[np.int64], answer: CollectionEstimates) -> list[dict[str, Any]]:
    """The most frequent items, the server's estimates beside the truth."""
    found = []
    for rank in np.argsort(-truth, kind="stable")[:SHOWN].tolist():
        row = answer.rows[rank]
        found.append(
            {
                "item": setting.naming.item(rank),
                "truth": int(truth[rank]),
                "estimate": row.estimate,
                "low": row.low,
                "high": row.high,
            }
        )
    return found
