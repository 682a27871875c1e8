"""Group commit: one writer thread, one fsync for everything that is waiting.

The event loop hands tickets over with `submit` and goes on. The thread takes all that has gathered, checks the
reports' range (vectorised, over the group's joined payloads), appends what is sound in one transaction and, once
that is on the disk, gives the tickets back in one go. While the disk works, the next group gathers: the busier the
server, the larger the groups. Other work on the log (creating, closing, folding) runs between groups, on the same
thread, through `run`: there is one writer, and never a lock to wait for.

Trouble with the disk reaches the tickets as an error, never as an acknowledgement. If there is no room, the next
group tries again. Anything else is fatal: after a failed fsync nobody knows what the disk holds, so the thread
stops and says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from ldp_client.errors import StorageError
from ldp_server.store.errors import DiskFull
from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.sqlite import SqliteLog
from ldp_server.store.wal import Checkpointer

__all__ = ["GroupCommit", "RangeCheck", "Ticket"]

T = TypeVar("T")
LOGGER = logging.getLogger("hearsay.server")

LINGER = 0.002
"""While the server is busy (the last group had company) a small group waits this long for more: measured, that takes
a third of the CPU off a batch. A lone batch never waits."""
FULL = 64
"""A group of so many does not wait."""


class Ticket:
    """A batch that waits for its group. Afterwards it has an outcome, or else an error."""

    __slots__ = ("batch", "born", "error", "live", "outcome", "owner", "reports")

    def __init__(self, batch: Submission, reports: int, owner: Callable[[Ticket], None], live: Any) -> None:
        self.batch = batch
        self.reports = reports
        self.owner = owner
        self.live = live
        self.born = time.perf_counter()
        self.outcome: AppendOutcome | None = None
        self.error: StorageError | None = None


RangeCheck = Callable[[int, Sequence[bytes]], Sequence[bool]]
"""Says which payloads of a collection (by number) hold only reports below the bound."""


class GroupCommit:
    """The writer thread. `deliver` is called on it, with tickets whose fate is known."""

    def __init__(
        self,
        log: SqliteLog,
        check: RangeCheck,
        deliver: Callable[[list[Ticket], float], None],
        *,
        max_group_bytes: int = 8_000_000,
        max_group: int = 2048,
    ) -> None:
        self._log = log
        self._check = check
        self._deliver = deliver
        self._max_bytes = max_group_bytes
        self._max_group = max_group
        self._waiting: deque[Ticket] = deque()
        self._work: deque[tuple[Callable[[SqliteLog], object], Future[object]]] = deque()
        self._wake = threading.Event()
        self._idle = False
        self._busy = False
        self._stopping = False
        self._ended = False
        self._checkpointer = Checkpointer(log)
        self._thread = threading.Thread(target=self._main, name="hearsay-writer", daemon=True)
        self.failure: StorageError | None = None
        """Why the thread stopped, if the disk made it stop."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Let a ticket wait for the next group. Called by the event loop only."""
        self._waiting.append(ticket)
        if self._ended:
            self._abandon()
        elif self._idle:
            self._idle = False
            self._wake.set()

    def run(self, work: Callable[[SqliteLog], T]) -> Future[T]:
        """Run `work` on the writer thread, between groups."""
        future: Future[T] = Future()
        self._work.append((work, future))  # type: ignore[arg-type]  # a Future[T] is filled by a function giving T
        if self._ended:
            self._abandon()
        self._idle = False
        self._wake.set()
        return future

    def stop(self) -> None:
        """Finish what is waiting, then end the thread and close the log. Blocks."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._checkpointer.close()
        self._log.close()

    def _main(self) -> None:
        while self.failure is None:
            if not self._waiting and not self._work:
                if self._stopping:
                    break
                self._sleep()
                continue
            try:
                self._turn()
            except StorageError as error:
                self._judge(error)
            except Exception as error:
                LOGGER.exception("defect in the writer thread")
                self.failure = StorageError(f"a defect stopped the writer thread ({type(error).__name__})")
        self._ended = True
        self._abandon()

    def _turn(self) -> None:
        """One group, one piece of other work, and a look at the write-ahead log."""
        if self._waiting:
            if self._busy and len(self._waiting) < FULL:
                time.sleep(LINGER)
            self._commit(self._take())
        if self._work:
            self._step(*self._work.popleft())
        self._checkpointer.after_commit()

    def _sleep(self) -> None:
        self._idle = True
        if not self._waiting and not self._work and not self._stopping:
            self._wake.wait()
        self._wake.clear()
        self._idle = False

    def _take(self) -> list[Ticket]:
        group: list[Ticket] = []
        size = 0
        while self._waiting and len(group) < self._max_group and size < self._max_bytes:
            ticket = self._waiting.popleft()
            size += len(ticket.batch.payload)
            group.append(ticket)
        return group

    def _commit(self, group: list[Ticket]) -> None:
        self._busy = len(group) > 1
        started = time.perf_counter()
        try:
            sound = self._sound(group)
            outcomes = self._log.append([ticket.batch for ticket in sound]) if sound else []
            for ticket, outcome in zip(sound, outcomes, strict=True):
                ticket.outcome = outcome
        except BaseException as error:
            for ticket in group:
                if ticket.outcome is None:
                    ticket.error = error if isinstance(error, StorageError) else StorageError("the group was lost")
            if not isinstance(error, StorageError):
                raise
            self._judge(error)
        finally:
            self._deliver(group, time.perf_counter() - started)

    def _sound(self, group: list[Ticket]) -> list[Ticket]:
        """Those whose reports are all in range; the others get their outcome here."""
        by_collection: dict[int, list[Ticket]] = {}
        for ticket in group:
            by_collection.setdefault(ticket.batch.collection, []).append(ticket)
        all_sound = True
        for collection, tickets in by_collection.items():
            verdicts = self._check(collection, [ticket.batch.payload for ticket in tickets])
            for ticket, verdict in zip(tickets, verdicts, strict=True):
                if not verdict:
                    ticket.outcome = AppendOutcome.OUT_OF_RANGE
                    all_sound = False
        return group if all_sound else [ticket for ticket in group if ticket.outcome is None]

    def _step(self, work: Callable[[SqliteLog], object], future: Future[object]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work(self._log)
        except StorageError as error:
            self._judge(error)
            future.set_exception(error)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def _judge(self, error: StorageError) -> None:
        if not isinstance(error, DiskFull):
            self.failure = error

    def _abandon(self) -> None:
        """Nothing is written any more: say so to whoever waits. Whoever comes later calls this for himself."""
        error = self.failure or StorageError("the server is stopping")
        with suppress(IndexError):  # the other thread may be emptying the same queues
            while True:
                ticket = self._waiting.popleft()
                ticket.error = error
                self._deliver([ticket], 0.0)
        with suppress(IndexError):
            while True:
                _, future = self._work.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
