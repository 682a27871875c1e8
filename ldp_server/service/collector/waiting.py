"""What is received and not yet durable: counted, bounded, and brought back from the writer thread to the event loop.

The bytes that wait are counted over all clients. When they reach the limit, unary callers are told to come back and
streams are not read any further until there is room; their senders notice it as flow control.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from ldp_server.service.live import LiveCollections
from ldp_server.service.metrics import Metrics
from ldp_server.store import AppendOutcome, Ticket

__all__ = ["REASONS", "Waiting"]

REASONS = {
    AppendOutcome.CONFLICT: "BATCH_ID_CONFLICT",
    AppendOutcome.TOKEN_USED: "TOKEN_USED",
    AppendOutcome.OUT_OF_RANGE: "REPORT_OUT_OF_RANGE",
    AppendOutcome.PERIOD_OVER: "PERIOD_OVER",
    AppendOutcome.SEALED: "WINDOW_CLOSED",  # by a fold, which may fail and be undone: a device asks again later
}
"""The wire's reason for each outcome that is a refusal."""


class Waiting:
    """The submissions under way. Everything but `delivered` runs on the event loop."""

    def __init__(self, collections: LiveCollections, metrics: Metrics, limit: int, clock: Callable[[], float]) -> None:
        self._collections = collections
        self._metrics = metrics
        self._limit = limit
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._room: deque[asyncio.Future[None]] = deque()
        self.bytes = 0
        self.batches = 0
        self.stored: dict[int, int] = {}
        """Batches made durable since the start, by the collection's number."""

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
        counts: dict[int, list[int]] = {}
        now = time.perf_counter()
        for ticket in tickets:
            submission = ticket.submission
            self.bytes -= ticket.size
            self._metrics.dropped_units.labels("REPLAYED").inc(ticket.replayed)
            if ticket.outcome is AppendOutcome.STORED:
                count = counts.setdefault(submission.collection, [0, 0])
                count[0] += 1
                count[1] += ticket.reports
            elif ticket.outcome is not None:
                self._count_other(ticket.outcome, submission.collection)
            ticket.done(ticket)
        self.batches -= len(tickets)
        self._count_stored(counts)
        metrics = self._metrics
        if tickets[0].error is not None:
            metrics.storage_errors.inc()
        metrics.commit.observe(seconds)
        metrics.ack.observe(now - tickets[0].born)
        metrics.group.observe(len(tickets))
        self._let_in()

    def leave(self, ticket: Ticket) -> None:
        """A batch that is settled before it waited for a group."""
        self.bytes -= ticket.size
        self.batches -= 1
        ticket.done(ticket)
        self._let_in()

    def _let_in(self) -> None:
        while self._room and self.bytes < self._limit:
            future = self._room.popleft()
            if not future.done():
                future.set_result(None)

    def _count_stored(self, counts: dict[int, list[int]]) -> None:
        for number, (batches, reports) in counts.items():
            self.stored[number] = self.stored.get(number, 0) + batches
            live = self._collections.numbered(number)
            live.arrivals.note(reports, self._clock())
            label = live.label
            self._metrics.batches.labels(label).inc(batches)
            self._metrics.reports.labels(label).inc(reports)

    def _count_other(self, outcome: AppendOutcome, number: int) -> None:
        if outcome is AppendOutcome.DUPLICATE:
            self._metrics.duplicates.labels(self._collections.numbered(number).label).inc()
        else:
            self._metrics.refused_batches.labels(REASONS[outcome]).inc()

    async def room(self, seconds: float) -> None:
        """Wait until some memory is free, `seconds` at most."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._room.append(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return
