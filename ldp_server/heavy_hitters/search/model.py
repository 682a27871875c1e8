"""The items that the decoder has accepted, and the scores that remain after they are subtracted.

The score of an item is its estimate in units of the standard error for an item that nobody holds, z = fhat/sqrt(n v).
With the teams' cell estimates in units of *their* standard errors, E_m, and u_m = sqrt(n_m / n), it is the sum of
u_m E_m[cell_m], for equal and for unequal teams.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldp_server.heavy_hitters.search.acceptance import Noise
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["Model", "fitted_together", "joint_fit"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DESCENTS = 300


class Model:
    """The accepted items. The teams' scores are changed in place: the items are subtracted from them."""

    def __init__(self, residual: Sequence[TeamScores], weights: Floats, noise: Noise) -> None:
        self.residual = residual
        self.weights, self.noise = weights, noise
        self.teams = len(residual)
        self.cells: Ints = np.empty((0, self.teams), np.int64)
        self.scores: Floats = np.empty(0)

    def at(self, cells: Ints) -> Floats:
        """The residual E of each cell, shape (n, M)."""
        return np.stack([self.residual[m].at(cells[:, m]) for m in range(self.teams)], axis=1)

    def add(self, cells: Ints, z: float) -> None:
        """Take an item into the model and subtract it."""
        self.cells = np.concatenate([self.cells, cells[None]])
        self.scores = np.append(self.scores, z)
        for m in range(self.teams):
            self.residual[m].subtract(cells[m : m + 1], np.array([z * self.weights[m]]))

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Keep these items alone; the scores of the others are added again."""
        out = np.flatnonzero(~which)
        for m in range(self.teams):
            self.residual[m].subtract(self.cells[out, m], -self.scores[out] * self.weights[m])
        self.cells, self.scores = self.cells[which], self.scores[which]

    def _overlap(self) -> Floats:
        """Entry (i, j): the sum of u_m^2 over the teams in which items i and j share a cell."""
        gram = np.zeros((len(self.cells), len(self.cells)))
        for m in range(self.teams):
            column = self.cells[:, m]
            order = np.argsort(column, kind="stable")
            for group in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
                if len(group) == 1:
                    gram[group[0], group[0]] += self.weights[m] ** 2
                else:
                    gram[np.ix_(group, group)] += self.weights[m] ** 2
        return gram

    def refit(self) -> Floats:
        """Estimate all items jointly by least squares, correct the residual, and return the standard errors."""
        if not len(self.cells):
            return np.empty(0)
        gram = self._overlap()
        left = self.at(self.cells) @ self.weights  # what the present scores leave unexplained of each item
        inverse = np.linalg.inv(gram + 1e-9 * np.eye(len(gram)))
        change = inverse @ left
        for m in range(self.teams):
            self.residual[m].subtract(self.cells[:, m], change * self.weights[m])
        self.scores = self.scores + change
        return np.sqrt(np.diag(inverse) * self.noise.spread(self.scores))


def joint_fit(cells: Ints, z: Floats, weights: Floats) -> Floats:
    """Return the part of its score that each candidate keeps when all are fitted together.

    The fit is non-negative least squares. A false item that combines cells of two true ones may score higher than
    either of them; fitted together with both, it keeps nothing.
    """
    shared = (cells[:, None, :] == cells[None, :, :]) @ weights**2
    step = 1 / max(1.0, float(shared.sum(axis=1).max(initial=0.0)))
    fitted = np.zeros(len(z))
    for _ in range(_DESCENTS):
        fitted = np.maximum(0.0, fitted + step * (z - shared @ fitted))
    return fitted


def fitted_together(cells: Ints, teams: Sequence[TeamScores], noise: Noise) -> tuple[Floats, Floats]:
    """Return the scores and errors of known items in these teams, by least squares."""
    share = np.array([team.reports for team in teams], float)
    model = Model(teams, np.sqrt(share / share.sum()), noise)
    model.cells, model.scores = cells, np.zeros(len(cells))
    errors = model.refit()
    return model.scores, errors
