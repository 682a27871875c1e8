"""Retention: folding reports into counts, dropping what is no longer needed, copying the log.

Folding is three steps, each of which may be the last before the power fails:
  1. the folded counts are written in parts, under a new generation that nothing refers to yet;
  2. one transaction makes the collection refer to them and, from then on, start reading after the folded sequence;
  3. the raw batches, their ids and the used tokens are dropped in slices, so that ingest is never held up for long.
A fold cut short after 1 leaves parts that `sweep` removes; cut short after 2, `sweep` goes on with 3.
From step 2 on the log takes no more batches of the collection: their ids are no longer known.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ldp_server.store.errors import StorageError, translated
from ldp_server.store.log import CollectionRecord
from ldp_server.store.schema import SEQUENCE_BITS, connect
from ldp_server.store.sqlite import SqliteLog

__all__ = ["backup", "fold_commit", "fold_parts", "folded_state", "sweep", "write_part"]

PART = 4_000_000
SLICE = 2000
SPARE_PAGES = 256
"""Free pages that are kept for the next batches rather than given back to the disk."""


def fold_parts(collection: int, generation: int, state: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """The rows that hold a state, for step 1."""
    for part, start in enumerate(range(0, max(1, len(state)), PART)):
        yield collection, generation, part, state[start : start + PART]


def write_part(log: SqliteLog, row: tuple[int, int, int, bytes]) -> None:
    """Write one part; one short transaction."""
    log.transaction(lambda db: db.execute("INSERT OR REPLACE INTO folded_state VALUES (?, ?, ?, ?)", row))


def fold_commit(
    log: SqliteLog,
    record: CollectionRecord,
    *,
    generation: int,
    size: int,
    sequence: int,
    batches: int,
    reports: int,
) -> None:
    """Step 2. Refuses if batches arrived after `sequence`, or the parts are not the `size` bytes written."""
    log.seal(record.number)

    def work(db: sqlite3.Connection) -> None:
        now = log.catalog.by_number(record.number)
        if now is None or now.generation != record.generation or log.last(record.number) != sequence:
            raise StorageError("the collection changed while it was being compacted: run it again")
        held = db.execute(
            "SELECT coalesce(sum(length(data)), 0) FROM folded_state WHERE collection = ? AND generation = ?",
            (record.number, generation),
        ).fetchone()[0]
        if held != size:
            raise StorageError("the folded counts are not all there: run it again")
        db.execute(
            "UPDATE collections SET folded = ?, folded_batches = ?, folded_reports = ?, generation = ? "
            "WHERE number = ?",
            (sequence, batches, reports, generation, record.number),
        )

    log.transaction(work)


def folded_state(db: sqlite3.Connection, path: Path, record: CollectionRecord) -> bytes | None:
    """The folded counts of a collection, if it was folded."""
    if record.generation is None:
        return None
    with translated(path):
        rows = db.execute(
            "SELECT data FROM folded_state WHERE collection = ? AND generation = ? ORDER BY part",
            (record.number, record.generation),
        ).fetchall()
    return b"".join(row[0] for row in rows)


def sweep(log: SqliteLog) -> bool:
    """Drop one slice of what nothing refers to any more; False when nothing is left."""
    for record in log.catalog.records():
        low, high = record.number << SEQUENCE_BITS, (record.number + 1) << SEQUENCE_BITS
        dead = high - 1 if record.deleted is not None else low + record.folded
        if _drop(log, record, low, dead):
            return True
    with translated(log.path):
        free = log.db.execute("PRAGMA freelist_count").fetchone()[0]
        if free > SPARE_PAGES:
            log.db.execute(f"PRAGMA incremental_vacuum({SLICE})").fetchall()
            return bool(log.db.execute("PRAGMA freelist_count").fetchone()[0] < free)
    return False


def _drop(log: SqliteLog, record: CollectionRecord, low: int, dead: int) -> bool:
    gone = record.deleted is not None or record.generation is not None
    keep = -1 if record.deleted is not None or record.generation is None else record.generation

    def work(db: sqlite3.Connection) -> int:
        removed = 0
        if dead > low:
            removed = db.execute(
                "DELETE FROM batches WHERE position IN (SELECT position FROM batches "
                "WHERE position > ? AND position <= ? LIMIT ?)",
                (low, dead, SLICE),
            ).rowcount
        if gone and not removed:
            removed = db.execute(
                "DELETE FROM used_tokens WHERE collection = ?1 AND token_id IN "
                "(SELECT token_id FROM used_tokens WHERE collection = ?1 LIMIT ?2)",
                (record.number, SLICE),
            ).rowcount
        if not removed:
            removed = db.execute(
                "DELETE FROM folded_state WHERE collection = ?1 AND generation != ?2", (record.number, keep)
            ).rowcount
        return removed

    return log.transaction(work) > 0


def backup(source: Path, target: Path) -> None:
    """Copy a log as of one moment, while a server may be writing it."""
    if target.exists():
        raise StorageError(f"{target} exists: a backup never overwrites")
    origin = connect(source, read_only=True)
    draft = target.with_name(target.name + ".draft")
    try:
        copy = connect(draft)
        try:
            with translated(target):
                origin.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
        with translated(target):
            draft.replace(target)
    finally:
        origin.close()
        draft.unlink(missing_ok=True)
