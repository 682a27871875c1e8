"""Many senders, each in a process of its own, and a count of what they sent.

Each sender randomizes its blocks of users and streams their batches. It counts what it sends inside the window, with
the server's oracle and from the same bytes. So the sum over all senders is what the server must have counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from queue import Empty
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for
from simulator import crowd
from simulator.engine import Job, blocks_of, draw_block, fork_context, pool
from simulator.wire.envelope import Envelope
from simulator.wire.faults import Faults
from simulator.wire.sender import Sent, Unacknowledged, send
from simulator.wire.tokens import TokenDesk, forged

__all__ = ["SenderTask", "SentPart", "Slice", "patience", "send_all"]

PATIENCE = 120.0
"""Seconds, besides those that sending takes at the slowest."""
DISTURBED = 5.0
"""How many times longer it takes while one thing after the other goes wrong."""
SLOWEST = 500.0
"""Reports a second."""
SLOWEST_TOKENS = 10.0
"""The same if each report may need a token: an issuer signs some 80 a second."""
_TOLD_AT = 20_000
"""After how many reports a sender says how many it has sent, at most."""
_TELLS = 200
"""About how often it says so at least, however few they are."""


@dataclass(frozen=True)
class SenderTask:
    """The inputs that all senders share."""

    job: Job
    faults: Faults
    batch: int
    """Reports a batch."""
    targets: tuple[str, ...]
    """Where they send: sender k to the one of this number, and what it sends again to the next one."""
    sealing_key: bytes | None = None
    """The public key to which reports are sealed for a relay at the target; None: they go to the server itself."""
    desk: TokenDesk | None = None
    """Where tokens come from, if the collection asks for unlinkable ones."""
    periods: tuple[int, ...] = (0,)
    """The periods in which the batches were made; (0,) for a question without a schedule."""


@dataclass
class SentPart:
    """The counts of one sender's reports inside the window, and the answers that it got."""

    held: npt.NDArray[np.int64]
    """How many of its users hold each rank."""
    states: dict[int, bytes] = field(default_factory=dict)
    """The counts of an oracle over the same bytes, for each period."""
    late: list[Unacknowledged] = field(default_factory=list)
    """Batches to send after the collection is closed."""
    sent: Sent = field(default_factory=Sent)


def patience(users: int, *, tokens: bool = False, disturbed: bool = False) -> float:
    """Return the seconds after which sending has failed."""
    return (DISTURBED if disturbed else 1.0) * (PATIENCE + users / (SLOWEST_TOKENS if tokens else SLOWEST))


class Slice(NamedTuple):
    """Some batches of a block: those whose number is `first` modulo `of`."""

    block: int
    first: int
    of: int


def send_all(task: SenderTask, processes: int, progress: Callable[[int], None] | None) -> list[SentPart]:
    """Send everybody's reports; slice s belongs to sender s modulo their number. Each target has a sender."""
    blocks = blocks_of(task.job.users)
    cut = -(-len(task.targets) // len(blocks))
    slices = [Slice(block, first, cut) for block in blocks for first in range(cut)]
    processes = min(max(processes, len(task.targets)), len(slices))
    with fork_context(__name__).Manager() as manager, pool(processes) as executor:
        told = cast("Queue[int]", manager.Queue())  # a proxy with the same methods
        futures: list[Future[SentPart]] = [
            executor.submit(_send_slices, task, place, slices[place::processes], told) for place in range(processes)
        ]
        while not all(future.done() for future in futures):
            try:
                reports = told.get(timeout=0.2)
            except Empty:
                continue
            if progress is not None:
                progress(reports)
        return [future.result() for future in futures]


def _send_slices(task: SenderTask, place: int, slices: Sequence[Slice], told: Queue[int]) -> SentPart:
    """Run the sender of this number: prepare and send its batches, block by block."""
    job = task.job
    part = SentPart(np.zeros(job.population.distinct + 1, np.int64))
    oracles = {period: oracle_for(job.collection) for period in task.periods}
    waiting, tells_at = 0, min(_TOLD_AT, -(-job.users // _TELLS))

    def tell(reports: int) -> None:
        nonlocal waiting
        waiting += reports
        if waiting >= tells_at:
            told.put(waiting)
            waiting = 0

    envelope = Envelope(job.collection, task.sealing_key, task.desk)
    batches = (batch for one in slices for batch in _batches(task, one, oracles, part, envelope))
    relay = None if task.sealing_key is None else job.collection
    target, again = (task.targets[(place + step) % len(task.targets)] for step in (0, 1))
    lasts = patience(job.users, tokens=task.desk is not None, disturbed=bool(task.faults.repeated))
    part.sent = send(target, batches, lasts, tell, relay=relay, again=again)
    told.put(waiting)
    part.states = {period: oracle.to_bytes() for period, oracle in oracles.items()}
    return part


def _batches(
    task: SenderTask, one: Slice, oracles: dict[int, Oracle], part: SentPart, envelope: Envelope
) -> Iterator[Unacknowledged]:
    """The batches of one slice. What is sent inside the window is counted here too, once.

    The period of each batch is drawn, so most of them arrive late, and in no order.
    """
    job, block = task.job, one.block
    width = job.collection.randomizer.report_bytes
    step = min(task.batch, envelope.most)
    ranks = draw_block(job, block)
    (reports,) = crowd.simulate(job.collection.randomizer, job.naming.indexes(ranks), job.seed, block)
    starts = range(0, len(reports), step)
    plan = task.faults.plan(job.seed, block, len(starts))
    made = np.random.Generator(np.random.SFC64(np.random.SeedSequence([job.seed, block, 6])))
    periods = made.choice(task.periods, len(starts)).tolist()
    ids = np.random.Generator(np.random.SFC64(np.random.SeedSequence([job.seed, block, 5]))).bytes(16 * len(starts))
    for number, start in list(enumerate(starts))[one.first :: one.of]:
        payload = pack(reports[start : start + step], width)
        tokens = envelope.tokens(f"{block}-{number}", payload)
        batch = envelope.batch(ids[16 * number : 16 * number + 16], payload, periods[number], tokens)
        if plan.late[number]:
            part.late.append(Unacknowledged(batch, len(payload) // width))
            continue
        oracles[batch.period].accumulate(payload)
        part.held += np.bincount(ranks[start : start + step].astype(np.intp), minlength=len(part.held))
        yield Unacknowledged(batch, len(payload) // width, bool(plan.drop[number]))
        if plan.duplicate[number]:
            yield Unacknowledged(batch, 0, second=len(task.targets) > 1)
        if plan.reuse[number]:
            yield Unacknowledged(envelope.batch(os.urandom(16), payload, batch.period, tokens), 0)
        if plan.forge[number]:
            yield Unacknowledged(envelope.batch(os.urandom(16), payload, batch.period, list(map(forged, tokens))), 0)
