"""Public randomness: the stream from which hash functions, graphs and permutations are expanded.

    expand(seed, label, n) = the first n bytes of SHAKE-128(tags.STREAM || seed || len(label) || label)

The seed has 32 bytes and the label's length is one byte, so two different pairs (seed, label) never give the same
input. The seed is a hash of the question (collection.py) and known to everybody. Nothing here is secret, and no seed
changes epsilon.
"""

from __future__ import annotations

import hashlib
import struct

from ldp_client.protocol import tags

__all__ = ["SEED_BYTES", "expand", "expand_words"]

SEED_BYTES = 32


def expand(seed: bytes, label: str, length: int) -> bytes:
    """Return `length` bytes of the stream that `label` names."""
    name = label.encode("ascii")
    if len(seed) != SEED_BYTES or not 1 <= len(name) <= 255:
        raise ValueError("a stream has a seed of 32 bytes and a label of 1 to 255 characters")
    return hashlib.shake_128(tags.STREAM + seed + bytes([len(name)]) + name).digest(length)


def expand_words(seed: bytes, label: str, count: int) -> tuple[int, ...]:
    """Return `count` 64-bit words of the stream, each 8 bytes, little-endian."""
    return struct.unpack(f"<{count}Q", expand(seed, label, 8 * count))
