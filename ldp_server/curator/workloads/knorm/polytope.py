"""Facets and lattice points of a polytope that is its own mirror image, in a few dimensions, on integers.

The polytope K is the convex hull of integer points. All of it is worked out by listing: each facet goes through d
points that no two of the hyperplanes share; lattice points are counted in a box. So it is for d <= 4.

    Ehrhart   the number of lattice points in k K is a polynomial of degree d in k, for k = 0, 1, 2, ...
    Stanley   so the sum of that number times q^k is (h_0 + h_1 q + ... + h_d q^d) / (1 - q)^(d + 1), and all h_j >= 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

__all__ = ["Polytope", "lattice_box"]

Integer = npt.NDArray[np.int64]
_BLOCK = 20_000


def lattice_box(dimension: int, reach: int) -> Integer:
    """Return all lattice points whose coordinates are at most `reach` in size."""
    side = np.arange(-reach, reach + 1)
    return np.stack(np.meshgrid(*[side] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


@dataclass(frozen=True, eq=False)
class Polytope:
    """The convex hull of these points; the mirror image of each is one of them, and together they span the space."""

    points: Integer

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def corners(self) -> Integer:
        """The points without those that lie halfway between two others."""
        points = np.unique(self.points, axis=0)
        known = {point.tobytes() for point in points}
        kept = []
        for point in points:
            mirrored = 2 * point - points
            others = (mirrored != point).any(axis=1)
            if not any(one.tobytes() in known for one in mirrored[others]):
                kept.append(point)
        return np.array(kept)

    @cached_property
    def facets(self) -> tuple[Integer, Integer]:
        """Rows a and numbers b: a point z lies in k K if a z <= k b for all of them."""
        found = {}
        for block in _blocks(len(self.corners), self.dimension):
            for normal, level in zip(*_hyperplanes(self.corners[block]), strict=True):
                heights = self.corners @ normal
                if level and heights.max() <= abs(level):
                    step = int(np.gcd.reduce([*normal, level]))
                    found[tuple(int(one) // step for one in (*normal, level))] = True
        planes = np.array([*found])
        planes = planes * np.sign(planes[:, -1:])
        planes = np.unique(np.concatenate([planes, planes * [*[-1] * self.dimension, 1]]), axis=0)
        return planes[:, :-1], planes[:, -1]

    def holds(self, points: Integer, reach: int) -> npt.NDArray[np.bool_]:
        """Return which points lie in `reach` times K."""
        normals, levels = self.facets
        return np.asarray((points @ normals.T <= reach * levels).all(axis=1))

    def count(self, reach: int) -> int:
        """Return how many lattice points `reach` times K has, by listing."""
        wide = int(np.abs(self.corners).max())
        box = lattice_box(self.dimension, reach * wide)
        return sum(int(self.holds(box[at : at + _BLOCK], reach).sum()) for at in range(0, len(box), _BLOCK))

    @cached_property
    def series(self) -> tuple[int, ...]:
        """The h_j."""
        d = self.dimension
        counts = [self.count(reach) for reach in range(d + 1)]
        return tuple(sum((-1) ** i * comb(d + 1, i) * counts[j - i] for i in range(j + 1)) for j in range(d + 1))


def _blocks(corners: int, dimension: int) -> Iterator[Integer]:
    """All choices of so many corners, some at a time."""
    chosen = np.array([*combinations(range(corners), dimension)])
    for at in range(0, len(chosen), _BLOCK):
        yield chosen[at : at + _BLOCK]


def _hyperplanes(corners: Integer) -> tuple[Integer, Integer]:
    """Return the normal and the level of the hyperplane through each set of d points; the normal is 0 if it is none.

    The normal is the cross product of d - 1 differences: its entries are determinants, exact on small integers.
    """
    edges = corners[:, 1:] - corners[:, :1]
    d = corners.shape[2]
    normals = [(-1) ** k * _determinants(np.delete(edges, k, axis=2)) for k in range(d)]
    normal = np.stack(normals, axis=1)
    return normal, np.einsum("nd,nd->n", normal, corners[:, 0])


def _determinants(matrices: Integer) -> Integer:
    size = matrices.shape[1]
    if size == 0:
        return np.ones(len(matrices), np.int64)
    total = np.zeros(len(matrices), np.int64)
    for k in range(size):
        minor = np.delete(matrices[:, 1:], k, axis=2)
        total += (-1) ** k * matrices[:, 0, k] * _determinants(minor)
    return total
