"""How far one person moves the rows of a strategy: exact, on integers.

A person is in one column. Replacing a record turns column i into column j, so the rows move by a_i - a_j, and the
sensitivity is the largest distance of two columns: |a_i - a_j|_1 for Laplace noise, its squared length for Gaussian.

    printed     the largest |a_i|_1, or length, of a column alone: that is for adding or removing a person. The distance
                of two columns is up to twice as long
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec

__all__ = ["largest_l1", "largest_squared", "steps_of"]

Integer = npt.NDArray[np.int64]
_EXACT = 1 << 52
"""Sums below this are exact in floats, in which matrices are multiplied fast."""


def largest_squared(rows: Integer) -> int:
    """Return the largest squared distance of two columns."""
    if float(np.square(rows.astype(np.float64)).sum(axis=0).max()) * 4 >= _EXACT:
        raise InvalidSpec("the rows of this strategy are too large to add up exactly")
    gram = rows.T.astype(np.float64) @ rows.astype(np.float64)
    squares = np.diagonal(gram)
    return int((squares[:, None] + squares[None, :] - 2 * gram).max())


def steps_of(signs: Integer) -> npt.NDArray[np.float64]:
    """Return rows of -1, 0 and 1 as steps of 0 and 1: above -1, and above 0. Their distances add up to that of the row.

    Between two values of 0 and 1 the distance is its own square, so distances of columns are products of matrices.
    """
    return np.concatenate([signs > -1, signs > 0]).astype(np.float64)


def largest_l1(rows: Integer) -> int:
    """Return the largest distance of two columns, the sum over the rows."""
    weights = np.abs(rows).max(axis=1)
    if float(weights.astype(np.float64).sum()) * 8 >= _EXACT:
        raise InvalidSpec("the rows of this strategy are too large to add up exactly")
    signs = np.sign(rows)
    if not np.array_equal(signs * weights[:, None], rows):
        return max(int(np.abs(rows - rows[:, [i]]).sum(axis=0).max()) for i in range(rows.shape[1]))
    steps = steps_of(signs)
    gram = steps.T @ (np.concatenate([weights, weights]).astype(np.float64)[:, None] * steps)
    ends = np.diagonal(gram)
    return int((ends[:, None] + ends[None, :] - 2 * gram).max())
