"""Many GenProt reports, one after the other: the public draws are a stream of their own for every user."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.genprot import GenProt
from ldp_server.arrays.hashing import Indexes

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: GenProt, indexes: Indexes, words: U64) -> U64:
    """Return every user's report, by the client's own code."""
    lines = words.tolist()
    return np.array([randomizer.randomize(int(i), line) for i, line in zip(indexes, lines, strict=True)], np.uint64)
