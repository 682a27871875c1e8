"""The rows of SQLite that a piece becomes."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from ldp_server.moving.ends import PeriodRow, RecordRow, TokenRows
from ldp_server.moving.pieces import Batches, Key, Piece, PieceKind
from ldp_server.store.access import AccessFile
from ldp_server.store.catalog import period_check
from ldp_server.store.errors import translated
from ldp_server.store.schema import SEQUENCE_BITS, connect, transaction
from ldp_server.volunteers.kept import KeptRecords

__all__ = ["SLICED", "owner_of", "put"]

SLICED = {PieceKind.TOKENS: ("used_tokens", "token_id"), PieceKind.UNITS: ("counted_units", "digest")}
"""Tables that are moved in slices, in the order of a column."""


def put(db: sqlite3.Connection, piece: Piece, tokens: Path, records: Path) -> None:
    """Insert a piece. Analysts' tokens and volunteers' records go to files of their own."""
    kind, rows = PieceKind(piece.key.kind), cast(Any, piece.values)
    if kind is PieceKind.COLLECTIONS:
        db.executemany("INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", rows)
    elif kind is PieceKind.PERIODS:
        _put_periods(db, rows)
    elif kind is PieceKind.BLOCK:
        _put_block(db, piece.key, *rows)
    elif kind is PieceKind.RECENT:
        _put_recent(db, piece.key.owner, Batches(*rows))
    elif kind is PieceKind.COUNTS:
        db.execute(
            "INSERT INTO folded_state VALUES (?, ?, ?, ?)", (piece.key.owner, rows[0], piece.key.part - 1, rows[1])
        )
    elif kind is PieceKind.ACCESS:
        _put_access(tokens, *rows)
    elif kind is PieceKind.VOLUNTEERS:
        _put_records(records, rows)
    else:
        table = SLICED[kind][0]
        db.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(piece.key.owner, name) for name in rows[0]])  # noqa: S608


def _put_periods(db: sqlite3.Connection, rows: Sequence[PeriodRow]) -> None:
    columns = (
        "number, collection, period, folded, folded_batches, folded_reports, generation, folded_digest, dropped, tag"
    )
    tagged = [(*row[:3], *row[4:], period_check(*row[:3])) for row in rows]
    db.executemany(f"INSERT INTO periods ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", tagged)  # noqa: S608
    db.execute(
        "UPDATE collections SET periods = (SELECT count(*) FROM periods p WHERE p.collection = collections.number)"
    )


def owner_of(db: sqlite3.Connection, number: int) -> int:
    """The collection of a period, by the number of its record."""
    return int(db.execute("SELECT collection FROM periods WHERE number = ?", (number,)).fetchone()[0])


def _put_block(
    db: sqlite3.Connection,
    key: Key,
    tie: bytes,
    ids: Sequence[bytes],
    digests: Sequence[bytes],
    payloads: Sequence[bytes],
) -> None:
    owner, first = owner_of(db, key.owner), (key.owner << SEQUENCE_BITS) + key.part - len(ids) + 1
    rows = [(position, owner, *row) for position, row in enumerate(zip(ids, digests, payloads, strict=True), first)]
    db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", rows)
    size = sum(map(len, payloads))
    db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", (key.owner, key.part, tie, size))


def _put_recent(db: sqlite3.Connection, number: int, held: Batches) -> None:
    """At random places that grow with the ids."""
    owner, low = owner_of(db, number), number << SEQUENCE_BITS
    step = (1 << SEQUENCE_BITS) // (len(held.ids) + 1)
    places = [low + place * step + secrets.randbelow(step) for place in range(len(held.ids))]
    rows = [
        (place, owner, name, digest, token or None, payload)
        for place, (name, digest, payload, token) in zip(places, zip(*held, strict=True), strict=True)
    ]
    db.executemany("INSERT INTO recent VALUES (?, ?, ?, ?, ?, ?)", rows)


def _put_access(path: Path, salt: bytes, rows: TokenRows) -> None:
    """A file of its own, whole or not at all."""
    path.unlink(missing_ok=True)
    AccessFile(path, lambda: 0.0).close()
    with translated(path):
        db = sqlite3.connect(path, isolation_level=None)
        with closing(db), transaction(db):
            db.execute("UPDATE salt SET salt = ?", (salt,))
            db.executemany("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _put_records(path: Path, rows: Sequence[RecordRow]) -> None:
    """A transaction before the one that notes the piece. What an attempt without a note has left is replaced."""
    KeptRecords(path).close()
    with translated(path), closing(connect(path)) as db, transaction(db):
        db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, 0, ?)", rows)
