"""Candidates of a dictionary in the soft decoder: each has a bar of its own, and no search is needed to find it.

Candidates are tested before the search, so that it finds the others beside what they leave, and once more after it. In
each step those that reach their bars and are in balance are fitted together. The best of the fit join the model.

There is no test against near-copies for most dictionaries. A candidate is not picked from the neighbours of a strong
item: it shares a cell with it by chance, with probability 1/K in each team. Of 10^6 candidates and six teams of 2^22
cells that is 1.4 for each strong item, each with evidence in one team, which the balance test refuses.

Candidates from an earlier list of the same collection are `related` to what is held: the hashes are the same, and an
item that was listed for its cells has them again. The noise alone is new. So for every set of cells that an element can
share with another, the teams that are left must reach the candidate's bar alone, at the same level. A near-copy that
nobody holds has only noise there, so it is listed with the probability that its share allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.team_cells import BulkCode
from ldp_server.heavy_hitters.search.acceptance import Acceptance
from ldp_server.heavy_hitters.search.model import Model, joint_fit

__all__ = ["Candidates", "candidates_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BLOCK = 1 << 17
_MOST_JOINT = 400
_ROUNDS = 60


@dataclass
class Candidates:
    """A dictionary's candidates, with their cells in every team."""

    messages: Ints
    cells: npt.NDArray[np.int32]
    bars: Floats
    taken: npt.NDArray[np.bool_]
    """Which are in the model."""
    levels: Floats | None = None
    """Of related candidates: the logarithm of the probability with which each may be listed falsely."""
    _needed: Floats | None = None

    def reached(self, tests: Acceptance, values: Floats, z: Floats, places: Ints) -> npt.NDArray[np.bool_]:
        """Return which rows pass, of the candidates at these places."""
        passed = tests.reached(values, z, self.bars[places])
        if self.levels is None:
            return passed
        if self._needed is None:
            self._needed = tests.told_apart(self.levels)
        return passed & tests.shown(values, self._needed[places])

    def find(self, messages: Ints) -> Ints:
        """Return the places of these messages among the candidates; -1 for those that are none."""
        factors = np.cumprod(np.full(messages.shape[1], 0x9E3779B97F4A7C15, np.uint64))
        own = self.messages.astype(np.uint64) @ factors
        order = np.argsort(own)
        wanted = messages.astype(np.uint64) @ factors
        places = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
        return np.where((self.messages[places] == messages).all(axis=1), places, -1)

    def scores(self, model: Model) -> Floats:
        """Return the scores of all candidates, of what the model leaves."""
        z = np.zeros(len(self.cells))
        for start in range(0, len(z), _BLOCK):
            part = self.cells[start : start + _BLOCK]
            for team in range(part.shape[1]):
                z[start : start + _BLOCK] += model.residual[team].at(part[:, team]) * model.weights[team]
        return z

    def take(self, model: Model, tests: Acceptance, most: int) -> Ints:
        """Add the candidates that pass to the model; return their messages."""
        added: list[int] = []
        for _ in range(_ROUNDS):
            new = self._step(model, tests, most)
            if not new:
                break
            added += new
            model.refit()
        return self.messages[added]

    def _step(self, model: Model, tests: Acceptance, most: int) -> list[int]:
        """Add the best of the joint fit, down to half of the best one."""
        z = self.scores(model)
        chosen = np.flatnonzero((z >= self.bars) & ~self.taken)
        chosen = chosen[np.argsort(-z[chosen], kind="stable")]
        cells = self.cells[chosen].astype(np.int64)
        good = np.flatnonzero(self.reached(tests, model.at(cells), z[chosen], chosen))[:_MOST_JOINT]
        chosen, cells = chosen[good], cells[good]
        fitted = joint_fit(cells, z[chosen], model.weights)
        added: list[int] = []
        for j in np.argsort(-fitted, kind="stable"):
            place, score = int(chosen[j]), float(fitted[j])
            if score < max(float(self.bars[place]), tests.settings.peel * fitted.max()) or len(model.cells) >= most:
                continue
            here = model.at(cells[j : j + 1])
            if self.reached(tests, here, here @ model.weights, chosen[j : j + 1])[0]:
                model.add(cells[j], score)
                self.taken[place] = True
                added.append(place)
        return added


def candidates_of(code: BulkCode, indexes: Indexes, bars: Floats, levels: Floats | None = None) -> Candidates:
    """Return candidates with their cells; `levels` are those of related ones."""
    blocks = code.permuted(indexes)
    cells = np.empty((len(indexes), code.teams), np.int32)
    for team in range(code.teams):
        cells[:, team] = code.block_cells(blocks, team)
    return Candidates(code.fields(blocks), cells, bars, np.zeros(len(indexes), bool), levels)
