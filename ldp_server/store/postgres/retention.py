"""Counts in the place of reports, and dropping what nothing needs any more.

As on SQLite (store/retention.py), folded counts are written in parts that nothing refers to. Then one transaction puts
them in force: it goes through only if the period is still as it was counted, and was not folded by anybody else. So two
processes may fold the same period at once, and one of them is told to look again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.store.log import Fold, FoldPart, PeriodRecord
from ldp_server.store.postgres.connecting import Connection

__all__ = ["Ask", "folded_counts", "put_in_force", "sweep_one", "write_part"]

Ask = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_PART = "SELECT data FROM hearsay.folded_state WHERE number = %s AND generation = %s AND part = %s"
_CHANGED = "the collection changed while it was being compacted: compact it again"
_ORPHANS = (
    "DELETE FROM hearsay.folded_state f WHERE (f.number, f.generation) IN (SELECT o.number, o.generation FROM "
    "hearsay.folded_state o LEFT JOIN hearsay.periods p ON p.number = o.number WHERE p.number IS NULL OR p.dropped OR "
    "p.generation <> o.generation OR (p.generation IS NULL AND o.written < now() - interval '1 day') LIMIT 1)"
)
_TO_SWEEP = (
    "SELECT p.number, p.collection FROM hearsay.periods p JOIN hearsay.collections k ON k.number = p.collection "
    "WHERE p.generation IS NOT NULL AND NOT p.swept AND NOT k.compacted AND k.deleted IS NULL ORDER BY p.number LIMIT 1"
)
_OF_COLLECTION = b"DELETE FROM hearsay.%s WHERE number IN (SELECT number FROM hearsay.periods WHERE collection = %%s)"
_OVER = (
    "SELECT number, deleted IS NOT NULL FROM hearsay.collections "
    "WHERE (compacted OR deleted IS NOT NULL) AND NOT swept ORDER BY number LIMIT 1"
)


def write_part(db: Connection, part: FoldPart) -> None:
    """Write one part of counts that nothing refers to yet."""
    statement = (
        "INSERT INTO hearsay.folded_state (number, generation, part, data) VALUES (%s, %s, %s, %s) "
        "ON CONFLICT (number, generation, part) DO UPDATE SET data = excluded.data"
    )
    db.execute(statement, part, binary=True)


def put_in_force(db: Connection, fold: Fold, collection: int) -> None:
    """Let a period begin with these counts, if it is as it was when they were made. In the caller's transaction."""
    size, digest = _digest(lambda query, values: db.execute(query.encode(), values, binary=True).fetchall(), fold)
    db.execute("SELECT pg_advisory_xact_lock(7900, %s)", (collection,))  # no batch comes in between
    if size != fold.size:
        raise StorageError("the folded counts are not all there: compact the collection again")
    changed = db.execute(
        "UPDATE hearsay.periods p SET folded = %s, folded_batches = %s, folded_reports = %s, generation = %s, "
        "folded_digest = %s WHERE p.number = %s AND p.generation IS NULL AND p.last = %s "
        "AND NOT EXISTS (SELECT FROM hearsay.segments s WHERE s.number = p.number)",
        (fold.sequence, fold.batches, fold.reports, fold.generation, digest, fold.number, fold.sequence),
    )
    if changed.rowcount != 1:
        raise StorageError(_CHANGED)


def folded_counts(ask: Ask, record: PeriodRecord) -> bytes | None:
    """The folded counts in force, if there are any; `Corrupt` if they are not what was written."""
    if record.generation is None or record.dropped:
        return None
    parts = list(_parts(ask, record.number, record.generation))
    digest = _begin(record.folded, record.folded_batches, record.folded_reports)
    for part in parts:
        digest.update(part)
    held = ask("SELECT folded_digest FROM hearsay.periods WHERE number = %s", (record.number,))
    if not held or bytes(held[0][0]) != digest.digest():
        raise Corrupt("the folded counts of a collection do not fit their digest: restore a backup")
    return b"".join(parts)


def _begin(sequence: int, batches: int, reports: int) -> hashlib._Hash:
    return hashlib.sha256(b"%d %d %d " % (sequence, batches, reports))


def _parts(ask: Ask, number: int, generation: int) -> Any:
    part = 0
    while rows := ask(_PART, (number, generation, part)):
        yield bytes(rows[0][0])
        part += 1


def _digest(ask: Ask, fold: Fold) -> tuple[int, bytes]:
    size, digest = 0, _begin(fold.sequence, fold.batches, fold.reports)
    for part in _parts(ask, fold.number, fold.generation):
        size += len(part)
        digest.update(part)
    return size, digest.digest()


def sweep_one(db: Connection) -> bool:
    """Drop one kind of what nothing refers to. In the caller's transaction; False when nothing is left."""
    if db.execute(_ORPHANS.encode()).rowcount:
        return True
    period = db.execute(_TO_SWEEP.encode()).fetchone()
    if period is not None:
        where = (period[1], period[0])
        db.execute("DELETE FROM hearsay.blocks WHERE collection = %s AND number = %s", where)
        db.execute("DELETE FROM hearsay.batch_ids WHERE collection = %s AND number = %s", where)
        db.execute("UPDATE hearsay.periods SET swept = true WHERE number = %s", (period[0],))
        return True
    over = db.execute(_OVER.encode()).fetchone()
    if over is None:
        return False
    number, deleted = over
    db.execute("SELECT hearsay.drop_partitions(%s)", (number,))
    if deleted:
        for table in (b"segments", b"folded_state"):
            db.execute(_OF_COLLECTION % table, (number,))
        db.execute("DELETE FROM hearsay.periods WHERE collection = %s", (number,))
    db.execute("DELETE FROM hearsay.recent_ids WHERE collection = %s", (number,))
    db.execute("UPDATE hearsay.collections SET swept = true WHERE number = %s", (number,))
    return True
