"""The budget rules: whether a report may be made, and what it costs. All amounts are in the exact units of policy.py.

- Answers are keyed by question_id and slot. A question without a schedule has only slot 0, so its first answer stands
  for ever. A question with a schedule has one slot for each of its periods, counted from 1970. Its number travels with
  the report. A report that is made before the window opens is one of the window's first period.
- `lifetime` limits the sum of all charges. `budget` limits every stretch of `period` seconds, wherever it begins. Each
  entry holds the sum of all earlier charges. So what was charged after a moment is the total minus the `before` of the
  first entry after that moment: one look-up, and exact.
- A lease is budget set aside for reports in memory (lease.py). It counts as spent while it is open. A lease that nobody
  closed in time becomes a charge without a question, because nobody knows what it was used for.

Budget becomes free again as time passes, and a wall clock can be set by people, programs and servers. So the ledger's
time is the latest that it has seen. While the clock is set back, this time stands still. It goes forward only as far as
something vouches for it:

- The machine's uptime vouches for the time that has passed since the last charge. Nobody can set it, and all processes
  of the machine see the same. After a restart it begins at 0. It then vouches only for the time since the restart,
  which is never more than what has really passed. (Where the system does not name its starts, an uptime that is larger
  than the noted one may be of the same start: then only the difference counts. If a ledger is moved to another machine,
  that machine's uptime is believed, as far as the wall clock agrees.)
- Nothing vouches for the time while the machine was off, and a jump of the wall clock looks the same. Such time is
  believed up to one period in all. Each second that is vouched for takes one second off what was believed.

So clocks that jump, however often, renew at most one period's budget, and one more for each period that the machine has
really been up. A machine that is off for more than half of the time gets its budget back late, never early.

Every function that takes a connection runs within a transaction of database.py. None of them looks at an item.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import BudgetExceeded, PolicyRefused
from ldp_client.ledger import schema
from ldp_client.ledger.schema import LedgerEntry, State
from ldp_client.trust.policy import UNITS, decimal_text

if TYPE_CHECKING:
    from ldp_client.clock import Clock
    from ldp_client.collection import Collection
    from ldp_client.trust.policy import Policy

__all__ = [
    "Decision",
    "MadeReport",
    "Moment",
    "Spending",
    "charge",
    "charge_in_doubt",
    "check_window",
    "decide",
    "fits_at",
    "lookup",
    "note_progress",
    "present",
    "require",
    "settle_leases",
    "slot_at",
    "spending",
    "utc",
]

_WORTH_NOTING = 3600
"""Seconds: less progress than this is not noted without a charge."""


class Moment(NamedTuple):
    """A moment of the ledger's time, and what must be remembered of it with a charge."""

    now: int
    """The ledger's time: it decides what is spent."""
    wall: int
    """What the clock says, and not before `now`: it decides windows and slots."""
    uptime: int
    doubt: int
    """The seconds that were believed without grounds and are not worked off yet."""
    boot: str = ""
    """The start of the machine that `uptime` counts from."""

    def note(self, state: State) -> None:
        """Let the ledger remember this moment."""
        state.seen, state.uptime, state.doubt, state.boot = self.now, self.uptime, self.doubt, self.boot


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


def present(state: State, clock: Clock, period: int) -> Moment:
    """Return the present moment of a ledger with this state."""
    wall, uptime = int(clock.time()), int(clock.uptime())
    if not state.seen:
        return Moment(wall, wall, uptime, 0, clock.boot())  # nothing was ever charged, so there is nothing to renew
    boot = clock.boot()
    same = uptime >= state.uptime and (boot == state.boot or not (boot and state.boot))
    vouched = uptime - state.uptime if same else uptime
    doubt = max(0, state.doubt - vouched)
    ahead = max(0, wall - state.seen)
    believed = min(max(0, ahead - vouched), max(0, period - doubt))
    now = state.seen + min(ahead, vouched) + believed
    return Moment(now, max(now, wall), uptime, doubt + believed, boot)


def note_progress(state: State, clock: Clock, period: int) -> None:
    """Let the ledger remember the time that has surely passed, although nothing is charged.

    Otherwise the uptime of a machine that is off every night would be forgotten every night, and a budget whose renewal
    takes many days would never come back. Time that is only believed is not noted here: the clock
    may be set right again before the next charge.
    """
    moment = present(state, clock, min(period, state.doubt))
    if moment.now - state.seen >= _WORTH_NOTING:
        moment.note(state)
        state.changed = True


def slot_at(collection: Collection, now: int) -> int:
    """Return the slot of the answer that is asked for at `now`."""
    return collection.schedule.period(max(now, collection.opens)) if collection.schedule else 0


def decide(
    db: sqlite3.Connection, state: State, collection: Collection, price: int, policy: Policy, moment: Moment
) -> Decision:
    """Decide whether a report of this price is to be made. Raise PolicyRefused or BudgetExceeded if it must not be."""
    check_window(collection, moment.wall)
    slot = slot_at(collection, moment.wall)
    standing = lookup(db, collection, slot)
    if standing is not None:
        return standing
    if state.leases:
        settle_leases(db, state, moment)
    require(db, state, spending(db, state, moment.now, policy.period), price, policy, moment.now)
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
    schedule = collection.schedule
    if schedule is not None and _is_complete(db, collection.question_id, schedule.reports, slot, pending):
        return Decision(slot, 0, complete=True)
    return None


def _is_complete(db: sqlite3.Connection, question_id: bytes, reports: int, slot: int, pending: Sequence[int]) -> bool:
    """Return whether a schedule has had its reports. Counting begins once that many slots are over."""
    question = (question_id,)
    first = db.execute("SELECT min(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    last = db.execute("SELECT max(slot) FROM answers WHERE question_id = ?", question).fetchone()[0]
    began = min([slot if first is None else first, *pending])
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


def settle_leases(db: sqlite3.Connection, state: State, moment: Moment) -> None:
    """Charge leases that nobody closed in time. Their process is gone, and what it used is unknown."""
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
