"""Rows that may be measured instead of the queries: sums over sets of columns, or differences of two such sums.

    identity    each column: a histogram
    workload    the queries themselves
    hierarchy   for each field a binary tree over its values; all products of a node of each
    wavelet     for each field its halves' differences, halved again (Haar); all products. For fields with two values
                these are the parities
    marginals   tables of fields that are part of the queries, each with a weight

The number of people is public, so a row of ones is never measured. A row that no answer uses is left out by the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import combinations, product
from typing import Final

import numpy as np
import numpy.typing as npt

from ldp_server.curator.workloads.matrix.queries import LinearQueries

__all__ = ["PLAIN", "all_rows", "marginal_rows", "without_constants"]

Integer = npt.NDArray[np.int64]
_MOST_ROWS = 4_096
_MOST_SETS = 256


def _identity(asked: LinearQueries) -> Integer:
    return np.eye(asked.columns, dtype=np.int64)


def _workload(asked: LinearQueries) -> Integer:
    return np.unique(asked.matrix, axis=0)


def _tree(size: int) -> Integer:
    """The nodes of a binary tree over so many values, the root too."""
    rows, waiting = [], [(0, size)]
    while waiting:
        first, end = waiting.pop(0)
        rows.append([int(first <= value < end) for value in range(size)])
        if end - first > 1:
            middle = (first + end + 1) // 2
            waiting += [(first, middle), (middle, end)]
    return np.array(rows, np.int64)


def _haar(size: int) -> Integer:
    """A row of ones, and for each inner node of the tree the difference of its halves."""
    rows, waiting = [[1] * size], [(0, size)]
    while waiting:
        first, end = waiting.pop(0)
        if end - first > 1:
            middle = (first + end + 1) // 2
            rows.append([int(first <= value < middle) - int(middle <= value < end) for value in range(size)])
            waiting += [(first, middle), (middle, end)]
    return np.array(rows, np.int64)


def _products(asked: LinearQueries, of_field: Callable[[int], Integer]) -> Integer | None:
    parts = [of_field(size) for size in asked.sizes]
    rows = int(np.prod([len(part) for part in parts]))
    if rows > _MOST_ROWS:
        return None
    return np.asarray(reduce(lambda row, part: np.kron(part, row), parts, np.ones((1, 1), np.int64)))


def without_constants(rows: Integer) -> Integer:
    """Leave out rows that are the same for everybody, and rows that are there already."""
    kept = rows[(rows != rows[:, :1]).any(axis=1)]
    return np.unique(kept, axis=0) if len(kept) else kept


def _hierarchy(asked: LinearQueries) -> Integer | None:
    return _products(asked, _tree)


def _wavelet(asked: LinearQueries) -> Integer | None:
    return _products(asked, _haar)


PLAIN: Final[Mapping[str, Callable[[LinearQueries], Integer | None]]] = {
    "identity": _identity,
    "workload": _workload,
    "hierarchy": _hierarchy,
    "wavelet": _wavelet,
}
"""Each strategy without weights; None where it has too many rows."""


def marginal_rows(asked: LinearQueries) -> tuple[Integer, tuple[int, ...]] | None:
    """Return the cells of all tables of fields that a query is about together, and the number of each row's table."""
    about = {tuple(place for place, held in query.held if len(held) > 0) for query in asked.queries}
    used = {tuple(place for place in one if asked.sizes[place] > 1) for one in about}
    sets = sorted({part for one in used for size in range(1, len(one) + 1) for part in combinations(one, size)})
    if not sets or len(sets) > _MOST_SETS:
        return None
    rows, group = [], []
    for number, part in enumerate(sets):
        for cell in product(*(range(asked.sizes[place]) for place in part)):
            rows.append(_cell(asked.sizes, dict(zip(part, cell, strict=True))))
            group.append(number)
            if len(rows) > _MOST_ROWS:
                return None
    return np.array(rows), tuple(group)


def _cell(sizes: Sequence[int], held: Mapping[int, int]) -> Integer:
    row: Integer = np.ones(1, np.int64)
    for place, size in enumerate(sizes):
        one: Integer = np.ones(size, np.int64)
        if place in held:
            one[:] = 0
            one[held[place]] = 1
        row = np.kron(one, row)
    return row


def all_rows(asked: LinearQueries) -> Integer:
    """Return the rows of all plain strategies that have no more than a few for each column."""
    found = [rows for make in PLAIN.values() if (rows := make(asked)) is not None]
    return without_constants(np.concatenate([rows for rows in found if len(rows) <= 4 * asked.columns]))
