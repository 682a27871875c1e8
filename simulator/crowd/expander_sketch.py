"""Many expander sketch reports at once, in both forms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_server.arrays.hashing import Indexes
from simulator.crowd import team_sketch

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: ExpanderSketch, indexes: Indexes, words: U64) -> U64:
    """Return every user's report, or the two as one number."""
    if randomizer.sketch is None or randomizer.oracle is None:
        return team_sketch.randomize(randomizer, indexes, words)
    first = team_sketch.randomize(randomizer.sketch, indexes, words)
    return first * np.uint64(randomizer.oracle.bound) + team_sketch.randomize(randomizer.oracle, indexes, words[:, 3:])
