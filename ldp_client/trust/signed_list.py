"""The signed list: the public, append-only, signed list of collections, for apps that do not ship every question.

A collection that is shown to one device only identifies that device. So a device accepts one list, meant for all. The
list is the ids of an operator's public collections, in the order of creation. Its *head* is a hash over all of them:

    head_0 = 32 zero bytes        head_i = SHA-256("hearsay/collection-list-head/v1" || head_(i-1) || id_i)

- The operator signs the list's serial (how many ids it has) and its head with Ed25519. The key is one that the app's
  policy names, or one that an earlier accepted list announced (`next_key`).
- The serial never falls. An equal serial means equal bytes. A later list begins with all ids of an earlier one, in the
  same order: its head is the earlier head, continued with the new ids.
- The operator also signs the root of a Merkle tree over the ids (merkle.py), for those who hold no list: with it, two
  heads can be compared, and short proofs show what is on a list and that it only grew (list_heads.py). A device holds
  all ids, so it works the root out itself.
- A list has at most MAX_LISTED ids, so that every device can hold it. It is fetched in parts of PART_IDS. A device asks
  for the last part that it holds and for what follows. Specs are fetched one by one, by their ids.
- A list may also hold the collection server's keys, to which reports are sealed (protocol/sealing.py). Because they are
  on the one list, no device is given a key of its own. They may change without a new serial: a key that is not on the
  list held before must live longer than all keys of that list, and the last moment of any key never falls. So an old
  list cannot bring back a key that was replaced.
- To change keys, a list announces `next_key`. Both keys may sign until the first list signed by the new key. From then
  on this device refuses the old key.

A device alone cannot tell whether another device is shown a different list with the same serial. Equal heads mean equal
lists: anyone can compare them, and witnesses can (list_heads.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from ldp_client.errors import ListForked, PolicyRefused
from ldp_client.protocol import tags
from ldp_client.protocol.sealing import KEY_BYTES, CollectorKey, is_usable
from ldp_client.trust.list_heads import ListHead
from ldp_client.trust.merkle import HASH_BYTES, root_of

if TYPE_CHECKING:
    from ldp_client.protocol.v1 import collector_pb2

__all__ = [
    "EMPTY_HEAD", "ID_BYTES", "MAX_KEYS", "MAX_LISTED", "PART_IDS", "SIGNED_LIST", "SignedHead", "SignedList",
    "collection_id", "extended_head", "verify_head", "verify_list",
]  # fmt: skip

SIGNED_LIST = tags.COLLECTION_LIST
ID_BYTES = 32
MAX_LISTED = 100_000
"""The most ids of a list: 3.2 MB."""
MAX_KEYS = 4
"""The most collector keys of a list."""
PART_IDS = 2_048
"""How many ids a part has: 64 kB. The last part may have fewer."""
EMPTY_HEAD = bytes(32)


def collection_id(spec_bytes: bytes) -> bytes:
    """Return the id of the collection with these bytes."""
    return sha256(tags.COLLECTION + spec_bytes).digest()


def extended_head(head: bytes, ids: bytes) -> bytes:
    """Return the head of a list after these ids were added to it; `ids` holds one id after the other."""
    for start in range(0, len(ids), ID_BYTES):
        head = sha256(tags.COLLECTION_LIST_HEAD + head + ids[start : start + ID_BYTES]).digest()
    return head


@dataclass(frozen=True)
class SignedHead:
    """What the operator signed. This device has checked the signature, and that it trusts the key."""

    list_bytes: bytes = field(repr=False)
    signer: bytes = field(repr=False)
    retired: frozenset[bytes] = field(default=frozenset(), repr=False)

    @cached_property
    def _parsed(self) -> collector_pb2.SignedListBody:
        from google.protobuf.message import DecodeError

        from ldp_client.protocol.v1 import collector_pb2

        try:
            return collector_pb2.SignedListBody.FromString(self.list_bytes)
        except DecodeError:
            raise PolicyRefused("the signed list cannot be read") from None

    @property
    def serial(self) -> int:
        """How many ids the list has; it never falls."""
        return self._parsed.serial

    @property
    def head(self) -> bytes:
        """The hash over all ids."""
        return self._parsed.head

    @property
    def next_key(self) -> bytes:
        """The key that may also sign later lists; empty if none is announced."""
        return self._parsed.next_key

    @property
    def collector_keys(self) -> tuple[CollectorKey, ...]:
        """The keys to which reports are sealed."""
        return tuple(CollectorKey(one.public_key, one.not_after) for one in self._parsed.collector_keys)

    @property
    def root(self) -> bytes:
        """The root of the tree over all ids; empty if the server is older than the tree."""
        return self._parsed.root

    @property
    def rest(self) -> bytes:
        """What must be the same on two lists of one serial; a root may be added once, and keys may change."""
        rest = type(self._parsed).FromString(self.list_bytes)
        rest.ClearField("root")
        rest.ClearField("collector_keys")
        return rest.SerializeToString(deterministic=True)


@dataclass(frozen=True)
class SignedList:
    """A list whose signature and history this device has checked."""

    signed: SignedHead
    packed: bytes = field(repr=False)
    """The ids, one after the other."""

    @property
    def serial(self) -> int:
        return self.signed.serial

    @property
    def ordered(self) -> tuple[bytes, ...]:
        """The ids in the order of creation."""
        starts = range(0, len(self.packed), ID_BYTES)
        return tuple(self.packed[start : start + ID_BYTES] for start in starts)

    @cached_property
    def list_head(self) -> ListHead:
        """The size and the root of these ids, worked out here."""
        return ListHead(self.serial, self.signed.root or root_of(self.packed))

    @cached_property
    def ids(self) -> frozenset[bytes]:
        return frozenset(self.ordered)


def verify_head(
    list_bytes: bytes, signature: bytes, public_key: bytes, *, keys: Iterable[bytes], previous: SignedList | None
) -> SignedHead:
    """Return the head if its signature is valid and it may follow `previous`. Otherwise raise PolicyRefused.

    Whether the list's ids follow those of `previous` can be checked when all of them are there (`verify_list`).
    """
    held = previous.signed if previous else None
    allowed = set(keys)
    retired = held.retired if held else frozenset()
    if held:
        allowed |= {held.signer} | ({held.next_key} if held.next_key else set())
    allowed -= retired
    if public_key not in allowed:
        raise PolicyRefused("the signed list has a key that this device does not trust")
    _check_signature(list_bytes, signature, public_key)
    if held and public_key != held.signer:
        retired |= {held.signer}
    found = SignedHead(list_bytes, public_key, retired)
    if found.serial > MAX_LISTED:
        raise PolicyRefused(f"the signed list has {found.serial} collections; a list has at most {MAX_LISTED}")
    if held:
        _check_serial(held, found)
    _check_keys(held, found)
    if found.root and len(found.root) != HASH_BYTES:
        raise PolicyRefused(f"the signed list has a root that is not {HASH_BYTES} bytes long")
    if found.next_key and len(found.next_key) != 32:
        raise PolicyRefused("the signed list announces a key that is not 32 bytes long")
    return found


def verify_list(signed: SignedHead, packed: bytes, *, previous: SignedList | None) -> SignedList:
    """Return the list with these ids if they are what was signed and begin with all ids of `previous`."""
    if len(packed) != ID_BYTES * signed.serial:
        raise PolicyRefused(f"the signed list has {signed.serial} collections, and other ids were sent for it")
    start, head = 0, EMPTY_HEAD
    if previous:
        if not packed.startswith(previous.packed):
            raise ListForked(
                f"the signed list lost or moved a collection; it may only grow at its end (held: {previous.list_head})"
            )
        start, head = len(previous.packed), previous.signed.head
    if extended_head(head, packed[start:]) != signed.head:
        raise PolicyRefused(
            "the ids of the signed list are not those that were signed, or do not follow those that this device holds; "
            "a list may only grow at its end"
        )
    if signed.root and root_of(packed) != signed.root:
        raise PolicyRefused("the root of the signed list is not that of its ids")
    return SignedList(signed, packed)


def _check_serial(previous: SignedHead, found: SignedHead) -> None:
    if found.serial < previous.serial:
        raise ListForked(f"the signed list went back from number {previous.serial} to {found.serial}")
    if found.serial == previous.serial and (found.rest != previous.rest or _contradict(previous.root, found.root)):
        raise ListForked(
            f"two different signed lists have the number {found.serial}: "
            f"{previous.head.hex()} is held, {found.head.hex()} was sent"
        )
    if previous.root and not found.root:
        raise PolicyRefused("the signed list has no tree, and the one that is held has")


def _contradict(held: bytes, found: bytes) -> bool:
    return bool(held) and held != found


def _check_keys(previous: SignedHead | None, found: SignedHead) -> None:
    keys = found.collector_keys
    if len(keys) > MAX_KEYS or len({key.public_key for key in keys}) != len(keys):
        raise PolicyRefused(f"a signed list has at most {MAX_KEYS} different collector keys")
    if any(len(key.public_key) != KEY_BYTES for key in keys):
        raise PolicyRefused(f"the signed list has a collector key that is not {KEY_BYTES} bytes long")
    held = previous.collector_keys if previous else ()
    if not all(key in held or is_usable(key.public_key) for key in keys):
        raise PolicyRefused("the signed list has a collector key to which nothing can be sealed")
    latest = max((key.not_after for key in held), default=0)
    if max((key.not_after for key in keys), default=0) < latest:
        raise PolicyRefused("the signed list brings back collector keys that were replaced")
    if any(key not in held and key.not_after <= latest for key in keys):
        raise PolicyRefused("the signed list has another collector key for a time that a held one covers")


def _check_signature(list_bytes: bytes, signature: bytes, public_key: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, SIGNED_LIST + list_bytes)
    except (InvalidSignature, ValueError):
        raise PolicyRefused("the signature of the signed list is not valid") from None
