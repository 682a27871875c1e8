"""What is received and not yet durable: counted, bounded, and brought back from the writer thread to the event loop.

The bytes that wait are counted over all clients. When they reach the limit, unary callers are told to come back and
streams are not read any further until there is room; their senders notice it as flow control.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import Peer
from ldp_server.service.intake.replies import REASONS
from ldp_server.service.metrics import IntakeMetrics
from ldp_server.store import AppendOutcome, Ticket

__all__ = ["Offering", "UnderWay"]


class UnderWay:
    """The submissions under way. Everything but `delivered` runs on the event loop."""

    def __init__(self, metrics: IntakeMetrics, limit: int) -> None:
        self._metrics = metrics
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._room: deque[asyncio.Future[None]] = deque()
        self.bytes = 0
        self.batches = 0

    def enter(self, size: int) -> bool:
        """Count one more batch with `size` bytes; False if it does not fit, and then it is not counted."""
        if self.bytes + size > self._limit:
            return False
        self.bytes += size
        self.batches += 1
        return True

    def delivered(self, tickets: list[Ticket], seconds: float) -> None:
        """Called by the writer thread: bring a group's tickets back to the event loop."""
        try:
            self._loop.call_soon_threadsafe(self._arrive, tickets, seconds)
        except RuntimeError:  # the loop has ended, so nobody waits for an answer; the senders will ask again
            return

    def _arrive(self, tickets: list[Ticket], seconds: float) -> None:
        counts: dict[int, tuple[int, int]] = {}
        now = time.perf_counter()
        for ticket in tickets:
            submission = ticket.submission
            self.bytes -= ticket.size
            if ticket.replayed:
                self._count_replayed(ticket.replayed)
            if ticket.outcome is AppendOutcome.STORED:
                batches, reports = counts.get(submission.collection, (0, 0))
                counts[submission.collection] = batches + 1, reports + ticket.reports
            elif ticket.outcome is AppendOutcome.DUPLICATE:
                self._count_duplicate(submission.collection)
            elif ticket.outcome is not None:
                self._metrics.refused_batches.labels(REASONS[ticket.outcome]).inc()
            ticket.done(ticket)
        self.batches -= len(tickets)
        for number, (batches, reports) in counts.items():
            self._count_stored(number, batches, reports)
        metrics = self._metrics
        if tickets[0].error is not None:
            metrics.storage_errors.inc()
        metrics.commit.observe(seconds)
        metrics.ack.observe(now - tickets[0].born)
        metrics.group.observe(len(tickets))
        self._let_in()

    def leave(self, ticket: Ticket) -> None:
        """Let go of a batch that is settled before it waited for a group."""
        self.bytes -= ticket.size
        self.batches -= 1
        ticket.done(ticket)
        self._let_in()

    def _let_in(self) -> None:
        while self._room and self.bytes < self._limit:
            future = self._room.popleft()
            if not future.done():
                future.set_result(None)

    def _count_stored(self, number: int, batches: int, reports: int) -> None:
        """Count what was made durable for the collection with this number."""
        raise NotImplementedError

    def _count_duplicate(self, number: int) -> None:
        raise NotImplementedError

    def _count_replayed(self, units: int) -> None:
        """Count sealed units that are counted already."""

    async def room(self, seconds: float) -> None:
        """Wait until some memory is free, `seconds` at most."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._room.append(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return


class Offering(Protocol):
    """Checks requests and hands them to the writer thread."""

    @property
    def waiting(self) -> UnderWay:
        """What is under way."""
        ...

    def offer(self, request: pb.SubmitRequest, peer: Peer, done: Callable[[Ticket], None]) -> Ticket:
        """Let a batch wait for the disk; raises `ServerRefused` (for good) or `Busy` (not now).

        `done` is called with its ticket when it has an outcome or an error.
        """
        ...
