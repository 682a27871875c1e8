"""Many answers at once, the twin of ldp_client/mechanisms/compiled_channel.py."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_server.arrays.hashing import Indexes

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]

_CHUNK = 1 << 14
"""Users worked on at a time: each takes a line of limits."""


def randomize(randomizer: CompiledChannel, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    limits = np.array([tuple(accumulate(line))[:-1] for line in randomizer.lines], np.uint64)
    held = indexes.astype(np.intp, copy=False)
    reports = np.empty(len(held), np.uint64)
    for start in range(0, len(held), _CHUNK):
        part = slice(start, start + _CHUNK)
        reports[part] = (words[part, :1] >= limits[held[part]]).sum(axis=1)
    return reports
