"""Many composed responses at once, the twin of ldp_client/mechanisms/composed_response.py."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_server.arrays.hashing import Indexes

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: ComposedResponse, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    word, k = words[:, 0], randomizer.k
    starts = np.array([0, *accumulate(math.comb(k, d) * m for d, m in enumerate(randomizer.weights))][: k + 2], object)
    # The last start may be 2^64 itself, which no word reaches.
    last = int(starts[-1])
    bounds = starts[1:-1].astype(np.uint64)
    distance = np.searchsorted(bounds, word, "right")
    inside = np.ones(len(word), bool) if last == 1 << 64 else word < np.uint64(last)
    weights = np.array(randomizer.weights, np.uint64)
    rank = (word - starts[:-1].astype(np.uint64)[distance]) // weights[distance]
    flips = np.zeros(len(word), np.uint64)
    chosen, rank = distance.astype(np.intp), np.where(inside, rank, 0)
    table = np.array([[math.comb(i, j) for j in range(k + 1)] for i in range(k + 1)], np.uint64)
    for place in range(k - 1, -1, -1):
        skipped = table[place][chosen]
        take = rank >= skipped
        rank = rank - np.where(take, skipped, np.uint64(0))
        flips |= take.astype(np.uint64) << np.uint64(place)
        chosen = chosen - take
    left = (word - np.uint64(last % (1 << 64))) % np.uint64(randomizer.size)
    return np.where(inside, indexes.astype(np.uint64, copy=False) ^ flips, left)
