"""Consistent values: estimates that are not negative and add up to the number of users."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["norm_sub"]

Floats = npt.NDArray[np.float64]


def norm_sub(raw: Floats, total: float) -> Floats:
    """The nearest non-negative estimates that add up to `total`: all are shifted by one number, then clipped at 0.

    The shift is found exactly: with the estimates in falling order, the first k stay positive for the largest k at
    which the k-th exceeds the shift that makes the first k add up.
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
