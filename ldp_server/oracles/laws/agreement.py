"""The levels of a tree over the integers made to agree: weighted least squares, and its transpose.

Upwards, every cell's own estimate r is averaged with the sum of its children's values z, each weighted by the inverse
of its variance. Downwards, what a cell's children lack of it is shared out in proportion to their variances:

    z_c = (1 - u_c) r_c + u_c sum of z over the children,
    x_child = z_child + d_child (x_c - sum of z over the children).

The sum T of the coarsest level is averaged with a root that is known from elsewhere: (1 - a) T + a root. Cells beyond
the range are known to be empty: their variance is 0.

With fixed variances all of this is linear. `coefficients` is the transpose: for weights on the leaves it returns with
which coefficient every raw cell, and the root, enter the weighted sum of the agreed leaves. On the path from the
coarsest level to a leaf the coefficients of the cells add up to the leaf's weight, less the root's coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Agreement"]

Floats = npt.NDArray[np.float64]


def _pad(level: Floats, branching: int) -> Floats:
    return np.concatenate((level, np.zeros(-len(level) % branching)))


@dataclass(frozen=True)
class Agreement:
    """How the levels of a tree are averaged, for given variances of their cells, the coarsest level first."""

    branching: int
    variances: list[Floats]
    root_variance: float
    spreads: list[Floats] = field(init=False)
    """The variances of every level's cells on the way up, padded to whole families; 0 beyond the range."""
    _up: list[Floats] = field(init=False)
    """u: the weight of its children in every cell's average."""

    def __post_init__(self) -> None:
        spreads = [_pad(level, self.branching) for level in self.variances]
        up = [np.zeros(len(level)) for level in self.variances]
        for level in range(len(spreads) - 2, -1, -1):
            size = len(self.variances[level])
            below, own = self._families(spreads[level + 1], size), spreads[level][:size].copy()
            up[level] = own / (own + below)
            spreads[level][:size] = own * below / (own + below)
        object.__setattr__(self, "spreads", spreads)
        object.__setattr__(self, "_up", up)

    @property
    def _root_share(self) -> float:
        """a: the weight of the root that is known from elsewhere."""
        spread = float(self.spreads[0].sum())
        return spread / (spread + self.root_variance)

    @property
    def holders_variance(self) -> float:
        """The variance of the sum of all agreed leaves."""
        return self._root_share * self.root_variance

    def _families(self, cells: Floats, parents: int) -> Floats:
        """The sums of the cells below each parent."""
        sums: Floats = cells.reshape(-1, self.branching).sum(axis=1)[:parents]
        return sums

    def _shares(self, level: int, parents: int) -> Floats:
        """Return d: which part of what a family lacks each of its members gets. One row for each family."""
        spreads = self.spreads[level].reshape(-1, self.branching)[:parents]
        shares: Floats = spreads / spreads.sum(axis=1, keepdims=True)
        return shares

    def leaves(self, raw: list[Floats], root: float) -> Floats:
        """Return the agreed leaves."""
        b = self.branching
        values = [_pad(level, b) for level in raw]
        for level in range(len(raw) - 2, -1, -1):
            size, up = len(raw[level]), self._up[level]
            sums = self._families(values[level + 1], size)
            values[level][:size] += up * (sums - values[level][:size])
        total = float(values[0].sum())
        parents = np.array([total + self._root_share * (root - total)])
        for level, cells in enumerate(values):
            children = cells.reshape(-1, b)[: len(parents)]
            lack = parents - children.sum(axis=1)
            parents = (children + self._shares(level, len(parents)) * lack[:, None]).ravel()[: len(raw[level])]
        return parents

    def coefficients(self, weights: Floats) -> tuple[list[Floats], float]:
        """Return the coefficients of all raw cells, level by level, and that of the root, for weights on the leaves."""
        b, sizes = self.branching, [len(level) for level in self.variances]
        down: list[Floats] = []
        above = weights
        for level in range(len(sizes) - 1, -1, -1):  # the transpose of the way down
            parents = sizes[level - 1] if level else 1
            children = _pad(above, b).reshape(-1, b)[:parents]
            lack = (children * self._shares(level, parents)).sum(axis=1)
            down.append((children - lack[:, None]).ravel())
            above = lack
        found: list[Floats] = []
        share, lack = self._root_share, float(above[0])
        passed = np.full(sizes[0], (1 - share) * lack)
        for level, adjoint in enumerate(reversed(down)):  # the transpose of the way up
            own = adjoint[: sizes[level]] + passed
            found.append((1 - self._up[level]) * own)
            if level + 1 < len(sizes):
                passed = np.repeat(self._up[level] * own, b)[: sizes[level + 1]]
        return found, share * lack
