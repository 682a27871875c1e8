"""The tables of the ledger's file, its state, and the check sums that show whether it is sound.

An entry of `answers` holds everything that a report changes in the ledger: the answer, its charge, the total before it
and the ledger's generation. So a report adds one entry and rewrites none. A change without an entry (a lease, a reset,
a newer signed list) is written to the one row of `state`, with the totals of that moment. The larger generation of the
two is the ledger's.

Missing rows are detected. Entries are numbered without gaps, and each has the total before it. The newest entry must
reach what the row of `state` noted. If the newest entry itself is gone, the ledger's generation is below the witness's.

The table `outbox` lies in the same file, so that a charge and the batch that it pays for are one transaction. Each of
its rows refers to the entry whose bytes are to be sent. No check sum covers it: it can free no budget.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from ldp_client.coins import draw_words

__all__ = [
    "SCHEMA_VERSION",
    "Damaged",
    "LedgerEntry",
    "Recent",
    "State",
    "blank",
    "check",
    "code",
    "create",
    "enter",
    "is_damage",
    "new_instance",
    "read_state",
    "redate",
    "renew",
    "verify",
    "write_state",
]

SCHEMA_VERSION = 6
_OUTBOX_OF_5 = ("ALTER TABLE outbox ADD COLUMN smallest INTEGER", "ALTER TABLE outbox ADD COLUMN sealed BLOB")
_TABLES = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), instance BLOB NOT NULL, generation INTEGER NOT NULL,
    seen INTEGER NOT NULL, answers INTEGER NOT NULL, total INTEGER NOT NULL, uptime INTEGER NOT NULL,
    doubt INTEGER NOT NULL, boot TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE answers (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, at INTEGER NOT NULL,
    epsilon INTEGER NOT NULL, before INTEGER NOT NULL, question_id BLOB, slot INTEGER NOT NULL, report BLOB,
    question TEXT, collection_id BLOB, uptime INTEGER NOT NULL, doubt INTEGER NOT NULL,
    boot TEXT NOT NULL, digest BLOB NOT NULL);
CREATE UNIQUE INDEX answers_by_question ON answers (question_id, slot);
CREATE TABLE leases (token BLOB PRIMARY KEY, remaining INTEGER NOT NULL, expires INTEGER NOT NULL,
    digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE resets (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, found TEXT NOT NULL);
CREATE TABLE outbox (id INTEGER PRIMARY KEY, answer INTEGER NOT NULL, batch_id BLOB NOT NULL,
    collection_id BLOB NOT NULL, opens INTEGER NOT NULL, closes INTEGER NOT NULL, made REAL NOT NULL,
    drawn REAL NOT NULL, due REAL NOT NULL, before INTEGER NOT NULL, size INTEGER NOT NULL, token BLOB,
    smallest INTEGER, sealed BLOB);
CREATE TABLE windows (collection_id BLOB, slot INTEGER, PRIMARY KEY (collection_id, slot)) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE trusted (one INTEGER PRIMARY KEY CHECK (one = 1), list_bytes BLOB NOT NULL, signer BLOB NOT NULL,
    retired BLOB NOT NULL, ids BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE specs (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, spec BLOB NOT NULL);
"""


class Damaged(Exception):
    """The contents of the file do not fit together. The text says what is wrong."""


def code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the file itself is at fault: unsound, not a database, or without the right tables and columns."""
    return code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def new_instance() -> bytes:
    """Return a random name for a new ledger."""
    return b"".join(word.to_bytes(8, "little") for word in draw_words(2))


def check(*fields: object) -> bytes:
    """Return the check sum of a row. It detects accidents, not attacks."""
    return blake2b(repr(fields).encode(), digest_size=8).digest()


class LedgerEntry(NamedTuple):
    """A row of `answers`: an answer and its charge, or a charge without an answer.

    Entries are only added. They are numbered 1, 2, 3, ... in the order of time.
    """

    id: int
    generation: int
    """The ledger's generation after this entry."""
    at: int
    epsilon: int
    before: int
    """The sum of all earlier charges."""
    question_id: bytes | None = None
    slot: int = 0
    report: bytes | None = None
    question: str | None = None
    collection_id: bytes | None = None
    uptime: int = 0
    """Of the machine at this moment, and the seconds believed without grounds (budget.py)."""
    doubt: int = 0
    boot: str = ""

    def __repr__(self) -> str:
        return f"LedgerEntry({self.id})"


Recent = tuple[int, int, int]
"""`id`, `at` and `before` of an entry."""


@dataclass(slots=True)
class State:
    """The ledger's totals, from its newest entry and from the row that notes changes without an entry.

    The row holds the totals of its last change. Later entries must continue from there.
    """

    instance: bytes
    """16 random bytes that name this ledger."""
    generation: int
    """How often this ledger has changed."""
    seen: int
    """The latest second that the ledger has seen; it never goes back."""
    answers: int
    """The number of entries."""
    total: int
    """The sum of all charges without open leases, in the units of policy.py."""
    leases: bool = True
    """Whether there may be open leases. Not stored."""
    changed: bool = False
    """Whether this transaction made a change without an entry, which an older copy of the file would not have."""
    entered: bool = False
    """Whether this transaction added an entry."""
    recent: Recent | None = None
    """The first entry of a recent period, where budget.spending begins to look. Not stored."""

    outbox: tuple[int, int, int, int, bool] | None = None
    """What the outbox keeps in memory from one transaction to the next (sending/outbox.py). Not stored."""
    uptime: int = 0
    """The machine's uptime at `seen`."""
    doubt: int = 0
    """The seconds that were believed without grounds and are not worked off yet (budget.py)."""
    boot: str = ""
    """The start of the machine that `uptime` counts from."""

    def settled(self) -> State:
        """Return this state as the next transaction begins with it."""
        plain = (self.instance, self.generation, self.seen, self.answers, self.total, self.leases)
        return State(*plain, outbox=self.outbox, uptime=self.uptime, doubt=self.doubt, boot=self.boot)


def create(db: sqlite3.Connection, state: State) -> None:
    """Make the tables and the first state within the caller's transaction."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(state))
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def renew(db: sqlite3.Connection) -> int:
    """Bring the tables from version 5, which knew no relay, to this one. Return the version that the file then has."""
    db.execute("BEGIN IMMEDIATE")
    version: int = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been first
    if version == 5:
        for statement in _OUTBOX_OF_5:
            db.execute(statement)
        version = SCHEMA_VERSION
        db.execute(f"PRAGMA user_version = {version}")
    db.execute("COMMIT")
    return version


@contextmanager
def blank() -> Iterator[tuple[sqlite3.Connection, State]]:
    """Yield an empty ledger in memory: what there is to see before the first report."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        state = State(new_instance(), 0, 0, 0, 0)
        create(db, state)
        yield db, state


def _row(state: State) -> tuple[object, ...]:
    plain = (state.instance, state.generation, state.seen, state.answers, state.total)
    row = (*plain, state.uptime, state.doubt, state.boot)
    return (*row, check(*row))


_ENTRIES = (
    "SELECT id, generation, at, epsilon, before, question_id, slot, report, question, collection_id,"
    " uptime, doubt, boot, digest"
    " FROM answers"
)
_ENTER = "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_state(db: sqlite3.Connection) -> State:
    """Return the state. Raise Damaged if its row or the newest entry is unsound, or if the two do not fit together."""
    row = db.execute(
        "SELECT instance, generation, seen, answers, total, uptime, doubt, boot, digest,"
        " EXISTS (SELECT 1 FROM leases) FROM state"
    ).fetchone()
    if row is None or check(*row[:8]) != row[8]:
        raise Damaged("its state is damaged")
    instance, generation, seen, answers, total, uptime, doubt, boot, _, leases = row
    state = State(instance, generation, seen, answers, total, bool(leases), uptime=uptime, doubt=doubt, boot=boot)
    newest = db.execute(_ENTRIES + " ORDER BY id DESC LIMIT 1").fetchone()
    if newest is None:
        if state.answers:
            raise Damaged("its entries are missing")
        return state
    entry = _entry(newest)
    total = entry.before + entry.epsilon
    if entry.id < state.answers or (entry.id == state.answers and total != state.total):
        raise Damaged("an entry is missing")
    if entry.generation >= state.generation:  # else the row was written later
        state.uptime, state.doubt, state.boot = entry.uptime, entry.doubt, entry.boot
    state.generation, state.seen = max(state.generation, entry.generation), max(state.seen, entry.at)
    state.answers, state.total = entry.id, total
    return state


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    if check(*row[:-1]) != row[-1]:
        raise Damaged("an entry is damaged")
    return LedgerEntry(*row[:-1])


def write_state(db: sqlite3.Connection, state: State) -> None:
    """Store the row of `state`."""
    db.execute(
        "UPDATE state SET instance = ?, generation = ?, seen = ?, answers = ?, total = ?, uptime = ?, doubt = ?,"
        " boot = ?, digest = ?",
        _row(state),
    )


def enter(db: sqlite3.Connection, state: State, entry: LedgerEntry) -> None:
    """Store the next entry."""
    db.execute(_ENTER, (*entry, check(*entry)))
    state.seen, state.answers, state.total = entry.at, entry.id, entry.before + entry.epsilon
    state.uptime, state.doubt, state.boot = entry.uptime, entry.doubt, entry.boot
    state.entered = True


def verify(db: sqlite3.Connection) -> None:
    """Check everything: SQLite's own check, every check sum, the running totals and the order of time."""
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
    """Date entries from the future `now`, after a clock had run far ahead. They count for a whole period from now."""
    for row in db.execute(_ENTRIES + " WHERE at > ?", (now,)).fetchall():
        entry = _entry(row)._replace(at=now)
        db.execute("UPDATE answers SET at = ?, digest = ? WHERE id = ?", (now, check(*entry), entry.id))
