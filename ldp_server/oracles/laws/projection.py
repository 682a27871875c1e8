"""The nearest numbers that are possible: not negative, with a sum that is known or bounded.

The truth is possible, and what is possible is convex. So the nearest possible point (in the sum of squares) is never
farther from the truth than the point that it was made from, whatever the truth and the errors are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["below_simplex", "norm_sub"]

Floats = npt.NDArray[np.float64]


def norm_sub(raw: Floats, total: float) -> Floats:
    """The nearest non-negative numbers that add up to `total`: all are shifted by one number, then clipped at 0.

    The shift is found exactly: with the numbers in falling order, the first k stay positive for the largest k at which
    the k-th exceeds the shift that makes the first k add up.
    """
    if not len(raw):
        return raw.copy()
    falling = np.sort(raw)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(raw) + 1)
    positive = np.flatnonzero(falling > shifts)
    if not len(positive):
        return np.zeros_like(raw)
    clipped: Floats = np.maximum(raw - shifts[positive[-1]], 0.0)
    return clipped


def below_simplex(raw: Floats, total: float) -> Floats:
    """The nearest non-negative numbers that add up to `total` at most."""
    clipped: Floats = np.maximum(raw, 0.0)
    return clipped if float(clipped.sum()) <= total else norm_sub(raw, total)
