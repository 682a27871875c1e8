"""Many hierarchy reports at once, the twin of ldp_client/mechanisms/hierarchy.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_server.arrays.hashing import Indexes
from simulator.crowd.linear_hash import respond
from simulator.crowd.randomized_response import scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: Hierarchy, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    drawn = scale(words[:, 0], len(randomizer.levels))
    out = np.empty(len(drawn), np.uint64)
    for level, linear in enumerate(randomizer.levels):
        users = np.flatnonzero(drawn == level)
        index = indexes[users].astype(np.uint64, copy=False)
        cells = np.where(index > 0, (index - np.uint64(1)) // np.uint64(randomizer.widths[level]) + np.uint64(1), index)
        answers = respond(linear, cells, words[users, 1], words[users, 2])
        out[users] = answers + np.uint64(randomizer.starts[level])
    return out
