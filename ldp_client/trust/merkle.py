"""The Merkle tree over the signed list: its root, and proofs about it, as RFC 9162 defines them (section 2.1).

    MTH({})            = SHA-256("")
    MTH({d})           = SHA-256(00 || d)
    MTH(d_0 .. d_n-1)  = SHA-256(01 || MTH(d_0 .. d_k-1) || MTH(d_k .. d_n-1)),  k the largest power of two below n

The entries are the list's ids. The root of n ids names these ids in this order: who has another list of n ids has
another root. Two kinds of proofs need no list:

- an *inclusion proof* shows that an id has a place in a list with this root;
- a *consistency proof* shows that a list of m ids with one root is the beginning of a list of n ids with another.

A proof has at most MAX_PROOF hashes of 32 bytes. Whoever verifies one believes nothing else of its sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

__all__ = [
    "EMPTY_ROOT", "HASH_BYTES", "MAX_PROOF", "Tree", "root_of", "verify_consistency", "verify_inclusion",
]  # fmt: skip

HASH_BYTES = 32
MAX_PROOF = 18
"""The most hashes of a proof about a list of 100,000 ids: 17 levels, and one more for consistency."""
EMPTY_ROOT = sha256(b"").digest()


def _leaf(entry: bytes) -> bytes:
    return sha256(b"\0" + entry).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def root_of(packed: bytes) -> bytes:
    """Return the root over ids that follow each other in `packed`."""
    level = [_leaf(packed[start : start + HASH_BYTES]) for start in range(0, len(packed), HASH_BYTES)]
    while len(level) > 1:  # a node without a neighbour goes up as it is: the right part of an uneven tree
        pairs = [_node(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
    return level[0] if level else EMPTY_ROOT


class Tree:
    """A tree that grows at its end. It keeps every complete subtree's hash, so a proof takes a few dozen hashes."""

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]
        """Level k has the hashes of the complete subtrees of 2^k entries, one after the other."""

    def __len__(self) -> int:
        return len(self._levels[0]) // HASH_BYTES

    def append(self, entry: bytes) -> None:
        """Add an entry at the end."""
        found, k = _leaf(entry), 0
        while True:
            if k == len(self._levels):
                self._levels.append(bytearray())
            level = self._levels[k]
            level += found
            if len(level) // HASH_BYTES % 2:
                return
            found, k = _node(bytes(level[-2 * HASH_BYTES : -HASH_BYTES]), found), k + 1

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first `size` entries, or of all."""
        return self._hash(0, len(self) if size is None else size)

    def _hash(self, start: int, end: int) -> bytes:
        size = end - start
        if not size:
            return EMPTY_ROOT
        if not size & size - 1:  # a complete subtree: `start` is a multiple of its size
            place = start // size * HASH_BYTES
            return bytes(self._levels[size.bit_length() - 1][place : place + HASH_BYTES])
        middle = start + _split(size)
        return _node(self._hash(start, middle), self._hash(middle, end))

    def inclusion(self, index: int) -> list[bytes]:
        """Return the proof that entry number `index` (from 0) has this place (PATH, section 2.1.3.1)."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        start, end, proof = 0, len(self), []
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                proof.append(self._hash(middle, end))
                end = middle
            else:
                proof.append(self._hash(start, middle))
                start = middle
        return proof[::-1]

    def consistency(self, first: int) -> list[bytes]:
        """Return the proof that the first `first` entries are a beginning of all (SUBPROOF, section 2.1.4.1)."""
        if not 0 <= first <= len(self):
            raise IndexError(first)
        if first in {0, len(self)}:
            return []
        start, end, proof = 0, len(self), []
        known = True  # whoever verifies knows the root of the first ones already
        while first < end:
            middle = start + _split(end - start)
            if first <= middle:
                proof.append(self._hash(middle, end))
                end = middle
            else:
                proof.append(self._hash(start, middle))
                start, known = middle, False
        if not known:
            proof.append(self._hash(start, end))
        return proof[::-1]


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def verify_inclusion(entry: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that `entry` is number `index` of the list of `size` with this root (2.1.3.2)."""
    if not 0 <= index < size or not _is_proof(proof):
        return False
    place, last, found = index, size - 1, _leaf(entry)
    for one in proof:
        if not last:
            return False
        if place & 1 or place == last:
            found = _node(one, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = _node(found, one)
        place, last = place >> 1, last >> 1
    return not last and found == root


def verify_consistency(first: int, first_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that a list of `first` ids is the beginning of one of `size` (section 2.1.4.2)."""
    if not 0 <= first <= size or not _is_proof(proof):
        return False
    if first == size:
        return not proof and first_root == root
    if not first:
        return not proof and first_root == EMPTY_ROOT
    path = list(proof) if first & first - 1 else [first_root, *proof]
    if not path:
        return False
    place, last = first - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = path[0]
    for one in path[1:]:
        if not last:
            return False
        if place & 1 or place == last:
            old, new = _node(one, old), _node(one, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = _node(new, one)
        place, last = place >> 1, last >> 1
    return not last and old == first_root and new == root


def _is_proof(proof: Sequence[bytes]) -> bool:
    return len(proof) <= MAX_PROOF and all(len(one) == HASH_BYTES for one in proof)
