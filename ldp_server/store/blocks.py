"""Blocks: where the order of arrival is forgotten.

Someone who reads the log must not learn which answers to two questions came one after the other, because then they come
from one device. So a batch is recent at first. When a period of a collection has `BLOCK` recent batches (or
`BLOCK_BYTES` of them), one transaction moves them to `batches` as a block. Each period has blocks of its own: what
lasts of a late report is its period and its block, and not that it was late. Inside a block the batches are in the
order of their ids, which devices draw at random: the rows, their pages and the pages of the indexes are what any other
order of arrival would have given. A block is final. What lasts is which block a batch is in.

Recent batches lie at random places (insert.py). But the bytes of a page show in which order its rows were written.
`lay_anew` deletes the recent rows of a collection and writes them again, in the order of their ids. The server does it
twice a minute where batches came, and when it stops and starts.

Every function works inside the caller's transaction. `number` is that of a period's row.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from ldp_server.store.damage import Row, check_recent
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import StoredBatch
from ldp_server.store.schema import SEQUENCE_BITS

__all__ = [
    "BLOCK",
    "BLOCK_BYTES",
    "check_all_recent",
    "finish",
    "held_bytes",
    "known",
    "last",
    "lay_anew",
    "recent",
    "recent_size",
    "tie",
    "unlaid",
]

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
_LOOKED_UP = (
    "SELECT i.place, i.batch_id FROM recent r NOT INDEXED JOIN recent i INDEXED BY recent_ids "
    "ON i.collection = ?1 AND i.batch_id = r.batch_id WHERE r.place > ?2 AND r.place < ?3"
)
_FINISH = (
    "INSERT INTO batches SELECT ?1 + row_number() OVER (ORDER BY batch_id), ?2, batch_id, digest, payload "
    "FROM recent WHERE place > ?3 AND place < ?4"
)
_TOKENS = (
    "INSERT INTO used_tokens SELECT collection, token_id FROM recent INDEXED BY recent_tokens "
    "WHERE collection = ? AND token_id IS NOT NULL AND place > ? AND place < ? ORDER BY token_id"
)


def _places(number: int) -> tuple[int, int]:
    return (number << SEQUENCE_BITS) - 1, (number + 1) << SEQUENCE_BITS


def last(db: sqlite3.Connection, number: int) -> int:
    """The sequence of the newest batch in a block, 0 before the first."""
    newest = db.execute("SELECT max(last) FROM blocks WHERE number = ?", (number,)).fetchone()[0]
    folded = db.execute("SELECT folded FROM periods WHERE number = ?", (number,)).fetchone()
    return max(newest or 0, folded[0] if folded else 0)


def tie(db: sqlite3.Connection, number: int, sequence: int) -> bytes | None:
    """The tie of the block that ends with this sequence."""
    row = db.execute("SELECT tie FROM blocks WHERE number = ? AND last = ?", (number, sequence)).fetchone()
    return None if row is None else row[0]


def recent_size(db: sqlite3.Connection, number: int) -> tuple[int, int]:
    """How many recent batches a period has, and how many bytes they hold."""
    count, size = db.execute(
        "SELECT count(*), coalesce(sum(length(payload)), 0) FROM recent WHERE place > ? AND place < ?",
        _places(number),
    ).fetchone()
    return count, size


def held_bytes(db: sqlite3.Connection, number: int) -> int:
    """How many bytes of payloads a period has, in blocks and recent."""
    size: int = db.execute("SELECT coalesce(sum(bytes), 0) FROM blocks WHERE number = ?", (number,)).fetchone()[0]
    return size + recent_size(db, number)[1]


def recent(db: sqlite3.Connection, number: int, collection: int) -> list[StoredBatch]:
    """The recent batches, in the order of their ids; raises `Corrupt` if rows are damaged or missing.

    Their places have gaps. So the rows are compared with the index of their ids: what one lacks, the other has. The
    index goes by collection, and a collection may have many periods. So the rows of a numbered period are looked up one
    by one, and `check_all_recent` finds what the rows lack.
    """
    rows: list[Row] = db.execute(
        "SELECT place, batch_id, payload, digest FROM recent WHERE place > ? AND place < ?", _places(number)
    ).fetchall()
    if number == collection:
        low, high = _places(number)
        index = db.execute(
            "SELECT place, batch_id FROM recent INDEXED BY recent_ids WHERE collection = ? AND place > ? AND place < ?",
            (collection, low, high),
        ).fetchall()
    else:
        index = db.execute(_LOOKED_UP, (collection, *_places(number))).fetchall()
    check_recent(rows, index)
    return sorted([StoredBatch(0, row[1], row[2]) for row in rows], key=lambda batch: batch.batch_id)


def check_all_recent(db: sqlite3.Connection, collection: int, numbers: Sequence[int]) -> None:
    """Raise `Corrupt` unless the index names as many recent batches of a collection as its periods have."""
    places = "SELECT count(*) FROM recent WHERE place > ? AND place < ?"
    found = sum(db.execute(places, _places(number)).fetchone()[0] for number in numbers)
    index = "SELECT count(*) FROM recent INDEXED BY recent_ids WHERE collection = ?"
    if db.execute(index, (collection,)).fetchone()[0] != found:
        raise Corrupt("recent batches of a collection are in no period: restore a backup (docs/operating.md)")


def known(db: sqlite3.Connection, number: int, collection: int, ids: Sequence[bytes]) -> bool:
    """Whether the log has all of these batches in this period."""
    low, high = _places(number)
    return all(
        db.execute(
            "SELECT 1 FROM recent WHERE collection = ?1 AND batch_id = ?2 AND place > ?3 AND place < ?4 UNION ALL "
            "SELECT 1 FROM batches WHERE collection = ?1 AND batch_id = ?2 AND position > ?3 AND position < ?4",
            (collection, one, low, high),
        ).fetchone()
        for one in ids
    )


def finish(db: sqlite3.Connection, number: int, collection: int, held: tuple[int, int]) -> int:
    """Put the recent batches of a period, `held` in number and bytes, into a block; return its last sequence."""
    newest = last(db, number)
    low, high = _places(number)
    moved = db.execute(_FINISH, ((number << SEQUENCE_BITS) + newest, collection, low, high)).rowcount
    if moved != held[0]:
        raise Corrupt("recent batches of a collection are missing: restore a backup (docs/operating.md)")
    db.execute(_TOKENS, (collection, low, high))
    db.execute("DELETE FROM recent WHERE place > ? AND place < ?", (low, high))
    if moved:
        db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", (number, newest + moved, os.urandom(16), held[1]))
    return newest + moved


def unlaid(db: sqlite3.Connection) -> set[int]:
    """The periods with recent batches."""
    return {row[0] for row in db.execute(f"SELECT DISTINCT place >> {SEQUENCE_BITS} FROM recent")}  # noqa: S608


def lay_anew(db: sqlite3.Connection, number: int, collection: int) -> None:
    """Write the recent batches of a period again, in the order of their ids."""
    low, high = _places(number)
    db.execute("CREATE TEMP TABLE IF NOT EXISTS laid (batch_id, digest, token_id, payload)")
    db.execute(_LAID, (low, high))
    db.execute("DELETE FROM main.recent WHERE place > ? AND place < ?", (low, high))
    db.execute(_LAY, (low + 1, collection, APART))
    db.execute("DELETE FROM temp.laid")
