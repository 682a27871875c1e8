"""Memory-speed reports: budget is set aside on disk first, then spent in memory, then the reports are written.

    open    one durable transaction sets an amount aside (it counts as spent from here on)
    report  randomizes in memory against the amount; nothing is written yet and nothing can be sent yet
    flush   soon after, one transaction turns what was used into charges with their bytes, which may now be sent
    close   gives back what is left

If the app dies, reports that were not flushed are gone, have never left the device and stay paid for: a lease that
nobody closes is charged whole once it expires. So the price of speed is budget, never privacy. An answer that another
process stored in the meantime stands; ours is then dropped and stays paid for.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.clock import Clock
from ldp_client.errors import BudgetExceeded
from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import Sending, State
from ldp_client.trust.policy import Policy, cost

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["LEASE_SECONDS", "Lease", "Made", "Take"]

LEASE_SECONDS = 3600
_KNOWN_ANSWERS = 100_000


class Made(NamedTuple):
    """A report in memory. Its repr does not show it."""

    collection: Collection
    slot: int
    report: bytes
    batch_id: bytes
    made: float
    due: float

    def __repr__(self) -> str:
        return f"Made({self.collection.id.hex()[:12]}, slot {self.slot})"


class Take(Enum):
    """What `take` did."""

    MADE = "made"
    STANDS = "stands"
    ASK_LEDGER = "ask ledger"  # an answer is on disk, perhaps for another window


class Lease:
    """Budget set aside by this process, and the reports that were paid from it."""

    def __init__(
        self, storage: Storage, policy: Policy, amount: int, clock: Clock, new_token: Callable[[], bytes]
    ) -> None:
        self._storage = storage
        self._policy = policy
        self._amount = amount
        self._clock = clock
        self._new_token = new_token
        self._fresh()

    def _fresh(self) -> None:
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._made: list[Made] = []
        self._pending: set[tuple[bytes, int]] = set()  # (question id, slot) that are only in memory
        self._known: set[tuple[bytes, int]] = set()  # (collection id, slot) that need nothing more
        self._token = b""
        self._left = 0
        self._expires = 0
        self._seen = 0

    def forked(self) -> None:
        """In a child process: the lease and its reports are the parent's."""
        self._fresh()

    def take(
        self, collection: Collection, randomize: Callable[[], bytes], batch_id: bytes, now: float, due: float
    ) -> Take:
        """Make a report unless one stands; `randomize` is called only once the budget has said yes."""
        price = cost(collection.epsilon)
        while True:
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
                if question not in self._pending and price <= self._left and self._seen < self._expires:
                    self._left -= price
                    self._made.append(Made(collection, slot, randomize(), batch_id, now, due))
                    self._pending.add(question)
                    self._known.add((collection.id, slot))
                    return Take.MADE
                again = question in self._pending
            # Either the lease is used up, or this question waits in memory for another window: write what there is.
            self.flush() if again else self._renew(price)

    @property
    def pending(self) -> int:
        """How many reports are only in memory."""
        return len(self._made)

    def _standing(self, collection: Collection, slot: int) -> Take | None:
        """Whether an answer stands on disk, or the schedule is complete with what is in memory."""
        pending: list[int] = []
        if collection.schedule is not None:
            pending = sorted(slot for question, slot in self._pending if question == collection.question_id)
        with self._storage.peeking() as db:
            standing = budget.lookup(db, collection, slot, pending)
        if standing is None:
            return None
        return Take.STANDS if standing.complete else Take.ASK_LEDGER

    def _renew(self, price: int) -> None:
        """Write what was made, give back the old lease, open a new one."""
        with self._flushing:
            made = self._swap(stop=True)
            token = self._new_token()
            try:
                with self._storage.charging() as (db, state):
                    now = budget.present(state, max(self._seen, self._clock.time()))
                    self._write(db, state, now, made)
                    if self._token:
                        budget.close_lease(db, state, self._token)
                    expires = now + LEASE_SECONDS
                    granted = budget.open_lease(db, state, token, self._amount, price, expires, self._policy, now)
            except BudgetExceeded:
                self._put_back(made)
                self._finish()
                raise
            except BaseException:
                self._put_back(made)
                raise
            self._settled(made)
            with self._lock:
                self._token, self._left, self._expires, self._seen = token, granted, expires, now

    def flush(self) -> None:
        """Make every report in memory durable, so that it may be sent."""
        with self._flushing:
            made = self._swap()
            if not made:
                return
            try:
                with self._storage.charging(background=True) as (db, state):
                    self._write(db, state, budget.present(state, self._clock.time()), made)
            except BaseException:
                self._put_back(made)
                raise
            self._settled(made)

    def close(self) -> None:
        """Flush, and give back what is left."""
        with self._flushing:
            self._finish()

    def close_if_idle(self) -> None:
        """Give back a lease that is about to run out: nobody else should have to take it for lost."""
        if self._token and self._clock.time() > self._expires - LEASE_SECONDS / 4:
            self.close()

    def _finish(self) -> None:
        made = self._swap(stop=True)
        if not self._token:
            return
        try:
            with self._storage.charging(background=True) as (db, state):
                self._write(db, state, budget.present(state, self._clock.time()), made)
                budget.close_lease(db, state, self._token)
        except BaseException:
            self._put_back(made)
            raise
        self._settled(made)
        with self._lock:
            self._token = b""

    def _swap(self, *, stop: bool = False) -> list[Made]:
        with self._lock:
            made, self._made = self._made, []
            if stop:
                self._left = 0
            return made

    def _put_back(self, made: list[Made]) -> None:
        with self._lock:
            self._made = made + self._made

    def _settled(self, made: list[Made]) -> None:
        with self._lock:
            self._pending.difference_update((m.collection.question_id, m.slot) for m in made)
            if len(self._known) > _KNOWN_ANSWERS:
                self._known.clear()  # the ledger can still be asked

    def _write(self, db: sqlite3.Connection, state: State, now: int, made: list[Made]) -> None:
        """Turn reports in memory into charges and queued batches."""
        used = sum(cost(m.collection.epsilon) for m in made)
        # A lease that is gone was charged whole when it expired: then its answers cost nothing more.
        open_still = bool(made) and budget.shrink_lease(db, state, self._token, used)
        for m in made:
            price = cost(m.collection.epsilon) if open_still else 0
            if budget.lookup(db, m.collection, m.slot) is None:
                sending = Sending(m.batch_id, m.collection.opens, m.made, m.due)
                budget.charge(db, state, now, price, m.collection, m.slot, m.report, sending)
            else:
                budget.charge_in_doubt(db, state, now, price)  # another process answered first: paid for nothing
