"""Group commit: one writer thread, one fsync for everything that is waiting.

The event loop hands tickets over with `submit` and goes on. The thread takes all that has gathered, checks the
reports' range (vectorised, over the group's joined payloads), appends what is sound in one transaction and, when that
is on the disk, delivers the tickets together. While the disk works, the next group gathers: the busier the server, the
larger the groups. Other work on the log (creating, closing, folding) runs between groups, on the same thread, through
`run`. So there is one writer, and no lock to wait for.

Trouble with the disk reaches the tickets as an error, never as an acknowledgement:

- the disk is full, or another process holds a write lock: the next group tries again;
- any other error of a write (a failed fsync, a lost write-ahead log): it is unknown what the disk holds. All who wait
  get the error, and nothing is written until the log was opened anew and made durable (`AppendLog.recover`), which is
  tried again and again with growing pauses;
- a damaged or removed file: trying again does not help. The thread stops and says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from hashlib import sha256
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ldp_client.errors import LdpError, ServerRefused, StorageError
from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store.errors import FINAL, DiskFull, InUse
from ldp_server.store.log import AppendOutcome, Submission

__all__ = ["LINGER", "AppendLog", "Committing", "Deliver", "GroupCommit", "RangeCheck", "Ticket"]

T = TypeVar("T")
LOGGER = logging.getLogger("hearsay.server")

LINGER = 0.002
"""While the server is busy (the last group was not a lone submission) a small group waits this long for more. Measured,
that takes a third of the CPU off a submission. A lone submission never waits. `limits.linger_seconds` sets it."""
FULL = 64
"""A group of so many does not wait."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between attempts to recover the log; each pause is twice the one before."""
GROUP = 2048
GROUP_BYTES = 8_000_000
"""The most in one transaction."""


class Ticket:
    """A submission that waits for its group. Afterwards it has an outcome, or else an error."""

    __slots__ = (
        "batch_id", "born", "done", "dropped", "error", "outcome", "refused", "replayed", "reports", "size",
        "submission",
    )  # fmt: skip

    def __init__(self, submission: Submission, reports: int, done: Callable[[Ticket], None]) -> None:
        self.submission = submission
        self.batch_id = submission.batch_id
        """As the sender gave it. A batch of sealed reports is stored under another one."""
        self.size = len(submission.payload)
        """Bytes of the payload as it came."""
        self.reports = reports
        self.dropped = self.replayed = 0
        """Sealed units that cannot be opened, or are counted already."""
        self.done = done
        """Called by the receiver of the delivery, not on the writer thread."""
        self.born = time.perf_counter()
        self.outcome: AppendOutcome | None = None
        self.refused: ServerRefused | None = None
        """Why the batch is refused, if that is known before it waits for a group."""
        self.error: LdpError | None = None

    @property
    def settled(self) -> bool:
        """Whether it can be answered."""
        return self.outcome is not None or self.error is not None or self.refused is not None


RangeCheck = Callable[[int, Sequence[bytes]], Sequence[bool]]
"""Says which payloads of a collection (by number) hold only reports below the bound."""
Deliver = Callable[[list[Ticket], float], None]
"""Takes tickets that have an outcome or an error, and the seconds their group took. Called on the writer thread."""


CountedUnits = Callable[[int, Sequence[bytes]], set[bytes]]
"""Says which sealed units of a collection (by number) are counted already, by their digests."""


class AppendLog(Protocol):
    """What the writer thread needs of a log (log.py says what each method promises)."""

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]: ...

    def tend(self) -> None: ...

    def recover(self) -> None: ...


L = TypeVar("L", bound=AppendLog)


class Committing(Protocol):
    """What makes tickets durable: a writer thread, or one for each database of a store."""

    @property
    def failure(self) -> StorageError | None: ...

    def start(self) -> None: ...

    def submit(self, ticket: Ticket) -> None: ...

    def stop(self) -> None: ...


class _Work(NamedTuple):
    """Other work on the log, and where its result goes."""

    work: Callable[[Any], object]
    future: Future[object]


class GroupCommit(Generic[L]):
    """The writer thread. It is the only user of `log` from `start` to `stop`."""

    def __init__(
        self,
        log: L,
        check: RangeCheck,
        deliver: Deliver,
        counted: CountedUnits | None = None,
        *,
        linger: float = LINGER,
    ) -> None:
        self._log = log
        self._linger = linger
        self._counted = counted
        self._check = check
        self._deliver = deliver
        self._waiting: deque[Ticket] = deque()
        self._work: deque[_Work] = deque()
        self._wake = threading.Event()
        self._idle = False
        self._busy = False
        self._stopping = False
        self._ended = False
        self._trouble: StorageError | None = None
        self._unsure: StorageError | None = None
        """The error after which it is unknown what the disk holds, until the log has recovered."""
        self._pause = 0.0
        self._again = 0.0
        self._thread = threading.Thread(target=self._main, name="hearsay-writer", daemon=True)
        self.failure: StorageError | None = None
        """Why the thread stopped, if an error made it stop."""

    def start(self) -> None:
        self._thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Let a ticket wait for the next group. Called by the event loop only."""
        self._waiting.append(ticket)
        if self._ended:
            self._abandon()
        elif self._idle:
            self._idle = False
            self._wake.set()

    def run(self, work: Callable[[L], T]) -> Future[T]:
        """Run `work` on the writer thread, between groups."""
        future: Future[T] = Future()
        self._work.append(_Work(work, future))  # type: ignore[arg-type]  # a Future[T] is filled by a function giving T
        if self._ended:
            self._abandon()
        self._idle = False
        self._wake.set()
        return future

    def stop(self) -> None:
        """Finish what is waiting, then end the thread. Blocks."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _main(self) -> None:
        while self.failure is None:
            if self._stopping and (self._unsure is not None or not (self._waiting or self._work)):
                break
            try:
                if self._unsure is not None:
                    self._mend(self._unsure)
                elif self._waiting or self._work:
                    self._turn()
                else:
                    self._sleep()
            except StorageError as error:
                self._judge(error)
            except Exception as error:
                LOGGER.exception("defect in the writer thread")
                self.failure = StorageError(f"a defect stopped the writer thread ({type(error).__name__})")
        self._ended = True
        self._abandon()

    def _mend(self, error: StorageError) -> None:
        """Give all that wait the error, and recover the log if it is time to try."""
        self._give_up(error)
        left = self._again - time.monotonic()
        if left > 0:
            self._sleep(left)
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if self._pause else FIRST_PAUSE
        self._again = time.monotonic() + self._pause
        self._log.recover()
        self._unsure, self._pause, self._again = None, 0.0, 0.0
        LOGGER.warning("the log was opened anew: nothing acknowledged was lost")

    def _turn(self) -> None:
        """One group, one piece of other work, and the log's housekeeping."""
        if self._waiting:
            if self._busy and len(self._waiting) < FULL:
                time.sleep(self._linger)
            self._commit(self._take())
        if self._work:
            self._step(*self._work.popleft())
        self._log.tend()

    def _sleep(self, most: float | None = None) -> None:
        self._idle = True
        if not self._waiting and not self._work and not self._stopping:
            self._wake.wait(most)
        self._wake.clear()
        self._idle = False

    def _take(self) -> list[Ticket]:
        group: list[Ticket] = []
        size = 0
        while self._waiting and len(group) < GROUP and size < GROUP_BYTES:
            ticket = self._waiting.popleft()
            size += len(ticket.submission.payload)
            group.append(ticket)
        return group

    def _commit(self, group: list[Ticket]) -> None:
        self._busy = len(group) > 1
        started = time.perf_counter()
        try:
            group = self._uncounted(group)
            sound = self._sound([ticket for ticket in group if ticket.outcome is None])
            if sound:
                outcomes = self._log.append([ticket.submission for ticket in sound])
                for ticket, outcome in zip(sound, outcomes, strict=True):
                    ticket.outcome = outcome
                self._written()
        except BaseException as error:
            for ticket in group:
                if ticket.outcome is None:
                    ticket.error = error if isinstance(error, StorageError) else StorageError("the group was lost")
            if not isinstance(error, StorageError):
                raise
            self._judge(error)
        finally:
            self._deliver(group, time.perf_counter() - started)

    def _uncounted(self, group: list[Ticket]) -> list[Ticket]:
        """Leave out the sealed reports that are counted already. Return the group, without those to be looked at again.

        A unit that is also in an earlier submission of this group waits until that one is on the disk.
        """
        counted = self._counted
        if counted is None or not any(ticket.submission.units for ticket in group):
            return group
        now: set[tuple[int, bytes]] = set()
        kept, again = [], []
        for ticket in group:
            units = {(ticket.submission.collection, one) for one in _digests(ticket.submission)}
            if units & now:
                again.append(ticket)
                continue
            kept.append(ticket)
            now |= units
            if units:
                _keep_uncounted(ticket, counted)
        self._waiting.extendleft(reversed(again))
        group[:] = kept
        return group

    def _sound(self, group: list[Ticket]) -> list[Ticket]:
        """Those whose reports are all in range; the others get their outcome here."""
        by_collection: dict[int, list[Ticket]] = {}
        for ticket in group:
            by_collection.setdefault(ticket.submission.collection, []).append(ticket)
        all_sound = True
        for collection, tickets in by_collection.items():
            verdicts = self._check(collection, [ticket.submission.payload for ticket in tickets])
            for ticket, verdict in zip(tickets, verdicts, strict=True):
                if not verdict:
                    ticket.outcome = AppendOutcome.OUT_OF_RANGE
                    all_sound = False
        return group if all_sound else [ticket for ticket in group if ticket.outcome is None]

    def _step(self, work: Callable[[L], object], future: Future[object]) -> None:
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
        """Note what is needed before the next write. Each kind of error is logged once, until a write succeeds."""
        if isinstance(error, FINAL):
            self.failure = error
            return
        if not isinstance(error, (DiskFull, InUse)):
            self._unsure = error
        if type(error) is not type(self._trouble):
            self._trouble = error
            what = "the disk is full" if isinstance(error, DiskFull) else "the log cannot be written"
            LOGGER.error("%s: batches are told to come back later", what, extra=_reason(error))

    def _written(self) -> None:
        if self._trouble is not None:
            self._trouble = None
            LOGGER.warning("the log can be written again: batches are taken")

    def _abandon(self) -> None:
        """Nothing is written any more: give an error to all that wait. After that `submit` and `run` call this."""
        self._give_up(self.failure or StorageError("the server is stopping"))

    def _give_up(self, error: StorageError) -> None:
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


def _digests(submission: Submission) -> list[bytes]:
    return [submission.units[start : start + DIGEST_BYTES] for start in range(0, len(submission.units), DIGEST_BYTES)]


def _keep_uncounted(ticket: Ticket, look_up: CountedUnits) -> None:
    """Leave out reports whose units the log has. What is left is put in the order of the reports themselves, so that
    nothing is kept of the order in which they came.
    """
    submission = ticket.submission
    digests = _digests(submission)
    width = len(submission.payload) // len(digests)
    reports = [submission.payload[start : start + width] for start in range(0, len(submission.payload), width)]
    counted = look_up(submission.collection, digests)
    fresh = [(report, digest) for report, digest in zip(reports, digests, strict=True) if digest not in counted]
    ticket.replayed += ticket.reports - len(fresh)
    ticket.reports = len(fresh)
    if not fresh:
        ticket.outcome = AppendOutcome.DUPLICATE
        return
    payload = b"".join(sorted(report for report, _ in fresh))
    units = b"".join(digest for _, digest in fresh)
    digest = sha256(payload).digest()[:16]
    ticket.submission = submission._replace(payload=payload, digest=digest, units=units)


def _reason(error: StorageError) -> dict[str, dict[str, str]]:
    return {"fields": {"reason": str(error)}}
