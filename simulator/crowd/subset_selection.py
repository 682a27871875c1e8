"""Many sets at once, the twin of ldp_client/mechanisms/subset_selection.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.subsets import ranks_of, scaled, subsets

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]

_CHUNK = 1 << 13
"""Users worked on at a time: a table of their sets has up to 256 lines."""


def _reports(randomizer: SubsetSelection, indexes: U64, words: U64) -> U64:
    k = randomizer.size
    holds = words[:, 0] < np.uint64(randomizer.truth)
    ranks = np.where(
        holds,
        scaled(words[:, 1], words[:, 2], randomizer.holding),
        scaled(words[:, 1], words[:, 2], randomizer.others),
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
