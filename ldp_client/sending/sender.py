"""The background sender: one lazy daemon thread that empties the outbox, when it is due and when it can.

It starts when there is something to do, never with the app, and holds nothing that a caller of `report` waits for: it
has a database connection of its own and speaks to the network outside any transaction. One failed attempt puts it to
sleep with exponential backoff; being offline for days costs a few attempts a day. It does not survive a fork: the child
starts its own when it needs one.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ldp_client.clock import Clock
from ldp_client.errors import LdpError, StorageError, Unavailable
from ldp_client.ledger.database import Storage
from ldp_client.sending import outbox
from ldp_client.sending.outbox import Claimed, OutboxLimits
from ldp_client.sending.transport import Accepted, Backoff, BatchOutcome, Garbled, Transport

__all__ = ["Chore", "Delivery", "Sender", "TokenSource"]

logger = logging.getLogger("ldp_client")

TokenSource = Callable[[bytes], bytes]
"""Gives an admission token for a collection id; called by the sender, never by `report`."""

_AT_ONCE = 512
_LONGEST_SLEEP = 1800.0
_ATTEMPT_SECONDS = 60.0


class Delivery(NamedTuple):
    """What a flush achieved."""

    accepted: int = 0
    refused: int = 0
    waiting: int = 0
    error: LdpError | None = None
    """Why the rest is still waiting, where something went wrong."""


class Chore:
    """Something else to do now and then: `run` returns seconds until it wants to be called again, at `at`."""

    def __init__(self, run: Callable[[], float]) -> None:
        self.run = run
        self.at = 0.0


class Sender:
    """Empties one outbox into one transport."""

    def __init__(
        self,
        storage: Storage,
        transport: Transport,
        clock: Clock,
        uniform: Callable[[], float],
        limits: OutboxLimits,
        admission: TokenSource | None = None,
        chores: Sequence[Chore] = (),
        background: bool = True,
    ) -> None:
        self._storage = storage
        self._transport = transport
        self._clock = clock
        self._uniform = uniform
        self._limits = limits
        self._admission = admission
        self._chores = list(chores)
        self._background = background
        self._backoff = Backoff(uniform)
        self._retry_at = 0.0
        self._fresh()

    def _fresh(self) -> None:
        self._condition = threading.Condition()
        self._delivering = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._poked = False
        self._sleeps_until = 0.0

    # -- the thread

    def wake(self, due: float | None = None) -> None:
        """Make sure that the thread runs, and that it does not sleep beyond `due` (wall clock; None: look now)."""
        if not self._background:
            return
        sleeps_until = self._sleeps_until
        if due is not None and sleeps_until:
            wait = due - self._clock.time()
            if self._clock.monotonic() + wait >= sleeps_until:
                return  # asleep, and up again by then; a thread at work may just have looked, so that one is told
        with self._condition:
            if self._stopping:
                return
            self._poked = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ldp-client-sender", daemon=True)
                self._thread.start()
            else:
                self._condition.notify_all()

    @property
    def running(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float) -> bool:
        """End the thread within `timeout` seconds; whatever it was sending stays in the outbox."""
        with self._condition:
            self._stopping = True
            thread = self._thread
            self._condition.notify_all()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout / 2)
        if thread.is_alive():
            self._transport.close()
            thread.join(timeout / 2)
        return not thread.is_alive()

    def forked(self) -> None:
        """In a child process: there is no thread here."""
        self._fresh()
        self._transport.forked()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._poked = False
            wait = _LONGEST_SLEEP
            try:
                wait = self._turn()
            except LdpError as error:
                logger.warning("ldp_client sender: %s", error)
            except Exception as error:
                logger.error("ldp_client sender: unexpected %s", type(error).__name__)
            if self._rest(wait):
                return

    def _rest(self, wait: float) -> bool:
        """Sleep until it is time or somebody calls; True if it is time to end."""
        with self._condition:
            if not self._stopping and not self._poked:
                self._sleeps_until = self._clock.monotonic() + wait
                self._condition.wait(max(wait, 0.01))
                self._sleeps_until = 0.0
            return self._stopping

    def _turn(self) -> float:
        """Do what is due; return how long to sleep."""
        now = self._clock.monotonic()
        for chore in self._chores:
            if now >= chore.at:
                chore.at = now + chore.run()
        if now >= self._retry_at:
            delivery = self.deliver(_ATTEMPT_SECONDS)
            if delivery.error is not None:
                self._note_failure(delivery.error)
        return self._sleep()

    def _note_failure(self, error: LdpError) -> None:
        wish = error.retry_after if isinstance(error, Unavailable) else None
        wait = self._backoff.delay(wish)
        self._retry_at = self._clock.monotonic() + wait
        logger.info("ldp_client sender: %s; next attempt in %.0f s", error, wait)

    def _sleep(self) -> float:
        now = self._clock.monotonic()
        waits = [_LONGEST_SLEEP, *(chore.at - now for chore in self._chores)]
        with self._storage.working() as db:
            outbox.collect(db, self._limits)
            due = outbox.next_due(db)
        if due is not None:
            waits.append(max(due - self._clock.time(), self._retry_at - now))
        return max(min(waits), 0.0)

    # -- delivery

    def deliver(self, timeout: float, *, everything: bool = False, patient: bool = False) -> Delivery:
        """Send what is due (or everything) within `timeout` seconds; `patient` retries within that time."""
        deadline = self._clock.monotonic() + timeout
        if not self._delivering.acquire(timeout=timeout):
            waiting = self._waiting()
            return Delivery(
                waiting=waiting, error=Unavailable("another delivery is still under way") if waiting else None
            )
        try:
            return self._deliver(deadline, everything, patient)
        except StorageError as error:
            return Delivery(error=error)
        finally:
            self._delivering.release()

    def _deliver(self, deadline: float, everything: bool, patient: bool) -> Delivery:
        backoff = Backoff(self._uniform, first=0.2, cap=10.0)
        accepted = refused = 0
        error: LdpError | None = None
        while not self._stopping:
            with self._storage.working() as db:
                outbox.collect(db, self._limits)
                claimed = outbox.claim(db, self._clock.time(), _AT_ONCE, everything=everything)
            if not claimed:
                break
            outcomes, error = self._send(claimed, deadline)
            good = sum(isinstance(outcome, Accepted) for outcome in outcomes)
            accepted, refused = accepted + good, refused + len(outcomes) - good
            if error is None:
                self._backoff.reset()
                self._retry_at = 0.0
                backoff.reset()
                continue
            wait = backoff.delay(error.retry_after if isinstance(error, Unavailable) else None)
            if not patient or self._clock.monotonic() + wait >= deadline:
                break
            with self._condition:
                if not self._stopping:
                    self._condition.wait(wait)
        waiting = self._waiting()
        return Delivery(accepted, refused, waiting, error if waiting else None)

    def _send(self, claimed: list[Claimed], deadline: float) -> tuple[list[BatchOutcome], LdpError | None]:
        """One attempt; whatever was answered is settled, the rest goes back."""
        outcomes: list[BatchOutcome] = []
        error: LdpError | None = None
        try:
            claimed = self._admit(claimed)
            left = max(deadline - self._clock.monotonic(), 0.05)
            for outcome in self._transport.submit([batch for _, batch in claimed], left):
                outcomes.append(outcome)  # one by one: what was answered before a failure counts
        except (Unavailable, StorageError) as caught:
            error = caught
        finally:
            rest = claimed[len(outcomes) :]  # a transport answers in order
            if isinstance(error, Garbled) and len(claimed) > 1:
                rest = rest[1:]  # the claim of the first runs on, so that it cannot hold up the others
            with self._storage.working() as db:
                outbox.settle(db, zip(claimed, outcomes, strict=False))
                outbox.release(db, rest)
        return outcomes, error

    def _admit(self, claimed: list[Claimed]) -> list[Claimed]:
        """Get a token for every batch that has none yet, and keep it: a retry shows the same one."""
        if self._admission is None or all(batch.token is not None for _, batch in claimed):
            return claimed
        admitted, failure = [], None
        for number, batch in claimed:
            token = batch.token
            if token is None and failure is None:
                try:
                    token = bytes(self._admission(batch.collection_id))
                except Exception as error:  # the app's own code; its words may hold a token
                    failure = type(error).__name__
            admitted.append(Claimed(number, batch._replace(token=token)))
        with self._storage.working() as db:
            outbox.keep_tokens(db, admitted)
        if failure:
            raise Unavailable(f"the app's admission callback failed: {failure}")
        return admitted

    def _waiting(self) -> int:
        with contextlib.suppress(StorageError), self._storage.working() as db:
            outbox.collect(db, self._limits)
            return outbox.view(db).waiting
        return 0
