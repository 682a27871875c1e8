"""What a user may see of the ledger: spent and left, for each question and in total."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from ldp_client.errors import StorageError
from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import State
from ldp_client.trust.policy import UNITS, Policy, decimal_text

__all__ = ["Compose", "ComposedSpending", "LedgerView", "QuestionView", "ResetView", "read_ledger"]


class ComposedSpending(Protocol):
    """A privacy statement about several reports together. Its `str` says it in words (ldp_client.privacy)."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float:
        """0 for a pure statement."""
        ...


Compose = Callable[[Mapping[Fraction, int], float], ComposedSpending]
"""A rule that composes charges: (how many there are of each amount, delta) to a statement."""


@dataclass(frozen=True)
class QuestionView:
    """One question: how often it was answered and what that cost."""

    question_id: bytes
    question: str | None
    """The question's words. None for charges whose question is not known."""
    answers: int
    spent: Fraction


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

    def statement(self, delta: float = 1e-6, compose: Compose | None = None) -> list[str]:
        """Return in words what this device has revealed so far, and what two devices like it reveal together.

        `compose` is a composition rule that is tighter than adding. Such rules need amounts that were fixed beforehand,
        as they are if an app ships its questions. The budget itself is always counted by adding.
        """
        if self.problem is not None:
            return ["This ledger cannot be trusted; everything counts as spent."]
        said = []
        for devices, name in ((1, "This device so far"), (2, "Two such devices of one person or household")):
            spent = devices * self.spent
            line = f"{name}: eps = {decimal_text(spent)}, by adding"
            charges = {amount: devices * number for amount, number in self.charges.items()}
            best = compose(charges, delta) if compose and charges else None
            if best is not None and best.delta > 0 and best.epsilon < 0.98 * float(spent):
                line += f"; where the questions were fixed beforehand, {best}"
            said.append(f"{line}.")
        return said


def read_ledger(storage: Storage, policy: Policy, clock_time: float) -> LedgerView:
    """Return the ledger as it is. Looking changes nothing, and a ledger in any condition raises nothing."""
    try:
        with storage.reading() as (db, state):
            return _view(db, state, policy, budget.present(state, clock_time))
    except StorageError as error:
        none = Fraction(0)
        return LedgerView(
            policy.lifetime, none, policy.budget, none, none, policy.period, int(clock_time), problem=str(error)
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
