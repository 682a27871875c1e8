"""Subsets as numbers over arrays, the twin of ldp_client/protocol/subsets.py.

Places are lines and subsets are columns: `found[place, i]` says whether subset i has that place. Every C(i, j) that is
looked up is at most the number of subsets, which fits 64 bits by the limits of the mechanism that uses them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.protocol.subsets import binomials

__all__ = ["ranks_of", "scaled", "subsets"]

U64 = npt.NDArray[np.uint64]
Places = npt.NDArray[np.bool_]

_LOW32, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)


@lru_cache(maxsize=16)
def _table(n: int, most: int) -> U64:
    """C(i, j) for i < n and j <= most."""
    return np.array([line[: most + 1] for line in binomials(n)[:n]], np.uint64)


def subsets(n: int, chosen: npt.NDArray[np.intp], ranks: U64) -> Places:
    """Return the subsets of `chosen` of n places that have these ranks."""
    table = _table(n, int(chosen.max(initial=0)))
    found = np.empty((n, len(ranks)), np.bool_)
    rest, left = ranks.copy(), chosen.copy()
    for place in range(n - 1, -1, -1):
        skipped = table[place][left]
        take = found[place]
        np.greater_equal(rest, skipped, out=take)
        rest -= np.where(take, skipped, np.uint64(0))
        left -= take
    return found


def ranks_of(found: Places, chosen: int) -> U64:
    """Return the rank of every subset among those of `chosen` elements."""
    table = _table(len(found), chosen)
    ranks, seen = np.zeros(found.shape[1], np.uint64), np.zeros(found.shape[1], np.intp)
    for place, member in enumerate(found):
        seen += member
        ranks += np.where(member, table[place][seen], np.uint64(0))
    return ranks


def _high(left: U64, right: np.uint64) -> U64:
    """Return the upper 64 bits of the products of 64-bit numbers."""
    a, b, c, d = left >> _32, left & _LOW32, right >> _32, right & _LOW32
    middle = (b * d >> _32) + (a * d & _LOW32) + (b * c & _LOW32)
    return np.asarray(a * c + (a * d >> _32) + (b * c >> _32) + (middle >> _32))


def scaled(high: U64, low: U64, count: int) -> U64:
    """Return (high 2^64 + low) * count >> 128."""
    factor = np.uint64(count)
    product = high * factor
    carried = product + _high(low, factor)
    return _high(high, factor) + (carried < product)
