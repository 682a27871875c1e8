"""What a user may see of the ledger: spent and left, per question and in total, composed by the best rule at hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ldp_client import ledger
from ldp_client.books import State
from ldp_client.errors import StorageError
from ldp_client.policy import Policy
from ldp_client.storage import Storage

__all__ = ["LedgerView", "QuestionView", "ResetView", "read_ledger"]


@dataclass(frozen=True)
class QuestionView:
    """One question: how often it was answered, and what that cost."""

    question_id: bytes
    question: str | None
    """Its words; None for charges whose question is not known."""
    answers: int
    spent: Fraction


@dataclass(frozen=True)
class ResetView:
    """One reset: when, why, and what had been found."""

    at: int
    reason: str
    found: str


@dataclass(frozen=True)
class LedgerView:
    """The ledger at a moment. Where it cannot be believed, everything counts as spent and `problem` says why."""

    spent: Fraction
    """Ever, by basic composition: the sum. Open leases are in it."""
    left: Fraction
    spent_in_period: Fraction
    left_in_period: Fraction
    leased: Fraction
    period: int
    now: int
    """The ledger's time."""
    questions: tuple[QuestionView, ...] = ()
    resets: tuple[ResetView, ...] = ()
    charges: tuple[Fraction, ...] = ()
    """Every single charge, in order: for composition rules that know more than the sum."""
    problem: str | None = None


def read_ledger(storage: Storage, policy: Policy, clock_time: float) -> LedgerView:
    """Return the ledger as it stands; never raises for its condition."""
    try:
        with storage.reading() as (db, state):
            return _view(db, state, policy, ledger.present(state, clock_time))
    except StorageError as error:
        none = Fraction(0)
        return LedgerView(
            policy.lifetime, none, policy.budget, none, none, policy.period, int(clock_time), problem=str(error)
        )


def _view(db: sqlite3.Connection, state: State, policy: Policy, now: int) -> LedgerView:
    found = ledger.spending(db, state, now, policy.period)
    charges = tuple(Fraction(row[0]) for row in db.execute("SELECT epsilon FROM answers ORDER BY id"))
    return LedgerView(
        spent=found.lifetime,
        left=max(policy.lifetime - found.lifetime, Fraction(0)),
        spent_in_period=found.period,
        left_in_period=max(min(policy.budget - found.period, policy.lifetime - found.lifetime), Fraction(0)),
        leased=found.lifetime - state.total,
        period=policy.period,
        now=now,
        questions=tuple(_questions(db)),
        resets=tuple(ResetView(*row) for row in db.execute("SELECT at, reason, found FROM resets ORDER BY id")),
        charges=charges,
    )


def _questions(db: sqlite3.Connection) -> Sequence[QuestionView]:
    words: dict[bytes, str] = dict(
        db.execute("SELECT question_id, question FROM answers WHERE question IS NOT NULL").fetchall()
    )
    counted: dict[bytes, list[Fraction]] = {}
    for question_id, epsilon, number in db.execute(
        "SELECT question_id, epsilon, count(*) FROM answers GROUP BY question_id, epsilon ORDER BY min(id)"
    ):
        counted.setdefault(question_id or b"", []).extend([Fraction(epsilon)] * number)
    return [
        QuestionView(question_id, words.get(question_id), len(costs), sum(costs, Fraction(0)))
        for question_id, costs in counted.items()
    ]
