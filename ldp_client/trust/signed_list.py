"""The signed list: the public, append-only, signed list of collections, for apps that do not ship every question.

A collection that is shown to one device only identifies that device. So a device accepts one list, meant for all:

- It is signed with Ed25519 over "hearsay/collection-list/v1" || list_bytes. The key is one that the app's policy names,
  or one that an earlier accepted list announced (`next_key`).
- Its serial never falls. An equal serial means equal bytes. A later list holds every collection of an earlier one.
- To change keys, a list announces `next_key`. Both keys may sign until the first list signed by the new key. From then
  on this device refuses the old key.

A device cannot tell whether another device is shown a different list with the same serial. The lists are public, so
anyone can compare them.
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
    """Return the id of the collection with these bytes."""
    return sha256(tags.COLLECTION + spec_bytes).digest()


@dataclass(frozen=True)
class SignedList:
    """A list whose signature and history this device has checked."""

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
            raise PolicyRefused("the signed list cannot be read") from None
        return message.serial, tuple(message.spec_bytes), message.next_key

    @property
    def serial(self) -> int:
        """The number of the list; it never falls."""
        return self._parsed[0]

    @property
    def specs(self) -> tuple[bytes, ...]:
        """The bytes of every collection on the list."""
        return self._parsed[1]

    @property
    def next_key(self) -> bytes:
        """The key that may also sign later lists; empty if none is announced."""
        return self._parsed[2]

    @cached_property
    def ids(self) -> frozenset[bytes]:
        return frozenset(collection_id(spec) for spec in self.specs)


def verify_list(
    list_bytes: bytes, signature: bytes, public_key: bytes, *, keys: Iterable[bytes], previous: SignedList | None
) -> SignedList:
    """Return the list if its signature is valid and it may follow `previous`. Otherwise raise PolicyRefused."""
    allowed = set(keys)
    retired = previous.retired if previous else frozenset()
    if previous:
        allowed |= {previous.signer} | ({previous.next_key} if previous.next_key else set())
    allowed -= retired
    if public_key not in allowed:
        raise PolicyRefused("the signed list has a key that this device does not trust")
    _check_signature(list_bytes, signature, public_key)
    if previous and public_key != previous.signer:
        retired |= {previous.signer}
    found = SignedList(list_bytes, public_key, retired)
    if previous:
        _check_history(previous, found)
    if found.next_key and len(found.next_key) != 32:
        raise PolicyRefused("the signed list announces a key that is not 32 bytes long")
    return found


def _check_history(previous: SignedList, found: SignedList) -> None:
    if found.serial < previous.serial:
        raise PolicyRefused(f"the signed list went back from number {previous.serial} to {found.serial}")
    if found.serial == previous.serial and found.list_bytes != previous.list_bytes:
        raise PolicyRefused(f"two different signed lists have the number {found.serial}")
    if not previous.ids <= found.ids:
        raise PolicyRefused("the signed list lost a collection; it may only grow")


def _check_signature(list_bytes: bytes, signature: bytes, public_key: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, SIGNED_LIST + list_bytes)
    except (InvalidSignature, ValueError):
        raise PolicyRefused("the signature of the signed list is not valid") from None
