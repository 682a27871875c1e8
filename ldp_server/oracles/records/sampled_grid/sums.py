r"""A weighted sum of the cells of one grid, as a sum over the reports about it.

With the weight k_c for cell c, a report of a grid that n_j of the n users drew adds

    h = (n/n_j) sum over the cells c of k_c (1[c is supported] - s)/(p - s).

The sum of all h is unbiased for the sum of k_c times the users of c. As for ranges of numbers
(ldp_server/oracles/hierarchy.py), the sum of (h - mean of h)^2 over the reports is read off the counts: it has how the
cells vary together, and which users drew the grid. What lies alone would vary by is the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles.base import Floats, binomial_variance

__all__ = ["GridReports", "GridSum"]


@dataclass(frozen=True)
class GridSum:
    """What one grid's reports say of the variance of a count."""

    read_off: float
    """The sum of (h - mean of h)^2 over the reports."""
    lies: float
    """The variance that lies alone would have."""
    per_user: Floats
    """What one more user of each element adds, `none` first."""


@dataclass(frozen=True)
class GridReports:
    """The reports about one grid."""

    response: RandomizedResponse | LinearHash
    counts: npt.NDArray[Any]
    reports: float
    """n, of all grids."""
    users: float
    """n_j."""

    @property
    def law(self) -> tuple[float, float]:
        """(p, s): how likely a report supports its own element, and any other."""
        if isinstance(self.response, LinearHash):
            p, s = self.response.support
            return float(p), float(s)
        return float(self.response.response.p), float(self.response.response.q)

    @property
    def noise(self) -> float:
        """The variance of the estimate of an element that nobody has."""
        p, s = self.law
        return (self.reports / self.users) ** 2 * self.users * s * (1 - s) / (p - s) ** 2

    def variances(self, held: Floats) -> Floats:
        """Return the variances of the estimates of elements that so many users have, without which drew the grid."""
        (p, s), scale = self.law, self.reports / self.users
        f = np.clip(held, 0.0, self.reports) / scale
        return scale**2 * binomial_variance(f, self.users, p, s)

    def sum(self, weights: Floats) -> GridSum:
        """Return the part of this grid, for weights of its elements, `none` first."""
        (p, s), scale = self.law, self.reports / self.users
        if isinstance(self.response, LinearHash):
            q, t = self.response.q, self.response.t
            padded = np.append(weights, np.zeros(q**t - len(weights)))
            h = weights_of_reports(padded, q, t).astype(np.float64, copy=False)
        else:
            h = weights
        h = (h - weights.sum() * s) * (scale / (p - s))
        total = float(self.counts @ h)
        read_off = float(self.counts @ np.square(h)) - total**2 / self.users
        per_user = scale * p / (p - s) ** 2 * np.square(weights - total / self.reports)
        return GridSum(read_off, float(np.square(weights).sum()) * self.noise, per_user)
