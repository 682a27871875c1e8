"""Normal errors: the law of an estimate that sums up what many cells say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NormalErrors", "normal_tail", "skewed_ends"]

Floats = npt.NDArray[np.float64]


def normal_tail(z: Floats) -> Floats:
    """Return P(Z >= z)."""
    halves = np.clip(z, -38.0, 38.0).ravel() / math.sqrt(2)
    return np.array([math.erfc(x) for x in halves.tolist()]).reshape(z.shape) / 2


_MOST_SKEWED = 0.4
"""The transformation is for errors that are nearly normal; where this bound is met, the skewness is a guess anyway."""


def skewed_ends(skewness: float, reach: float) -> tuple[float, float]:
    """Return how many standard errors the truth may lie below and above an estimate; `reach` is the normal quantile.

    For an estimate whose errors have this skewness, and whose standard error is read off the same data. When such an
    estimate is too small, so is its standard error, and intervals of the normal law miss on one side. Hall (1992) turns
    the ratio T of error and standard error into g(T) = T + s T^2/3 + s^2 T^3/27 + s/6, which is monotone and normal up
    to terms of second order. The ends are those of g's inverse.
    """
    s = min(max(skewness, -_MOST_SKEWED), _MOST_SKEWED)
    if abs(s) < 1e-6:
        return reach, reach

    def inverse(z: float) -> float:
        return 3 / s * (float(np.cbrt(1 + s * (z - s / 6))) - 1)

    return inverse(reach), -inverse(-reach)


@dataclass(frozen=True)
class NormalErrors:
    """The estimate of an item of f holders is normal with mean f and this variance."""

    reports: int
    variance: Callable[[npt.ArrayLike], Floats]
    unit: float = 0.0

    def spread(self, holders: npt.ArrayLike) -> Floats:
        """Return the standard error."""
        return np.asarray(np.sqrt(self.variance(holders)))

    def tails(self, holders: Floats, limits: Floats) -> Floats:
        """Return P(estimate >= limit), a line for each number of holders and a column for each limit."""
        return normal_tail((limits - holders[:, None]) / self.spread(holders)[:, None])
