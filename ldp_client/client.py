"""The client that an app embeds: it randomizes items, keeps the budget, and sends.

`report` always does the same things in the same order. It checks the collection (policy, trust), draws its random
words, and opens one transaction. In it, the ledger decides whether a report may be made. Only then the item is looked
at and randomized. The answer, its charge and its batch are stored together. None, an item outside the domain and any
other item take the same path to the same number of bytes. `report` returns when the bytes are durable. It sends nothing
itself: the sender does that later, at a random moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache, cached_property
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ldp_client.errors import BudgetExceeded, LdpError, PolicyRefused, Stopped, StorageError, WrongType
from ldp_client.ledger import budget, forks
from ldp_client.ledger.budget import MadeReport
from ldp_client.ledger.database import Storage
from ldp_client.options import LedgerFiles, RelayOptions, Sending, Sources, open_relay, open_transport, parse_delay
from ldp_client.protocol.sealing import CollectorKey
from ldp_client.receipt import AGAIN, IN_MEMORY, MADE, STANDS, Receipt
from ldp_client.sending.outbox import Outbox, OutboxView
from ldp_client.sending.sender import Chore, Delivery, Sender
from ldp_client.sending.target import Tls
from ldp_client.sending.transport import Transport
from ldp_client.sending.ways import Ways
from ldp_client.tokens.sources import Tokens
from ldp_client.tokens.wallet import Wallet
from ldp_client.trust.policy import Policy, amount, units

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.ledger.fields import FieldTotals
    from ldp_client.ledger.lease import Lease
    from ldp_client.ledger.stopping import StopView
    from ldp_client.ledger.view import LedgerView
    from ldp_client.protocol.domain import Item
    from ldp_client.sending.subscription import Subscription
    from ldp_client.trust.list_heads import ListHead
    from ldp_client.volunteering import Consent
    from ldp_client.volunteering.book import VolunteeredView
    from ldp_client.volunteering.giving import Volunteering

__all__ = ["Client", "Receipt"]

_FLUSH_LEASE_SECONDS = 0.2
_NO_END = 1 << 62
_EVERY = 1 << 62
"""Reports of a question."""
_WORDS = 2.0**64
"""How many values a random word has."""


class Client:
    """Reports items to a server through randomizers, within a budget. Safe for threads, processes and forks.

    `target`   "host:port" of the server, or a Transport
    `storage`  a directory for ledger and outbox, or LedgerFiles(...)
    `policy`   what this device allows
    `tls`      True: TLS with public certificates. Tls(...): with your own. False: plain text, to this machine only
    `delay`    the longest random wait between making a report and sending it, such as "1 hour"; 0 for none
    `lease`    how much budget to set aside at a time, for reports in memory (ledger/lease.py); None: no lease
    `sending`  limits, tokens, refresh, background thread (options.py)
    `sources`  clock and random words, for tests
    `relay`    "host:port" of the relay, for collections whose reports pass through one; `relay_tls` is its `tls`
    """

    def __init__(
        self,
        target: str | Transport,
        *,
        storage: str | Path | LedgerFiles,
        policy: Policy,
        tls: Tls | bool = True,
        delay: str | int = "1 hour",
        lease: str | int | Decimal | None = None,
        sending: Sending | None = None,
        sources: Sources | None = None,
        **relay: Unpack[RelayOptions],
    ) -> None:
        if not isinstance(policy, Policy):
            raise WrongType(f"policy: give a Policy, not {type(policy).__name__}")
        files = storage if isinstance(storage, LedgerFiles) else LedgerFiles(storage)
        sources = sources or Sources()
        self._policy = policy
        self._clock, self._coins = sources.clock, sources.coins
        self._sending = sending or Sending()
        self._delay = parse_delay(delay)
        self._storage = Storage(files.directory, files.witness)
        self._stop = self._storage.stop.name
        self._transport = open_transport(target, tls)
        self._relay_target = _name(relay.get("relay"))
        self._ways = Ways(self._transport, open_relay(self._collector_keys, self._clock, **relay))
        self._target = _name(target)
        self._outbox = Outbox(self._storage, self._sending.limits)
        self._lease = None if lease is None else self._new_lease(lease)
        self._lease_chore = None if self._lease is None else Chore(self._lease.tend)
        self._wallet = self._new_wallet()
        self._sender = self._new_sender()
        self._closed = False
        forks.watch(self)
        if policy.list_keys or self._wallet is not None or self._storage.exists():
            self._sender.wake()  # batches may be left from last time

    def _new_lease(self, lease: str | int | Decimal) -> Lease:
        from ldp_client.ledger.lease import Lease

        wanted = units(min(amount(lease, "lease"), self._policy.budget))
        token = lambda: b"".join(word.to_bytes(8, "little") for word in self._coins(2))  # noqa: E731
        return Lease(self._storage, self._policy, wanted, self._clock, token, self._outbox.store)

    def _new_wallet(self) -> Wallet | None:
        settings = self._sending.unlinkable_tokens
        return None if settings is None else Wallet(settings, self._storage.directory, self._clock, self._coins)

    def _new_sender(self) -> Sender:
        chores = [self._lease_chore] if self._lease_chore is not None else []
        if self._policy.list_keys:
            chores.append(Chore(self._subscription.refresh_quietly))
        if self._wallet is not None:
            chores.append(Chore(self._wallet.fill_quietly))
        if self._policy.curators:
            chores.append(Chore(self._volunteering.send_quietly))
        return Sender(
            self._outbox,
            self._ways,
            self._clock,
            self._uniform,
            chores,
            tokens=Tokens.of(self._sending.linkable_tokens, self._wallet),
            spread=self._delay,
            background=self._sending.background,
        )

    def __repr__(self) -> str:
        return f"Client({self._target!r}, storage={str(self._storage.directory)!r})"

    # -- reporting

    def report(self, collection: Collection, item: Item) -> Receipt:
        """Make, charge and store one report of `item` (None: nothing to report), unless an answer stands.

        Raises PolicyRefused or BudgetExceeded before it looks at the item, StorageError if nothing could be stored, and
        WrongType for what is no Collection or no kind of item.
        """
        price = self._check(collection)
        try:
            return self._make(collection, item, price)
        except BudgetExceeded:
            with suppress(StorageError), self._storage.charging(background=True) as (_, state):
                budget.note_progress(state, self._clock, self._policy.period)
            raise

    def _make(self, collection: Collection, item: Item, price: int) -> Receipt:
        # Always the same number of words, whatever they are used for: batch id, delay, the mechanism's words.
        id_low, id_high, wait, *words = self._coins(3 + collection.randomizer.words)
        batch_id = id_low.to_bytes(8, "little") + id_high.to_bytes(8, "little")
        now = self._clock.time()
        due = self._due(collection, now, wait)
        if self._lease is not None:
            from ldp_client.ledger.lease import Take

            taken = self._lease.take(collection, lambda: collection.randomize(item, words), batch_id, now, due)
            if taken is Take.MADE:
                self._schedule_flush()
                return IN_MEMORY
            if taken is Take.STANDS:
                return STANDS
        with self._storage.charging() as (db, state):
            moment = budget.present(state, self._clock, self._policy.period)
            decision = budget.decide(db, state, collection, price, self._policy, moment)
            if decision.entry is None:
                report = collection.randomize(item, words)
                made = MadeReport(collection, decision.slot, report, batch_id, now, due)
                self._outbox.store(db, state, moment, price, made)
            elif decision.complete or decision.answered_for == collection.id:
                return STANDS
            else:
                again = MadeReport(collection, decision.slot, decision.report, batch_id, now, due)
                if not self._outbox.store_again(db, state, decision.entry, again):
                    return STANDS
        self._sender.wake(due)
        return MADE if decision.entry is None else AGAIN

    def _check(self, collection: Collection) -> int:
        """Check everything that can be checked without ledger and item; return the price of a report."""
        if self._closed:  # first: at the interpreter's end nothing can be imported any more
            raise PolicyRefused("this client is closed")
        if lexists(self._stop):
            raise Stopped
        if not isinstance(collection, _collection_type()):
            raise WrongType(f"collection: give a Collection, not {type(collection).__name__}")
        if collection.relayed and self._ways.relay is None:
            raise PolicyRefused(
                'this collection\'s reports pass through a relay, and this client has none: give relay="host:port"'
            )
        return self._policy.check(collection, self._subscription.ids() if self._policy.list_keys else None)

    def _due(self, collection: Collection, now: float, word: int) -> float:
        """A random moment within the delay, from now or from when the window opens, and not near the window's end."""
        start = max(now, collection.opens)
        longest = max(0, min(self._delay, int((collection.closes - start) / 2)))
        return start + longest * (word / _WORDS)

    def due(self, collection: Collection) -> bool:
        """Return whether this question asks for a new answer now. If so call `report`, with None if need be."""
        if self.stopped() is not None:
            return False
        self._check(collection)
        pending = self._lease.slots(collection) if self._lease is not None else []  # before the ledger is read
        with self._storage.reading() as (db, state):
            now = budget.present(state, self._clock, self._policy.period).wall
            slot = budget.slot_at(collection, now)
            if not collection.opens <= now < collection.closes or slot in pending:
                return False
            return budget.lookup(db, collection, slot, pending) is None

    # -- volunteering: another promise, for users who trust a curator

    def volunteer(self, collection: Collection, item: Item, *, consent: Consent) -> Receipt:
        """Give a curator the raw answer, sealed on this device, because the user has agreed to this consent.

        This is not a report. The curator reads the answer; what the curator publishes is private. Off unless the policy
        names the curator. Raises what `report` raises.
        """
        self._check_trust(collection)
        return self._volunteering.volunteer(collection, item, consent)

    def withdraw(self, collection: Collection) -> VolunteeredView | None:
        """Withdraw a volunteered answer. It is deleted unless a release has used it, which the ledger tells later.

        None: nothing was volunteered for this question, or a release has used it.
        """
        found = self._volunteering.withdraw(collection)
        if found is not None:
            self._sender.wake(self._clock.time())
        return found

    def volunteered(self) -> tuple[VolunteeredView, ...]:
        """Return what this device has volunteered: the words agreed to, the budget, and how far it is."""
        return self._volunteering.look()

    @cached_property
    def _volunteering(self) -> Volunteering:
        from ldp_client.volunteering.giving import Volunteering

        plain = (self._storage, self._policy, self._clock, self._coins, self._transport)
        return Volunteering(*plain, self._delay)

    def _check_trust(self, collection: Collection) -> None:
        """Check what `_check` checks but the price and the relay of a report: a volunteer's record has neither."""
        if self._closed:
            raise PolicyRefused("this client is closed")
        if lexists(self._stop):
            raise Stopped
        if not isinstance(collection, _collection_type()):
            raise WrongType(f"collection: give a Collection, not {type(collection).__name__}")
        self._policy.check_trust(collection.id, self._subscription.ids() if self._policy.list_keys else None)

    # -- sending

    def flush(self, timeout: float = 10.0, *, everything: bool = False) -> Delivery:
        """Send what is due within `timeout` seconds, with retries. What cannot be sent stays; that raises nothing.

        `everything` also sends what is not due yet. This tells the server when it was made: use it for trying out.
        """
        try:
            if self._lease is not None:
                self._lease.flush()
        except LdpError as error:
            return Delivery(error=error)
        delivery = self._sender.deliver(timeout, everything=everything, patient=True)
        if self._policy.curators and delivery.error is None:
            try:
                self._volunteering.send(everything=everything)
            except LdpError as error:
                return delivery._replace(error=error)
        return delivery

    def close(self, timeout: float = 5.0) -> Delivery:
        """End the background thread. Send what is due within `timeout` seconds (0: nothing); keep the rest."""
        return self._end(timeout, send=timeout > 0)

    def _end(self, timeout: float, *, send: bool) -> Delivery:
        if self._closed:
            return Delivery()
        self._closed = True
        delivery, start = Delivery(), self._clock.monotonic()
        try:
            if self._lease is not None:
                self._lease.close()
            if send:
                delivery = self._sender.deliver(timeout * 0.8)
        except LdpError as error:
            delivery = Delivery(error=error)
        finally:
            left = max(timeout - (self._clock.monotonic() - start), 0.2)
            ended = self._sender.stop(left)
            self._ways.close()
            if ended:
                self._storage.close()
        return delivery

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- looking: changes nothing

    def ledger(self) -> LedgerView:
        """Return what is spent and left, for each question and in total. An untrusted ledger is all spent."""
        from ldp_client.ledger.view import read_ledger

        return read_ledger(self._storage, self._policy, self._clock)

    def fields(self, *collections: Collection) -> FieldTotals:
        """Return what is spent on each field of these questions about records, beside the person's total.

        Raises `StorageError` if the ledger cannot be trusted: then everything counts as spent, for every field.
        """
        from ldp_client.ledger.fields import field_totals
        from ldp_client.ledger.view import read_answered

        view = self.ledger()
        answered = read_answered(self._storage, _EVERY) if view.questions or view.problem else ()
        return field_totals(view.spent, answered, collections)

    def outbox(self) -> OutboxView:
        """Return what waits to be sent, and counters of what was accepted, refused and dropped."""
        return self._outbox.view()

    # -- stopping: what the user decides

    def stop(self) -> None:
        """Stop reports on this device: from now on nothing is made, sent or fetched, until `resume`.

        It holds for all programs with this storage, and after a restart. What was made waits, unless the user resumes.
        """
        self._storage.stop.put(int(self._clock.time()))

    def resume(self) -> None:
        """End a stop."""
        self._storage.stop.remove()
        self._sender.resume()

    def stopped(self) -> StopView | None:
        """Return since when reports are stopped; None if they are not."""
        return self._storage.stop.read()

    # -- the rest

    def reset(self, reason: str) -> str:
        """Trust the ledger again after it was damaged, rolled back or lost; return what was wrong.

        What can be read stays: answers stand and charges count. What cannot be read is forgotten, so the device may
        then spend more than its lifetime budget. The ledger keeps the reason.
        """
        return self._storage.reset(reason, int(self._clock.time()))

    def listed(self) -> tuple[bytes, ...]:
        """Return the ids on the signed list that this device holds, oldest first."""
        return self._subscription.listed()

    def collections(self) -> Mapping[bytes, Collection]:
        """Return, by id, the collections on the signed list that this device has fetched."""
        return self._subscription.collections()

    def refresh(self, timeout: float = 10.0) -> int:
        """Fetch and check the signed list now; return how many ids it has. The background thread does so, too."""
        return self._subscription.refresh(timeout)

    def list_head(self) -> ListHead | None:
        """Return how far the held signed list is, to be compared with the head of others; None without a list."""
        return self._subscription.head()

    def check_list(self, size: int, root: bytes | str) -> bool:
        """Compare the held list with a head from elsewhere. Raise ListForked if they cannot be one list.

        True: the held list begins with that one. False: it is shorter, so `refresh` first.
        """
        from ldp_client.trust.list_heads import head_from

        return self._subscription.compare(head_from(size, root))

    def fetch(self, collection_id: bytes | str, timeout: float = 10.0) -> Collection:
        """Return a trusted collection by its id. It is fetched once, checked against its id, and kept."""
        return self._subscription.fetch(collection_id, timeout)

    def fetch_tokens(self) -> int:
        """Fetch the unlinkable tokens that are missing, now; return how many this device holds.

        The background thread does so at times of its own. Do not call this when somebody answers: the issuer would
        learn when that was.
        """
        return 0 if self._wallet is None else self._wallet.fill()

    @cached_property
    def _subscription(self) -> Subscription:
        from ldp_client.sending.subscription import Subscription

        every = self._sending.refresh_seconds
        return Subscription(self._storage, self._transport, self._policy, self._clock, every, self._uniform)

    def _collector_keys(self) -> Iterable[CollectorKey]:
        pinned = self._policy.collector_keys
        return [CollectorKey(key, _NO_END) for key in sorted(pinned)] or self._subscription.collector_keys()

    def _uniform(self) -> float:
        return self._coins(1)[0] / _WORDS

    def _schedule_flush(self) -> None:
        if self._lease is not None and self._lease_chore is not None and self._lease.pending == 1:
            self._lease_chore.at = self._clock.monotonic() + _FLUSH_LEASE_SECONDS
            self._sender.wake(self._clock.time() + _FLUSH_LEASE_SECONDS)

    # -- forks and the end of the program (ledger/forks.py)

    def _hold(self) -> None:
        self._storage.hold()

    def _let_go(self) -> None:
        self._storage.let_go()

    def _exit(self) -> None:
        self._end(self._sending.exit_seconds, send=False)

    def _forked(self) -> None:
        self._storage.forked()
        self._sender.forked()
        if self._lease is not None:
            self._lease.forked()


@cache
def _collection_type() -> type[Collection]:
    from ldp_client.collection import Collection  # already imported if the caller has a Collection

    return Collection


def _name(target: object) -> str:
    """Where something goes, in words: HOST:PORT, or what kind of Transport it is; nothing for None."""
    return target if isinstance(target, str) else "" if target is None else type(target).__name__
