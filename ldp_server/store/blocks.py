"""Blocks: where the order of arrival is forgotten.

Someone who reads the log must not learn which answers to two questions came one after the other, because then they come
from one device. So a batch is recent at first. When a collection has `BLOCK` recent batches (or `BLOCK_BYTES` of them),
one transaction moves them to `batches` as a block. Inside a block the batches are in the order of their ids, which
devices draw at random: the rows, their pages and the pages of the indexes are what any other order of arrival would
have given. A block is final. What lasts is which block a batch is in.

Recent batches lie at random places (insert.py). But the bytes of a page show in which order its rows were written.
`lay_anew` deletes the recent rows of a collection and writes them again, in the order of their ids. The server does it
twice a minute where batches came, and when it stops and starts.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from ldp_server.store.damage import Row, check_recent
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import StoredBatch
from ldp_server.store.schema import SEQUENCE_BITS

__all__ = ["BLOCK", "BLOCK_BYTES", "finish", "known", "last", "lay_anew", "recent", "recent_size", "tie", "unlaid"]

BLOCK = 1024
BLOCK_BYTES = 16_000_000
APART = 28
"""Rows that are laid anew get places about 2^28 apart, so no two the same: fewer than 2^11 of them fit."""

_LAID = (
    "INSERT INTO temp.laid SELECT batch_id, digest, token_id, payload FROM main.recent WHERE place > ? AND place < ?"
)
_LAY = (
    "INSERT INTO main.recent SELECT ?1 + (row_number() OVER (ORDER BY batch_id) << ?3) + (random() & ((1 << ?3) - 1)), "
    "?2, batch_id, digest, token_id, payload FROM temp.laid ORDER BY batch_id"
)
_FINISH = (
    "INSERT INTO batches SELECT ?1 + row_number() OVER (ORDER BY batch_id), ?2, batch_id, digest, payload "
    "FROM recent WHERE place > ?3 AND place < ?4"
)
_TOKENS = (
    "INSERT INTO used_tokens SELECT collection, token_id FROM recent INDEXED BY recent_tokens "
    "WHERE collection = ? AND token_id IS NOT NULL ORDER BY token_id"
)


def _places(collection: int) -> tuple[int, int]:
    return (collection << SEQUENCE_BITS) - 1, (collection + 1) << SEQUENCE_BITS


def last(db: sqlite3.Connection, collection: int) -> int:
    """The sequence of the newest batch in a block, 0 before the first."""
    newest = db.execute("SELECT max(last) FROM blocks WHERE collection = ?", (collection,)).fetchone()[0]
    folded = db.execute("SELECT folded FROM collections WHERE number = ?", (collection,)).fetchone()
    return max(newest or 0, folded[0] if folded else 0)


def tie(db: sqlite3.Connection, collection: int, sequence: int) -> bytes | None:
    """The tie of the block that ends with this sequence."""
    row = db.execute("SELECT tie FROM blocks WHERE collection = ? AND last = ?", (collection, sequence)).fetchone()
    return None if row is None else row[0]


def recent_size(db: sqlite3.Connection, collection: int) -> tuple[int, int]:
    """How many recent batches a collection has, and how many bytes they hold."""
    count, size = db.execute(
        "SELECT count(*), coalesce(sum(length(payload)), 0) FROM recent WHERE place > ? AND place < ?",
        _places(collection),
    ).fetchone()
    return count, size


def recent(db: sqlite3.Connection, collection: int) -> list[StoredBatch]:
    """The recent batches, in the order of their ids; raises `Corrupt` if rows are damaged or missing.

    Their places have gaps. So the rows are compared with the index of their ids: what one lacks, the other has.
    """
    rows: list[Row] = db.execute(
        "SELECT place, batch_id, payload, digest FROM recent WHERE place > ? AND place < ?", _places(collection)
    ).fetchall()
    index = db.execute(
        "SELECT place, batch_id FROM recent INDEXED BY recent_ids WHERE collection = ?", (collection,)
    ).fetchall()
    check_recent(rows, index)
    return sorted([StoredBatch(0, row[1], row[2]) for row in rows], key=lambda batch: batch.batch_id)


def known(db: sqlite3.Connection, collection: int, ids: Sequence[bytes]) -> bool:
    """Whether the log has all of these batches."""
    return all(
        db.execute(
            "SELECT 1 FROM recent WHERE collection = ?1 AND batch_id = ?2 "
            "UNION ALL SELECT 1 FROM batches WHERE collection = ?1 AND batch_id = ?2",
            (collection, one),
        ).fetchone()
        for one in ids
    )


def finish(db: sqlite3.Connection, collection: int, count: int) -> int:
    """Put the `count` recent batches of a collection into a block; return its last sequence."""
    newest = last(db, collection)
    low, high = _places(collection)
    moved = db.execute(_FINISH, ((collection << SEQUENCE_BITS) + newest, collection, low, high)).rowcount
    if moved != count:
        raise Corrupt("recent batches of a collection are missing: restore a backup (docs/operating.md)")
    db.execute(_TOKENS, (collection,))
    db.execute("DELETE FROM recent WHERE place > ? AND place < ?", (low, high))
    if moved:
        db.execute("INSERT INTO blocks VALUES (?, ?, ?)", (collection, newest + moved, os.urandom(16)))
    return newest + moved


def unlaid(db: sqlite3.Connection) -> set[int]:
    """The collections with recent batches."""
    return {row[0] for row in db.execute("SELECT DISTINCT collection FROM recent")}


def lay_anew(db: sqlite3.Connection, collection: int) -> None:
    """Write the recent batches of a collection again, in the order of their ids."""
    low, high = _places(collection)
    db.execute("CREATE TEMP TABLE IF NOT EXISTS laid (batch_id, digest, token_id, payload)")
    db.execute(_LAID, (low, high))
    db.execute("DELETE FROM main.recent WHERE place > ? AND place < ?", (low, high))
    db.execute(_LAY, (low + 1, collection, APART))
    db.execute("DELETE FROM temp.laid")
