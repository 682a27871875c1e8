"""Weights for the rows of a strategy, and for Gaussian noise the best of all strategies.

Let V be the queries' matrix times itself, W^T W, on differences of columns (the sum of all columns is public), and
X = A^T A for a strategy A. All answers together have the squared error tr(V X^+) times the variance of the noise, whose
scale is the largest distance of two columns of A.

**Weights** (`weighted`): rows f_r are given, and A has the rows w_r f_r. The logarithm of the squared error times the
squared distance falls along its gradient; the largest distance is smoothed, and the best weights by the exact one are
kept. It may stop in a local minimum. The error of whatever it finds is known exactly.

**Gaussian noise** (`best_gram`): minimise tr(V X^+) where (e_i - e_j)^T X (e_i - e_j) <= 1 for all columns i, j. That
is convex in X. With multipliers m_ij >= 0 and the Laplacian L of the graph with these weights the optimum has X^+ V X^+
= L, so X = L^+1/2 (L^1/2 V L^1/2)^1/2 L^+1/2, and tr(V X^+) = T with T = tr((L^1/2 V L^1/2)^1/2). For any m >= 0
duality says

    no strategy has tr(V X^+) times the squared distance below T^2 / (sum of m)

so the bound is known beside what was found. Each m_ij is multiplied by the squared distance of its columns, over and
over. For neighbours by adding or removing, this is the fixed point of Denisov, McMahan, Rush, Smith and Thakurta
(2022); the eigen-design of Li and Miklau (2012) allows the eigenvectors of V as rows only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_server.curator.workloads.matrix.sensitivity import steps_of

__all__ = ["best_gram", "centred", "weighted"]

Floats = npt.NDArray[np.float64]
Integer = npt.NDArray[np.int64]
_TINY = 1e-10
_SMALLEST = -8.0
"""The logarithm of the smallest weight beside the largest."""


def centred(matrix: npt.NDArray[np.generic]) -> Floats:
    """Return rows less their mean: what is left of them where the sum of all columns is public."""
    floats = matrix.astype(np.float64)
    return np.asarray(floats - floats.mean(axis=1, keepdims=True))


def _root(symmetric: Floats, power: float) -> Floats:
    """Return a power of a matrix without negative eigenvalues; zero stays zero."""
    values, vectors = np.linalg.eigh(symmetric)
    kept = values > values[-1] * _TINY
    scaled = vectors[:, kept] * values[kept] ** power
    return np.asarray(scaled @ vectors[:, kept].T)


def _distances(gram: Floats) -> Floats:
    ends = np.diagonal(gram)
    return np.asarray(np.maximum(ends[:, None] + ends[None, :] - 2 * gram, 0))


def _laplacian(weights: Floats) -> Floats:
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def best_gram(queries: Floats, rounds: int = 60, enough: float = 1e-3) -> tuple[Floats, float]:
    """Return X for these centred queries, and a lower bound of the squared error times distance of any strategy."""
    v = queries.T @ queries
    size = len(v)
    weights = np.ones((size, size)) - np.eye(size)
    best, bound, gram = np.inf, 0.0, v
    for _ in range(rounds):
        half = _root(_laplacian(weights), 0.5)
        back = _root(_laplacian(weights), -0.5)
        inner = _root(half @ v @ half, 0.5)
        total = float(np.trace(inner))
        tried = back @ inner @ back
        apart = _distances(tried)
        bound = max(bound, total * total / (weights.sum() / 2))
        if total * apart.max() < best:
            best, gram = total * float(apart.max()), tried
        if best <= bound * (1 + enough):
            break
        weights = weights * apart
        weights *= size * (size - 1) / weights.sum()
    return gram, bound


def weighted(
    queries: Floats, rows: Integer, groups: Integer, start: Floats, *, squared: bool, rounds: int = 150
) -> Floats:
    """Return a weight for each group of rows of -1, 0 and 1, from the logarithms of a start; the largest is 1.

    `squared`: distances are Euclidean, for Gaussian noise; otherwise sums, for Laplace noise.
    """
    problem, logs = _Weights(queries, rows, groups, squared), start
    best, best_error, speed, before = logs, np.inf, np.full(len(logs), 0.05), np.zeros(len(logs))
    for at in range(rounds):
        error, gradient = problem.look(logs, 30 * 30 ** (at / rounds))
        if error < best_error:
            best, best_error = logs, error
        speed = np.clip(speed * np.where(gradient * before < 0, 0.5, 1.2), 1e-4, 0.3)
        before = gradient
        logs = logs - speed * np.sign(gradient)
        logs = np.clip(logs - logs.max(), _SMALLEST, None)
    return np.asarray(np.exp(best - best.max()))


class _Weights:
    """The error as a function of the logarithms of the weights."""

    def __init__(self, queries: Floats, rows: Integer, groups: Integer, squared: bool) -> None:
        self._groups, self._power = groups, 2 if squared else 1
        self._moved = rows.astype(np.float64) if squared else steps_of(rows)
        _, values, basis = np.linalg.svd(centred(rows), full_matrices=False)
        basis = basis[values > values[0] * 1e-9]
        self._rows = centred(rows) @ basis.T
        self._v = basis @ (queries.T @ queries) @ basis.T

    def look(self, logs: Floats, sharp: float) -> tuple[float, Floats]:
        """Return the squared error times the squared distance, and the gradient of its smoothed logarithm."""
        w = np.exp(logs)[self._groups]
        inverse = np.linalg.inv(self._rows.T @ (self._rows * (w * w)[:, None]))
        error = float(np.trace(inverse @ self._v))
        spread = self._rows @ (inverse @ self._v @ inverse)
        of_error = -2 * w * w * (spread * self._rows).sum(axis=1) / error
        step = np.tile(w**self._power, len(self._moved) // len(w))
        apart = _distances(self._moved.T @ (step[:, None] * self._moved))
        largest = float(apart.max())
        mass = np.exp(sharp * (apart / largest - 1))
        np.fill_diagonal(mass, 0)
        graph = _laplacian(mass / (mass.sum() / 2))
        of_distance = self._power * step * ((self._moved @ graph) * self._moved).sum(axis=1) / largest
        gradient = of_error + 2 / self._power * of_distance.reshape(-1, len(w)).sum(axis=0)
        summed = np.bincount(self._groups, weights=gradient, minlength=len(logs))
        return error * largest ** (2 / self._power), np.asarray(summed, np.float64)
