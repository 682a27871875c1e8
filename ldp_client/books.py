"""What the ledger's file looks like inside, and how to tell that it is sound: tables, the state's row, check sums."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from ldp_client.coins import draw_words

__all__ = [
    "SCHEMA_VERSION",
    "Damaged",
    "State",
    "answer_check",
    "check",
    "code",
    "create",
    "is_damage",
    "new_instance",
    "read_state",
    "redate",
    "verify",
    "write_state",
]

SCHEMA_VERSION = 1
_TABLES = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), instance BLOB NOT NULL, generation INTEGER NOT NULL,
    seen INTEGER NOT NULL, answers INTEGER NOT NULL, total INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE answers (id INTEGER PRIMARY KEY, question_id BLOB, slot INTEGER NOT NULL, at INTEGER NOT NULL,
    epsilon INTEGER NOT NULL, before INTEGER NOT NULL, report BLOB, collection_id BLOB, question TEXT,
    digest BLOB NOT NULL);
CREATE UNIQUE INDEX answers_by_question ON answers (question_id, slot);
CREATE TABLE leases (token BLOB PRIMARY KEY, remaining INTEGER NOT NULL, expires INTEGER NOT NULL,
    digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE resets (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, found TEXT NOT NULL);
CREATE TABLE deliveries (collection_id BLOB, slot INTEGER, PRIMARY KEY (collection_id, slot)) WITHOUT ROWID;
CREATE TABLE outbox (id INTEGER PRIMARY KEY, batch_id BLOB NOT NULL, collection_id BLOB NOT NULL,
    payload BLOB NOT NULL, opens INTEGER NOT NULL, made REAL NOT NULL, due REAL NOT NULL, token BLOB,
    claimed REAL NOT NULL DEFAULT 0);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE trusted (one INTEGER PRIMARY KEY CHECK (one = 1), list_bytes BLOB NOT NULL, signer BLOB NOT NULL,
    retired BLOB NOT NULL, digest BLOB NOT NULL);
"""


class Damaged(Exception):
    """The file's contents do not fit together; the text says what does not."""


def code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame: unsound, no database, or without the tables and columns that it should have."""
    return code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def new_instance() -> bytes:
    """Return a name for a ledger that no other has."""
    return b"".join(word.to_bytes(8, "little") for word in draw_words(2))


def check(*fields: object) -> bytes:
    """Return the check sum of a row: it finds accidents, not forgers."""
    return blake2b(repr(fields).encode(), digest_size=8).digest()


_state_check = lru_cache(maxsize=2, typed=True)(check)
"""The same: a transaction mostly reads the row that the last one wrote."""


def answer_check(row: Sequence[object]) -> bytes:
    """Return the check sum of a row of `answers`: all its columns between id and digest."""
    return check(*row)


@dataclass
class State:
    """The one row that sums the ledger up."""

    instance: bytes
    """16 random bytes, made with the file."""
    generation: int
    """How often this ledger was changed."""
    seen: int
    """The latest second that the ledger knows of; it never goes back."""
    answers: int
    """How many rows `answers` has."""
    total: int
    """Everything ever charged, open leases not included, in the units of policy.py."""
    changed: bool = False
    """Whether this transaction changed anything that a rolled-back copy would undo."""
    recent: int = 0
    """An entry before which none is recent (ledger.spending); not stored."""
    leases: bool = True
    """Whether there may be open leases; not stored."""

    def fields(self) -> tuple[object, ...]:
        """Return the row as it is stored, with its check sum."""
        plain = (self.instance, self.generation, self.seen, self.answers, self.total)
        return (*plain, _state_check(*plain))


def create(db: sqlite3.Connection, state: State) -> None:
    """Make the tables and the first state, within the caller's transaction."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?, ?, ?)", state.fields())
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def read_state(db: sqlite3.Connection) -> State:
    """Return the state; Damaged if it is missing or fails its check sum."""
    row = db.execute(
        "SELECT instance, generation, seen, answers, total, digest, EXISTS (SELECT 1 FROM leases) FROM state"
    ).fetchone()
    if row is None or _state_check(*row[:5]) != row[5]:
        raise Damaged("its state is damaged")
    instance, generation, seen, answers, total, _, leases = row
    return State(instance, generation, seen, answers, total, leases=bool(leases))


def write_state(db: sqlite3.Connection, state: State) -> None:
    """Store the state."""
    db.execute(
        "UPDATE state SET instance = ?, generation = ?, seen = ?, answers = ?, total = ?, digest = ?", state.fields()
    )


def verify(db: sqlite3.Connection) -> None:
    """Look at everything once: SQLite's own check, every row's check sum, running totals and the order of time."""
    if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise Damaged("SQLite finds it unsound")
    state = read_state(db)
    total, count, last = 0, 0, 0
    for *row, digest in db.execute(
        "SELECT question_id, slot, at, epsilon, before, report, collection_id, question, digest"
        " FROM answers ORDER BY id"
    ):
        if answer_check(row) != digest or total != row[4] or row[2] < last:
            raise Damaged("an entry is damaged")
        total, count, last = total + row[3], count + 1, row[2]
    if (total, count) != (state.total, state.answers) or last > state.seen:
        raise Damaged("an entry is missing")
    for *lease, digest in db.execute("SELECT token, remaining, expires, digest FROM leases"):
        if check(*lease) != digest:
            raise Damaged("a lease is damaged")


def redate(db: sqlite3.Connection, now: int) -> None:
    """Bring entries from the future to `now`, after a clock that had run far ahead. They count for a period from it."""
    for number, question_id, slot, _, *rest, _ in db.execute("SELECT * FROM answers WHERE at > ?", (now,)).fetchall():
        digest = answer_check((question_id, slot, now, *rest))
        db.execute("UPDATE answers SET at = ?, digest = ? WHERE id = ?", (now, digest, number))
