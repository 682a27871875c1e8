"""Retention on SQLite: replacing reports by counts, and dropping what is no longer needed.

Folding a period is three steps, and the power may fail after each of them:
  1. the folded counts are written in parts, under a new generation that nothing refers to yet;
  2. one transaction makes the period's row refer to them; from then on counting starts after the folded sequence;
  3. the batches, their ids and the used tokens are dropped in slices, so that ingest never waits for long.
If it fails after step 1, `sweep_slice` removes the parts. If it fails after step 2, `sweep_slice` goes on with step 3.
From step 2 on the log takes no more batches of the period, because their ids are no longer known. The used tokens of a
collection stay until all of its periods are folded: a token is for any period.

Every function works inside the caller's transaction. `number` is that of a period's row.
"""

from __future__ import annotations

import hashlib
import sqlite3

from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.store.log import CollectionRecord, Fold, FoldPart, PeriodRecord
from ldp_server.store.schema import SEQUENCE_BITS

__all__ = ["folded_state", "give_back", "put_in_force", "sweep_slice", "sweep_tokens", "write_part"]

SLICE = 2000
SPARE_PAGES = 256
"""Free pages that are kept for the next batches and not given back to the disk."""


def write_part(db: sqlite3.Connection, part: FoldPart) -> None:
    """Step 1, one part of it."""
    db.execute("INSERT OR REPLACE INTO folded_state VALUES (?, ?, ?, ?)", part)


def put_in_force(db: sqlite3.Connection, fold: Fold) -> None:
    """Step 2. Refuses parts that are not the `size` bytes written."""
    held = db.execute(
        "SELECT coalesce(sum(length(data)), 0) FROM folded_state WHERE number = ? AND generation = ?",
        (fold.number, fold.generation),
    ).fetchone()[0]
    if held != fold.size:
        raise StorageError("the folded counts are not all there: compact the collection again")
    digest = _digest(fold.sequence, fold.batches, fold.reports, _parts(db, fold.number, fold.generation))
    db.execute(
        "UPDATE periods SET folded = ?, folded_batches = ?, folded_reports = ?, generation = ?, folded_digest = ? "
        "WHERE number = ?",
        (fold.sequence, fold.batches, fold.reports, fold.generation, digest, fold.number),
    )


def folded_state(db: sqlite3.Connection, record: PeriodRecord) -> bytes | None:
    """The folded counts in force, if there are any; raises `Corrupt` if they are not what was written."""
    if record.generation is None or record.dropped:
        return None
    state = _parts(db, record.number, record.generation)
    held = db.execute("SELECT folded_digest FROM periods WHERE number = ?", (record.number,)).fetchone()
    if held is None or held[0] != _digest(record.folded, record.folded_batches, record.folded_reports, state):
        raise Corrupt("the folded counts of a collection do not fit their digest: restore a backup")
    return state


def _parts(db: sqlite3.Connection, number: int, generation: int) -> bytes:
    rows = db.execute(
        "SELECT data FROM folded_state WHERE number = ? AND generation = ? ORDER BY part", (number, generation)
    )
    return b"".join([row[0] for row in rows])


def _digest(sequence: int, batches: int, reports: int, state: bytes) -> bytes:
    return hashlib.sha256(b"%d %d %d " % (sequence, batches, reports) + state).digest()


def sweep_slice(db: sqlite3.Connection, record: PeriodRecord) -> bool:
    """Step 3, or the end of a deletion, for one period: drop one slice. False when nothing is left to drop."""
    removed = _drop_batches(db, record)
    if not removed and (record.deleted or record.generation is not None):
        removed = _drop_of(db, "blocks", "last", "number", record.number)
    if not removed:
        in_force = -1 if record.deleted or record.dropped or record.generation is None else record.generation
        removed = db.execute(
            "DELETE FROM folded_state WHERE number = ?1 AND generation != ?2", (record.number, in_force)
        ).rowcount
    return removed > 0


def sweep_tokens(db: sqlite3.Connection, record: CollectionRecord) -> bool:
    """Drop a slice of the used tokens and counted units of a collection that takes no more batches; after a deletion,
    of its periods.
    """
    if record.deleted is None and not record.compacted:
        return False
    removed = _drop_of(db, "used_tokens", "token_id", "collection", record.number)
    removed = removed or _drop_of(db, "counted_units", "digest", "collection", record.number)
    if not removed and record.deleted is not None:
        removed = _drop_of(db, "periods", "number", "collection", record.number)
    return removed > 0


def _drop_batches(db: sqlite3.Connection, record: PeriodRecord) -> int:
    low, high = record.number << SEQUENCE_BITS, (record.number + 1) << SEQUENCE_BITS
    last = high - 1 if record.deleted else low + record.folded
    removed = _drop_rows(db, "batches", "position", low, last) if last > low else 0
    if record.deleted and not removed:
        removed = _drop_rows(db, "recent", "place", low - 1, high - 1)
    return removed


def _drop_rows(db: sqlite3.Connection, table: str, key: str, after: int, last: int) -> int:
    rows = f"SELECT {key} FROM {table} WHERE {key} > ? AND {key} <= ? LIMIT ?"  # noqa: S608 - names from above
    return db.execute(f"DELETE FROM {table} WHERE {key} IN ({rows})", (after, last, SLICE)).rowcount  # noqa: S608


def _drop_of(db: sqlite3.Connection, table: str, key: str, owner: str, number: int) -> int:
    rows = f"SELECT {key} FROM {table} WHERE {owner} = ?1 LIMIT ?2"  # noqa: S608 - names from above
    drop = f"DELETE FROM {table} WHERE {owner} = ?1 AND {key} IN ({rows})"  # noqa: S608
    return db.execute(drop, (number, SLICE)).rowcount


def give_back(db: sqlite3.Connection) -> bool:
    """Give a slice of free pages back to the disk. Outside of a transaction; False when there was nothing to give."""
    free: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    if free <= SPARE_PAGES:
        return False
    # By a script: `execute` would end after the first page, because the pragma's rows have no columns.
    db.executescript(f"PRAGMA incremental_vacuum({min(SLICE, free - SPARE_PAGES)})")
    return bool(db.execute("PRAGMA freelist_count").fetchone()[0] < free)
