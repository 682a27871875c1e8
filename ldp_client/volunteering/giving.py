"""Makes volunteers' records, and sends them and withdrawals at moments of its own.

Whether, when and how a record is sent never depends on the item: it has a fixed length, and goes at a random moment
within the client's delay. A record whose sending ended without an answer is sent again, with the same bytes. While the
user has stopped this device nothing is sent, withdrawals neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from os.path import lexists
from typing import Protocol

from ldp_client.clock import Clock
from ldp_client.collection import Collection
from ldp_client.errors import LdpError, PolicyRefused, Unavailable, WrongType
from ldp_client.ledger.budget import check_window
from ldp_client.ledger.database import Storage
from ldp_client.protocol.domain import Categories, Integers, Item, Record, Strings
from ldp_client.receipt import MADE, STANDS, Receipt
from ldp_client.trust.policy import Policy, decimal_text, units
from ldp_client.volunteering import book
from ldp_client.volunteering.book import NewRecord, VolunteeredView, WaitingRecord
from ldp_client.volunteering.consent import Consent
from ldp_client.volunteering.records import VolunteerRecord, consent_digest, record_name, seal_record

__all__ = ["VolunteerTransport", "Volunteering"]

logger = logging.getLogger("ldp_client")
_EVERY = 60.0
_AGAIN = 900.0
_SECONDS = 10.0
_FINAL = {"QUESTION_OVER", "MALFORMED_RECORD", "OTHER_RECORD"}


class VolunteerTransport(Protocol):
    """How a record leaves the device. Both raise Unavailable if there was no answer."""

    def give(self, collection_id: bytes, name: bytes, sealed: bytes, timeout: float) -> str:
        """Hand in a record; return the name of a GiveOutcome."""
        ...

    def withdraw(self, collection_id: bytes, secret: bytes, timeout: float) -> str:
        """Ask for a record to be deleted; return the name of a WithdrawOutcome."""
        ...


class Volunteering:
    """One client's volunteered answers."""

    def __init__(
        self,
        storage: Storage,
        policy: Policy,
        clock: Clock,
        coins: Callable[[int], Sequence[int]],
        transport: object,
        delay: float,
    ) -> None:
        self._storage, self._policy, self._clock, self._coins = storage, policy, clock, coins
        self._transport, self._delay = transport, delay

    def volunteer(self, collection: Collection, item: Item, consent: Consent) -> Receipt:
        """Seal, charge and keep one answer. Everything but the item is checked before the item is looked at."""
        self._allowed(consent)
        if not isinstance(collection.domain, Categories | Strings | Integers | Record):
            raise PolicyRefused(f"a {collection.domain.kind} answer cannot be volunteered: no release is about such")
        now = self._clock.time()
        check_window(collection, int(now))
        *random, wait = self._coins(5)
        secret = b"".join(word.to_bytes(8, "little") for word in random)
        with self._storage.charging() as (db, state):
            if book.standing(db, collection.question_id) is not None:
                return STANDS
            book.require(db, consent, self._policy)
            record = VolunteerRecord(
                collection.domain.index(item), consent_digest(consent.words), units(consent.epsilon)
            )
            sealed = seal_record(record, collection.id, collection.domain, consent.curator)
            due = now + self._delay * (wait / 2.0**64)
            new = NewRecord(collection.question_id, collection.id, collection.question, consent, secret, sealed, due)
            book.enter(db, state, new, int(now))
        return MADE

    def _allowed(self, consent: Consent) -> None:
        if not isinstance(consent, Consent):
            raise WrongType(f"consent: give a Consent, not {type(consent).__name__}")
        policy = self._policy
        if not policy.curators:
            raise PolicyRefused("volunteering is off: this device's policy names no curator (curators)")
        if consent.curator not in policy.curators:
            raise PolicyRefused("this consent is for a curator that this device's policy does not name")
        if consent.epsilon > policy.volunteer_epsilon:
            raise PolicyRefused(
                f"this consent allows releases of epsilon {decimal_text(consent.epsilon)} in all; this device's policy "
                f"allows {decimal_text(policy.volunteer_epsilon)}"
            )

    def withdraw(self, collection: Collection) -> VolunteeredView | None:
        """Withdraw what was volunteered for a question; None if there is nothing to withdraw."""
        with self._storage.charging() as (db, state):
            if book.standing(db, collection.question_id) is None:
                return None
            book.withdraw(db, state, collection.question_id, self._clock.time())
            return book.standing(db, collection.question_id)

    def look(self) -> tuple[VolunteeredView, ...]:
        """Return everything that was volunteered."""
        with self._storage.reading() as (db, _):
            return book.look(db)

    def send(self, *, everything: bool = False) -> int:
        """Send what is due; return how many records and withdrawals were settled. May raise Unavailable."""
        if lexists(self._storage.stop.name) or not self._storage.exists():
            return 0
        with self._storage.reading() as (db, _):
            due = book.waiting(db, float("inf") if everything else self._clock.time())
        settled = 0
        for one in due:
            state = self._send(one)
            if state is not None:
                with self._storage.working() as db:
                    book.settle(db, one, state)
                settled += 1
        return settled

    def _send(self, one: WaitingRecord) -> str | None:
        transport = self._transport
        if not hasattr(transport, "give"):
            raise Unavailable("this transport carries no volunteers' records")
        found: VolunteerTransport = transport  # type: ignore[assignment]  # it has the methods
        if one.state == "withdrawing":
            said = found.withdraw(one.collection_id, one.secret, _SECONDS)
            return {"WITHDRAWN": "withdrawn", "USED": "used"}.get(said)
        said = found.give(one.collection_id, record_name(one.secret), one.sealed or b"", _SECONDS)
        return "given" if said == "GIVEN" else "refused" if said in _FINAL else None

    def send_quietly(self) -> float:
        """Send, for the sender's thread. Return after how many seconds to look again."""
        uniform = self._coins(1)[0] / 2.0**64
        try:
            self.send()
        except LdpError as error:
            logger.info("ldp_client: volunteered answers were not sent: %s", error)
            return _AGAIN * (0.5 + uniform)
        return _EVERY * (0.5 + uniform)
