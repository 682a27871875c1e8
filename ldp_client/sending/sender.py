"""The background sender: one daemon thread that delivers what is due, and does other chores now and then.

It starts when there is something to do, not with the app. `report` never waits for it: it has a database connection of
its own, and no transaction is open while it waits for the network. After a failed attempt it sleeps, with exponential
backoff; days offline cost a few attempts a day. The thread does not survive a fork; a child starts its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from ldp_client.clock import Clock
from ldp_client.errors import LdpError, Unavailable
from ldp_client.sending.delivery import Deliverer, Delivery, OthersSend
from ldp_client.sending.transport import Backoff, Transport

__all__ = ["Chore", "Sender"]

logger = logging.getLogger("ldp_client")

_LONGEST_SLEEP = 1800.0
_ATTEMPT_SECONDS = 60.0
_OTHERS_SECONDS = 5.0
"""How long the thread leaves the outbox alone when another thread or process is sending."""


class Chore:
    """Something to do now and then. `run` returns after how many seconds it wants to be called again."""

    def __init__(self, run: Callable[[], float]) -> None:
        self.run = run
        self.at = 0.0


class Sender:
    """The thread, and the deliveries that a caller asks for."""

    def __init__(
        self,
        deliverer: Deliverer,
        transport: Transport,
        clock: Clock,
        uniform: Callable[[], float],
        chores: Sequence[Chore] = (),
        *,
        background: bool = True,
    ) -> None:
        self._deliverer = deliverer
        self._transport = transport
        self._clock = clock
        self._chores = list(chores)
        self._background = background
        self._backoff = Backoff(uniform)
        self._retry_at = 0.0
        self._fresh()

    def _fresh(self) -> None:
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._poked = False
        self._sleeps_until = 0.0

    def deliver(
        self, timeout: float, *, everything: bool = False, patient: bool = False, queue: bool = True
    ) -> Delivery:
        """Deliver (see Deliverer.deliver); a success ends the thread's backoff."""
        delivery = self._deliverer.deliver(timeout, everything=everything, patient=patient, queue=queue)
        if delivery.error is None and delivery.accepted + delivery.refused + delivery.later:
            self._backoff.reset()
            self._retry_at = 0.0
        return delivery

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
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout: float) -> bool:
        """End the thread within `timeout` seconds; what it was sending stays in the outbox."""
        self._deliverer.stopping.set()
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
        self._deliverer.forked()
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
            error = self.deliver(_ATTEMPT_SECONDS, queue=False).error
            if isinstance(error, OthersSend):
                self._retry_at = self._clock.monotonic() + _OTHERS_SECONDS
            elif error is not None:
                self._note_failure(error)
        return self._sleep()

    def _note_failure(self, error: LdpError) -> None:
        wish = error.retry_after if isinstance(error, Unavailable) else None
        wait = self._backoff.delay(wish)
        self._retry_at = self._clock.monotonic() + wait
        logger.info("ldp_client sender: %s; next attempt in %.0f s", error, wait)

    def _sleep(self) -> float:
        now = self._clock.monotonic()
        waits = [_LONGEST_SLEEP, *(chore.at - now for chore in self._chores)]
        due = self._deliverer.next_due()
        if due is not None:
            waits.append(max(due - self._clock.time(), self._retry_at - now))
        return max(min(waits), 0.0)
