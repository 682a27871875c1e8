"""Normal errors: the law of an estimate that sums up what many cells say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NormalErrors", "normal_tail"]

Floats = npt.NDArray[np.float64]


def normal_tail(z: Floats) -> Floats:
    """Return P(Z >= z)."""
    halves = np.clip(z, -38.0, 38.0).ravel() / math.sqrt(2)
    return np.array([math.erfc(x) for x in halves.tolist()]).reshape(z.shape) / 2


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
