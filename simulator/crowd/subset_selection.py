"""Many sets at once, the twin of ldp_client/mechanisms/subset_selection.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.subsets import ranks_of, subsets

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]

_LOW32, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_CHUNK = 1 << 13
"""Users worked on at a time: a table of their sets has up to 256 lines."""


def _high(left: U64, right: np.uint64) -> U64:
    """Return the upper 64 bits of the products of 64-bit numbers."""
    a, b, c, d = left >> _32, left & _LOW32, right >> _32, right & _LOW32
    middle = (b * d >> _32) + (a * d & _LOW32) + (b * c & _LOW32)
    return np.asarray(a * c + (a * d >> _32) + (b * c >> _32) + (middle >> _32))


def _scaled(high: U64, low: U64, count: int) -> U64:
    """Return (high 2^64 + low) * count >> 128."""
    factor = np.uint64(count)
    product = high * factor
    carried = product + _high(low, factor)
    return _high(high, factor) + (carried < product)


def _reports(randomizer: SubsetSelection, indexes: U64, words: U64) -> U64:
    k = randomizer.size
    holds = words[:, 0] < np.uint64(randomizer.truth)
    ranks = np.where(
        holds,
        _scaled(words[:, 1], words[:, 2], randomizer.holding),
        _scaled(words[:, 1], words[:, 2], randomizer.others),
    )
    places = np.concatenate((holds[None, :], subsets(k - 1, randomizer.d - holds.astype(np.intp), ranks)))
    turned = (np.arange(k)[:, None] - indexes.astype(np.intp)) % k
    return ranks_of(np.take_along_axis(places, turned, axis=0), randomizer.d)


def randomize(randomizer: SubsetSelection, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    held = indexes.astype(np.uint64, copy=False)
    parts = range(0, len(held), _CHUNK)
    found = [_reports(randomizer, held[i : i + _CHUNK], words[i : i + _CHUNK]) for i in parts]
    return np.concatenate(found) if found else np.zeros(0, np.uint64)
