"""Blocks on PostgreSQL: where the order of arrival is forgotten (store/blocks.py says why).

Recent batches lie in segments, one for each group, and their ids in `recent_ids`. A block takes the place of the
segments of a period, in three steps:

  1. one transaction writes the block, in the order of the ids, enters the ids in the collection's partition, and
     deletes the segments. A reader sees the segments or the block, and never both;
  2. who appends at this moment may have looked before step 1, and not have found an id among the lasting ones. So for
     a moment the lock is taken that every append shares: whoever gets it afterwards finds the ids;
  3. only then the ids leave `recent_ids`.

If the process ends before step 3, ids are in both places, which changes nothing; `tidy` removes them.

What this does not reach: dead rows until PostgreSQL's vacuum, and its write-ahead log until it is recycled. Whoever
archives that log keeps the order of arrival as long as the archive (docs/scale-out.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from psycopg.errors import LockNotAvailable

from ldp_server.store import blocks
from ldp_server.store.errors import InUse, StorageError
from ldp_server.store.postgres.arrays import uuids, uuids_of
from ldp_server.store.postgres.connecting import Connection
from ldp_server.store.postgres.rows import together

__all__ = ["Laid", "finish", "full_periods", "lay_anew", "scattered", "tidy"]

_SIZES = "SELECT id, length(payload), batches FROM hearsay.segments WHERE number = %s"
_SEGMENTS = (
    "SELECT array_send(ids), array_send(digests), array_send(tokens), lengths, payload FROM hearsay.segments "
    "WHERE number = %s AND id = ANY(%s)"
)
_FULL = (
    "SELECT p.number, p.collection FROM hearsay.segments s JOIN hearsay.periods p ON p.number = s.number "
    "JOIN hearsay.collections k ON k.number = p.collection WHERE k.deleted IS NULL "
    "GROUP BY p.number, p.collection HAVING sum(s.batches) >= %s OR sum(length(s.payload)) >= %s"
)
_SCATTERED = (
    "SELECT p.number, p.collection FROM hearsay.segments s JOIN hearsay.periods p ON p.number = s.number "
    "JOIN hearsay.collections k ON k.number = p.collection WHERE k.deleted IS NULL "
    "GROUP BY p.number, p.collection HAVING count(*) > 1 LIMIT 100"
)


@dataclass(frozen=True)
class _Taken:
    """Batches of some segments, in the order of their ids."""

    segments: list[int]
    ids: list[bytes]
    digests: list[bytes]
    tokens: list[bytes] | None
    payloads: list[bytes]

    @property
    def lengths(self) -> list[int] | None:
        sizes = [len(payload) for payload in self.payloads]
        return None if len(set(sizes)) == 1 else sizes


def full_periods(db: Connection) -> list[tuple[int, int]]:
    """The periods that have enough recent batches for a block, each with its collection."""
    return [(int(str(a)), int(str(b))) for a, b in db.execute(_FULL.encode(), (blocks.BLOCK, blocks.BLOCK_BYTES))]


def scattered(db: Connection) -> list[tuple[int, int]]:
    """Periods whose recent batches lie in several segments, each with its collection."""
    return [(int(str(a)), int(str(b))) for a, b in db.execute(_SCATTERED.encode())]


class Laid(Enum):
    """What became of the recent batches of a period."""

    NOTHING = 0
    """There are none, or another process does it and we do not wait for it."""
    BLOCK = 1
    IDS_LEFT = 2
    """They are a block. A group under way is slow, so their ids are among the recent ones until `tidy`."""


def finish(db: Connection, number: int, collection: int, *, wait: bool) -> Laid:
    """Put recent batches of a period into a block."""
    with _laying(db, collection, wait=wait) as ours:
        taken = _finish(db, number, collection) if ours else None
        if taken is None:
            return Laid.NOTHING
        try:
            _barrier(db, collection)
        except LockNotAvailable:
            return Laid.IDS_LEFT
        db.execute(
            "DELETE FROM hearsay.recent_ids WHERE collection = %s AND batch_id = ANY(%s::uuid[])",
            (collection, uuids(taken.ids)),
        )
        return Laid.BLOCK


def _finish(db: Connection, number: int, collection: int) -> _Taken | None:
    """Step 1."""
    with db.transaction():
        row = db.execute("SELECT last FROM hearsay.periods WHERE number = %s FOR UPDATE", (number,)).fetchone()
        taken = _take(db, number, blocks.BLOCK_BYTES)
        if row is None or taken is None:
            return None
        ids, digests, last = uuids(taken.ids), uuids(taken.digests), int(str(row[0])) + len(taken.ids)
        lasting = (collection, number, last, len(taken.ids), ids, digests, taken.lengths, b"".join(taken.payloads))
        db.execute(
            "INSERT INTO hearsay.blocks (collection, number, last, batches, tie, ids, digests, lengths, payload) "
            "VALUES (%s, %s, %s, %s, gen_random_uuid(), %s, %s, %s, %s)",
            lasting,
            binary=True,
        )
        db.execute(
            "INSERT INTO hearsay.batch_ids (collection, number, batch_id, digest) "
            "SELECT %s, %s, g.i, g.d FROM unnest(%s::uuid[], %s::uuid[]) AS g(i, d)",
            (collection, number, ids, digests),
        )
        tokens = [token for token in taken.tokens or () if token]
        if tokens:
            db.execute(
                "INSERT INTO hearsay.used_tokens SELECT %s, t FROM unnest(%s::uuid[]) AS g(t)",
                (collection, uuids(sorted(tokens))),
            )
        _forget(db, number, taken.segments)
        db.execute("UPDATE hearsay.periods SET last = %s WHERE number = %s", (last, number))
        return taken


def lay_anew(db: Connection, number: int, collection: int) -> None:
    """Write the recent batches of a period, and their ids, again in the order of the ids: as one segment."""
    with _laying(db, collection, wait=False) as ours, db.transaction():
        taken = _take(db, number, blocks.BLOCK_BYTES) if ours else None
        if taken is None:
            return
        _forget(db, number, taken.segments)
        ids, digests = uuids(taken.ids), uuids(taken.digests)
        tokens = None if taken.tokens is None else uuids(taken.tokens)
        db.execute(
            "DELETE FROM hearsay.recent_ids WHERE collection = %s AND batch_id = ANY(%s::uuid[])", (collection, ids)
        )
        db.execute(
            "INSERT INTO hearsay.recent_ids (collection, number, batch_id, digest, token_id) "
            "SELECT %s, %s, g.i, g.d, g.t FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[]) AS g(i, d, t)",
            (collection, number, ids, digests, tokens),
        )
        place = int.from_bytes(os.urandom(7), "big")
        lasting = (place, number, len(taken.ids), ids, digests, tokens, taken.lengths, b"".join(taken.payloads))
        db.execute(b"INSERT INTO hearsay.segments VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", lasting, binary=True)


def tidy(db: Connection) -> None:
    """Remove the ids that an earlier process left among the recent ones after it had laid their block."""
    left = db.execute(
        "SELECT DISTINCT r.collection FROM hearsay.recent_ids r JOIN hearsay.batch_ids b "
        "ON b.collection = r.collection AND b.batch_id = r.batch_id"
    ).fetchall()
    for (collection,) in left:
        with _laying(db, int(str(collection)), wait=False) as ours:
            if ours:
                _barrier(db, int(str(collection)))
                db.execute(
                    "DELETE FROM hearsay.recent_ids r USING hearsay.batch_ids b WHERE r.collection = %s "
                    "AND b.collection = r.collection AND b.batch_id = r.batch_id",
                    (collection,),
                )


def _take(db: Connection, number: int, most: int) -> _Taken | None:
    """Read segments of a period, at least one and about `most` bytes of them, and put their batches in order."""
    chosen: list[int] = []
    size = 0
    for segment, length, _ in db.execute(_SIZES.encode(), (number,)).fetchall():
        if chosen and size + int(str(length)) > most:
            break
        chosen.append(int(str(segment)))
        size += int(str(length))
    if not chosen:
        return None
    rows = db.execute(_SEGMENTS.encode(), (number, chosen), binary=True).fetchall()
    return _in_order(chosen, rows)


def _in_order(chosen: list[int], rows: Sequence[Sequence[object]]) -> _Taken:
    found: list[tuple[bytes, bytes, bytes, bytes]] = []
    for ids, digests, tokens, lengths, payload in rows:
        assert isinstance(ids, bytes)  # noqa: S101 - asked for in binary
        assert isinstance(digests, bytes)  # noqa: S101
        assert isinstance(payload, bytes)  # noqa: S101
        held = together(ids, digests, lengths, payload)  # type: ignore[arg-type]
        names = [b""] * len(held.ids) if tokens is None else uuids_of(tokens)  # type: ignore[arg-type]
        found.extend(zip(held.ids, held.digests, names, held.payloads, strict=True))
    found.sort()
    named = [row[2] for row in found]
    return _Taken(
        chosen, [row[0] for row in found], [row[1] for row in found], named if any(named) else None,
        [row[3] for row in found],
    )  # fmt: skip


def _forget(db: Connection, number: int, segments: list[int]) -> None:
    gone = db.execute("DELETE FROM hearsay.segments WHERE number = %s AND id = ANY(%s)", (number, segments))
    if gone.rowcount != len(segments):
        raise StorageError("recent batches were laid by another process at the same time: this is tried again")


def _barrier(db: Connection, collection: int) -> None:
    """Step 2. While it waits for who is inside, nobody else gets in: so it does not wait for long."""
    with db.transaction():
        db.execute("SET LOCAL lock_timeout = '2s'")
        db.execute("SELECT pg_advisory_xact_lock(7900, %s)", (collection,))


@contextmanager
def _laying(db: Connection, collection: int, *, wait: bool) -> Iterator[bool]:
    """The right to lay the blocks of a collection: the session's, so that it ends with a process that is killed."""
    if wait:
        db.execute("SELECT pg_advisory_lock(7901, %s)", (collection,))
    else:
        row = db.execute("SELECT pg_try_advisory_lock(7901, %s)", (collection,)).fetchone()
        if row is None or not row[0]:
            yield False
            return
    try:
        yield True
    finally:
        if not db.closed and not db.broken:
            unlocked = db.execute("SELECT pg_advisory_unlock(7901, %s)", (collection,)).fetchone()
            if unlocked is None or not unlocked[0]:
                raise InUse("the right to lay blocks was lost")
