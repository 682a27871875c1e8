"""Many answers to every field at once, the twin of ldp_client/mechanisms/records/every_field.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.every_field import EveryField
from ldp_server.arrays.hashing import Indexes
from simulator.crowd.randomized_response import choose

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: EveryField, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    reports, held = np.zeros(len(indexes), np.uint64), indexes.astype(np.uint64, copy=False)
    for place, ((stride, size), response) in enumerate(zip(randomizer.steps, randomizer.responses, strict=True)):
        own = held // np.uint64(stride) % np.uint64(size)
        reports += np.uint64(stride) * choose(response, np.ascontiguousarray(words[:, place]), own)
    return reports
