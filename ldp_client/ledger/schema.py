"""What the ledger's file looks like inside, and how to tell that it is sound: tables, state, check sums.

An entry of `answers` carries everything that a report changes: the answer, its charge, the totals up to it, the
ledger's generation and, until the outbox has it, the batch that it is sent as. So a report adds one row and rewrites
none. What changes the ledger without an entry (a lease, a reset, a newer list of collections) is written to the one row
of `state`, with the totals of that moment. The larger generation of the two is the ledger's.

What is missing shows: entries are numbered without a gap and each has the total before it; the newest has to reach what
the state's row knew; and where the newest itself is gone, so is its generation, which the witness remembers.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from ldp_client.coins import draw_words

__all__ = [
    "SCHEMA_VERSION",
    "Damaged",
    "LedgerEntry",
    "Recent",
    "Sending",
    "State",
    "check",
    "code",
    "create",
    "enter",
    "is_damage",
    "new_instance",
    "read_state",
    "redate",
    "verify",
    "write_state",
]

SCHEMA_VERSION = 2
_TABLES = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), instance BLOB NOT NULL, generation INTEGER NOT NULL,
    seen INTEGER NOT NULL, answers INTEGER NOT NULL, total INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE answers (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, at INTEGER NOT NULL,
    epsilon INTEGER NOT NULL, before INTEGER NOT NULL, question_id BLOB, slot INTEGER NOT NULL, report BLOB,
    question TEXT, collection_id BLOB, digest BLOB NOT NULL, batch_id BLOB, opens INTEGER, made REAL, due REAL);
CREATE UNIQUE INDEX answers_by_question ON answers (question_id, slot);
CREATE TABLE leases (token BLOB PRIMARY KEY, remaining INTEGER NOT NULL, expires INTEGER NOT NULL,
    digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE resets (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, found TEXT NOT NULL);
CREATE TABLE deliveries (collection_id BLOB, slot INTEGER, PRIMARY KEY (collection_id, slot)) WITHOUT ROWID;
CREATE TABLE outbox (id INTEGER PRIMARY KEY, batch_id BLOB NOT NULL, collection_id BLOB NOT NULL,
    payload BLOB NOT NULL, opens INTEGER NOT NULL, made REAL NOT NULL, due REAL NOT NULL, token BLOB,
    claimed REAL NOT NULL DEFAULT 0);
CREATE TABLE collected (one INTEGER PRIMARY KEY CHECK (one = 1), newest INTEGER NOT NULL);
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


class LedgerEntry(NamedTuple):
    """What a row of `answers` says of an answer, or of another charge.

    Entries are only ever added: numbered 1, 2, 3, ... and in the order of time.
    """

    id: int
    generation: int
    """The ledger's generation from this entry on."""
    at: int
    epsilon: int
    before: int
    """Everything charged before it."""
    question_id: bytes | None = None
    slot: int = 0
    report: bytes | None = None
    question: str | None = None
    collection_id: bytes | None = None

    def __repr__(self) -> str:
        return f"LedgerEntry({self.id})"


class Sending(NamedTuple):
    """What a row of `answers` says beside: how a new answer is to be sent, until the outbox has it (outbox.collect).

    No check sum covers it, as none covers the outbox: it can free no budget.
    """

    batch_id: bytes | None = None
    opens: int | None = None
    made: float | None = None
    due: float | None = None


Recent = tuple[int, int, int]
"""`id`, `at` and `before` of an entry."""


@dataclass(slots=True)
class State:
    """What the ledger comes to: its newest entry, and one row for whatever changes it without an entry.

    The row has the same numbers as of its last change. It only ever lags behind, and has to fit what came after it.
    """

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
    leases: bool = True
    """Whether there may be open leases; not stored."""
    changed: bool = False
    """Whether this transaction changed something besides `answers` that a rolled-back copy would undo."""
    entered: bool = False
    """Whether this transaction made an entry."""
    recent: Recent | None = None
    """The first entry of a period that ended not long ago (ledger.spending); not stored."""

    def settled(self) -> State:
        """Return the same at the beginning of the next transaction."""
        return State(self.instance, self.generation, self.seen, self.answers, self.total, self.leases)

    @property
    def grown(self) -> bool:
        """Whether this transaction makes a new generation."""
        return self.changed or self.entered


def create(db: sqlite3.Connection, state: State) -> None:
    """Make the tables and the first state, within the caller's transaction."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?, ?, ?)", _row(state))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _row(state: State) -> tuple[object, ...]:
    plain = (state.instance, state.generation, state.seen, state.answers, state.total)
    return (*plain, check(*plain))


_ENTRIES = (
    "SELECT id, generation, at, epsilon, before, question_id, slot, report, question, collection_id, digest"
    " FROM answers"
)
_ENTER = "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_state(db: sqlite3.Connection) -> State:
    """Return the state; Damaged if its row or the newest entry fails its check sum or they do not fit together."""
    row = db.execute(
        "SELECT instance, generation, seen, answers, total, digest, EXISTS (SELECT 1 FROM leases) FROM state"
    ).fetchone()
    if row is None or check(*row[:5]) != row[5]:
        raise Damaged("its state is damaged")
    instance, generation, seen, answers, total, _, leases = row
    state = State(instance, generation, seen, answers, total, bool(leases))
    newest = db.execute(_ENTRIES + " ORDER BY id DESC LIMIT 1").fetchone()
    if newest is None:
        if state.answers:
            raise Damaged("its entries are missing")
        return state
    entry = _entry(newest)
    total = entry.before + entry.epsilon
    if entry.id < state.answers or (entry.id == state.answers and total != state.total):
        raise Damaged("an entry is missing")
    state.generation, state.seen = max(state.generation, entry.generation), max(state.seen, entry.at)
    state.answers, state.total = entry.id, total
    return state


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    if check(*row[:-1]) != row[-1]:
        raise Damaged("an entry is damaged")
    return LedgerEntry(*row[:-1])


def write_state(db: sqlite3.Connection, state: State) -> None:
    """Store the state's row."""
    db.execute(
        "UPDATE state SET instance = ?, generation = ?, seen = ?, answers = ?, total = ?, digest = ?", _row(state)
    )


def enter(db: sqlite3.Connection, state: State, entry: LedgerEntry, sending: Sending) -> None:
    """Store the next entry."""
    db.execute(_ENTER, (*entry, check(*entry), *sending))
    state.seen, state.answers, state.total = entry.at, entry.id, entry.before + entry.epsilon
    state.entered = True


def verify(db: sqlite3.Connection) -> None:
    """Look at everything once: SQLite's own check, every row's check sum, running totals and the order of time."""
    if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise Damaged("SQLite finds it unsound")
    read_state(db)
    noted, total_noted = db.execute("SELECT answers, total FROM state").fetchone()
    total, number, generation, at = 0, 0, 0, 0
    for row in db.execute(_ENTRIES + " ORDER BY id"):
        entry = _entry(row)
        if number == noted and total != total_noted:
            raise Damaged("an entry is damaged")
        if (entry.id, entry.before) != (number + 1, total) or entry.generation < generation or entry.at < at:
            raise Damaged("an entry is missing")
        number, generation, at, total = entry.id, entry.generation, entry.at, total + entry.epsilon
    for *lease, digest in db.execute("SELECT token, remaining, expires, digest FROM leases"):
        if check(*lease) != digest:
            raise Damaged("a lease is damaged")


def redate(db: sqlite3.Connection, now: int) -> None:
    """Bring entries from the future to `now`, after a clock that had run far ahead. They count for a period from it."""
    for row in db.execute(_ENTRIES + " WHERE at > ?", (now,)).fetchall():
        entry = _entry(row)._replace(at=now)
        db.execute("UPDATE answers SET at = ?, digest = ? WHERE id = ?", (now, check(*entry), entry.id))
