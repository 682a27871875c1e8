"""The signed, public, monotonic list of collections: trust for apps that do not ship every question.

A collection made for one device is a fingerprint. So a device believes only one list, the same for everybody:

- signed with Ed25519 over "hearsay/collection-list/v1" || list_bytes, by a key that the app's policy names or that an
  earlier accepted list announced (`next_key`);
- its serial never falls, an equal serial means equal bytes, and a later list holds every collection of the earlier one;
- rotation: a list announces `next_key`; either key may sign until the first list signed by the new one, which retires
  the old one for good on this device.

One device cannot see whether another is shown a different list of the same serial; comparing lists (they are public)
is for those who watch the operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from ldp_client.errors import PolicyRefused
from ldp_client.protocol import tags

__all__ = ["SIGNED_LIST", "SignedList", "collection_id", "verify_list"]

SIGNED_LIST = tags.COLLECTION_LIST


def collection_id(spec_bytes: bytes) -> bytes:
    """Return the id of a collection, from its bytes alone."""
    return sha256(tags.COLLECTION + spec_bytes).digest()


@dataclass(frozen=True)
class SignedList:
    """A list whose signature and history were checked on this device."""

    list_bytes: bytes = field(repr=False)
    signer: bytes = field(repr=False)
    retired: frozenset[bytes] = field(default=frozenset(), repr=False)

    @cached_property
    def _parsed(self) -> tuple[int, tuple[bytes, ...], bytes]:
        from google.protobuf.message import DecodeError

        from ldp_client.protocol.v1 import collector_pb2

        try:
            message = collector_pb2.SignedListBody.FromString(self.list_bytes)
        except DecodeError:
            raise PolicyRefused("the list of collections cannot be read") from None
        return message.serial, tuple(message.spec_bytes), message.next_key

    @property
    def serial(self) -> int:
        """The list's number; only grows."""
        return self._parsed[0]

    @property
    def specs(self) -> tuple[bytes, ...]:
        """The bytes of every collection on the list."""
        return self._parsed[1]

    @property
    def next_key(self) -> bytes:
        """The key that may sign later lists; empty if none is announced."""
        return self._parsed[2]

    @cached_property
    def ids(self) -> frozenset[bytes]:
        """The ids of the collections on the list."""
        return frozenset(collection_id(spec) for spec in self.specs)


def verify_list(
    list_bytes: bytes, signature: bytes, public_key: bytes, *, keys: Iterable[bytes], previous: SignedList | None
) -> SignedList:
    """Return the list if its signature and its place after `previous` hold; raise PolicyRefused if not."""
    allowed = set(keys)
    retired = previous.retired if previous else frozenset()
    if previous:
        allowed |= {previous.signer} | ({previous.next_key} if previous.next_key else set())
    allowed -= retired
    if public_key not in allowed:
        raise PolicyRefused("the list of collections is signed by a key that this device does not trust")
    _check_signature(list_bytes, signature, public_key)
    if previous and public_key != previous.signer:
        retired |= {previous.signer}
    found = SignedList(list_bytes, public_key, retired)
    if previous:
        _check_history(previous, found)
    if found.next_key and len(found.next_key) != 32:
        raise PolicyRefused("the list of collections announces a key that is not 32 bytes long")
    return found


def _check_history(previous: SignedList, found: SignedList) -> None:
    if found.serial < previous.serial:
        raise PolicyRefused(f"the list of collections went back from number {previous.serial} to {found.serial}")
    if found.serial == previous.serial and found.list_bytes != previous.list_bytes:
        raise PolicyRefused(f"two different lists of collections carry the number {found.serial}")
    if not previous.ids <= found.ids:
        raise PolicyRefused("the list of collections lost an entry; a list may only grow")


def _check_signature(list_bytes: bytes, signature: bytes, public_key: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, SIGNED_LIST + list_bytes)
    except (InvalidSignature, ValueError):
        raise PolicyRefused("the signature of the list of collections is not valid") from None
