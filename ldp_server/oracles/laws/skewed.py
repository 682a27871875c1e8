r"""Intervals for estimates whose errors are skewed, and larger for more users.

They come from a normal law with a skewness. At a large epsilon all of a sum's noise may come from a report or two, and
no normal law is near: one lie ended a 95% interval beside the truth. Where the variance V is below `FEW` squares of the
range M of what one report adds, the interval also takes in that of Bernstein's inequality,

    sqrt(2 V ln(1/tail)) + M ln(1/tail)/3,

with one square of M more in V, as it is an estimate, up to the most that V can be. It holds for every law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.normal import skewed_ends
from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["FEW", "Jumps", "skewed_intervals"]

Floats = npt.NDArray[np.float64]

FEW = 4.0


@dataclass(frozen=True)
class Jumps:
    """What one report may do to sums over reports."""

    span: Floats
    """The range of what it adds to each."""
    most: Floats
    """The largest variance that each sum may have, whoever holds what."""


def skewed_intervals(
    raw: Floats,
    moments: Callable[[Floats], tuple[Floats, Floats]],
    users: float,
    tail: float,
    jumps: Jumps | None = None,
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
    if jumps is not None:
        few = second <= FEW * jumps.span**2
        log = -math.log(max(tail, 1e-300))
        reach = np.sqrt(2 * np.minimum(jumps.most, second + jumps.span**2) * log) + jumps.span * log / 3
        low, high = np.where(few, np.minimum(low, raw - reach), low), np.where(few, np.maximum(high, raw + reach), high)
    return np.clip(low, 0, users), np.clip(high, 0, users)
