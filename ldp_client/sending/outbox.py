"""The outbox: the batches that wait to be sent. It holds randomized bytes, never items.

A report enters the outbox when it is made: its answer, its charge and its batch are one transaction (`store`). A batch
holds one report and a random id. Both stay the same on every retry, so the server counts it once however often it
arrives. Each batch is due at a random moment after it was made. Batches leave in the order of their random ids, those
without a relay first. So neither the time nor the order of sending tells when something happened, but to the period of
a question with a schedule: the entry's slot is sent with its report. When a batch is not sent at its moment, or the
server says "later", a new moment is drawn (pauses.py); `drawn` in the table says when the last one was drawn.

The outbox is bounded. When something is added to a full outbox, the oldest batch is dropped and counted. Its charge
stays, because the report was made.

`before` and `size` in the table say how many bytes entered the outbox before a batch and with it. So the first and the
last batch give an upper bound on what is held, without counting. Only if that is above the limits are batches counted.
A connection remembers the numbers for its next report (`State.outbox`), as long as no other connection commits.

`store` and `store_again` run within the caller's transaction. Looking (`due`, `next_due`, `view`) is read-only.
`settle` and `keep_tokens` are one write transaction each.

Of all threads and processes that share a storage, one sends at a time: the one that holds `Outbox.lock`. It is the
operating system's lock on the file sending.lock, so it ends with its process however that ends, and nothing in the
ledger has to be written. Without it nothing would be counted twice, because the server knows every batch by its id; but
several processes would keep sending the same batches. A process that is frozen while it sends delays the others until
it goes on or ends.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Group
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import StorageError
from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.protocol.reasons import NEW_TOKEN
from ldp_client.protocol.sealing import sealed_bytes
from ldp_client.sending.transport import Accepted, Batch, BatchOutcome

if TYPE_CHECKING:
    from ldp_client.ledger.budget import MadeReport, Moment
    from ldp_client.ledger.schema import State

__all__ = ["Answered", "Outbox", "OutboxLimits", "OutboxView", "SendingLock", "WaitingBatch"]

_ROW_BYTES = 128
"""About how many bytes a waiting batch takes besides its payload."""
_CLOCK_SLACK = 60.0
"""If a batch's moment was drawn at a time more than this in the future, the clock was set back since."""
_POLL_SECONDS = 0.02

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _give_back(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _give_back(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)  # closing alone would not do while a forked child has a copy of the handle


class OutboxLimits(NamedTuple):
    """How much the outbox holds before it drops its oldest batches."""

    batches: int = 20_000
    bytes: int = 16_000_000


class WaitingBatch(NamedTuple):
    """A batch in the outbox, the number of its row, and when its window closes."""

    id: int
    batch: Batch
    closes: int
    smallest: int | None = None
    """Of a collection with a relay: the smallest batch that its relay may pass on."""
    sealed: bytes | None = None
    """The report as it was sealed for the relay, once that was done."""

    def __repr__(self) -> str:
        return f"WaitingBatch({self.id}, {self.batch!r})"


class Answered(NamedTuple):
    """What the server said of a batch, and when to ask again; `again` is None if that was final."""

    waiting: WaitingBatch
    outcome: BatchOutcome
    again: float | None = None
    unseal: bool = False
    """The seal is dropped, because it is known that nobody counts it (ways.py)."""


class OutboxView(NamedTuple):
    """What waits, and what became of the rest."""

    waiting: int
    bytes: int
    oldest: float | None
    next_due: float | None
    counters: Mapping[str, int]


class SendingLock:
    """The lock of one client. Each attempt opens the file anew, so the threads of a process exclude each other, too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: int | None = None

    def acquire(self, timeout: float, stopping: Callable[[], bool]) -> bool:
        """Take the lock within `timeout` seconds. False if another thread or process keeps it, or on `stopping`."""
        deadline = time.monotonic() + timeout
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                while not _take(handle):
                    if time.monotonic() >= deadline or stopping():
                        return False
                    time.sleep(_POLL_SECONDS)
                self._held = handle
                return True
            finally:
                if self._held != handle:
                    os.close(handle)
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror}; nothing was sent") from None

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            _give_back(held)
            os.close(held)

    def forked(self) -> None:
        """In a child process: close the copy of the parent's handle. The parent keeps its lock."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


class Outbox:
    """The outbox in one storage."""

    def __init__(self, storage: Storage, limits: OutboxLimits) -> None:
        self.storage = storage
        self.lock = SendingLock(storage.directory / "sending.lock")
        self._limits = limits

    # -- adding, within the caller's transaction

    def store(self, db: sqlite3.Connection, state: State, moment: Moment, price: int, made: MadeReport) -> None:
        """Store a report: its answer, its charge and its batch."""
        entry = budget.charge(db, state, moment, price, made)
        self._add(db, state, entry, made)

    def store_again(self, db: sqlite3.Connection, state: State, entry: int, again: MadeReport) -> bool:
        """Queue the standing answer `entry` for another window. Return False if it was queued for it before."""
        window = (again.collection.id, again.slot)
        if not db.execute("INSERT OR IGNORE INTO windows VALUES (?, ?)", window).rowcount:
            return False
        self._add(db, state, entry, again)
        return True

    def _add(self, db: sqlite3.Connection, state: State, entry: int, made: MadeReport) -> None:
        last, before, held, size, exact = state.outbox or _estimate(db)
        asked = made.collection
        more = len(made.report) + _ROW_BYTES + (sealed_bytes(len(made.report)) if asked.relayed else 0)
        batch = (entry, made.batch_id, asked.id, asked.opens, asked.closes, made.made, made.made, made.due)
        db.execute(
            "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, NULL)",
            (last + 1, *batch, before, more, asked.smallest_batch),
        )
        held, size = held + 1, size + more
        if held > self._limits.batches or size > self._limits.bytes:
            held, size = self._trim(db, *((held, size) if exact else _size(db)))
            exact = True
        state.outbox = last + 1, before + more, held, size, exact

    def _trim(self, db: sqlite3.Connection, held: int, size: int) -> tuple[int, int]:
        """Drop the oldest batches while there are too many; return what is left."""
        dropped = 0
        while held > 1 and (held > self._limits.batches or size > self._limits.bytes):
            number, bytes_of_it = db.execute("SELECT id, size FROM outbox ORDER BY id LIMIT 1").fetchone()
            db.execute("DELETE FROM outbox WHERE id = ?", (number,))
            held, size, dropped = held - 1, size - bytes_of_it, dropped + 1
        _count(db, "dropped", dropped)
        return held, size

    # -- looking

    def due(self, now: float, most: int, *, everything: bool = False, but: Group[bytes] = ()) -> list[WaitingBatch]:
        """Return up to `most` batches that are due, or with `everything` whose window is open; none of those in `but`.

        A clock that was set back must not delay a batch for longer than its random delay. If there is such a batch, its
        times are moved to the present first: this is the one case in which `due` writes.
        """
        with self.storage.reading() as (db, _):
            ahead = db.execute("SELECT 1 FROM outbox WHERE drawn > ? LIMIT 1", (now + _CLOCK_SLACK,)).fetchone()
            if ahead is None:
                return _due(db, now, most, everything, but)
        with self.storage.working() as db:
            db.execute(
                "UPDATE outbox SET due = ?1 + (due - drawn), drawn = ?1, made = min(made, ?1) WHERE drawn > ?1 + ?2",
                (now, _CLOCK_SLACK),
            )
            return _due(db, now, most, everything, but)

    def next_due(self, but: Group[bytes] = ()) -> float | None:
        """Return when the next batch is due, not counting those in `but`; None if none waits."""
        marks = ", ".join("?" * len(but))
        with self.storage.reading() as (db, _):
            found: float | None = db.execute(
                f"SELECT min(max(due, opens)) FROM outbox WHERE batch_id NOT IN ({marks})",  # noqa: S608 - marks only
                tuple(but),
            ).fetchone()[0]
            return found

    def view(self) -> OutboxView:
        """Return what waits, and the counters."""
        with self.storage.reading() as (db, _):
            waiting, size = _size(db)
            oldest, due = db.execute("SELECT min(made), min(due) FROM outbox").fetchone()
            counters = dict(db.execute("SELECT name, value FROM counters ORDER BY name").fetchall())
            return OutboxView(waiting, size, oldest, due, counters)

    # -- sending

    def keep_tokens(self, waiting: Iterable[WaitingBatch]) -> None:
        """Store admission tokens with their batches, so that a retry shows the same token."""
        rows = [(one.batch.token, one.id, one.batch.batch_id) for one in waiting]
        with self.storage.working() as db:
            db.executemany("UPDATE outbox SET token = ? WHERE id = ? AND batch_id = ?", rows)

    def keep_seals(self, waiting: Iterable[WaitingBatch]) -> None:
        """Store sealed reports with their batches, so that a retry sends the same bytes."""
        rows = [(one.sealed, one.id, one.batch.batch_id) for one in waiting]
        with self.storage.working() as db:
            db.executemany("UPDATE outbox SET sealed = ? WHERE id = ? AND batch_id = ?", rows)

    def waiting(self) -> int:
        """Return how many batches wait."""
        with self.storage.reading() as (db, _):
            return _size(db)[0]

    def settle(self, answers: Sequence[Answered], now: float, redraw: Callable[[int], float] | None = None) -> int:
        """Remove what the server has accepted or refused for good; keep what it wants later; count all of it.

        `redraw` gives, from the end of its window, a new moment for each other batch that is overdue. Return how many
        batches still wait.
        """
        tally: dict[str, int] = {}
        with self.storage.working() as db:
            for answered in answers:
                for name in _settle(db, answered, now):
                    tally[name] = tally.get(name, 0) + 1
            for name, number in tally.items():
                _count(db, name, number)
            if redraw is not None:
                overdue = db.execute("SELECT closes, id FROM outbox WHERE opens <= ?1 AND due <= ?1", (now,)).fetchall()
                moments = [(redraw(closes), now, number) for closes, number in overdue]
                db.executemany("UPDATE outbox SET due = ?, drawn = ? WHERE id = ?", moments)
            return _size(db)[0]


def _settle(db: sqlite3.Connection, answered: Answered, now: float) -> tuple[str, ...]:
    """Settle one answer; return the names of the counters that it belongs to.

    A row is found by its number and its batch id, because row numbers are used again. A batch without a row was dropped
    meanwhile, or another process settled it first: it is not counted.
    """
    waiting, outcome, again = answered.waiting, answered.outcome, answered.again
    batch, row = waiting.batch, (waiting.id, waiting.batch.batch_id)
    if again is not None and not isinstance(outcome, Accepted):
        token = None if outcome.reason in NEW_TOKEN else batch.token
        sealed = None if answered.unseal else waiting.sealed
        change = "UPDATE outbox SET due = ?, drawn = ?, token = ?, sealed = ? WHERE id = ? AND batch_id = ?"
        found = db.execute(change, (again, now, token, sealed, *row)).rowcount
        return (f"later {outcome.reason}",) if found else ()
    if not db.execute("DELETE FROM outbox WHERE id = ? AND batch_id = ?", row).rowcount:
        return ()
    if not isinstance(outcome, Accepted):
        return (f"refused {outcome.reason}",)
    return ("accepted", "duplicate") if outcome.duplicate else ("accepted",)


def _due(db: sqlite3.Connection, now: float, most: int, everything: bool, but: Group[bytes]) -> list[WaitingBatch]:
    rows = db.execute(
        "SELECT o.id, o.collection_id, o.batch_id, a.report, o.token, a.slot, o.closes, o.smallest, o.sealed FROM"
        " (SELECT * FROM outbox WHERE opens <= :now AND (due <= :now OR :all)"
        " ORDER BY smallest IS NOT NULL, batch_id LIMIT :most) o"
        " JOIN answers a ON a.id = o.answer ORDER BY o.smallest IS NOT NULL, o.batch_id",
        {"now": now, "all": everything, "most": most + len(but)},
    ).fetchall()
    return [WaitingBatch(row[0], Batch(*row[1:6]), *row[6:]) for row in rows if row[2] not in but][:most]


def _estimate(db: sqlite3.Connection) -> tuple[int, int, int, int, bool]:
    """Return the last batch's number, the bytes up to its end, and upper bounds on the batches and bytes held."""
    found = db.execute(
        "SELECT last.id, last.before + last.size, last.id + 1 - first.id, last.before + last.size - first.before FROM"
        " (SELECT id, before FROM outbox ORDER BY id LIMIT 1) first,"
        " (SELECT id, before, size FROM outbox ORDER BY id DESC LIMIT 1) last"
    ).fetchone()
    return (*found, False) if found else (0, 0, 0, 0, True)


def _size(db: sqlite3.Connection) -> tuple[int, int]:
    found: tuple[int, int] = db.execute("SELECT count(*), coalesce(sum(size), 0) FROM outbox").fetchone()
    return found


def _count(db: sqlite3.Connection, name: str, number: int) -> None:
    """Add to a counter."""
    if number:
        db.execute("INSERT OR IGNORE INTO counters VALUES (?, 0)", (name,))
        db.execute("UPDATE counters SET value = value + ? WHERE name = ?", (number, name))
