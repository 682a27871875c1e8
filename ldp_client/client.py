"""The client that an app embeds: `report` an item, and everything else is looked after.

`report` does, in this order and always: check the collection (policy, trust), draw its coins, open one transaction,
let the ledger say whether a report may be made, and only then look at the item, randomize it and store the bytes with
their charge. None, an item outside the domain and an ordinary item take the same path to the same number of bytes. It
returns when the bytes are durable and sends nothing itself: that is the sender's work, later, at a random moment.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.clock import Clock, SystemClock
from ldp_client.coins import draw_words
from ldp_client.errors import LdpError, PolicyRefused
from ldp_client.ledger import budget
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import Sending
from ldp_client.sending import outbox
from ldp_client.sending.outbox import OutboxLimits, OutboxView
from ldp_client.sending.sender import Chore, Delivery, Sender, TokenSource
from ldp_client.sending.transport import Tls, Transport
from ldp_client.trust.durations import parse_duration
from ldp_client.trust.policy import Policy, amount, cost, units

if TYPE_CHECKING:
    from types import TracebackType

    from ldp_client.collection import Collection
    from ldp_client.ledger.lease import Lease
    from ldp_client.ledger.view import LedgerView
    from ldp_client.protocol.domain import Item
    from ldp_client.sending.subscription import Subscription

__all__ = ["Client", "Receipt"]

_FLUSH_LEASE_SECONDS = 0.2
_EXIT_SECONDS = 2.0
_WORDS = 2.0**64
"""How many values a word of coins has."""


class Receipt(NamedTuple):
    """What `report` did. It depends on the collection and the ledger, never on the item."""

    made: bool
    """A new report was made and charged."""
    queued: bool
    """Bytes were queued for this collection (the new report, or the standing answer for a new window)."""
    durable: bool
    """What was made is on disk (False: in memory, against a lease)."""


class Client:
    """Reports items to a server through randomizers, within a budget. Thread-safe; safe across processes and forks.

    `target` is "host:port" of the server; TLS is used unless `plaintext` is set, which only a loopback target allows.
    `storage` is a directory for ledger and outbox; `witness` puts the ledger's witness elsewhere (witness.py).
    `delay` is the longest random wait between making a report and sending it.
    `lease` turns on the memory-speed mode: how much budget is set aside at a time (lease.py).
    `admission` gives a token for a collection id, where collections ask for one.
    `background=False` starts no thread: only `flush` and `close` send. For scripts and tests.
    `exit_seconds` bounds what the end of the program may take if `close` was not called.
    """

    def __init__(
        self,
        target: str,
        *,
        storage: str | Path,
        policy: Policy,
        tls: Tls | None = None,
        plaintext: bool = False,
        delay: str | int = "1 hour",
        lease: str | int | None = None,
        witness: str | Path | None = None,
        limits: OutboxLimits | None = None,
        admission: TokenSource | None = None,
        refresh: str | int = "1 day",
        background: bool = True,
        exit_seconds: float = _EXIT_SECONDS,
        transport: Transport | None = None,
        clock: Clock | None = None,
        coins: Callable[[int], Sequence[int]] = draw_words,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError("policy: give a Policy")
        self._policy = policy
        self._clock = clock or SystemClock()
        self._coins = coins
        self._delay = 0 if delay in {0, "0", "0 s"} else parse_duration(delay)
        self._limits = limits or OutboxLimits()
        self._exit_seconds = exit_seconds
        self._storage = Storage(storage, witness)
        if transport is None:
            from ldp_client.sending.grpc_transport import GrpcTransport  # a fake needs none of it

            transport = GrpcTransport(target, tls=tls, plaintext=plaintext)
        self._transport = transport
        self._target = target
        self._refresh = parse_duration(refresh)
        self._lease: Lease | None = None
        chores = []
        if policy.list_keys:
            chores.append(Chore(self._subscription.refresh_quietly))
        if lease is not None:
            from ldp_client.ledger.lease import Lease

            wanted = units(min(amount(lease, "lease"), policy.budget))
            self._lease = Lease(self._storage, policy, wanted, self._clock, lambda: self._bytes(2))
            self._lease_chore = Chore(self._tend_lease)
            chores.append(self._lease_chore)
        self._sender = Sender(
            self._storage, transport, self._clock, self._uniform, self._limits, admission, chores, background
        )
        self._closed = False
        _clients.add(self)
        if policy.list_keys or self._storage.exists():
            self._sender.wake()  # something may be left from last time

    def __repr__(self) -> str:
        return f"Client({self._target!r}, storage={str(self._storage.directory)!r})"

    # -- reporting

    def report(self, collection: Collection, item: Item) -> Receipt:
        """Make, charge and store one report of `item` (None: nothing to report), unless an answer stands already.

        Raises PolicyRefused or BudgetExceeded before it looks at the item, StorageError if nothing could be stored,
        TypeError for what is no Collection or no kind of item.
        """
        self._check(collection)
        # Always the same draws, whatever happens with them: batch id, delay, the mechanism's words.
        id_low, id_high, wait, *words = self._coins(3 + collection.randomizer.words)
        batch_id = id_low.to_bytes(8, "little") + id_high.to_bytes(8, "little")
        now = self._clock.time()
        due = self._due(collection, now, wait)
        if self._lease is not None:
            from ldp_client.ledger.lease import Take

            taken = self._lease.take(collection, lambda: collection.randomize(item, words), batch_id, now, due)
            if taken is Take.MADE:
                self._schedule_flush()
                return _IN_MEMORY
            if taken is Take.STANDS:
                return _STANDS
        with self._storage.charging() as (db, state):
            moment = budget.present(state, now)
            decision = budget.decide(db, state, collection, self._policy, moment)
            if decision.complete:
                return _STANDS
            report = decision.report
            if report is None:
                report = collection.randomize(item, words)
                price = cost(collection.epsilon)
                sending = Sending(batch_id, collection.opens, now, due)
                budget.charge(db, state, moment, price, collection, decision.slot, report, sending)
            elif decision.queued_for == collection.id or not outbox.is_new(db, collection, decision.slot):
                return _STANDS
            else:
                outbox.enqueue(db, collection, report, batch_id, now, due, self._limits)
        self._sender.wake(due)
        return _MADE if decision.report is None else _AGAIN

    def _check(self, collection: Collection) -> None:
        """Everything that can be said before the ledger is asked; sees no item."""
        if self._closed:  # first: once the interpreter has begun to go, nothing can be imported any more
            raise PolicyRefused("this client is closed")
        if not isinstance(collection, _collection_type()):
            raise TypeError(f"report takes a Collection, not {type(collection).__name__}")
        self._policy.check(collection, self._subscription.ids() if self._policy.list_keys else None)

    def _due(self, collection: Collection, now: float, word: int) -> float:
        """A random moment within the delay, from now or from when the window opens, never near its end."""
        start = max(now, collection.opens)
        longest = max(0, min(self._delay, int((collection.closes - start) / 2)))
        return start + longest * (word / _WORDS)

    def due(self, collection: Collection) -> bool:
        """Whether this question asks for a new answer now. Call `report` whenever it does, with None if need be."""
        self._check(collection)
        if self._lease is not None:
            self._lease.flush()
        with self._storage.reading() as (db, state):
            now = budget.present(state, self._clock.time())
            open_now = collection.opens <= now < collection.closes
            return open_now and budget.lookup(db, collection, budget.slot_at(collection, now)) is None

    # -- sending

    def flush(self, timeout: float = 10.0, *, everything: bool = False) -> Delivery:
        """Send what is due within `timeout` seconds, with retries; what cannot be sent stays. Never raises for that.

        `everything` sends what is not due yet too, which tells the server when it was made: for trying things out.
        """
        try:
            if self._lease is not None:
                self._lease.flush()
        except LdpError as error:
            return Delivery(error=error)
        return self._sender.deliver(timeout, everything=everything, patient=True)

    def close(self, timeout: float = 5.0) -> Delivery:
        """Send what is due within `timeout` seconds, keep the rest for next time, and end the background thread."""
        return self._end(timeout, send=True)

    def _end(self, timeout: float, *, send: bool) -> Delivery:
        if self._closed:
            return Delivery()
        self._closed = True
        delivery, start = Delivery(), self._clock.monotonic()
        try:
            if self._lease is not None:
                self._lease.close()
            if send and self._storage.exists():
                delivery = self._sender.deliver(timeout * 0.8)
        except LdpError as error:
            delivery = Delivery(error=error)
        finally:
            left = max(timeout - (self._clock.monotonic() - start), 0.2)
            ended = self._sender.stop(left)
            self._transport.close()
            if ended:
                self._storage.close()
        return delivery

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- looking

    def ledger(self) -> LedgerView:
        """Return what is spent and left, per question and in total. A ledger that cannot be believed is all spent."""
        from ldp_client.ledger.view import read_ledger

        return read_ledger(self._storage, self._policy, self._clock.time())

    def outbox(self) -> OutboxView:
        """Return what waits to be sent, and the counters of what was accepted, refused and dropped."""
        with self._storage.working() as db:
            outbox.collect(db, self._limits)
            return outbox.view(db)

    def reset(self, reason: str) -> str:
        """Believe the ledger again after it was damaged, rolled back or lost; return what was wrong.

        What can still be read stays: answers stand, known charges count. What cannot be read is forgotten, so the
        device may then spend more than its lifetime budget: the reason is kept for whoever asks.
        """
        return self._storage.reset(reason, int(self._clock.time()))

    # -- collections

    def collections(self) -> Mapping[bytes, Collection]:
        """Return, by id, the collections on the signed list that this version understands."""
        return self._subscription.collections()

    def refresh(self, timeout: float = 10.0) -> int:
        """Fetch and check the signed list now; return its number. It is also fetched now and then by itself."""
        return self._subscription.refresh(timeout)

    def fetch(self, collection_id: bytes | str, timeout: float = 10.0) -> Collection:
        """Fetch a trusted collection's bytes by its id and check that they are what the id says."""
        wanted = bytes.fromhex(collection_id) if isinstance(collection_id, str) else collection_id
        return self._subscription.fetch(wanted, timeout)

    # -- inside

    @cached_property
    def _subscription(self) -> Subscription:
        from ldp_client.sending.subscription import Subscription

        return Subscription(self._storage, self._transport, self._policy, self._refresh, self._uniform)

    def _uniform(self) -> float:
        return self._coins(1)[0] / _WORDS

    def _bytes(self, words: int) -> bytes:
        return b"".join(word.to_bytes(8, "little") for word in self._coins(words))

    def _schedule_flush(self) -> None:
        if self._lease is not None and self._lease.pending == 1:
            self._lease_chore.at = self._clock.monotonic() + _FLUSH_LEASE_SECONDS
            self._sender.wake(self._clock.time() + _FLUSH_LEASE_SECONDS)

    def _tend_lease(self) -> float:
        if self._lease is not None:
            self._lease.flush()
            self._lease.close_if_idle()
        return 300.0

    def _forked(self) -> None:
        self._storage.forked()
        self._sender.forked()
        if self._lease is not None:
            self._lease.forked()


@cache
def _collection_type() -> type[Collection]:
    from ldp_client.collection import Collection  # it is there already if the caller has one

    return Collection


_MADE = Receipt(made=True, queued=True, durable=True)
_IN_MEMORY = Receipt(made=True, queued=True, durable=False)
_AGAIN = Receipt(made=False, queued=True, durable=True)
_STANDS = Receipt(made=False, queued=False, durable=True)

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
"""All that live, closed ones too: looking at a ledger opens its file again."""


def _at_exit() -> None:
    for client in list(_clients):
        with contextlib.suppress(Exception):  # the program is ending; what is durable is safe
            client._end(client._exit_seconds, send=False)


def _before_fork() -> None:
    for client in list(_clients):
        client._storage.hold()


def _after_fork_in_parent() -> None:
    for client in list(_clients):
        client._storage.let_go()


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client._forked()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
