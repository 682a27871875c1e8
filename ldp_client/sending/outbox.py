"""The outbox: the batches that wait to be sent. It holds randomized bytes, never items.

A report enters the outbox when it is made: its answer, its charge and its batch are one transaction (`store`). A batch
holds one report and a random id. Both stay the same on every retry, so the server counts it once however often it
arrives. Each batch is due at a random moment after it was made, and batches leave in the order of their random ids. So
neither the time nor the order of sending tells when something happened.

The outbox is bounded. When something is added to a full outbox, the oldest batch is dropped and counted. Its charge
stays, because the report was made.

`before` and `size` in the table say how many bytes entered the outbox before a batch and with it. So the first and the
last batch give an upper bound on what is held, without counting. Only if that is above the limits are batches counted.
A connection remembers the numbers for its next report (`State.outbox`), as long as no other connection commits.

`store` and `store_again` run within the caller's transaction. Looking (`due`, `next_due`, `view`) is read-only.
`settle` and `keep_tokens` are one write transaction each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection as Group
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.sending.transport import Accepted, Batch, BatchOutcome

if TYPE_CHECKING:
    from ldp_client.ledger.budget import MadeReport
    from ldp_client.ledger.schema import State

__all__ = ["Outbox", "OutboxLimits", "OutboxView", "WaitingBatch"]

_ROW_BYTES = 128
"""About what a waiting batch takes besides its payload."""
_CLOCK_SLACK = 60.0
"""A batch made further in the future than this was made before the clock was set back."""


class OutboxLimits(NamedTuple):
    """How much the outbox holds before it drops its oldest batches."""

    batches: int = 20_000
    bytes: int = 16_000_000


class WaitingBatch(NamedTuple):
    """A batch in the outbox and the number of its row."""

    id: int
    batch: Batch


class OutboxView(NamedTuple):
    """What waits, and what became of the rest."""

    waiting: int
    bytes: int
    oldest: float | None
    next_due: float | None
    counters: Mapping[str, int]


class Outbox:
    """The outbox in one storage."""

    def __init__(self, storage: Storage, limits: OutboxLimits) -> None:
        self.storage = storage
        self._limits = limits

    # -- adding, within the caller's transaction

    def store(self, db: sqlite3.Connection, state: State, now: int, price: int, made: MadeReport) -> None:
        """Store a report: its answer, its charge and its batch."""
        entry = budget.charge(db, state, now, price, made)
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
        more = len(made.report) + _ROW_BYTES
        opens, collection_id = made.collection.opens, made.collection.id
        db.execute(
            "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (last + 1, entry, made.batch_id, collection_id, opens, made.made, made.due, before, more),
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
            if not _ahead(db, now):
                return _due(db, now, most, everything, but)
        with self.storage.working() as db:
            db.execute("UPDATE outbox SET due = ?1 + (due - made), made = ?1 WHERE made > ?1 + ?2", (now, _CLOCK_SLACK))
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
        rows = [(batch.token, number, batch.batch_id) for number, batch in waiting]
        with self.storage.working() as db:
            db.executemany("UPDATE outbox SET token = ? WHERE id = ? AND batch_id = ?", rows)

    def settle(self, answered: Sequence[tuple[WaitingBatch, BatchOutcome]]) -> None:
        """Remove what the server has accepted or refused, and count it. (Row numbers are used again, batch ids not.)"""
        if not answered:
            return
        tally: dict[str, int] = {}
        with self.storage.working() as db:
            for (number, batch), outcome in answered:
                row = (number, batch.batch_id)
                if not db.execute("DELETE FROM outbox WHERE id = ? AND batch_id = ?", row).rowcount:
                    continue  # dropped meanwhile, or settled by another process
                name = "accepted" if isinstance(outcome, Accepted) else f"refused {outcome.reason}"
                tally[name] = tally.get(name, 0) + 1
                if isinstance(outcome, Accepted) and outcome.duplicate:
                    tally["duplicate"] = tally.get("duplicate", 0) + 1
            for name, number in tally.items():
                _count(db, name, number)


def _due(db: sqlite3.Connection, now: float, most: int, everything: bool, but: Group[bytes]) -> list[WaitingBatch]:
    rows = db.execute(
        "SELECT o.id, o.collection_id, o.batch_id, a.report, o.token FROM"
        " (SELECT * FROM outbox WHERE opens <= :now AND (due <= :now OR :all) ORDER BY batch_id LIMIT :most) o"
        " JOIN answers a ON a.id = o.answer ORDER BY o.batch_id",
        {"now": now, "all": everything, "most": most + len(but)},
    ).fetchall()
    return [WaitingBatch(row[0], Batch(*row[1:])) for row in rows if row[2] not in but][:most]


def _ahead(db: sqlite3.Connection, now: float) -> bool:
    return db.execute("SELECT 1 FROM outbox WHERE made > ? LIMIT 1", (now + _CLOCK_SLACK,)).fetchone() is not None


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
