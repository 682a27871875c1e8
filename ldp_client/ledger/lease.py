"""Reports in memory: budget is set aside on disk first, spent in memory, and the reports are stored soon after.

    open    one durable transaction sets an amount aside; it counts as spent from then on
            (at least the price of the report that needs it, however small a lease was asked for)
    report  randomizes in memory against the amount; nothing is stored yet, and nothing can be sent yet
    flush   soon after, one transaction stores the reports: answers, charges and batches, as for any other report
    close   gives back what is left

If the app dies, reports that were not flushed are lost. They never left the device, and they stay paid for: a lease
that nobody closes is charged whole when it expires. So speed may cost budget, but never privacy. If another process has
stored an answer in the meantime, that answer stands; ours is dropped and stays paid for.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from ldp_client.clock import Clock
from ldp_client.errors import BudgetExceeded
from ldp_client.ledger import budget
from ldp_client.ledger.budget import MadeReport, Moment, present
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import State, check
from ldp_client.trust.policy import Policy, cost

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["LEASE_SECONDS", "Lease", "Store", "Take", "close_lease", "open_lease", "shrink_lease"]

LEASE_SECONDS = 3600
_KNOWN_ANSWERS = 100_000
_TEND_SECONDS = 300.0
_ATTEMPTS = 100
"""How many leases are opened for one report before it is paid without one."""


Store = Callable[[sqlite3.Connection, State, Moment, int, MadeReport], object]
"""Stores a report within a transaction: (connection, state, moment, price, report)."""


class Take(Enum):
    """What `take` did."""

    MADE = "made"
    STANDS = "stands"
    ASK_LEDGER = "ask ledger"  # an answer is on the disk, perhaps for another window; or the lease did not help


class Lease:
    """Budget set aside by this process, and the reports that were paid from it."""

    def __init__(
        self,
        storage: Storage,
        policy: Policy,
        amount: int,
        clock: Clock,
        new_token: Callable[[], bytes],
        store: Store,
    ) -> None:
        self._storage = storage
        self._policy = policy
        self._amount = amount
        self._clock = clock
        self._new_token = new_token
        self._store = store
        self._fresh()

    def _fresh(self) -> None:
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._made: list[MadeReport] = []
        self._pending: set[tuple[bytes, int]] = set()  # (question id, slot) in memory
        self._known: set[tuple[bytes, int]] = set()  # (collection id, slot) that need nothing more
        self._token = b""
        self._left = 0
        self._expires = 0.0  # by the monotonic clock: a wall clock that jumps must not end a lease or prolong it
        self._seen = 0

    def forked(self) -> None:
        """In a child process: the lease and its reports are the parent's."""
        self._fresh()

    def take(
        self, collection: Collection, randomize: Callable[[], bytes], batch_id: bytes, now: float, due: float
    ) -> Take:
        """Make a report unless an answer stands. `randomize` is called only after the budget has allowed it."""
        price = cost(collection.epsilon)
        for _ in range(_ATTEMPTS):
            with self._lock:
                self._seen = max(self._seen, int(now))
                budget.check_window(collection, self._seen)
                slot = budget.slot_at(collection, self._seen)
                question = (collection.question_id, slot)
                if (collection.id, slot) in self._known:
                    return Take.STANDS
                standing = None if question in self._pending else self._standing(collection, slot)
                if standing is not None:
                    return standing
                if question not in self._pending and price <= self._left and self._clock.monotonic() < self._expires:
                    self._left -= price
                    self._made.append(MadeReport(collection, slot, randomize(), batch_id, now, due))
                    self._pending.add(question)
                    self._known.add((collection.id, slot))
                    return Take.MADE
                again = question in self._pending
            # Either the lease is used up, or this question is in memory for another window: store what there is.
            self.flush() if again else self._renew(price)
        return Take.ASK_LEDGER  # other threads used up every new lease at once: pay for this report on its own

    @property
    def pending(self) -> int:
        """The number of reports that are only in memory."""
        return len(self._made)

    def slots(self, collection: Collection) -> list[int]:
        """Return the slots of this question's answers that are in memory and may not be stored yet."""
        with self._lock:
            return self._slots(collection)

    def _slots(self, collection: Collection) -> list[int]:
        return sorted(slot for question, slot in self._pending if question == collection.question_id)

    def _standing(self, collection: Collection, slot: int) -> Take | None:
        """Return whether an answer stands on the disk, or the schedule is complete with what is in memory."""
        pending = [] if collection.schedule is None else self._slots(collection)
        with self._storage.peeking() as db:
            standing = budget.lookup(db, collection, slot, pending)
        if standing is None:
            return None
        return Take.STANDS if standing.complete else Take.ASK_LEDGER

    def _renew(self, price: int) -> None:
        """Store what was made, give back the old lease and open a new one."""
        with self._flushing:
            made = self._swap(stop=True)
            token = self._new_token()
            try:
                with self._storage.charging() as (db, state):
                    moment = self._present(state)
                    self._write(db, state, moment, made)
                    if self._token:
                        close_lease(db, state, self._token)
                    expires = moment.now + LEASE_SECONDS
                    granted = open_lease(db, state, token, self._amount, price, expires, self._policy, moment)
            except BudgetExceeded:
                self._put_back(made)
                self._finish()
                raise
            except BaseException:
                self._put_back(made)
                raise
            self._settled(made)
            with self._lock:
                self._token, self._left, self._seen = token, granted, max(self._seen, moment.wall)
                self._expires = self._clock.monotonic() + LEASE_SECONDS

    def _present(self, state: State) -> Moment:
        return present(state, self._clock, self._policy.period)

    def flush(self) -> None:
        """Store every report that is in memory, so that it may be sent."""
        with self._flushing:
            made = self._swap()
            if not made:
                return
            try:
                with self._storage.charging(background=True) as (db, state):
                    self._write(db, state, self._present(state), made)
            except BaseException:
                self._put_back(made)
                raise
            self._settled(made)

    def close(self) -> None:
        """Flush, and give back what is left."""
        with self._flushing:
            self._finish()

    def tend(self) -> float:
        """Store what is in memory and give back an old lease; return after how many seconds to do so again."""
        self.flush()
        self.close_if_idle()
        return _TEND_SECONDS

    def close_if_idle(self) -> None:
        """Give back a lease that is about to run out, so that no other process takes it for lost."""
        if self._token and self._clock.monotonic() > self._expires - LEASE_SECONDS / 4:
            self.close()

    def _finish(self) -> None:
        made = self._swap(stop=True)
        if not self._token:
            return
        try:
            with self._storage.charging(background=True) as (db, state):
                self._write(db, state, self._present(state), made)
                close_lease(db, state, self._token)
        except BaseException:
            self._put_back(made)
            raise
        self._settled(made)
        with self._lock:
            self._token = b""

    def _swap(self, *, stop: bool = False) -> list[MadeReport]:
        with self._lock:
            made, self._made = self._made, []
            if stop:
                self._left = 0
            return made

    def _put_back(self, made: list[MadeReport]) -> None:
        with self._lock:
            self._made = made + self._made

    def _settled(self, made: list[MadeReport]) -> None:
        with self._lock:
            self._pending.difference_update((m.collection.question_id, m.slot) for m in made)
            if len(self._known) > _KNOWN_ANSWERS:
                self._known.clear()  # the ledger knows them

    def _write(self, db: sqlite3.Connection, state: State, moment: Moment, made: list[MadeReport]) -> None:
        """Turn reports in memory into stored ones."""
        used = sum(cost(m.collection.epsilon) for m in made)
        # A lease that is gone was charged whole when it expired, so its answers cost nothing more.
        open_still = bool(made) and shrink_lease(db, state, self._token, used)
        for m in made:
            price = cost(m.collection.epsilon) if open_still else 0
            if budget.lookup(db, m.collection, m.slot) is None:
                self._store(db, state, moment, price, m)
            else:
                # Another process stored an answer first. Ours stays paid for.
                budget.charge_in_doubt(db, state, moment, price)


def open_lease(
    db: sqlite3.Connection, state: State, token: bytes, wanted: int, least: int, expires: int,
    policy: Policy, moment: Moment,
) -> int:  # fmt: skip
    """Set `wanted` aside, or what is left, but never less than `least`. Raise BudgetExceeded if less is left."""
    if state.leases:
        budget.settle_leases(db, state, moment)
    found = budget.spending(db, state, moment.now, policy.period)
    budget.require(db, state, found, least, policy, moment.now)
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
