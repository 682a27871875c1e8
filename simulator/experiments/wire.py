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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_server.analyst import Analyst, CollectionEstimates
from ldp_server.oracles import Oracle, as_frequency, oracle_for, restore
from ldp_server.testing import IssuerProcess, ServerProcess
from simulator.engine import Job
from simulator.experiments.frequencies import FrequencySetting, prepare
from simulator.experiments.options import SimulationOptions
from simulator.metrics import Errors, measure
from simulator.shapes import WireRun
from simulator.wire.faults import Faults
from simulator.wire.relay import RunningRelay, restart_later, sealing_settings
from simulator.wire.sender import Sent, send
from simulator.wire.senders import SenderTask, SentPart, patience, send_all
from simulator.wire.tokens import TokenDesk, start_issuer

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
    seconds: float
    restarts: tuple[int, ...] = (0, 0)
    """Of the server and of the issuer."""
    passed: tuple[int, int] | None = None
    """With a relay: its restarts, and how many batches the server got from it."""


def run(
    wanted: SimulationOptions,
    faults: Faults,
    *,
    batch: int = 1000,
    periods: int = 0,
    relay: int = 0,
    remote: Remote | None = None,
    tokens: bool = False,
    progress: Callable[[int], None] | None = None,
) -> WireResult:
    """Start a server, send everybody's reports, kill the server, close the collection, and compare.

    With `periods`, the question has a schedule of a day, and each batch was made on one of the last so many days. With
    `relay`, reports are sealed and pass through a relay that releases at least so many together. With `tokens`, each
    batch needs an unlinkable token, or with a relay each report.
    """
    setting = _prepare(wanted, faults, batch, remote, relay)
    _check_relay(relay, faults, periods, remote)
    _check_tokens(faults, remote, asked=tokens)
    with ExitStack() as stack:
        place = _Place.make(stack, remote, sealed=bool(relay), tokens=patience(wanted.users) if tokens else None)
        collection = _collection(setting, wanted, periods, relay or None)
        place.create(collection, 1 if relay else batch)
        between = place.relay(stack, collection)
        target = place.target if between is None else between.process.target
        job = Job(collection, setting.population, setting.naming, wanted.users, wanted.seed)
        started = time.perf_counter()
        killers = _killers(stack, place, between, faults)
        task = SenderTask(job, faults, batch, target, place.sealing_key, place.desk, _made_in(collection, periods))
        parts = send_all(task, wanted.processes, progress)
        seconds = time.perf_counter() - started
        for killer in killers:
            killer.join()
        if between is not None:
            parts.append(between.fill(job, patience(wanted.users)))
            between.drain(patience(wanted.users))
        ended = _end(place.analyst, collection, target, parts, seconds)
        passed = None if between is None else (between.process.restarts, place.analyst.show(collection).batches)
        return _compare(job, setting, replace(ended, restarts=place.restarts, passed=passed))


def _check_relay(relay: int, faults: Faults, periods: int, remote: Remote | None) -> None:
    if not 0 <= periods <= MAX_PERIODS:
        raise InvalidSpec(f"periods: 0 (no schedule) to {MAX_PERIODS}")
    if not relay:
        return
    if remote is not None:
        raise InvalidSpec("--relay needs a server of its own: leave out --server")
    if periods:
        raise InvalidSpec("--relay holds reports for a whole period: leave out --periods")
    if faults.late:
        raise InvalidSpec("a relay does not know that a collection was closed: leave out late= with --relay")


def _check_tokens(faults: Faults, remote: Remote | None, *, asked: bool) -> None:
    if not asked and faults.of_tokens:
        raise InvalidSpec("reuse=, forge= and kill-issuer= need tokens: give --tokens unlinkable")
    if asked and remote is not None:
        raise InvalidSpec("--tokens needs a server of its own: leave out --server")


def _end(analyst: Analyst, collection: Collection, target: str, parts: Sequence[SentPart], seconds: float) -> _Ended:
    """Close the collection, send what is late, and ask for everything."""
    analyst.close_collection(collection)
    waiting = [batch for part in parts for batch in part.late]
    late = send(target, waiting, patience(len(waiting))) if waiting else Sent()
    counted = analyst.show(collection).reports
    answer = analyst.estimate(collection, every_item=True)
    return _Ended(parts, late, counted, answer, _apart(analyst, collection), seconds)


@dataclass(frozen=True)
class _Place:
    """Where a run takes place: a server of its own in a folder, or one that runs already."""

    analyst: Analyst
    target: str
    server: ServerProcess | None = None
    folder: Path | None = None
    sealing_key: bytes | None = None
    """The server's key, if reports are sealed."""
    issuer: IssuerProcess | None = None
    desk: TokenDesk | None = None
    """Where tokens come from, if reports need some."""

    @classmethod
    def make(cls, stack: ExitStack, remote: Remote | None, *, sealed: bool, tokens: float | None) -> _Place:
        """`tokens` is for how long a sender tries to get a token; None: there are none."""
        if remote is not None:
            analyst = stack.enter_context(Analyst(remote.target, token=remote.token_file))
            return cls(analyst, analyst.target)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearsay-wire-")))
        text, key = sealing_settings(folder) if sealed else ("", None)
        issuer, desk = (None, None) if tokens is None else start_issuer(stack, folder, tokens)
        if issuer is not None:
            text += f'[admission]\nunlinkable_token_keys = ["{folder / "issuer.key.pub"}"]\n'
        settings = folder / "server.toml"
        settings.write_text(text, encoding="utf-8")
        server = stack.enter_context(ServerProcess(folder / "data", "--config", str(settings)))
        return cls(stack.enter_context(server.analyst()), server.target, server, folder, key, issuer, desk)

    @property
    def restarts(self) -> tuple[int, ...]:
        """How often the server and the issuer were started again."""
        return tuple(one.restarts if one else 0 for one in (self.server, self.issuer))

    def create(self, collection: Collection, reports: int) -> None:
        """Create the collection; with tokens, each of them admits so many reports."""
        if self.desk is None:
            self.analyst.create(collection, unlisted=True)
        else:
            self.analyst.create(collection, unlisted=True, admission="unlinkable-token", reports_per_token=reports)

    def relay(self, stack: ExitStack, collection: Collection) -> RunningRelay | None:
        """Start a relay, if reports are sealed."""
        if self.sealing_key is None or self.folder is None:
            return None
        return RunningRelay.start(stack, self.folder, self.target, collection, self.sealing_key, self.desk)


def _prepare(
    wanted: SimulationOptions, faults: Faults, batch: int, remote: Remote | None, relay: int
) -> FrequencySetting:
    if not relay and faults.kill_relay_after is not None:
        raise InvalidSpec("kill-relay needs a relay: give --relay N")
    if remote is not None and faults.kill_after is not None:
        raise InvalidSpec("kill-server needs a server of its own: leave out --server")
    setting = prepare(wanted)
    if setting.naming.table is not None or setting.naming.domain.size > MAX_DOMAIN:
        raise InvalidSpec(f"wire compares every estimate with the truth: --domain is at most {MAX_DOMAIN} here")
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidSpec(f"a batch has 1 to {MAX_BATCH} reports")
    return setting


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


def _killers(stack: ExitStack, place: _Place, relay: RunningRelay | None, faults: Faults) -> list[threading.Thread]:
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
        "restarts": ended.restarts[0],
        "issuer_restarts": ended.restarts[1],
        "relay_restarts": ended.passed[0] if ended.passed else 0,
        "relay_batches": ended.passed[1] if ended.passed else 0,
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
