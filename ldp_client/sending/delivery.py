"""Deliver what is due: read it from the outbox, send it, and store what became of it in one write transaction.

Nothing is written before the server has answered, except admission tokens. A failed attempt writes nothing: its batches
are still in the outbox, and the next attempt sends the same bytes. One thread or process sends at a time (lock.py).

A device does not send its batches as one burst, because the order of arrival would tell which answers belong together.
If several are overdue, one is sent, and each of the others gets a new random moment within `spread` (pauses.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Set
from typing import NamedTuple

from ldp_client.clock import Clock
from ldp_client.errors import LdpError, StorageError, Unavailable
from ldp_client.protocol.reasons import is_final
from ldp_client.sending.lock import SendingLock
from ldp_client.sending.outbox import Answered, Outbox, WaitingBatch
from ldp_client.sending.pauses import moment_apart, moment_later
from ldp_client.sending.transport import Accepted, Backoff, BatchOutcome, Garbled, Transport

__all__ = ["ASIDE_SECONDS", "Deliverer", "Delivery", "OthersSend", "TokenSource"]

TokenSource = Callable[[bytes], bytes]
"""Gives an admission token for a collection id. The sender calls it, never `report`."""

ASIDE_SECONDS = 120.0
"""How long a batch is left aside that the server may be unable to read."""
_AT_ONCE = 512


class Delivery(NamedTuple):
    """What a delivery achieved."""

    accepted: int = 0
    refused: int = 0
    """Refused for good, and dropped."""
    later: int = 0
    """The server said "later": these are among those that wait."""
    waiting: int = 0
    error: LdpError | None = None
    """Why the rest still waits, if something went wrong."""


class OthersSend(Unavailable):
    """Another thread or process is sending from this storage, this process's batches included."""


class Deliverer:
    """Delivers the batches of one outbox through one transport."""

    def __init__(
        self,
        outbox: Outbox,
        transport: Transport,
        clock: Clock,
        uniform: Callable[[], float],
        tokens: TokenSource | None = None,
        *,
        spread: float = 0.0,
    ) -> None:
        self._outbox = outbox
        self._transport = transport
        self._clock = clock
        self._uniform = uniform
        self._tokens = tokens
        self._spread = spread
        self._lock = SendingLock(outbox.storage.directory / "sending.lock")
        self.stopping = threading.Event()
        self._aside: dict[bytes, float] = {}
        self._suspects: set[bytes] = set()  # were left aside once; sent after all others

    def forked(self) -> None:
        """In a child process: the delivery under way is the parent's."""
        self._lock.forked()
        self.stopping = threading.Event()

    def deliver(
        self, timeout: float, *, everything: bool = False, patient: bool = False, queue: bool = True
    ) -> Delivery:
        """Send what is due (or everything) within `timeout` seconds.

        `patient` retries within that time. `queue` waits within that time if another thread or process is sending.
        """
        start = self._clock.monotonic()
        if not self._outbox.storage.exists():
            return Delivery()
        try:
            if not self._lock.acquire(0.0, self.stopping.is_set):
                if not self._due(everything):
                    return Delivery(waiting=self._outbox.waiting())
                if not queue or not self._lock.acquire(timeout, self.stopping.is_set):
                    error = OthersSend("another thread or process is sending what waits in this storage")
                    return Delivery(waiting=self._outbox.waiting(), error=error)
            try:
                return self._deliver(start + timeout, everything, patient)
            finally:
                self._lock.release()
        except StorageError as error:
            return Delivery(error=error)

    def next_due(self) -> float | None:
        """Return when there will be something to send (wall clock); None if nothing waits."""
        now = self._clock.monotonic()
        aside = self._left_aside()
        moments = [self._clock.time() + until - now for until in aside.values()]
        due = self._outbox.next_due(aside)
        return min([due, *moments] if due is not None else moments, default=None)

    def _deliver(self, deadline: float, everything: bool, patient: bool) -> Delivery:
        backoff = Backoff(self._uniform, first=0.2, cap=10.0)
        made: list[Answered] = []
        error: LdpError | None = None
        waiting: int | None = None
        while not self.stopping.is_set():
            postponed = {answered.waiting.batch.batch_id for answered in made if answered.again is not None}
            due = self._due(everything, postponed)
            if not due:
                break
            apart = self._spread > 0 and not everything
            answers, waiting, error = self._send(due, deadline, apart=apart)
            made += answers
            if error is None and len(due) < _AT_ONCE and not apart:
                break  # these were all that was due
            if error is None:
                backoff.reset()
                continue
            wait = backoff.delay(error.retry_after if isinstance(error, Unavailable) else None)
            if not patient or self._clock.monotonic() + wait >= deadline:
                break
            self.stopping.wait(wait)
        waiting = self._outbox.waiting() if waiting is None else waiting
        accepted = sum(isinstance(answered.outcome, Accepted) for answered in made)
        later = sum(answered.again is not None for answered in made)
        return Delivery(accepted, len(made) - accepted - later, later, waiting, error if waiting else None)

    def _send(
        self, due: list[WaitingBatch], deadline: float, *, apart: bool
    ) -> tuple[list[Answered], int | None, LdpError | None]:
        """Make one attempt. Whatever was answered is settled, even if the attempt then fails.

        Return the answers, how many batches still wait (None: not known) and the error. `apart` sends the first batch
        only; if it was answered, the others get moments of their own.
        """
        outcomes: list[BatchOutcome] = []
        answers: list[Answered] = []
        error: LdpError | None = None
        left: int | None = None
        sent = due[:1] if apart else due
        try:
            sent = self._admitted(sent)
            seconds = max(deadline - self._clock.monotonic(), 0.05)
            for outcome in self._transport.submit([waiting.batch for waiting in sent], seconds):
                outcomes.append(outcome)  # one by one: what was answered before a failure counts
        except (Unavailable, StorageError) as caught:
            error = caught
        finally:
            now = self._clock.time()
            answers += [self._answered(*pair, now) for pair in zip(sent, outcomes, strict=False)]  # they come in order
            left = self._outbox.settle(answers, now, self._redraw(now) if apart else None)
        if isinstance(error, Garbled) and len(due) > max(len(outcomes), 1):
            # The first batch without an answer may be what the server cannot read: it must not hold up the others.
            suspect = due[len(outcomes)].batch.batch_id
            self._aside[suspect] = self._clock.monotonic() + ASIDE_SECONDS
            self._suspects.add(suspect)
        return answers, left, error

    def _answered(self, waiting: WaitingBatch, outcome: BatchOutcome, now: float) -> Answered:
        if isinstance(outcome, Accepted) or is_final(outcome.reason):
            return Answered(waiting, outcome)
        return Answered(waiting, outcome, moment_later(now, waiting.closes, self._uniform))

    def _redraw(self, now: float) -> Callable[[int], float]:
        return lambda closes: moment_apart(now, closes, self._spread, self._uniform)

    def _admitted(self, due: list[WaitingBatch]) -> list[WaitingBatch]:
        """Get a token for every batch without one, and store it before it is shown: a retry shows the same token."""
        if self._tokens is None or all(waiting.batch.token is not None for waiting in due):
            return due
        admitted, failure = [], None
        for waiting in due:
            batch, token = waiting.batch, waiting.batch.token
            if token is None and failure is None:
                try:
                    token = bytes(self._tokens(batch.collection_id))
                except Exception as error:  # the app's own code; its words may hold a token
                    failure = type(error).__name__
            admitted.append(waiting._replace(batch=batch._replace(token=token)))
        self._outbox.keep_tokens(admitted)
        if failure:
            raise Unavailable(f"the app's token source failed: {failure}")
        return admitted

    def _due(self, everything: bool, postponed: Set[bytes] = frozenset()) -> list[WaitingBatch]:
        but = postponed | self._left_aside().keys()
        due = self._outbox.due(self._clock.time(), _AT_ONCE, everything=everything, but=but)
        return sorted(due, key=lambda waiting: waiting.batch.batch_id in self._suspects)

    def _left_aside(self) -> dict[bytes, float]:
        now = self._clock.monotonic()
        self._aside = {batch_id: until for batch_id, until in self._aside.items() if until > now}
        return self._aside
