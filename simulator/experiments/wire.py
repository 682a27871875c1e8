"""`ldp-simulate wire`: simulated users over real gRPC to a real server process, with faults.

The server is one process on the embedded store, or several collectors on a PostgreSQL. At the end it must have counted
every report that was sent inside the window exactly once. Its counts must be, cell by cell, those of an oracle here
over the same bytes, and its estimates the very same numbers. With a schedule, each period by itself.
"""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.analyst import Analyst, CollectionEstimates
from ldp_server.oracles import Oracle, as_frequency, oracle_for, restore
from simulator.engine import Job
from simulator.experiments.frequencies import FrequencySetting, prepare
from simulator.experiments.options import SimulationOptions
from simulator.metrics import Errors, measure
from simulator.shapes import FaultSeen, WireRun
from simulator.wire.deployment import SharedStore
from simulator.wire.disturbing import Disturbances
from simulator.wire.faults import Faults
from simulator.wire.place import Place, Remote
from simulator.wire.relay import RunningRelay, restart_later
from simulator.wire.sender import Sent, send
from simulator.wire.senders import SenderTask, SentPart, patience, send_all

__all__ = ["Remote", "SharedStore", "WireResult", "run"]

T = TypeVar("T")

DAY = 86_400
PATIENCE = 60.0
"""Seconds for which an operator asks again."""
MAX_PERIODS = 400
MAX_BATCH = 250_000
MAX_DOMAIN = 1 << 20
SHOWN = 12


@dataclass(frozen=True)
class WireResult:
    """The object that `--json` prints, and the server's answers beside the truth."""

    shape: WireRun
    errors: Errors
    top: list[dict[str, Any]]
    same_estimates: bool
    """Whether the server's counts, and its estimates also of each period, are those of an oracle here."""


@dataclass(frozen=True)
class _Ended:
    """The state of the run after everything was sent."""

    parts: Sequence[SentPart]
    late: Sent
    counted: int
    answer: CollectionEstimates
    periods: dict[int, CollectionEstimates]
    """The answer for each period, if there is a schedule."""
    seconds: float
    restarts: tuple[int, ...] = (0, 0)
    """Of the server and of the issuer."""
    counts: bytes = b""
    """The server's counts, as it exports them."""
    faults: tuple[FaultSeen, ...] = ()
    """What was done to several collectors."""
    collectors: int = 0
    passed: tuple[int, int] | None = None
    """With a relay: its restarts, and how many batches the server got from it."""


def run(
    wanted: SimulationOptions,
    faults: Faults,
    *,
    batch: int = 1000,
    periods: int = 0,
    relay: int = 0,
    where: Remote | SharedStore | None = None,
    tokens: bool = False,
    progress: Callable[[int], None] | None = None,
) -> WireResult:
    """Start a server, send everybody's reports, kill the server, close the collection, and compare.

    `where`: a server that runs already, or several collectors on a PostgreSQL, in the place of one server. With
    `periods`, the question has a schedule of a day, and each batch was made on one of the last so many days. With
    `relay`, reports are sealed and pass through a relay that releases at least so many together. With `tokens`, each
    batch needs an unlinkable token, or with a relay each report.
    """
    setting = _prepare(wanted, faults, batch, where, relay)
    _check_relay(relay, faults, periods, where)
    _check_tokens(faults, where, asked=tokens)
    with ExitStack() as stack:
        lasts = patience(wanted.users)
        place = Place.make(stack, where, faults, wanted.seed, sealed=bool(relay), tokens=lasts if tokens else None)
        collection = _collection(setting, wanted, periods, relay or None)
        place.create(collection, 1 if relay else batch)
        between = place.relay(stack, collection)
        targets = place.targets if between is None else (between.process.target,)
        job = Job(collection, setting.population, setting.naming, wanted.users, wanted.seed)
        made_in = _made_in(collection, periods, faults.skew)
        task = SenderTask(job, faults, batch, targets, place.sealing_key, place.desk, made_in)
        return _compare(job, setting, _all_sent(stack, place, between, task, wanted.processes, progress))


def _all_sent(
    stack: ExitStack, place: Place, between: RunningRelay | None, task: SenderTask, processes: int,
    progress: Callable[[int], None] | None,
) -> _Ended:  # fmt: skip
    """Send everything while things go wrong, close the collection, and ask."""
    job, faults, lasts = task.job, task.faults, patience(task.job.users)
    started = time.perf_counter()
    killers, disturbed = _killers(stack, place, between, faults), _disturbed(stack, place, faults, job)
    parts = send_all(task, processes, _both(progress, disturbed))
    seconds = time.perf_counter() - started
    for killer in killers:
        killer.join()
    if between is not None:
        parts.append(between.fill(job, lasts))
        between.drain(lasts)
    seen = _ended(disturbed)
    ended = _end(place.analyst, job.collection, task.targets, parts, seconds)
    passed = None if between is None else (between.process.restarts, place.analyst.show(job.collection).batches)
    return replace(ended, restarts=place.restarts, passed=passed, faults=seen, collectors=place.collectors)


def _disturbed(stack: ExitStack, place: Place, faults: Faults, job: Job) -> Disturbances | None:
    """Begin to disturb several collectors; it ends, at the latest, with the stack."""
    if place.deployment is None:
        return None
    disturbances = Disturbances(place.deployment, faults, job.seed, job.users)
    stack.callback(disturbances.stop)
    disturbances.start()
    return disturbances


def _both(progress: Callable[[int], None] | None, disturbed: Disturbances | None) -> Callable[[int], None]:
    """Tell who shows progress, and who disturbs."""

    def tell(reports: int) -> None:
        if progress is not None:
            progress(reports)
        if disturbed is not None:
            disturbed.note(reports)

    return tell


def _ended(disturbed: Disturbances | None) -> tuple[FaultSeen, ...]:
    if disturbed is None:
        return ()
    disturbed.stop()
    return tuple(sorted(disturbed.seen, key=lambda one: one["at"]))


def _check_relay(relay: int, faults: Faults, periods: int, where: Remote | SharedStore | None) -> None:
    if not 0 <= periods <= MAX_PERIODS:
        raise InvalidSpec(f"periods: 0 (no schedule) to {MAX_PERIODS}")
    if not relay:
        return
    if isinstance(where, Remote):
        raise InvalidSpec("--relay needs a server of its own: leave out --server")
    if periods:
        raise InvalidSpec("--relay holds reports for a whole period: leave out --periods")
    if faults.late:
        raise InvalidSpec("a relay does not know that a collection was closed: leave out late= with --relay")


def _check_tokens(faults: Faults, where: Remote | SharedStore | None, *, asked: bool) -> None:
    if not asked and faults.of_tokens:
        raise InvalidSpec("reuse=, forge= and kill-issuer= need tokens: give --tokens unlinkable")
    if asked and isinstance(where, Remote):
        raise InvalidSpec("--tokens needs a server of its own: leave out --server")


def _patiently(ask: Callable[[], T]) -> T:
    """Ask again while the answer is "not now": a store that crashed has just come back."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except Unavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _end(
    analyst: Analyst, collection: Collection, targets: Sequence[str], parts: Sequence[SentPart], seconds: float
) -> _Ended:
    """Close the collection, send what is late to every target, and ask for everything."""
    _patiently(lambda: analyst.close_collection(collection))
    waiting, late = [batch for part in parts for batch in part.late], Sent()
    for place, target in enumerate(targets):
        if mine := waiting[place :: len(targets)]:
            late.refused.update(send(target, mine, patience(len(mine))).refused)
    counted = _patiently(lambda: analyst.show(collection)).reports
    answer, counts = _patiently(lambda: analyst.estimate(collection, every_item=True)), io.BytesIO()
    analyst.export(collection, counts)
    return _Ended(parts, late, counted, answer, _apart(analyst, collection), seconds, counts=counts.getvalue())


def _prepare(
    wanted: SimulationOptions, faults: Faults, batch: int, where: Remote | SharedStore | None, relay: int
) -> FrequencySetting:
    if isinstance(where, SharedStore):
        where.check(faults)
    elif faults.of_collectors:
        raise InvalidSpec("kill-collector=, kill-upkeep=, crash-store=, cut= and skew= need several collectors: give "
                          "--collectors N --store private")  # fmt: skip
    if not relay and faults.kill_relay_after is not None:
        raise InvalidSpec("kill-relay needs a relay: give --relay N")
    if isinstance(where, Remote) and faults.kill_after is not None:
        raise InvalidSpec("kill-server needs a server of its own: leave out --server")
    setting = prepare(wanted)
    if setting.naming.table is not None or setting.naming.domain.size > MAX_DOMAIN:
        raise InvalidSpec(f"wire compares every estimate with the truth: --domain is at most {MAX_DOMAIN} here")
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidSpec(f"a batch has 1 to {MAX_BATCH} reports")
    return setting


def _made_in(collection: Collection, periods: int, skew: float) -> tuple[int, ...]:
    """The periods in which batches are made: the last ones that have begun by every collector's clock, or no period."""
    if collection.schedule is None:
        return (0,)
    today = collection.schedule.period(int(time.time() - skew))
    return tuple(range(today - periods + 1, today + 1))


def _apart(analyst: Analyst, collection: Collection) -> dict[int, CollectionEstimates]:
    """Ask for each period by itself."""
    if collection.schedule is None:
        return {}
    found = [line.period for line in analyst.periods(collection).rows]
    return {period: analyst.estimate(collection, every_item=True, periods=period) for period in found}


def _collection(
    setting: FrequencySetting, wanted: SimulationOptions, periods: int, smallest_batch: int | None
) -> Collection:
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
        smallest_batch=smallest_batch,
    )


def _killers(stack: ExitStack, place: Place, relay: RunningRelay | None, faults: Faults) -> list[threading.Thread]:
    """Start the threads that kill and restart the server, the relay and the issuer when it is time."""
    plan = (
        (place.server, faults.kill_after),
        (None if relay is None else relay.process, faults.kill_relay_after),
        (place.issuer, faults.kill_issuer_after),
    )
    found = [restart_later(stack, after, process.restart) for process, after in plan if process is not None]
    return [thread for thread in found if thread is not None]


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
    same = _same(ended.answer, oracle) and ended.counts == oracle.to_bytes()
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
        "restarts": ended.restarts[0],
        "issuer_restarts": ended.restarts[1],
        "relay_restarts": ended.passed[0] if ended.passed else 0,
        "relay_batches": ended.passed[1] if ended.passed else 0,
        "collectors": ended.collectors,
        "faults": dict(Counter(one["fault"] for one in ended.faults)),
        "fault_log": list(ended.faults),
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
