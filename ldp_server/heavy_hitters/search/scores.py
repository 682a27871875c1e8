"""One team's scores while the decoder works on them: the model's items are subtracted, and searches read the best.

A search reads a team's best cells only. In a tree every path is made of such cells, so a level that joins paths needs
no others, and `only_best` drops them: 2 MB a level instead of 17. What was dropped reads 0. The best cells are chosen
once: items that are subtracted later do not change which cells stand out from the noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_server.heavy_hitters.search.joins import best_cells

__all__ = ["TeamScores"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class TeamScores:
    """A team's E, one value a cell, and how many users the team has. The array is used up."""

    def __init__(self, scores: Scores, reports: int, only_best: int = 0) -> None:
        self.reports = reports
        self.changes = 0
        """How often a score was changed: whoever sorted the scores sees whether that is still good."""
        self._kept: npt.NDArray[np.int32] | None = None
        self.values = scores
        if 0 < only_best < scores.size:
            kept = best_cells(scores, only_best)
            self._kept, self.values = kept.astype(np.int32), scores[kept]

    @property
    def scores(self) -> Scores:
        """The scores of all cells."""
        if self._kept is not None:
            raise ValueError("only the best cells of this team were kept")
        return self.values

    @property
    def kept(self) -> Ints | None:
        """The cells whose scores were kept, rising; None for all cells."""
        return None if self._kept is None else self._kept.astype(np.int64)

    def at(self, cells: npt.NDArray[np.signedinteger]) -> Floats:
        """Return the scores of these cells."""
        if self._kept is None:
            return np.asarray(self.values[cells], np.float64)
        places, here = self._find(cells)
        return np.asarray(np.where(here, self.values[places], 0.0), np.float64)

    def subtract(self, cells: Ints, scores: Floats) -> None:
        """Subtract from these cells, which may repeat."""
        self.changes += 1
        taken = scores.astype(np.float32)
        if self._kept is None:
            np.subtract.at(self.values, cells, taken)
            return
        places, here = self._find(cells)
        np.subtract.at(self.values, places[here], taken[here])

    def _find(self, cells: npt.NDArray[np.signedinteger]) -> tuple[Ints, npt.NDArray[np.bool_]]:
        kept = self._kept
        if kept is None:
            raise ValueError("all cells of this team were kept")
        places = np.minimum(np.searchsorted(kept, cells.astype(np.int32)), len(kept) - 1)
        return places, np.asarray(kept[places] == cells)
