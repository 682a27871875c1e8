"""The subscription: the signed list, fetched on a schedule, and the specs of the collections that the app wants.

The list has ids only. A spec is fetched by its id when the app asks for it. It is accepted only if it hashes to that
id, and is kept beside the list. A list or a spec that is refused changes nothing: what is held stays, and the refusal
is counted (`Client.outbox().counters`).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from ldp_client.clock import Clock
from ldp_client.errors import InvalidSpec, LdpError, NotWitnessed, PolicyRefused, Stopped, StorageError
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import check
from ldp_client.sending.list_parts import download_list
from ldp_client.sending.transport import ListPart, Transport
from ldp_client.trust.list_heads import ListHead, compare, seen_by
from ldp_client.trust.policy import Policy
from ldp_client.trust.signed_list import (
    ID_BYTES,
    SignedHead,
    SignedList,
    collection_id,
    verify_head,
    verify_list,
)

if TYPE_CHECKING:
    from ldp_client.collection import Collection
    from ldp_client.protocol.sealing import CollectorKey

__all__ = ["LIST_FORKED", "LIST_REFUSED", "LIST_UNSEEN", "SPEC_REFUSED", "Subscription", "held_list", "kept_specs"]

logger = logging.getLogger("ldp_client")

LIST_REFUSED = "list refused"
LIST_FORKED = "list forked"
LIST_UNSEEN = "list not witnessed"
SPEC_REFUSED = "collection refused"
"""Counters: of lists that this device must not accept (most of them contradict the one that it holds), of heads from
elsewhere that contradict it, of lists that too few witnesses have seen, and of specs that do not hash to their ids."""
_SPECS_BYTES = 16 << 20
"""How much of specs is kept. Above that, those that were fetched first are dropped."""
_BACKGROUND_SECONDS = 300.0
"""How long the background thread gives a whole list: up to 49 parts over a slow network."""


class Subscription:
    """The signed list that this device holds, and single collections by id."""

    def __init__(
        self,
        storage: Storage,
        transport: Transport,
        policy: Policy,
        clock: Clock,
        every: int,
        uniform: Callable[[], float],
    ) -> None:
        self._storage = storage
        self._transport = transport
        self._policy = policy
        self._clock = clock
        self._every = every
        self._uniform = uniform
        self._held: SignedList | None = None
        self._parsed: dict[bytes, Collection] = {}

    # -- the list

    def ids(self) -> frozenset[bytes] | None:
        """Return the ids on the list; None if there is no list yet."""
        held = self._current()
        return held.ids if held else None

    def listed(self) -> tuple[bytes, ...]:
        """Return the ids on the list in their order; none if there is no list yet."""
        held = self._current()
        return held.ordered if held else ()

    def collector_keys(self) -> tuple[CollectorKey, ...]:
        """Return the collection server's keys that are on the list; none if there is no list yet."""
        held = self._current()
        return held.signed.collector_keys if held else ()

    def refresh(self, timeout: float) -> int:
        """Fetch the list, check it against the one that is held, and keep it. Return how many ids it has."""
        if not self._policy.list_keys:
            raise PolicyRefused("this device's policy names no key for a signed list; give list_keys")
        self._storage.stop.refuse()
        with self._counting(LIST_REFUSED):
            return self._refresh(self._clock.monotonic() + timeout)

    def _refresh(self, until: float) -> int:
        with self._storage.reading() as (db, _):
            known = held_list(db)
        answer, packed = download_list(self._transport, known, self._verified, lambda: until - self._clock.monotonic())
        with self._storage.charging(background=True) as (db, state):
            held = held_list(db)  # another process may have refreshed meanwhile
            if held and held != known and held.serial * ID_BYTES > len(packed) and held.packed.startswith(packed):
                found = held
            else:
                found = verify_list(self._verified(answer, held), packed, previous=held)
                self._check_witnesses(found, answer)
            if found != held:
                _keep(db, found)
                state.changed = True
        self._held = found
        return found.serial

    def _verified(self, answer: ListPart, held: SignedList | None) -> SignedHead:
        keys = self._policy.list_keys
        return verify_head(answer.list_bytes, answer.signature, answer.public_key, keys=keys, previous=held)

    def _check_witnesses(self, found: SignedList, answer: ListPart) -> None:
        policy, signer = self._policy, found.signed.signer
        if not policy.witnesses:
            return
        seen = seen_by(signer, found.signed.list_bytes, answer.cosignatures, policy.witnesses)
        if len(seen) < policy.witnesses_needed:
            raise NotWitnessed(
                f"{len(seen)} of {len(policy.witnesses)} witnesses have signed the server's list ({found.list_head}), "
                f"and this device's policy needs {policy.witnesses_needed}; what is held stays"
            )

    # -- comparing

    def head(self) -> ListHead | None:
        """Return how far the held list is; None if there is no list yet."""
        held = self._current()
        return held.list_head if held else None

    def compare(self, other: ListHead) -> bool:
        """Compare the held list with a head from elsewhere: True if it fits, False if it cannot be told."""
        held = self._current()
        with self._counting(LIST_FORKED):
            return held is not None and compare(held.packed, other)

    def refresh_quietly(self) -> float:
        """Refresh, for the sender's thread. Return when to do it again, at a different time on every device."""
        try:
            self.refresh(_BACKGROUND_SECONDS)
        except Stopped:
            return min(self._every, 3600) * (0.5 + self._uniform())
        except LdpError as error:
            refused = isinstance(error, PolicyRefused | NotWitnessed) and not isinstance(error, StorageError)
            level = logging.WARNING if refused else logging.INFO
            logger.log(level, "ldp_client: the signed list was not refreshed: %s", error)
            return min(self._every, 3600) * (0.5 + self._uniform())
        return self._every * (0.5 + self._uniform())

    def _current(self) -> SignedList | None:
        if self._held is None:
            with self._storage.reading() as (db, _):
                self._held = held_list(db)
        return self._held

    # -- single collections

    def collections(self) -> Mapping[bytes, Collection]:
        """Return the listed collections whose specs this device holds, in the order of the list."""
        listed = self.listed()
        with self._storage.reading() as (db, _):
            kept = {row[0] for row in db.execute("SELECT id FROM specs")}
            found = [self._load_spec(db, wanted) for wanted in listed if wanted in kept]
        return MappingProxyType({collection.id: collection for collection in found if collection is not None})

    def fetch(self, asked: bytes | str, timeout: float) -> Collection:
        """Return a trusted collection by its id (bytes, or hexadecimal), from this device or from the server."""
        try:
            wanted = bytes.fromhex(asked) if isinstance(asked, str) else bytes(asked)
        except ValueError:
            raise InvalidSpec("collection_id: write 64 hexadecimal digits") from None
        if self._policy.pinned is None and not self._policy.list_keys:
            raise PolicyRefused(
                "fetching needs a policy with pinned ids or list keys, or any collection would be trusted"
            )
        self._policy.check_trust(wanted, self.ids() if self._policy.list_keys else None)
        return self._kept(wanted) or self._fetch(wanted, timeout)

    def _kept(self, wanted: bytes) -> Collection | None:
        with suppress(StorageError), self._storage.reading() as (db, _):
            return self._load_spec(db, wanted)
        return None

    def _fetch(self, wanted: bytes, timeout: float) -> Collection:
        from ldp_client.collection import MAX_SPEC_BYTES, Collection

        self._storage.stop.refuse()
        spec = self._transport.get_collection(wanted, timeout)
        with self._counting(SPEC_REFUSED):
            if len(spec) > MAX_SPEC_BYTES or collection_id(spec) != wanted:
                raise InvalidSpec("the server sent a collection whose bytes do not belong to the id that was asked for")
        collection = Collection.from_bytes(spec)
        with suppress(StorageError), self._storage.working() as db:  # it can be fetched again
            db.execute("INSERT OR REPLACE INTO specs (id, spec) VALUES (?, ?)", (wanted, spec))
            _trim(db)
        self._parsed[wanted] = collection
        return collection

    def _load_spec(self, db: sqlite3.Connection, wanted: bytes) -> Collection | None:
        """Read a spec that is kept. One that does not fit its id, or that this version cannot read, counts as none."""
        from ldp_client.collection import Collection

        if wanted not in self._parsed:
            row = db.execute("SELECT spec FROM specs WHERE id = ?", (wanted,)).fetchone()
            if row is None or collection_id(row[0]) != wanted:
                return None
            with suppress(InvalidSpec):
                self._parsed[wanted] = Collection.from_bytes(row[0])
        return self._parsed.get(wanted)

    @contextmanager
    def _counting(self, counter: str) -> Iterator[None]:
        """Count what is refused because the server may not be believed."""
        try:
            yield
        except StorageError:
            raise  # this device's own trouble
        except (PolicyRefused, InvalidSpec, NotWitnessed) as error:
            counter = LIST_UNSEEN if isinstance(error, NotWitnessed) else counter
            with suppress(StorageError), self._storage.working() as db:
                db.execute(
                    "INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", (counter,)
                )
            raise


def kept_specs(db: sqlite3.Connection) -> Iterator[Collection]:
    """Yield the collections whose specs are kept, those left out that this version cannot read."""
    from ldp_client.collection import Collection

    for wanted, spec in db.execute("SELECT id, spec FROM specs ORDER BY number").fetchall():
        if collection_id(spec) == wanted:
            with suppress(InvalidSpec):
                yield Collection.from_bytes(spec)


def held_list(db: sqlite3.Connection) -> SignedList | None:
    """Read the list that is held. A damaged one counts as none; then a key of the policy must sign the next one."""
    row = db.execute("SELECT list_bytes, signer, retired, ids, digest FROM trusted").fetchone()
    if row is None or check(*row[:4]) != row[4]:
        return None
    retired = frozenset(row[2][start : start + 32] for start in range(0, len(row[2]), 32))
    return SignedList(SignedHead(row[0], row[1], retired), row[3])


def _keep(db: sqlite3.Connection, found: SignedList) -> None:
    signed = found.signed
    row = (signed.list_bytes, signed.signer, b"".join(sorted(signed.retired)), found.packed)
    db.execute("INSERT OR REPLACE INTO trusted VALUES (1, ?, ?, ?, ?, ?)", (*row, check(*row)))


def _trim(db: sqlite3.Connection) -> None:
    """Drop the specs that were fetched first while they take too much room."""
    held = db.execute("SELECT sum(length(spec)) FROM specs").fetchone()[0]
    while held > _SPECS_BYTES:
        number, size = db.execute("SELECT number, length(spec) FROM specs ORDER BY number LIMIT 1").fetchone()
        db.execute("DELETE FROM specs WHERE number = ?", (number,))
        held -= size
