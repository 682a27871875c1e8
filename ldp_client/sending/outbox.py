"""The outbox: randomized bytes on their way. Items never come here.

A new answer is stored with its batch in one row (books.py), which is all that `report` waits for. Whoever looks at the
outbox moves new batches here first, and so the bound below holds whenever somebody looks.

A batch holds one report and a random id; both stay the same on every retry, so the server counts it once however often
it arrives. Each batch is due at a random moment after it was made, and batches leave in the order of their random ids,
so that neither the time nor the order of sending tells when something happened. The outbox is bounded; when it is full
the oldest batch is dropped and counted. Its charge stays: the report was made.

Several processes share one outbox: a sender claims batches for a while before it sends them. If it dies, the claim
runs out. Two senders with the same batch would do no harm, only work.

Every function runs within a transaction of storage.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.sending.transport import Accepted, Batch, BatchOutcome

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = [
    "CLAIM_SECONDS",
    "Claimed",
    "OutboxLimits",
    "OutboxView",
    "claim",
    "collect",
    "count",
    "counters",
    "enqueue",
    "is_new",
    "keep_tokens",
    "next_due",
    "release",
    "settle",
    "view",
]

CLAIM_SECONDS = 120.0
_ROW_BYTES = 128
"""What a queued batch takes besides its payload, roughly."""


class OutboxLimits(NamedTuple):
    """How much the outbox holds before it drops its oldest batches."""

    batches: int = 20_000
    bytes: int = 16_000_000


class Claimed(NamedTuple):
    """A batch that this sender may send for a while."""

    id: int
    batch: Batch


class OutboxView(NamedTuple):
    """What waits, and what became of the rest."""

    waiting: int
    bytes: int
    oldest: float | None
    next_due: float | None
    counters: Mapping[str, int]


def is_new(db: sqlite3.Connection, collection: Collection, slot: int) -> bool:
    """Whether a standing answer has not been queued for this other window before; notes that it now is."""
    return db.execute("INSERT OR IGNORE INTO deliveries VALUES (?, ?)", (collection.id, slot)).rowcount > 0


def collect(db: sqlite3.Connection, limits: OutboxLimits) -> None:
    """Move what was made since the last time from the answers to here. Whoever looks at the outbox does this first."""
    if _move(db):
        _trim(db, limits)


def enqueue(
    db: sqlite3.Connection, collection: Collection, payload: bytes, batch_id: bytes, made: float, due: float,
    limits: OutboxLimits,
) -> None:  # fmt: skip
    """Queue a standing answer for another window, behind what was made before."""
    _move(db)
    db.execute(
        "INSERT INTO outbox (batch_id, collection_id, payload, opens, made, due) VALUES (?, ?, ?, ?, ?, ?)",
        (batch_id, collection.id, payload, collection.opens, made, due),
    )
    _trim(db, limits)


def _move(db: sqlite3.Connection) -> bool:
    """Queue new answers and forget their batches there; True if there were any.

    `collected` only says where to begin to look: an answer whose batch was taken over cannot be queued again.
    """
    begin, newest = db.execute(
        "SELECT coalesce((SELECT newest FROM collected), 0), coalesce(max(id), 0) FROM answers"
    ).fetchone()
    if newest <= begin:
        return False
    db.execute(
        "INSERT INTO outbox (batch_id, collection_id, payload, opens, made, due)"
        " SELECT batch_id, collection_id, report, opens, made, due FROM answers"
        " WHERE id > ? AND batch_id IS NOT NULL ORDER BY id",
        (begin,),
    )
    db.execute("UPDATE answers SET batch_id = NULL, opens = NULL, made = NULL, due = NULL WHERE id > ?", (begin,))
    db.execute("INSERT OR REPLACE INTO collected VALUES (1, ?)", (newest,))
    return True


def _trim(db: sqlite3.Connection, limits: OutboxLimits) -> None:
    """Drop the oldest while there are too many."""
    held, size = _size(db)
    dropped = 0
    while held > 1 and (held > limits.batches or size > limits.bytes):
        number, length = db.execute("SELECT id, length(payload) FROM outbox ORDER BY id LIMIT 1").fetchone()
        db.execute("DELETE FROM outbox WHERE id = ?", (number,))
        held, size, dropped = held - 1, size - length - _ROW_BYTES, dropped + 1
    count(db, "dropped", dropped)


def _size(db: sqlite3.Connection) -> tuple[int, int]:
    row = db.execute("SELECT count(*), coalesce(sum(length(payload)), 0) FROM outbox").fetchone()
    return row[0], row[1] + _ROW_BYTES * row[0]


def claim(db: sqlite3.Connection, now: float, most: int, *, everything: bool = False) -> list[Claimed]:
    """Take up to `most` batches that are due (or all that may be sent at all) for this sender."""
    # A clock that went back must not hold anything up for longer than its delay was meant to be.
    db.execute("UPDATE outbox SET due = ? + (due - made), made = ? WHERE made > ? + 60", (now, now, now))
    rows = db.execute(
        "SELECT id, collection_id, batch_id, payload, token FROM outbox WHERE opens <= :now AND (due <= :now OR :all)"
        " AND (claimed <= :now OR claimed > :now + :claim) ORDER BY batch_id LIMIT :most",
        {"now": now, "all": everything, "claim": CLAIM_SECONDS, "most": most},
    ).fetchall()
    db.executemany("UPDATE outbox SET claimed = ? WHERE id = ?", [(now + CLAIM_SECONDS, row[0]) for row in rows])
    return [Claimed(row[0], Batch(row[1], row[2], row[3], row[4])) for row in rows]


def keep_tokens(db: sqlite3.Connection, claimed: Iterable[Claimed]) -> None:
    """Store admission tokens beside their batches: a retry shows the same one."""
    rows = [(batch.token, number, batch.batch_id) for number, batch in claimed]
    db.executemany("UPDATE outbox SET token = ? WHERE id = ? AND batch_id = ?", rows)


def release(db: sqlite3.Connection, claimed: Iterable[Claimed]) -> None:
    """Give claimed batches back."""
    rows = [(number, batch.batch_id) for number, batch in claimed]
    db.executemany("UPDATE outbox SET claimed = 0 WHERE id = ? AND batch_id = ?", rows)


def settle(db: sqlite3.Connection, answered: Iterable[tuple[Claimed, BatchOutcome]]) -> None:
    """Take out what the server has accepted or refused, and count it. (Row numbers come again; batch ids do not.)"""
    tally: dict[str, int] = {}
    for claimed, outcome in answered:
        row = (claimed.id, claimed.batch.batch_id)
        if not db.execute("DELETE FROM outbox WHERE id = ? AND batch_id = ?", row).rowcount:
            continue  # another sender was faster
        name = "accepted" if isinstance(outcome, Accepted) else f"refused {outcome.reason}"
        tally[name] = tally.get(name, 0) + 1
        if isinstance(outcome, Accepted) and outcome.duplicate:
            tally["duplicate"] = tally.get("duplicate", 0) + 1
    for name, number in tally.items():
        count(db, name, number)


def count(db: sqlite3.Connection, name: str, number: int = 1) -> None:
    """Add to a counter."""
    if number:
        db.execute("INSERT OR IGNORE INTO counters VALUES (?, 0)", (name,))
        db.execute("UPDATE counters SET value = value + ? WHERE name = ?", (number, name))


def counters(db: sqlite3.Connection) -> dict[str, int]:
    """Return all counters."""
    return dict(db.execute("SELECT name, value FROM counters ORDER BY name").fetchall())


def next_due(db: sqlite3.Connection) -> float | None:
    """Return when the next batch is due; None if nothing waits."""
    found: float | None = db.execute("SELECT min(max(due, opens, claimed)) FROM outbox").fetchone()[0]
    return found


def view(db: sqlite3.Connection) -> OutboxView:
    """Return what waits."""
    waiting, size = _size(db)
    oldest, due = db.execute("SELECT min(made), min(due) FROM outbox").fetchone()
    return OutboxView(waiting, size, oldest, due, counters(db))
