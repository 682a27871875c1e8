"""Many answers about one table each, the twin of ldp_client/mechanisms/records/sampled_table.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.tables import cells_of
from simulator import crowd
from simulator.crowd.randomized_response import scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: SampledTable, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    ends = np.array(randomizer.ends, np.uint64)
    drawn = np.searchsorted(ends, scale(words[:, 0], randomizer.ends[-1]), side="right")
    order = np.argsort(drawn, kind="stable")
    edges = np.searchsorted(drawn[order], np.arange(len(ends) + 1))
    held, out = indexes.astype(np.uint64, copy=False), np.empty(len(drawn), np.uint64)
    for j, table in enumerate(randomizer.tables):
        users = order[edges[j] : edges[j + 1]]
        inner = table.inner
        answers = crowd.randomize(inner, cells_of(table, held[users]), words[users, 1 : 1 + inner.words])
        out[users] = answers + np.uint64(randomizer.starts[j])
    return out
