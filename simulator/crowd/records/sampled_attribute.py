"""Many answers about one attribute each, the twin of ldp_client/mechanisms/records/sampled_attribute.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_server.arrays.hashing import Indexes
from simulator.crowd.randomized_response import choose, scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: SampledAttribute, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    chosen = scale(words[:, 0], randomizer.k)
    truth = indexes.astype(np.uint64, copy=False) >> chosen & np.uint64(1)
    return np.uint64(2) * chosen + choose(randomizer.response, words[:, 1], truth)
