"""Many linear-hash responses at once, the twin of ldp_client/mechanisms/linear_hash.py."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.fields import BinaryVectors
from ldp_server.arrays.hashing import Indexes
from simulator.crowd.randomized_response import choose, scale

__all__ = ["points", "products", "randomize", "respond"]

U64 = npt.NDArray[np.uint64]

_CHUNK = 1 << 14
_TABLE_SIDE = 256


@lru_cache(maxsize=16)
def _table(q: int) -> tuple[int, npt.NDArray[np.uint8]]:
    """The inner products, modulo q, of all pairs of vectors of as many digits as a table holds."""
    digits = 1
    while q ** (digits + 1) <= _TABLE_SIDE:
        digits += 1
    side: int = q**digits
    places = np.arange(side)[:, None] // q ** np.arange(digits) % q
    return side, (places @ places.T % q).astype(np.uint8).ravel()


def points(mechanism: LinearHash, numbers: U64) -> U64:
    """Return the vectors that are these points."""
    if mechanism.q == 2:
        return numbers + np.uint64(1)
    q, vectors, before = mechanism.q, numbers + np.uint64(1), 1
    for place in range(1, mechanism.t):
        start = (q**place - 1) // (q - 1)
        shift = q**place - start
        vectors += (numbers >= np.uint64(start)) * np.uint64(shift - before)
        before = shift
    return vectors


def products(mechanism: LinearHash, left: U64, right: U64) -> U64:
    """Return the inner products of pairs of vectors, elements of F_q."""
    if mechanism.binary is not None:
        return _binary_products(mechanism.binary, left, right)
    q, cells = mechanism.q, mechanism.q**mechanism.t
    if q > _TABLE_SIDE:
        return _long_products(q, mechanism.t, left, right)
    width, table = _table(q)
    a, b, total = left.astype(np.uint32), right.astype(np.uint32), np.zeros(len(left), np.uint16)
    step = np.uint32(width)
    while cells > width:
        a_high, b_high = a // step, b // step
        total += table[(a - a_high * step) * step + (b - b_high * step)]
        a, b, cells = a_high, b_high, -(-cells // width)
    total += table[a * step + b]
    return (total % np.uint16(q)).astype(np.uint64)


def _parity(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    return np.bitwise_count(numbers) & np.uint8(1)


def _binary_products(vectors: BinaryVectors, left: U64, right: U64) -> U64:
    """The parities of ldp_client/protocol/fields.py."""
    a, x = left.astype(np.uint32), right.astype(np.uint32)
    one, top = np.uint32(1), np.uint32(vectors.k - 1)
    lowest, first, lower = (np.uint32(mask) for mask in (vectors.lowest, vectors.first, vectors.lower))
    if vectors.k == 3:
        a = a & lowest | a >> one & first | (a & first) << one
    found = _parity(a & x)
    for place in range(vectors.k - 1, 0, -1):
        down = a >> one
        a = down & lower | ((a ^ down) & lowest) << top
        found |= _parity(a & x) << np.uint8(place)
    return found.astype(np.uint64)


def _long_products(q: int, places: int, left: U64, right: U64) -> U64:
    """Digit by digit, for a q whose table would be too large."""
    side, total = np.uint64(q), np.zeros(len(left), np.uint64)
    for _ in range(places):
        total += (left % side) * (right % side)
        left, right = left // side, right // side
    return total % side


def respond(mechanism: LinearHash, cells: U64, point_words: U64, answer_words: U64) -> U64:
    """Return the reports for elements of F_q^t."""
    out = np.empty(len(cells), np.uint64)
    for start in range(0, len(cells), _CHUNK):
        part = slice(start, start + _CHUNK)
        numbers = scale(point_words[part], mechanism.points)
        truths = products(mechanism, points(mechanism, numbers), cells[part])
        numbers *= np.uint64(mechanism.q)
        numbers += choose(mechanism.response, answer_words[part], truths)
        out[part] = numbers
    return out


def randomize(randomizer: LinearHash, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    return respond(randomizer, indexes.astype(np.uint64, copy=False), words[:, 0], words[:, 1])
