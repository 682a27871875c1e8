"""What a user may see of the ledger: spent and left, for each question and in total."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ldp_client.clock import Clock
from ldp_client.errors import StorageError
from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import State
from ldp_client.trust.policy import UNITS, Policy

__all__ = ["AnsweredView", "LedgerView", "MadeView", "QuestionView", "ResetView", "read_answered", "read_ledger"]


@dataclass(frozen=True)
class QuestionView:
    """One question: how often it was answered and what that cost."""

    question_id: bytes
    question: str | None
    """The question's words. None for charges whose question is not known."""
    answers: int
    spent: Fraction


@dataclass(frozen=True)
class MadeView:
    """One report that was made: its bytes, its charge, and when it is due if it still waits."""

    at: int
    slot: int
    epsilon: Fraction
    collection_id: bytes
    report: bytes = field(repr=False)
    due: float | None


@dataclass(frozen=True)
class AnsweredView:
    """One question with its newest reports, newest first."""

    asked: QuestionView
    made: tuple[MadeView, ...]


@dataclass(frozen=True)
class ResetView:
    """One reset: when, why, and what was wrong."""

    at: int
    reason: str
    found: str


@dataclass(frozen=True)
class LedgerView:
    """The ledger at a moment. If it cannot be trusted, everything counts as spent and `problem` says why."""

    spent: Fraction
    """The sum of all charges (basic composition), open leases included."""
    left: Fraction
    spent_in_period: Fraction
    left_in_period: Fraction
    leased: Fraction
    period: int
    now: int
    """The ledger's time."""
    questions: tuple[QuestionView, ...] = ()
    resets: tuple[ResetView, ...] = ()
    charges: Mapping[Fraction, int] = field(default_factory=dict)
    """How many charges there are of each amount, for composition rules that need more than the sum."""
    problem: str | None = None

    def statement(self) -> list[str]:
        """Return the privacy statement about this device, worded as on the server and in simulations.

        What is spent without being one of `charges` (an open lease, what a repaired ledger gave up) counts as one
        charge. This is safe: by every rule one charge counts at least as much as smaller ones with the same sum.
        """
        from ldp_client.privacy.charges import basic
        from ldp_client.privacy.statement import Device, privacy_statement

        if self.problem is not None:
            return ["This ledger cannot be trusted; everything counts as spent."]
        charges = Counter(self.charges)
        unnamed = self.spent - basic(charges)
        if unnamed > 0:
            charges[unnamed] += 1
        return list(privacy_statement(device=Device(charges)).lines)


def read_ledger(storage: Storage, policy: Policy, clock: Clock) -> LedgerView:
    """Return the ledger as it is. Looking changes nothing, and a ledger in any condition raises nothing."""
    try:
        with storage.reading() as (db, state):
            return _view(db, state, policy, budget.present(state, clock, policy.period).now)
    except StorageError as error:
        none = Fraction(0)
        return LedgerView(
            policy.lifetime, none, policy.budget, none, none, policy.period, int(clock.time()), problem=str(error)
        )


def _view(db: sqlite3.Connection, state: State, policy: Policy, now: int) -> LedgerView:
    found = budget.spending(db, state, now, policy.period)
    amounts = db.execute("SELECT epsilon, count(*) FROM answers WHERE epsilon > 0 GROUP BY epsilon").fetchall()
    spent, recent = Fraction(found.lifetime, UNITS), Fraction(found.period, UNITS)
    return LedgerView(
        spent=spent,
        left=max(policy.lifetime - spent, Fraction(0)),
        spent_in_period=recent,
        left_in_period=max(min(policy.budget - recent, policy.lifetime - spent), Fraction(0)),
        leased=spent - Fraction(state.total, UNITS),
        period=policy.period,
        now=now,
        questions=tuple(_questions(db)),
        resets=tuple(ResetView(*row) for row in db.execute("SELECT at, reason, found FROM resets ORDER BY id")),
        charges={Fraction(epsilon, UNITS): number for epsilon, number in amounts},
    )


def _questions(db: sqlite3.Connection) -> Sequence[QuestionView]:
    words: dict[bytes, str] = dict(
        db.execute("SELECT question_id, question FROM answers WHERE question IS NOT NULL").fetchall()
    )
    rows = db.execute("SELECT question_id, count(*), sum(epsilon) FROM answers GROUP BY question_id ORDER BY min(id)")
    return [
        QuestionView(question_id or b"", words.get(question_id), number, Fraction(spent, UNITS))
        for question_id, number, spent in rows
    ]


def read_answered(storage: Storage, most: int) -> tuple[AnsweredView, ...]:
    """Return every answered question with its `most` newest reports. Raise StorageError if the ledger is no use."""
    with storage.reading() as (db, _):
        due = dict(db.execute("SELECT answer, min(due) FROM outbox GROUP BY answer").fetchall())
        return tuple(
            AnsweredView(asked, tuple(_made(db, asked.question_id, most, due)))
            for asked in _questions(db)
            if asked.question_id
        )


def _made(db: sqlite3.Connection, question_id: bytes, most: int, due: Mapping[int, float]) -> list[MadeView]:
    rows = db.execute(
        "SELECT id, at, slot, epsilon, collection_id, report FROM answers WHERE question_id = ?"
        " ORDER BY slot DESC LIMIT ?",
        (question_id, most),
    )
    return [
        MadeView(at, slot, Fraction(epsilon, UNITS), asked, report, due.get(number))
        for number, at, slot, epsilon, asked, report in rows
    ]
