"""Heads of the signed list without its ids: comparing them, proofs between them, and witnesses who sign them.

A list's *head* is its size and the root of its Merkle tree (merkle.py). One key can sign two lists, and show one of
them to a single device. The device cannot see this by itself. It is noticed where heads meet:

- two devices, or a device and the operator's page, compare heads (`compare`);
- a *witness* follows the list, checks that it only grows, and signs each head that it has seen. A device whose policy
  names witnesses takes a list only if enough of them have signed its head (`seen_by`).

This helps as far as witnesses are not the operator, and do not sign two lists of one size. A witness's signature covers
the signed bytes as a whole and the key that signed them. So nothing of a list, such as its next key, can be made for
one device alone, and a signature says nothing about another list.
"""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from ldp_client.errors import InvalidSpec, ListForked, PolicyRefused
from ldp_client.protocol import tags
from ldp_client.trust.merkle import HASH_BYTES, root_of, verify_consistency, verify_inclusion

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ldp_client.trust.signed_list import SignedHead

__all__ = [
    "MAX_COSIGNATURES", "Cosignature", "ListHead", "ListProof", "check_entry", "check_growth", "compare", "cosign",
    "head_from", "seen_by",
]  # fmt: skip

MAX_COSIGNATURES = 16
"""The most cosignatures of one list."""


class ListHead(NamedTuple):
    """How far a list is: its number of ids, and the root of the tree over them."""

    size: int
    root: bytes

    def __str__(self) -> str:
        return f"{self.size} {self.root.hex()}"


class Cosignature(NamedTuple):
    """A witness's signature of a signed list."""

    public_key: bytes
    signature: bytes


@dataclass(frozen=True)
class ListProof:
    """What a server says about its list to somebody who holds no list. Nothing of it is checked yet."""

    list_bytes: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    public_key: bytes = field(repr=False)
    consistency: tuple[bytes, ...] = field(default=(), repr=False)
    index: int = 0
    inclusion: tuple[bytes, ...] = field(default=(), repr=False)
    cosignatures: tuple[Cosignature, ...] = field(default=(), repr=False)


def head_from(size: int, root: bytes | str) -> ListHead:
    """Return the head that somebody wrote down: a size, and 64 hexadecimal digits."""
    try:
        raw = bytes.fromhex(root) if isinstance(root, str) else bytes(root)
    except ValueError:
        raise InvalidSpec("the root of a list is 64 hexadecimal digits") from None
    if size < 0 or len(raw) != HASH_BYTES:
        raise InvalidSpec("a head is a list's size, 0 or more, and its root, 64 hexadecimal digits")
    return ListHead(size, raw)


def compare(packed: bytes, other: ListHead) -> bool:
    """Compare the ids that are held with a head from elsewhere. Raise ListForked if both cannot be one list.

    False: the other list is longer, so this cannot be told yet.
    """
    held = len(packed) // HASH_BYTES
    if other.size > held:
        return False
    root = root_of(packed[: other.size * HASH_BYTES])
    if root != other.root:
        raise ListForked(
            f"two lists: the first {other.size} collections held here have the root {root.hex()}, and elsewhere "
            f"{other.root.hex()}. One key has signed both if both were checked: keep them, and ask the operator"
        )
    return True


def check_growth(before: ListHead, signed: SignedHead, proof: Sequence[bytes]) -> ListHead:
    """Return the head of a signed list if a proof shows that it begins with `before`. Otherwise raise."""
    found = _head_of(signed)
    if found.size < before.size:
        raise ListForked(f"the signed list went back from number {before.size} to {found.size}")
    if not verify_consistency(before.size, before.root, found.size, found.root, proof):
        raise ListForked(
            f"the server cannot show that its list ({found}) goes on from {before}: it shows another list, or no proof"
        )
    return found


def check_entry(collection_id: bytes, signed: SignedHead, proof: ListProof) -> int:
    """Return the place of an id on a signed list, from 0, if a proof shows it. Otherwise raise PolicyRefused."""
    found = _head_of(signed)
    if not verify_inclusion(collection_id, proof.index, found.size, found.root, proof.inclusion):
        raise PolicyRefused("the server cannot show that this collection is on its signed list")
    return proof.index


def _head_of(signed: SignedHead) -> ListHead:
    if not signed.root:
        raise PolicyRefused("the signed list has no tree: its server is older than this program")
    return ListHead(signed.serial, signed.root)


# -- witnesses


def _cosigned(signer: bytes, list_bytes: bytes) -> bytes:
    return tags.LIST_COSIGNATURE + signer + sha256(list_bytes).digest()


def cosign(key: Ed25519PrivateKey, signer: bytes, list_bytes: bytes) -> Cosignature:
    """Sign, as a witness, what `signer` has signed."""
    return Cosignature(key.public_key().public_bytes_raw(), key.sign(_cosigned(signer, list_bytes)))


def seen_by(
    signer: bytes, list_bytes: bytes, given: Iterable[Cosignature], witnesses: Group[bytes]
) -> frozenset[bytes]:
    """Return those of `witnesses` whose signatures of these bytes are among the given ones and are valid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    found = set()
    for one in given:
        if one.public_key in witnesses and one.public_key not in found:
            try:
                key = Ed25519PublicKey.from_public_bytes(one.public_key)
                key.verify(one.signature, _cosigned(signer, list_bytes))
            except (InvalidSignature, ValueError):
                continue
            found.add(one.public_key)
    return frozenset(found)
