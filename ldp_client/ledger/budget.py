"""The ledger: what was answered and what it cost. All amounts are whole numbers of policy.py's exact units.

- Keyed by question_id and slot. A question without a schedule has the one slot 0, so its first answer stands for
  ever; a scheduled question has a slot for each of its periods, counted from 1970.
- `lifetime` bounds everything ever charged. `budget` bounds every stretch of `period` seconds, not only the stretches
  that begin on some calendar day: entry i remembers the running total before it, so what was charged after a moment is
  the total now less the total before the first entry after that moment: one look-up, exact.
- Time is the latest ever seen. A clock that goes back stands still here; one that jumps ahead can free at most what
  one period's budget holds, once, and then stands still until the clock is really there.
- A lease is budget set aside for the memory-speed mode (lease.py). It counts as spent while it is open; one that
  nobody closed in time becomes an entry without a question: charged, because nobody knows what it was used for.

Every function runs within a transaction of storage.py and sees no item.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import BudgetExceeded, PolicyRefused
from ldp_client.ledger import schema
from ldp_client.ledger.schema import LedgerEntry, Sending, State, check
from ldp_client.trust.policy import UNITS, cost, decimal_text

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.trust.policy import Policy

__all__ = [
    "Decision",
    "Spending",
    "charge",
    "charge_in_doubt",
    "check_window",
    "close_lease",
    "decide",
    "fits_at",
    "lookup",
    "open_lease",
    "present",
    "require",
    "settle_leases",
    "shrink_lease",
    "slot_at",
    "spending",
    "utc",
]


class Spending(NamedTuple):
    """What is spent at a moment, open leases included."""

    period: int
    lifetime: int


class Decision(NamedTuple):
    """What may happen now: `report` holds the answer that stands already, None if a new one may be made."""

    slot: int
    report: bytes | None
    queued_for: bytes | None = None
    """The collection that the standing answer was first made for."""
    complete: bool = False
    """The schedule has had all its reports: nothing is to be made or sent."""

    def __repr__(self) -> str:
        return f"Decision(slot {self.slot}, {'a new report' if self.report is None else 'an answer stands'})"


def present(state: State, now: float) -> int:
    """Return the ledger's time: the latest second that it has seen."""
    return max(state.seen, int(now))


def slot_at(collection: Collection, now: int) -> int:
    """Return the number of the answer that is asked for at `now`."""
    return now // collection.schedule.period_seconds if collection.schedule else 0


def decide(db: sqlite3.Connection, state: State, collection: Collection, policy: Policy, now: int) -> Decision:
    """Say whether a report is to be made; raise PolicyRefused or BudgetExceeded if it must not be."""
    check_window(collection, now)
    slot = slot_at(collection, now)
    standing = lookup(db, collection, slot)
    if standing is not None:
        return standing
    settle_leases(db, state, now)
    found = spending(db, state, now, policy.period)
    require(db, state, found, cost(collection.epsilon), policy, now)
    return Decision(slot, None)


def check_window(collection: Collection, now: int) -> None:
    """Refuse a collection that is over: nobody would count the report."""
    if now >= collection.closes:
        raise PolicyRefused(f"collection {collection.id.hex()[:12]} closed at {utc(collection.closes)}")


def lookup(db: sqlite3.Connection, collection: Collection, slot: int, pending: Sequence[int] = ()) -> Decision | None:
    """Return the decision where it does not need the budget: an answer stands, or the schedule is complete.

    `pending` are the slots of answers to this question that are made and not entered yet (lease.py).
    """
    row = db.execute(
        "SELECT report, collection_id FROM answers WHERE question_id = ? AND slot = ?", (collection.question_id, slot)
    ).fetchone()
    if row is not None:
        return Decision(slot, *row)
    if collection.schedule is not None and _is_complete(db, collection, slot, pending):
        return Decision(slot, b"", complete=True)
    return None


def _is_complete(db: sqlite3.Connection, collection: Collection, slot: int, pending: Sequence[int]) -> bool:
    """Whether the schedule has had its reports. Nobody counts before enough slots are over (unless time was reset)."""
    reports = collection.schedule.reports if collection.schedule else 1
    question = (collection.question_id,)
    first = db.execute("SELECT min(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    last = db.execute("SELECT max(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    began = min([slot if first is None else first, *pending[:1]])
    if slot - began < reports and (last is None or last < slot):
        return False
    made: int = db.execute("SELECT count(*) FROM answers WHERE question_id = ?", question).fetchone()[0]
    return made + len(pending) >= reports


def spending(db: sqlite3.Connection, state: State, now: int, period: int) -> Spending:
    """Return what is spent in the stretch that ends now, and in all."""
    leased = 0
    if state.leases:
        leased = db.execute("SELECT coalesce(sum(remaining), 0) FROM leases").fetchone()[0]
    # Entries are in the order of time, so the first recent one only ever moves on: begin where it was last.
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
    """Return when enough of the period's entries will be old enough, open leases aside."""
    rows = db.execute("SELECT at, epsilon FROM answers WHERE at > ? ORDER BY id", (now - policy.period,))
    recent = spending(db, state, now, policy.period).period
    for at, charged in rows:
        recent -= charged
        if recent + epsilon <= policy.budget_units:
            return int(at) + policy.period
    return None


def charge(
    db: sqlite3.Connection, state: State, now: int, epsilon: int, collection: Collection, slot: int, report: bytes,
    sending: Sending,
) -> None:  # fmt: skip
    """Enter an answer and its charge. The question's words go with its first answer, for people to read."""
    first = collection.schedule is None or not _is_known(db, collection)
    question = collection.question if first else None
    answer = (collection.question_id, slot, report, question, collection.id)
    entry = LedgerEntry(state.answers + 1, state.generation + 1, now, epsilon, state.total, *answer)
    schema.enter(db, state, entry, sending)


def _is_known(db: sqlite3.Connection, collection: Collection) -> bool:
    return db.execute("SELECT 1 FROM answers WHERE question_id = ?", (collection.question_id,)).fetchone() is not None


def charge_in_doubt(db: sqlite3.Connection, state: State, now: int, epsilon: int) -> None:
    """Enter a charge for something that nobody knows whether it happened."""
    entry = LedgerEntry(state.answers + 1, state.generation + 1, now, epsilon, state.total)
    schema.enter(db, state, entry, Sending())


def open_lease(
    db: sqlite3.Connection, state: State, token: bytes, wanted: int, least: int, expires: int,
    policy: Policy, now: int,
) -> int:  # fmt: skip
    """Set `wanted` aside, or what is left if that is at least `least`; raise BudgetExceeded if not."""
    settle_leases(db, state, now)
    found = spending(db, state, now, policy.period)
    require(db, state, found, least, policy, now)
    granted = min(wanted, policy.budget_units - found.period, policy.lifetime_units - found.lifetime)
    _put_lease(db, state, token, granted, expires)
    state.seen = now
    return granted


def _put_lease(db: sqlite3.Connection, state: State, token: bytes, remaining: int, expires: int) -> None:
    row = (token, remaining, expires)
    db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", (*row, check(*row)))
    state.changed = state.leases = True


def shrink_lease(db: sqlite3.Connection, state: State, token: bytes, used: int) -> bool:
    """Take `used` out of a lease, to be charged as answers; False if the lease was already charged whole."""
    row = db.execute("SELECT remaining, expires FROM leases WHERE token = ?", (token,)).fetchone()
    if row is None:
        return False
    _put_lease(db, state, token, row[0] - used, row[1])
    return True


def close_lease(db: sqlite3.Connection, state: State, token: bytes) -> None:
    """Give back what is left of a lease: nothing was ever made with it."""
    db.execute("DELETE FROM leases WHERE token = ?", (token,))
    state.changed = True


def settle_leases(db: sqlite3.Connection, state: State, now: int) -> None:
    """Charge leases that nobody closed in time: their process is gone, and what it did with them is unknown."""
    if not state.leases:
        return
    for token, remaining in db.execute("SELECT token, remaining FROM leases WHERE expires <= ?", (now,)).fetchall():
        db.execute("DELETE FROM leases WHERE token = ?", (token,))
        if remaining:
            charge_in_doubt(db, state, now, remaining)


def _text(amount: int) -> str:
    return decimal_text(Fraction(amount, UNITS))


def utc(seconds: float) -> str:
    """Return a moment for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "a moment beyond the calendar"
