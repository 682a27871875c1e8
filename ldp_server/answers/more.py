"""How many more reports an error takes that is half as large.

The error of a share falls as 1/sqrt(n) while the users who report are alike: half of it takes 4 n reports, 3 n more.
Hashed domains are the exception. There, other users' items in the same cells add c to the variance of a share, and
no number of reports takes that away: v/n' + c = (v/n + c)/4, with v/n the variance without shared cells.
"""

from __future__ import annotations

import math

from ldp_server.oracles.base import Oracle, binomial_variance
from ldp_server.oracles.hashtogram import HashtogramOracle

__all__ = ["more_for_half"]


def more_for_half(oracle: Oracle) -> int | None:
    """Return how many more reports half the error takes; None: there are no reports yet, or no number suffices."""
    n = oracle.reports
    if not n:
        return None
    if not isinstance(oracle, HashtogramOracle):
        return 3 * n
    whole = float(oracle.variance(0.0)) / n**2
    noise = min(whole, float(binomial_variance(0.0, n, oracle.by_team.p, oracle.by_team.s)) / n**2)
    left = whole / 4 - (whole - noise)
    return math.ceil(noise * n / left) - n if left > 0 else None
