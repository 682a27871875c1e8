"""Many moves at once, the twin of ldp_client/mechanisms/shifted_channel.py."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_server.arrays.hashing import Indexes

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: ShiftedChannel, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    reports = np.zeros(len(indexes), np.uint64)
    for at, (axis, (stride, size)) in enumerate(zip(randomizer.axes, randomizer.steps, strict=True)):
        held = (indexes.astype(np.uint64, copy=False) // np.uint64(stride) % np.uint64(size)).astype(np.int64)
        has = held > 0
        moves, empties = (np.array([*accumulate(one)][:-1], np.uint64) for one in (axis.moves, axis.empties))
        word = np.ascontiguousarray(words[:, 2 * at + 1])
        place = held - 1 + np.searchsorted(moves, word, side="right")
        place = place % axis.places if axis.ring else np.clip(place - axis.places + 1, 0, axis.places - 1)
        free = np.searchsorted(empties, word, side="right")
        says = words[:, 2 * at] >= np.array(axis.absent, np.uint64)[has.astype(np.intp)]
        said = np.where(says, 1 + np.where(has, place, free), 0).astype(np.uint64)
        reports += np.uint64(stride) * said
    return reports
