"""The sender: it delivers what is due, in a background thread of its own or when the app asks for it.

A delivery reads what is due from the outbox, sends it, and stores what became of it in one write transaction. Nothing
is written before the server has answered, except admission tokens. A failed attempt writes nothing: its batches are
still in the outbox, and the next attempt sends the same bytes. One thread or process sends at a time (outbox.py). A
batch for which the wallet has no token yet is left aside for a while; the others leave.

A device does not send its batches as one burst, because the order of arrival would tell which answers belong together.
If several are overdue, one is sent, and each of the others gets a new random moment within `spread` (pauses.py).

The thread is a daemon. It starts when there is something to do, not with the app. `report` never waits for it: it has a
database connection of its own, and no transaction is open while it waits for the network. After a failed attempt it
sleeps, with exponential backoff; days offline cost a few attempts a day. It does not survive a fork; a child starts its
own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence, Set
from os.path import lexists
from typing import NamedTuple

from ldp_client.clock import Clock
from ldp_client.errors import LdpError, PolicyRefused, Stopped, StorageError, Unavailable
from ldp_client.protocol.reasons import is_final
from ldp_client.sending.outbox import Answered, Outbox, WaitingBatch
from ldp_client.sending.pauses import moment_apart, moment_later
from ldp_client.sending.transport import Accepted, Backoff, BatchOutcome, Garbled, Transport
from ldp_client.sending.ways import KEY_REFUSED, Ways
from ldp_client.tokens.wallet import NoTokenYet

__all__ = ["ASIDE_SECONDS", "Chore", "Delivery", "OthersSend", "Sender", "TokenSource"]

logger = logging.getLogger("ldp_client")

TokenSource = Callable[[bytes], bytes]
"""Gives an admission token for a collection id; an empty one where none is needed. The sender calls it, never `report`.
"""

ASIDE_SECONDS = 120.0
"""How long a batch is left aside that the server may be unable to read, or that has no token yet."""
_AT_ONCE = 512
_ATTEMPT_SECONDS = 60.0
_OTHERS_SECONDS = 5.0
"""How long the thread leaves the outbox alone when another thread or process is sending."""
_STOPPED_SECONDS = 300.0
"""How soon the thread notices that the user has resumed in another process."""
_LONGEST_SLEEP = 1800.0


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


class Chore:
    """Something that the thread does now and then. `run` returns after how many seconds it is to be called again."""

    def __init__(self, run: Callable[[], float]) -> None:
        self.run = run
        self.at = 0.0


class Sender:
    """Delivers the batches of one outbox through one transport."""

    def __init__(
        self,
        outbox: Outbox,
        transport: Transport | Ways,
        clock: Clock,
        uniform: Callable[[], float],
        chores: Sequence[Chore] = (),
        *,
        tokens: TokenSource | None = None,
        spread: float = 0.0,
        background: bool = True,
    ) -> None:
        self._outbox = outbox
        self._stop = outbox.storage.stop.name
        self._ways = transport if isinstance(transport, Ways) else Ways(transport)
        self._transport = self._ways.direct
        self._clock = clock
        self._uniform = uniform
        self._chores = list(chores)
        self._tokens = tokens
        self._spread = spread
        self._background = background
        self._aside: dict[bytes, float] = {}
        self._suspects: set[bytes] = set()  # were left aside once; sent after all others
        self._backoff = Backoff(uniform)
        self._retry_at = 0.0
        self._fresh()

    def _fresh(self) -> None:
        self._stopping = threading.Event()
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._poked = False
        self._sleeps_until = 0.0

    def forked(self) -> None:
        """In a child process: there is no thread here, and the delivery under way is the parent's."""
        self._fresh()
        self._outbox.lock.forked()
        self._ways.forked()

    # -- delivering

    def deliver(
        self, timeout: float, *, everything: bool = False, patient: bool = False, queue: bool = True
    ) -> Delivery:
        """Send what is due (or everything) within `timeout` seconds.

        `patient` retries within that time. `queue` waits within that time if another thread or process is sending.
        A success ends the thread's backoff.
        """
        deadline = self._clock.monotonic() + timeout
        if not self._outbox.storage.exists():
            return Delivery()
        lock, stopping = self._outbox.lock, self._stopping.is_set
        try:
            if not lock.acquire(0.0, stopping):
                if not self._due(everything):
                    return Delivery(waiting=self._outbox.waiting())
                if not queue or not lock.acquire(timeout, stopping):
                    error = OthersSend("another thread or process is sending what waits in this storage")
                    return Delivery(waiting=self._outbox.waiting(), error=error)
            try:
                delivery = self._deliver(deadline, everything, patient)
            finally:
                lock.release()
        except StorageError as trouble:
            return Delivery(error=trouble)
        if delivery.error is None and delivery.accepted + delivery.refused + delivery.later:
            self._backoff.failures = 0
            self._retry_at = 0.0
        return delivery

    def _deliver(self, deadline: float, everything: bool, patient: bool) -> Delivery:
        accepted, refused, waiting, apart = 0, 0, None, self._spread > 0 and not everything
        postponed: set[bytes] = set()
        stuck: set[bytes] = set()  # of ways that do not work at present; the others go on
        backoff: Backoff | None = None
        error: LdpError | None = None
        while not self._stopping.is_set():
            if lexists(self._stop):
                error = Stopped()
                break
            due = self._due(everything, postponed | stuck)
            if not due and not stuck:
                break
            if due:
                together = due if due[-1].smallest is None else self._ways.together(due)
                answers, waiting, failure = self._send(together, deadline, apart=apart)
                for answered in answers:
                    if answered.again is not None:
                        postponed.add(answered.waiting.batch.batch_id)
                    elif isinstance(answered.outcome, Accepted):
                        accepted += 1
                    else:
                        refused += 1
                if failure is None:
                    backoff, error = (backoff, error) if stuck else (None, None)
                    if len(together) == len(due) < _AT_ONCE and not apart and not stuck:
                        break  # these were all that was due
                    continue
                error = failure
                if len(together) < len(due):
                    stuck.update(one.batch.batch_id for one in together)
                    continue
            backoff = backoff or Backoff(self._uniform, first=0.2, cap=10.0)
            wait = backoff.delay(error.retry_after if isinstance(error, Unavailable) else None)
            if not patient or self._clock.monotonic() + wait >= deadline:
                break
            stuck.clear()
            self._stopping.wait(wait)
        waiting = self._outbox.waiting() if waiting is None else waiting
        return Delivery(accepted, refused, len(postponed), waiting, error if waiting else None)

    def _send(
        self, due: list[WaitingBatch], deadline: float, *, apart: bool
    ) -> tuple[list[Answered], int | None, LdpError | None]:
        """Make one attempt on one way. Whatever was answered is settled, even if the attempt then fails.

        Return the answers, how many batches still wait (None: not known) and the error. `apart` sends the first batch
        only; if it was answered, the others get moments of their own.
        """
        outcomes: list[BatchOutcome] = []
        error: LdpError | None = None
        sent = due[:1] if apart else due
        relayed = sent[0].smallest is not None
        fresh: set[bytes] = set()
        try:
            if relayed:
                fresh = {one.batch.batch_id for one in sent if one.sealed is None}
                sent = self._ready(sent, deadline)
            elif self._tokens is not None:
                sent = self._admitted(sent, self._tokens)
            seconds = max(deadline - self._clock.monotonic(), 0.05)
            batches = [waiting.batch for waiting in sent]
            for outcome in self._ways.submit(sent, seconds) if relayed else self._transport.submit(batches, seconds):
                outcomes.append(outcome)  # one by one: what was answered before a failure counts
        except (Unavailable, StorageError, PolicyRefused) as caught:
            error = caught
        finally:
            if relayed:
                self._ways.disconnect()
            answers, left = self._settle(sent, outcomes, fresh, redraw=apart)
        if isinstance(error, Garbled) and len(due) > 1 and len(sent) > len(outcomes):
            # The first batch without an answer may be what the server cannot read: it must not hold up the others.
            suspect = sent[len(outcomes)].batch.batch_id
            self._aside[suspect] = self._clock.monotonic() + ASIDE_SECONDS
            self._suspects.add(suspect)
        return answers, left, error

    def _ready(self, sent: list[WaitingBatch], deadline: float) -> list[WaitingBatch]:
        """Connect to the relay, and seal what has no seal. It is stored before it is shown: a retry shows the same."""
        self._ways.connect(sent, max(deadline - self._clock.monotonic(), 0.05))
        if all(one.sealed is not None for one in sent):
            return sent
        sealed = self._ways.sealed(sent)
        self._outbox.keep_seals(sealed)
        return sealed

    def _settle(
        self, sent: list[WaitingBatch], outcomes: list[BatchOutcome], fresh: set[bytes], *, redraw: bool
    ) -> tuple[list[Answered], int | None]:
        """Store what the server said; return it, and how many batches still wait. `fresh` were sealed just now."""
        now, answers = self._clock.time(), []
        for waiting, outcome in zip(sent, outcomes, strict=False):  # they come in order
            unseal = waiting.batch.batch_id in fresh and not isinstance(outcome, Accepted)
            if isinstance(outcome, Accepted):
                final = True
            else:  # after a refusal that is about the key, the report may still be sealed to another one
                final = is_final(outcome.reason) and not (unseal and outcome.reason in KEY_REFUSED)
            again = None if final else moment_later(now, waiting.closes, self._uniform)
            answers.append(Answered(waiting, outcome, again, unseal))
            if unseal:
                self._ways.note(waiting, outcome)
        if not answers:
            return answers, None
        moment = (lambda closes: moment_apart(now, closes, self._spread, self._uniform)) if redraw else None
        return answers, self._outbox.settle(answers, now, moment)

    def _admitted(self, due: list[WaitingBatch], tokens: TokenSource) -> list[WaitingBatch]:
        """Get a token for every batch without one, and store it before it is shown: a retry shows the same token."""
        if all(waiting.batch.token is not None for waiting in due):
            return due
        admitted, failure, missing = [], None, None
        for waiting in due:
            batch, token = waiting.batch, waiting.batch.token
            if token is None and failure is None:
                try:
                    token = bytes(tokens(batch.collection_id))
                except NoTokenYet as error:
                    missing = error
                    self._aside[batch.batch_id] = self._clock.monotonic() + ASIDE_SECONDS
                except Exception as error:  # the app's own code; its words may hold a token
                    failure = type(error).__name__
            admitted.append(waiting._replace(batch=batch._replace(token=token)))
        self._outbox.keep_tokens(admitted)
        if failure:
            raise Unavailable(f"the app's token source failed: {failure}")
        ready = [waiting for waiting in admitted if waiting.batch.token is not None]
        if missing is not None and not ready:
            raise missing
        return ready

    def _due(self, everything: bool, postponed: Set[bytes] = frozenset()) -> list[WaitingBatch]:
        but = postponed | self._left_aside().keys() if self._aside else postponed
        due = self._outbox.due(self._clock.time(), _AT_ONCE, everything=everything, but=but)
        if self._suspects:
            due.sort(key=lambda one: (one.smallest is not None, one.batch.batch_id in self._suspects))
        return due

    def _left_aside(self) -> dict[bytes, float]:
        now = self._clock.monotonic()
        self._aside = {batch_id: until for batch_id, until in self._aside.items() if until > now}
        return self._aside

    # -- the thread

    def wake(self, due: float | None = None) -> None:
        """Make sure that the thread runs and does not sleep beyond `due` (wall clock; None: look now)."""
        if not self._background:
            return
        sleeps_until = self._sleeps_until
        if due is not None and sleeps_until:
            wait = due - self._clock.time()
            if self._clock.monotonic() + wait >= sleeps_until:
                return  # it sleeps and will be awake in time; a thread that is awake may just have looked, so poke it
        with self._condition:
            if self._stopping.is_set():
                return
            self._poked = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ldp-client-sender", daemon=True)
                self._thread.start()
            else:
                self._condition.notify_all()

    def resume(self) -> None:
        """Look at once, after the user has ended a stop."""
        self._retry_at = 0.0
        self.wake()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float) -> bool:
        """End the thread within `timeout` seconds; what it was sending stays in the outbox."""
        with self._condition:
            self._stopping.set()
            thread = self._thread
            self._condition.notify_all()
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout / 2)
        if thread.is_alive():
            self._ways.close()
            thread.join(timeout / 2)
        return not thread.is_alive()

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
            with self._condition:
                if not self._stopping.is_set() and not self._poked:
                    self._sleeps_until = self._clock.monotonic() + wait
                    self._condition.wait(max(wait, 0.01))
                    self._sleeps_until = 0.0
                if self._stopping.is_set():
                    return

    def _turn(self) -> float:
        """Do what is due; return how long to sleep."""
        now = self._clock.monotonic()
        for chore in self._chores:
            if now >= chore.at:
                chore.at = now + chore.run()
        if now >= self._retry_at:
            error = self.deliver(_ATTEMPT_SECONDS, queue=False).error
            if isinstance(error, OthersSend):
                self._retry_at = self._clock.monotonic() + _OTHERS_SECONDS
            elif isinstance(error, Stopped):
                self._retry_at = self._clock.monotonic() + _STOPPED_SECONDS
            elif error is not None and not isinstance(error, NoTokenYet):
                self._note_failure(error)
        return self._sleep()

    def _note_failure(self, error: LdpError) -> None:
        wish = error.retry_after if isinstance(error, Unavailable) else None
        wait = self._backoff.delay(wish)
        self._retry_at = self._clock.monotonic() + wait
        logger.info("ldp_client sender: %s; next attempt in %.0f s", error, wait)

    def _sleep(self) -> float:
        """Return how long there is nothing to do."""
        now, wait = self._clock.monotonic(), _LONGEST_SLEEP
        aside = self._left_aside() if self._aside else {}
        for chore in self._chores:
            wait = min(wait, chore.at - now)
        for until in aside.values():
            wait = min(wait, max(until, self._retry_at) - now)
        due = self._outbox.next_due(aside)
        if due is not None:
            wait = min(wait, max(due - self._clock.time(), self._retry_at - now))
        return max(wait, 0.0)
