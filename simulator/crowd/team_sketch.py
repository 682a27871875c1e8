"""Many reports of a sketch of teams at once, the twin of ldp_client/mechanisms/shared/team_sketch.py."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.team_cells import cells_of_teams
from simulator.crowd.linear_hash import respond
from simulator.crowd.randomized_response import scale

__all__ = ["randomize"]

U64 = npt.NDArray[np.uint64]


def randomize(randomizer: TeamSketch, indexes: Indexes, words: U64) -> U64:
    """Return every user's report."""
    teams = scale(words[:, 0], randomizer.teams)
    cells = cells_of_teams(randomizer, indexes, teams.astype(np.int64)).astype(np.uint64)
    return teams * np.uint64(randomizer.inner.bound) + respond(randomizer.inner, cells, words[:, 1], words[:, 2])
