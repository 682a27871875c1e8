"""Intervals for estimates whose errors are skewed, and larger for more users."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.normal import skewed_ends
from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["skewed_intervals"]

Floats = npt.NDArray[np.float64]


def skewed_intervals(
    raw: Floats, moments: Callable[[Floats], tuple[Floats, Floats]], users: float, tail: float
) -> tuple[Floats, Floats]:
    """Return intervals of a skewed error that grows with the number of users; each end errs with `tail` at most.

    `moments` gives the variance and the third central moment for so many users.
    """
    z = normal_quantile(tail)
    second, third = moments(raw)
    grown = moments(raw + 1)[0] - second
    error = np.sqrt(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(second > 0, third / second**1.5, 0.0)
    ends = np.array([skewed_ends(float(one), z) for one in skewness]).reshape(-1, 2)
    half = z * z / 2 * np.maximum(grown, 0.0)
    low = raw - ends[:, 0] * error
    high = raw + np.maximum(ends[:, 1] * error, half + np.hypot(half, z * error))
    return np.clip(low, 0, users), np.clip(high, 0, users)
