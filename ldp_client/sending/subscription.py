"""The subscription: collections from the server, fetched on a schedule and trusted only if the policy allows it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ldp_client.errors import InvalidSpec, LdpError, PolicyRefused
from ldp_client.ledger.database import Storage
from ldp_client.ledger.schema import check
from ldp_client.sending.transport import Transport
from ldp_client.trust.policy import Policy
from ldp_client.trust.signed_list import SignedList, collection_id, verify_list

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["Subscription"]

logger = logging.getLogger("ldp_client")


class Subscription:
    """The signed list that this device holds, and single collections by id."""

    def __init__(
        self, storage: Storage, transport: Transport, policy: Policy, every: int, uniform: Callable[[], float]
    ) -> None:
        self._storage = storage
        self._transport = transport
        self._policy = policy
        self._every = every
        self._uniform = uniform
        self._held: SignedList | None = None
        self._parsed: tuple[SignedList, Mapping[bytes, Collection]] | None = None

    def ids(self) -> frozenset[bytes] | None:
        """Return the ids on the list; None if there is no list yet."""
        held = self._current()
        return held.ids if held else None

    def collections(self) -> Mapping[bytes, Collection]:
        """Return the listed collections that this version understands."""
        from ldp_client.collection import Collection

        held = self._current()
        if held is None:
            return MappingProxyType({})
        if self._parsed is None or self._parsed[0] is not held:
            found = {}
            for spec in held.specs:
                try:
                    found[collection_id(spec)] = Collection.from_bytes(spec)
                except InvalidSpec:
                    continue  # it needs a newer version of this library
            self._parsed = held, MappingProxyType(found)
        return self._parsed[1]

    def refresh(self, timeout: float) -> int:
        """Fetch the list, check it against the one that is held, and keep it. Return its number."""
        if not self._policy.list_keys:
            raise PolicyRefused("this device's policy names no key for a signed list; give list_keys")
        listing = self._transport.list_collections(timeout)
        if not listing.list_bytes:
            raise PolicyRefused("the server has no signed list")
        with self._storage.charging(background=True) as (db, state):
            held = _load(db.execute("SELECT list_bytes, signer, retired, digest FROM trusted").fetchone())
            found = verify_list(
                listing.list_bytes, listing.signature, listing.public_key, keys=self._policy.list_keys, previous=held
            )
            if held != found:
                row = (found.list_bytes, found.signer, b"".join(sorted(found.retired)))
                db.execute("INSERT OR REPLACE INTO trusted VALUES (1, ?, ?, ?, ?)", (*row, check(*row)))
                state.changed = True
        self._held = found
        return found.serial

    def refresh_quietly(self) -> float:
        """Refresh, for the sender's thread. Return when to do it again, at a different time on every device."""
        try:
            self.refresh(30.0)
        except LdpError as error:
            logger.info("ldp_client: the signed list was not refreshed: %s", error)
            return min(self._every, 3600) * (0.5 + self._uniform())
        return self._every * (0.5 + self._uniform())

    def fetch(self, asked: bytes | str, timeout: float) -> Collection:
        """Return a trusted collection by its id (bytes, or hexadecimal), from the list or from the server."""
        from ldp_client.collection import Collection

        try:
            wanted = bytes.fromhex(asked) if isinstance(asked, str) else bytes(asked)
        except ValueError:
            raise InvalidSpec("collection_id: write 64 hexadecimal digits") from None
        if self._policy.pinned is None and not self._policy.list_keys:
            raise PolicyRefused(
                "fetching needs a policy with pinned ids or list keys, or any collection would be trusted"
            )
        self._policy.check_trust(wanted, self.ids() if self._policy.list_keys else None)
        if self._policy.list_keys and wanted in self.collections():
            return self.collections()[wanted]
        spec = self._transport.get_collection(wanted, timeout)
        if collection_id(spec) != wanted:
            raise InvalidSpec("the server sent a collection whose bytes do not belong to the id that was asked for")
        return Collection.from_bytes(spec)

    def _current(self) -> SignedList | None:
        if self._held is None:
            with self._storage.reading() as (db, _):
                self._held = _load(db.execute("SELECT list_bytes, signer, retired, digest FROM trusted").fetchone())
        return self._held


def _load(row: tuple[bytes, bytes, bytes, bytes] | None) -> SignedList | None:
    """Read the list that is held. A damaged one counts as none; then a key of the policy must sign the next one."""
    if row is None or check(*row[:3]) != row[3]:
        return None
    retired = frozenset(row[2][start : start + 32] for start in range(0, len(row[2]), 32))
    return SignedList(row[0], row[1], retired)
