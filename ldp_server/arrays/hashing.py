"""Public hashes over arrays of indexes, the twin of ldp_client/protocol/hashing.py.

Indexes of up to 64 bits come as a one-dimensional uint64 array; longer ones as an array of shape (n, limbs) of uint32,
the lowest limb first (items.py makes both).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.hashing import MERSENNE, KWiseHash, PairwiseHash

__all__ = ["Indexes", "kwise", "limb", "pairwise", "pairwise_own"]

Indexes = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

_CHUNK = 1 << 14
"""How many indexes are hashed at a time. The temporary arrays then stay in the processor's cache."""
_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def limb(indexes: Indexes, place: int) -> U64:
    """Return limb number `place` of every index."""
    if indexes.ndim == 2:
        return indexes[:, place].astype(np.uint64)
    return (indexes >> np.uint64(32 * place)) & _LOW32 if place < 2 else np.zeros(len(indexes), np.uint64)


def _reduce(total: U64, range_size: int) -> U64:
    """In place: the upper 32 bits of each word, scaled to the range."""
    total >>= _32
    if range_size & (range_size - 1) == 0:
        total >>= np.uint64(33 - range_size.bit_length())
    else:
        total *= np.uint64(range_size)
        total >>= _32
    return total


def pairwise(hash_: PairwiseHash, indexes: Indexes) -> U64:
    """Hash every index."""
    out = np.empty(len(indexes), np.uint64)
    one_word = indexes.ndim == 1 and hash_.limbs <= 2
    low, high = (np.uint64(c) for c in (*hash_.coefficients, 0)[:2])
    scratch = np.empty(min(_CHUNK, len(out)), np.uint64)
    for start in range(0, len(out), _CHUNK):
        part, total = indexes[start : start + _CHUNK], out[start : start + _CHUNK]
        if one_word:
            other = scratch[: len(part)]
            np.bitwise_and(part, _LOW32, out=total)
            total *= low
            if hash_.limbs == 2:
                np.right_shift(part, _32, out=other)
                other *= high
                total += other
            total += np.uint64(hash_.offset)
        else:
            total[:] = hash_.offset
            for place, coefficient in enumerate(hash_.coefficients):
                total += limb(part, place) * np.uint64(coefficient)
        _reduce(total, hash_.range_size)
    return out


def pairwise_own(hashes: tuple[PairwiseHash, ...], teams: npt.NDArray[np.intp], indexes: Indexes) -> U64:
    """Hash every index with the hash of its own team."""
    table = _coefficients(hashes)
    out = np.empty(len(indexes), np.uint64)
    for start in range(0, len(out), _CHUNK):
        part, team = indexes[start : start + _CHUNK], teams[start : start + _CHUNK]
        total = table[0][team]
        for place in range(hashes[0].limbs):
            total += limb(part, place) * table[place + 1][team]
        out[start : start + _CHUNK] = _reduce(total, hashes[0].range_size)
    return out


@lru_cache(maxsize=8)
def _coefficients(hashes: tuple[PairwiseHash, ...]) -> tuple[U64, ...]:
    return tuple(
        np.array(column, np.uint64) for column in zip(*((h.offset, *h.coefficients) for h in hashes), strict=True)
    )


def _fold(value: U64) -> U64:
    """Reduce numbers below 2^63 modulo p = 2^61 - 1."""
    p = np.uint64(MERSENNE)
    value = (value & p) + (value >> np.uint64(61))
    return np.where(value >= p, value - p, value)


def _times(x: U64, factor: U64) -> U64:
    """Multiply residues modulo p = 2^61 - 1, by halves of 32 and 29 bits; 2^61 counts as 1 and 2^64 as 8."""
    low, high, other_low, other_high = x & _LOW32, x >> _32, factor & _LOW32, factor >> _32
    middle = high * other_low + low * other_high
    bottom = low * other_low
    total = (bottom & np.uint64(MERSENNE)) + (bottom >> np.uint64(61))
    total += np.uint64(8) * high * other_high
    total = _fold(total)
    total += (middle >> np.uint64(29)) + ((middle & np.uint64((1 << 29) - 1)) << _32)
    return _fold(total)


def _compress(hash_: KWiseHash, indexes: Indexes) -> U64:
    u = np.zeros(len(indexes), np.uint64)
    for place, coefficient in enumerate(hash_.compression):
        u = _fold(u + _times(limb(indexes, place), np.full(len(indexes), coefficient, np.uint64)))
    return u


def kwise(hash_: KWiseHash, indexes: Indexes) -> U64:
    """Hash every index."""
    out = np.empty(len(indexes), np.uint64)
    for start in range(0, len(out), _CHUNK):
        part = indexes[start : start + _CHUNK]
        u = _compress(hash_, part) if hash_.compresses else limb(part, 0) | limb(part, 1) << _32
        value = np.zeros(len(part), np.uint64)
        for coefficient in reversed(hash_.polynomial):
            value = _fold(_times(value, u) + np.uint64(coefficient))
        out[start : start + _CHUNK] = (value >> np.uint64(29)) * np.uint64(hash_.range_size) >> _32
    return out
