"""Many places in one grid each, the twin of ldp_client/mechanisms/records/sampled_grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_server.arrays.hashing import Indexes
from simulator import crowd
from simulator.crowd.randomized_response import scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: SampledGrid, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    made, one = randomizer, np.uint64(1)
    width, height = (np.uint64(count) for count in made.counts)
    y, x = np.divmod(indexes.astype(np.uint64, copy=False), width + one)
    there = (x > 0) & (y > 0)
    x, y = x - (x > 0), y - (y > 0)
    across, down = x * np.uint64(made.across) // width, y * np.uint64(made.down) // height
    cells = (
        x * np.uint64(made.columns) // width,
        y * np.uint64(made.rows) // height,
        across + np.uint64(made.across) * down,
    )
    r = scale(words[:, 0], made.total)
    drawn = (r >= np.uint64(made.lines)).astype(np.intp) + (r >= np.uint64(2 * made.lines))
    out = np.empty(len(drawn), np.uint64)
    for grid, (response, cell) in enumerate(zip(made.responses, cells, strict=True)):
        users = np.flatnonzero(drawn == grid)
        elements = np.where(there[users], cell[users] + one, np.uint64(0))
        answers = crowd.randomize(response, elements, words[users, 1 : 1 + response.words])
        out[users] = answers + np.uint64(made.starts[grid])
    return out
