"""The errors of estimates, compared with the truth, in units of the least possible error.

- `mse_over_optimum`: the mean square error over the domain's elements, divided by n v_opt(eps), v_opt = 4e/(e-1)^2,
  the best variance known. 1 is that optimum; reports of a single bit reach 1.27 at best, at eps = 1.
- `coverage`: the share of the 95% intervals that contain the truth.
- `recall` at a multiple of D_opt: the share of the items planted there that were listed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.privacy.yardsticks import lower_bound_shape, v_opt
from ldp_server.answers.estimates import norm_sub
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import Oracle, as_frequency
from ldp_server.oracles.independence.judge import widening

__all__ = ["ALPHA", "BETA", "Errors", "floor_of", "mean", "measure"]

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
BETA = 0.05


@dataclass(frozen=True)
class Errors:
    """The errors of one run."""

    mse_over_optimum: float
    norm_sub_mse_over_optimum: float | None
    """The same for consistent estimates; None if the domain is too large for them."""
    max_error: float
    coverage: float


def floor_of(users: int, epsilon: float, size: int) -> float:
    """Return the shape of the lower bound for one-round protocols: (1/eps) sqrt(n ln(|X|/beta)), with 1 as constant."""
    return lower_bound_shape(users, epsilon, size, BETA)


def measure(oracle: Oracle, raw: Floats, truth: npt.NDArray[np.int64], epsilon: float, indexes: Indexes) -> Errors:
    """Compare raw estimates of these indexes with the truth."""
    unit = oracle.reports * v_opt(epsilon)
    wrong = raw - truth
    frequencies = as_frequency(oracle)
    low, high = frequencies.intervals(indexes, raw, widening(frequencies).tail(ALPHA / 2))
    better = None
    if len(indexes) == oracle.randomizer.size:
        better = float(np.mean((norm_sub(raw, oracle.reports) - truth) ** 2)) / unit
    return Errors(
        mse_over_optimum=float(np.mean(wrong**2)) / unit,
        norm_sub_mse_over_optimum=better,
        max_error=float(np.abs(wrong).max()),
        coverage=float(np.mean((low <= truth) & (truth <= high))),
    )


def mean(values: list[float]) -> float:
    """Return the mean of some values."""
    return math.fsum(values) / len(values)
