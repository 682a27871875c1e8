"""Spectral clusters of a graph: dense inside, nearly cut off from the rest (Definition B.2, Theorem B.3).

A vertex set W is an eta-spectral cluster if at most an eta part of its edges leave it, and every cut of it into A and
B, with A holding a part r of its volume, is crossed by at least (r (1-r) - eta) vol(W) edges: about as many as in a
random graph. `best_cut` looks for the cut that breaks the second condition worst, by the usual sweep along the second
eigenvector of the normalised adjacency matrix. It takes linear space and a bounded number of passes over the edges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["best_cut", "components"]

Ints = npt.NDArray[np.int64]
_PASSES = 120


def components(vertices: int, edges: Ints) -> list[Ints]:
    """The connected components of at least two vertices; `edges` has shape (e, 2)."""
    label = np.arange(vertices)
    while len(edges):
        low = np.minimum(label[edges[:, 0]], label[edges[:, 1]])
        before = label.copy()
        np.minimum.at(label, edges[:, 0], low)
        np.minimum.at(label, edges[:, 1], low)
        label = label[label]
        if (label == before).all():
            break
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return [group for group in groups if len(group) > 1]


def best_cut(count: int, edges: Ints) -> tuple[npt.NDArray[np.bool_], float]:
    """Return one side of the sparsest sweep cut of a graph on `count` vertices, and its sparsity.

    Sparsity is (edges across) / (r (1-r) vol): 1 for a random cut of a random graph, 0 for a component.
    """
    degree = np.bincount(edges.ravel(), minlength=count).astype(float)
    volume = degree.sum()
    side = np.zeros(count, bool)
    if count < 2 or volume == 0:
        return side, 1.0
    scale = 1 / np.sqrt(np.maximum(degree, 1))
    trivial = np.sqrt(degree / volume)
    rng = np.random.default_rng(count)  # any start vector is possible; a fixed one makes decoding repeatable
    vector = rng.standard_normal(count)
    for _ in range(_PASSES):  # power iteration on (I + normalised adjacency)/2, all of whose eigenvalues are >= 0
        vector -= trivial * (trivial @ vector)
        norm = float(np.linalg.norm(vector))
        if norm < 1e-12:
            return side, 1.0
        vector /= norm
        scaled = vector * scale
        spread = np.bincount(edges[:, 0], scaled[edges[:, 1]], count)
        spread += np.bincount(edges[:, 1], scaled[edges[:, 0]], count)
        vector = (vector + spread * scale) / 2
    rank = np.empty(count, np.int64)
    order = np.argsort(vector * scale, kind="stable")
    rank[order] = np.arange(count)
    ends = np.sort(rank[edges], axis=1)  # edge (i, j) crosses the cuts after positions i ... j - 1
    crossing = np.cumsum(np.bincount(ends[:, 0], minlength=count) - np.bincount(ends[:, 1], minlength=count))[:-1]
    share = np.cumsum(degree[order])[:-1] / volume
    with np.errstate(divide="ignore", invalid="ignore"):
        sparsity = np.where((share > 0) & (share < 1), crossing / (share * (1 - share) * volume), np.inf)
    place = int(np.argmin(sparsity))
    side[order[: place + 1]] = True
    return side, float(sparsity[place])
