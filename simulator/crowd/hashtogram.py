"""Many Hashtogram reports at once, the twin of ldp_client/mechanisms/hashtogram.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_server.arrays.hashing import Indexes, pairwise_rows
from simulator.crowd.linear_hash import respond
from simulator.crowd.randomized_response import scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: Hashtogram, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    hashes = tuple(randomizer.hash(row) for row in range(randomizer.rows))
    rows = scale(words[:, 0], randomizer.rows)
    cells = pairwise_rows(hashes, rows.astype(np.intp), indexes)
    return rows * np.uint64(randomizer.inner.bound) + respond(randomizer.inner, cells, words[:, 1], words[:, 2])
