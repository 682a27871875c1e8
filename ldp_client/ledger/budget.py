"""The budget rules: whether a report may be made, and what it costs. All amounts are in the exact units of policy.py.

- Answers are keyed by question_id and slot. A question without a schedule has only slot 0, so its first answer stands
  for ever. A question with a schedule has one slot for each of its periods, counted from 1970.
- `lifetime` limits the sum of all charges. `budget` limits every stretch of `period` seconds, wherever it begins. Each
  entry holds the sum of all earlier charges. So what was charged after a moment is the total minus the `before` of the
  first entry after that moment: one look-up, and exact.
- The ledger's time is the latest time that it has seen. While the clock is set back, time stands still. Clocks that
  jump ahead free at most the budget of one period, however often they jump (moment.py).
- A lease is budget set aside for reports in memory (lease.py). It counts as spent while it is open. A lease that nobody
  closed in time becomes a charge without a question, because nobody knows what it was used for.

Every function runs within a transaction of database.py and looks at no item.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import BudgetExceeded, PolicyRefused
from ldp_client.ledger import schema
from ldp_client.ledger.moment import Moment
from ldp_client.ledger.schema import LedgerEntry, State, check
from ldp_client.trust.policy import UNITS, cost, decimal_text

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.trust.policy import Policy

__all__ = [
    "Decision",
    "MadeReport",
    "Spending",
    "charge",
    "charge_in_doubt",
    "check_window",
    "close_lease",
    "decide",
    "fits_at",
    "lookup",
    "open_lease",
    "require",
    "settle_leases",
    "shrink_lease",
    "slot_at",
    "spending",
    "utc",
]


class Spending(NamedTuple):
    """What is spent in the latest period and in all, open leases included."""

    period: int
    lifetime: int


class Decision(NamedTuple):
    """What is to be done. `entry` is the number of the answer that stands; None if a new report may be made."""

    slot: int
    entry: int | None
    report: bytes = b""
    answered_for: bytes | None = None
    """The collection that the standing answer was made for."""
    complete: bool = False
    """The schedule has had all its reports: nothing is to be made or sent."""

    def __repr__(self) -> str:
        return f"Decision(slot {self.slot}, {'a new report' if self.entry is None else 'an answer stands'})"


class MadeReport(NamedTuple):
    """A report that was just made, and how it is to be sent. Its repr does not show the report."""

    collection: Collection
    slot: int
    report: bytes
    batch_id: bytes
    made: float
    due: float

    def __repr__(self) -> str:
        return f"MadeReport({self.collection.id.hex()[:12]}, slot {self.slot})"


def slot_at(collection: Collection, now: int) -> int:
    """Return the slot of the answer that is asked for at `now`."""
    return now // collection.schedule.period_seconds if collection.schedule else 0


def decide(db: sqlite3.Connection, state: State, collection: Collection, policy: Policy, moment: Moment) -> Decision:
    """Decide whether a report is to be made. Raise PolicyRefused or BudgetExceeded if it must not be."""
    check_window(collection, moment.wall)
    slot = slot_at(collection, moment.wall)
    standing = lookup(db, collection, slot)
    if standing is not None:
        return standing
    settle_leases(db, state, moment)
    found = spending(db, state, moment.now, policy.period)
    require(db, state, found, cost(collection.epsilon), policy, moment.now)
    return Decision(slot, None)


def check_window(collection: Collection, now: int) -> None:
    """Refuse a collection whose window is over: nobody would count the report."""
    if now >= collection.closes:
        raise PolicyRefused(f"collection {collection.id.hex()[:12]} closed at {utc(collection.closes)}")


def lookup(db: sqlite3.Connection, collection: Collection, slot: int, pending: Sequence[int] = ()) -> Decision | None:
    """Return the decision if it does not depend on the budget: an answer stands, or the schedule is complete.

    `pending` holds the slots of this question's answers that are in memory and may not be entered yet (lease.py).
    """
    row = db.execute(
        "SELECT id, report, collection_id FROM answers WHERE question_id = ? AND slot = ?",
        (collection.question_id, slot),
    ).fetchone()
    if row is not None:
        return Decision(slot, *row)
    if collection.schedule is not None and _is_complete(db, collection, slot, pending):
        return Decision(slot, 0, complete=True)
    return None


def _is_complete(db: sqlite3.Connection, collection: Collection, slot: int, pending: Sequence[int]) -> bool:
    """Return whether the schedule has had its reports. Counting begins once that many slots are over."""
    reports = collection.schedule.reports if collection.schedule else 1
    question = (collection.question_id,)
    first = db.execute("SELECT min(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    last = db.execute("SELECT max(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    began = min([slot if first is None else first, *pending[:1]])
    if slot - began < reports and (last is None or last < slot):
        return False
    made: int = db.execute("SELECT count(*) FROM answers WHERE question_id = ?", question).fetchone()[0]
    entered = "SELECT 1 FROM answers WHERE question_id = ? AND slot = ?"
    waiting = sum(db.execute(entered, (*question, other)).fetchone() is None for other in pending)
    return made + waiting >= reports


def spending(db: sqlite3.Connection, state: State, now: int, period: int) -> Spending:
    """Return what is spent in the period that ends now, and in all."""
    leased = 0
    if state.leases:
        leased = db.execute("SELECT coalesce(sum(remaining), 0) FROM leases").fetchone()[0]
    # Entries are in the order of time, so the first recent one only moves forward: begin where it was last.
    first = state.recent
    if first is None or first[1] <= now - period:
        first = db.execute(
            "SELECT id, at, before FROM answers WHERE id >= ? AND at > ? ORDER BY id LIMIT 1",
            (first[0] if first else 0, now - period),
        ).fetchone()
        state.recent = first or state.recent
    recent = state.total - first[2] if first else 0
    return Spending(recent + leased, state.total + leased)


def require(db: sqlite3.Connection, state: State, found: Spending, epsilon: int, policy: Policy, now: int) -> None:
    """Raise BudgetExceeded unless another `epsilon` fits."""
    if found.lifetime + epsilon > policy.lifetime_units:
        raise BudgetExceeded(
            f"this device's lifetime budget is spent: {_text(found.lifetime)} of "
            f"{decimal_text(policy.lifetime)}, and this report costs {_text(epsilon)}"
        )
    if found.period + epsilon > policy.budget_units:
        again = fits_at(db, state, epsilon, policy, now)
        raise BudgetExceeded(
            f"this period's budget is spent: {_text(found.period)} of {decimal_text(policy.budget)}, and this "
            f"report costs {_text(epsilon)}" + (f"; it fits again after {utc(again)}" if again else "")
        )


def fits_at(db: sqlite3.Connection, state: State, epsilon: int, policy: Policy, now: int) -> int | None:
    """Return when enough of the period's charges will be older than a period, not counting open leases."""
    rows = db.execute("SELECT at, epsilon FROM answers WHERE at > ? ORDER BY id", (now - policy.period,))
    recent = spending(db, state, now, policy.period).period
    for at, charged in rows:
        recent -= charged
        if recent + epsilon <= policy.budget_units:
            return int(at) + policy.period
    return None


def charge(db: sqlite3.Connection, state: State, moment: Moment, epsilon: int, made: MadeReport) -> int:
    """Enter an answer and its charge; return the entry's number. The first answer has the question's words with it."""
    collection = made.collection
    first = collection.schedule is None or not _is_known(db, collection)
    question = collection.question if first else None
    answer = (collection.question_id, made.slot, made.report, question, collection.id)
    number, generation = state.answers + 1, state.generation + 1
    plain = (number, generation, moment.now, epsilon, state.total)
    entry = LedgerEntry(*plain, *answer, moment.uptime, moment.doubt, moment.boot)
    schema.enter(db, state, entry)
    return entry.id


def _is_known(db: sqlite3.Connection, collection: Collection) -> bool:
    return db.execute("SELECT 1 FROM answers WHERE question_id = ?", (collection.question_id,)).fetchone() is not None


def charge_in_doubt(db: sqlite3.Connection, state: State, moment: Moment, epsilon: int) -> None:
    """Enter a charge for something that may or may not have happened."""
    number, generation = state.answers + 1, state.generation + 1
    plain = (number, generation, moment.now, epsilon, state.total)
    entry = LedgerEntry(*plain, uptime=moment.uptime, doubt=moment.doubt, boot=moment.boot)
    schema.enter(db, state, entry)


def open_lease(
    db: sqlite3.Connection, state: State, token: bytes, wanted: int, least: int, expires: int,
    policy: Policy, moment: Moment,
) -> int:  # fmt: skip
    """Set `wanted` aside, or what is left, but never less than `least`. Raise BudgetExceeded if less is left."""
    settle_leases(db, state, moment)
    found = spending(db, state, moment.now, policy.period)
    require(db, state, found, least, policy, moment.now)
    granted = min(max(wanted, least), policy.budget_units - found.period, policy.lifetime_units - found.lifetime)
    _put_lease(db, state, token, granted, expires)
    moment.note(state)
    return granted


def _put_lease(db: sqlite3.Connection, state: State, token: bytes, remaining: int, expires: int) -> None:
    row = (token, remaining, expires)
    db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (*row, check(*row)))
    state.changed = state.leases = True


def shrink_lease(db: sqlite3.Connection, state: State, token: bytes, used: int) -> bool:
    """Take `used` out of a lease, to be charged as answers. Return False if the whole lease was charged already."""
    row = db.execute("SELECT remaining, expires FROM leases WHERE token = ?", (token,)).fetchone()
    if row is None:
        return False
    _put_lease(db, state, token, row[0] - used, row[1])
    return True


def close_lease(db: sqlite3.Connection, state: State, token: bytes) -> None:
    """Give back what is left of a lease. Nothing was made with it."""
    db.execute("DELETE FROM leases WHERE token = ?", (token,))
    state.changed = True


def settle_leases(db: sqlite3.Connection, state: State, moment: Moment) -> None:
    """Charge leases that nobody closed in time. Their process is gone, and what it used is unknown."""
    if not state.leases:
        return
    for token, remaining in db.execute(
        "SELECT token, remaining FROM leases WHERE expires <= ?", (moment.now,)
    ).fetchall():
        db.execute("DELETE FROM leases WHERE token = ?", (token,))
        if remaining:
            charge_in_doubt(db, state, moment, remaining)


def _text(amount: int) -> str:
    return decimal_text(Fraction(amount, UNITS))


def utc(seconds: float) -> str:
    """Return a moment as text for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "a moment beyond the calendar"
