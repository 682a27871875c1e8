"""What this device has volunteered: a table in the ledger's file, with its own budget.

A record and its charge are one row, and one transaction. The transaction raises the ledger's generation, so a copy of
the file from before it is refused like any ledger that was rolled back. The raw answer is not kept: only the bytes that
were sealed to the curator, which this device cannot open either, until they have been taken.

    waiting      to be sent                        charged
    given        the server keeps it               charged
    withdrawing  the server is to delete it        charged
    withdrawn    deleted before a release used it  not charged any more
    used         a release has used it             charged
    refused      the server never took it          not charged
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from ldp_client.errors import BudgetExceeded
from ldp_client.ledger.schema import Damaged, State, check
from ldp_client.trust.policy import UNITS, Policy, decimal_text, units
from ldp_client.volunteering.consent import Consent

__all__ = [
    "NewRecord",
    "VolunteeredView",
    "WaitingRecord",
    "enter",
    "look",
    "require",
    "settle",
    "standing",
    "waiting",
    "withdraw",
]

_TABLE = """
CREATE TABLE IF NOT EXISTS volunteered (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, question_id BLOB NOT NULL,
    collection_id BLOB NOT NULL, question TEXT NOT NULL, consent TEXT NOT NULL, curator BLOB NOT NULL,
    epsilon INTEGER NOT NULL, secret BLOB NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL, due REAL NOT NULL,
    sealed BLOB)
"""
_FIXED = "id, at, question_id, collection_id, question, consent, curator, epsilon, secret, digest"
CHARGED = ("waiting", "given", "withdrawing", "used")


@dataclass(frozen=True)
class NewRecord:
    """A record that is about to be entered."""

    question_id: bytes
    collection_id: bytes
    question: str
    consent: Consent
    secret: bytes = field(repr=False)
    sealed: bytes = field(repr=False)
    due: float


@dataclass(frozen=True)
class VolunteeredView:
    """One answer that was volunteered, as a user may see it."""

    question: str
    question_id: bytes
    collection_id: bytes
    at: int
    curator: bytes
    words: str
    """What the user agreed to."""
    epsilon: Fraction
    state: str

    @property
    def charged(self) -> Fraction:
        """What it counts of the volunteer's budget."""
        return self.epsilon if self.state in CHARGED else Fraction(0)

    def __str__(self) -> str:
        what = {
            "waiting": "waits to be sent",
            "given": "given; it can be withdrawn until a release has used it",
            "withdrawing": "is being withdrawn",
            "withdrawn": "withdrawn before a release used it",
            "used": "a release has used it: it cannot be taken back",
            "refused": "the server did not take it",
        }[self.state]
        return (
            f"{self.question} Your answer itself, readable for the curator with the key {self.curator.hex()[:16]}: "
            f"{what}. Releases about it may cost epsilon {decimal_text(self.epsilon)} in all."
        )


class WaitingRecord(NamedTuple):
    """A record or a withdrawal that is to be sent."""

    id: int
    state: str
    collection_id: bytes
    secret: bytes
    sealed: bytes | None

    def __repr__(self) -> str:
        return f"WaitingRecord({self.id}, {self.state})"


def _exists(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'volunteered'").fetchone() is not None


def look(db: sqlite3.Connection) -> tuple[VolunteeredView, ...]:
    """Return everything that was volunteered, oldest first. Raise Damaged if a row is unsound."""
    if not _exists(db):
        return ()
    return tuple(_view(row) for row in db.execute(f"SELECT {_FIXED}, state FROM volunteered ORDER BY id"))  # noqa: S608


def _view(row: tuple[Any, ...]) -> VolunteeredView:
    number, at, question_id, collection_id, question, consent, curator, epsilon, secret, digest, state = row
    if check(number, at, question_id, collection_id, question, consent, curator, epsilon, secret) != digest:
        raise Damaged("a volunteered answer is damaged")
    return VolunteeredView(question, question_id, collection_id, at, curator, consent, Fraction(epsilon, UNITS), state)


def standing(db: sqlite3.Connection, question_id: bytes) -> VolunteeredView | None:
    """Return what was volunteered for a question and not withdrawn."""
    found = [one for one in look(db) if one.question_id == question_id and one.state in CHARGED]
    return found[-1] if found else None


def require(db: sqlite3.Connection, consent: Consent, policy: Policy) -> None:
    """Raise BudgetExceeded unless the volunteer's budget covers another consent."""
    spent = sum((one.charged for one in look(db)), Fraction(0))
    if spent + consent.epsilon > policy.volunteer_lifetime:
        raise BudgetExceeded(
            f"this device's budget for volunteering is spent: {decimal_text(spent)} of "
            f"{decimal_text(policy.volunteer_lifetime)}, and this consent allows {decimal_text(consent.epsilon)}"
        )


def enter(db: sqlite3.Connection, state: State, record: NewRecord, now: int) -> None:
    """Charge a record and keep it to be sent."""
    db.execute(_TABLE)
    number = db.execute("SELECT coalesce(max(id), 0) + 1 FROM volunteered").fetchone()[0]
    plain = (record.question_id, record.collection_id, record.question, record.consent.words, record.consent.curator)
    fixed = (number, now, *plain, units(record.consent.epsilon), record.secret)
    row = (*fixed, check(*fixed), "waiting", record.due, record.sealed)
    db.execute("INSERT INTO volunteered VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    state.changed = True


def withdraw(db: sqlite3.Connection, state: State, question_id: bytes, due: float) -> None:
    """Ask for a standing record to be deleted. Its sealed bytes are forgotten at once."""
    marks = "UPDATE volunteered SET state = 'withdrawing', due = ?, sealed = NULL WHERE question_id = ? AND state IN "
    db.execute(marks + "('waiting', 'given')", (due, question_id))
    state.changed = True


def waiting(db: sqlite3.Connection, now: float) -> list[WaitingRecord]:
    """Return what is due to be sent."""
    if not _exists(db):
        return []
    found = db.execute(
        "SELECT id, state, collection_id, secret, sealed FROM volunteered"
        " WHERE state IN ('waiting', 'withdrawing') AND due <= ? ORDER BY id",
        (now,),
    )
    return [WaitingRecord(*row) for row in found]


def settle(db: sqlite3.Connection, sent: WaitingRecord, state: str) -> None:
    """Note how it ended, unless the user has decided otherwise meanwhile."""
    db.execute(
        "UPDATE volunteered SET state = ?, sealed = NULL WHERE id = ? AND state = ?", (state, sent.id, sent.state)
    )
