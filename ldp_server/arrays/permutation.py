"""The block permutation over arrays, the twin of ldp_client/protocol/permutation.py.

Blocks of up to 64 bits come as a one-dimensional uint64 array; longer ones as an array of shape (n, limbs) of uint32,
the lowest limb first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.hashing import limb_count
from ldp_client.protocol.permutation import ROUNDS, BlockPermutation
from ldp_server.arrays.hashing import Indexes, limb

__all__ = ["forward", "inverse"]

Words = list[npt.NDArray[np.uint64]]
"""A part of the block as 64-bit words, the lowest first."""


def _cut(words: Words, bits: int) -> Words:
    """Keep the lowest `bits` bits, in as many words as they take."""
    count = max(1, (bits + 63) // 64)
    kept = words[:count]
    if bits % 64:
        kept[-1] = kept[-1] & np.uint64((1 << bits % 64) - 1)
    return kept


def _shift_down(words: Words, bits: int) -> Words:
    """Drop the lowest `bits` bits."""
    whole, rest = divmod(bits, 64)
    words = words[whole:]
    if not rest:
        return words
    down, up = np.uint64(rest), np.uint64(64 - rest)
    above = [*words[1:], np.zeros_like(words[0])]
    return [(low >> down) | (high << up) for low, high in zip(words, above, strict=True)]


def _join(left: Words, right: Words, right_bits: int, count: int) -> Words:
    """Put the left part above the right one, in `count` words."""
    whole, rest = divmod(right_bits, 64)
    zero = np.zeros_like(right[0])
    out = [*right, *[zero] * (count - len(right))]
    up, down = np.uint64(rest), np.uint64((64 - rest) % 64)
    for i, word in enumerate(left):
        place = i + whole
        out[place] = out[place] | (word << up)
        if rest and place + 1 < count:
            out[place + 1] = out[place + 1] | (word >> down)
    return out[:count]


def _mix(z: npt.NDArray[np.uint64], k1: int, k2: int) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(32))) * np.uint64(k1)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(k2)
    return z ^ (z >> np.uint64(32))


def _scramble(part: Words, keys: tuple[int, int, int], words: int) -> Words:
    k0, k1, k2 = keys
    z = np.full_like(part[0], k0)
    for i in range(words):
        z = _mix(z ^ part[i] if i < len(part) else z, k1, k2)
    out = [z]
    for _ in range(words - 1):
        out.append(_mix(out[-1] + np.uint64(k0), k1, k2))
    return out


def _round(target: Words, source: Words, keys: tuple[int, int, int], bits: int, words: int) -> Words:
    mask = _cut(_scramble(source, keys, words), bits)
    return [a ^ b for a, b in zip(target, mask, strict=True)]


def _to_words(blocks: Indexes, bits: int) -> Words:
    if blocks.ndim == 1:
        return [blocks.astype(np.uint64, copy=False)]
    limbs = limb_count(bits)
    high = [limb(blocks, i) if i < limbs else np.zeros(len(blocks), np.uint64) for i in range(1, limbs + 1, 2)]
    return [limb(blocks, 2 * i) | top << np.uint64(32) for i, top in enumerate(high)]


def _from_words(words: Words, bits: int, like: Indexes) -> Indexes:
    if like.ndim == 1:
        return words[0]
    limbs = limb_count(bits)
    return np.stack(words, axis=1).astype("<u8").view("<u4")[:, :limbs].astype(np.uint32)


def _run(permutation: BlockPermutation, blocks: Indexes, order: range) -> Indexes:
    p = permutation
    words = _to_words(blocks, p.bits)
    right = _cut(list(words), p.right_bits)
    left = _cut(_shift_down(words, p.right_bits), p.left_bits)
    for i in order:
        if i % 2 == 0:
            left = _round(left, right, p.keys[i], p.left_bits, p.words)
        else:
            right = _round(right, left, p.keys[i], p.right_bits, p.words)
    return _from_words(_join(left, right, p.right_bits, len(words)), p.bits, blocks)


def forward(permutation: BlockPermutation, blocks: Indexes) -> Indexes:
    """Permute every block."""
    return _run(permutation, blocks, range(ROUNDS))


def inverse(permutation: BlockPermutation, blocks: Indexes) -> Indexes:
    """Undo `forward`."""
    return _run(permutation, blocks, range(ROUNDS - 1, -1, -1))
