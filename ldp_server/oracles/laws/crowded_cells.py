"""Which items of a sketch share a cell with an item of very many users, and in which teams.

Such a team says nothing about the item. Hashes are public, so where the domain can be listed these teams are known, and
an item is estimated from its other teams alone. An item is `popular` if it would move another one's estimate by half a
standard error or more, and if the median of its teams' estimates is so large that noise does not explain it in any
domain that can be listed. At most one in sixteen of a team's cells is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.hashing import Indexes

__all__ = ["CrowdedCells", "popular_bar"]

Cells = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CERTAIN = 8.0
"""Standard errors of an estimate."""
_MOVED = 0.5
_MOST = 16


def popular_bar(teams: int, error: float) -> float:
    """Return how many holders make an item popular."""
    return max(_CERTAIN, _MOVED * teams) * error


@dataclass(frozen=True)
class CrowdedCells:
    """The cells of popular items."""

    popular: Indexes
    holders: npt.NDArray[np.int64]
    """How many popular items each cell of each team has."""

    @classmethod
    def of(cls, found: Indexes, medians: Floats, cells: Cells, size: int) -> CrowdedCells:
        """Return the cells of these items, a line of `cells` for each team; the first of them if there are too many."""
        kept = np.argsort(-medians, kind="stable")[: size // _MOST]
        holders = np.stack([np.bincount(line[kept], minlength=size) for line in cells])
        popular: Indexes = found[kept]
        return cls(popular, holders)

    def empty(self, team: int) -> npt.NDArray[np.bool_]:
        """Return which cells have no popular item."""
        return np.asarray(self.holders[team] == 0)

    def tells(self, indexes: Indexes, cells: Cells) -> npt.NDArray[np.bool_]:
        """Return whether each team tells each item; where none does, all do."""
        own = np.isin(indexes, self.popular).astype(np.int64)
        clear = np.stack([self.holders[team][line] - own == 0 for team, line in enumerate(cells)])
        clear[:, ~clear.any(axis=0)] = True
        return np.asarray(clear)
