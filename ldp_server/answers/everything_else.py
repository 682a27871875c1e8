r"""How many users hold an item that is not listed, with an interval, so that a table adds up to the number of reports.

Items fixed beforehand: n minus the sum of their estimates, with the interval of that sum.

Items picked by their estimates were picked for errors that are positive, so this subtracts too much. Here T is the set
of the k largest raw estimates r(1) >= ... >= r(k), F(B) the number of users who hold an item of B, e(B) the sum of the
errors of the estimates of B, and A_j the set of the j items that most users hold. A_j does not depend on the reports.

- Point value: n minus the raw estimates of those items of T that stand out (below), whose errors the choice does not
  favour, and minus the consistent values of the others.
- Upper end of F(T). F(T) <= F(A_k), and F(A_k) = r(A_k) - e(A_k) <= r(T) - e(A_k), since T has the largest sum of
  estimates of all sets of k. So F(T) <= r(T) + z sd(k), which errs with probability alpha/2 at most: A_k is one fixed
  set, and the choice costs nothing on this side.
- Lower end of F(T). Let [low, high] be intervals that hold for the whole domain at once, with probability
  1 - alpha/4. Then F(T) is at least the sum of the lower ends of T. Better: let j be the number of items of T whose
  lower end lies above the upper ends of all items outside T. At least j items are held by more users than any item
  outside T, so A_j lies within T. Let i be the number of items of the domain whose upper end reaches the least lower
  end L of T. At most i items are held by L users or more, and all of T are, so T lies within A_i, and is one of the
  C(i - j, k - j) sets of k items between A_j and A_i. Over all these sets, all j <= k and all i <= d together, the
  interval of a sum of fixed items holds with probability 1 - alpha/4, if each end errs with probability
  alpha / (4 (k + 1) d C(i - j, k - j)). So F(T) is at least that lower end for T. The larger bound is taken.
  A mechanism without an exact law (a sketch) has only the first: its items are picked for collisions, which no normal
  law of a sum describes.

On both sides the sum's own interval is used (the exact law, or its variance from the counts, covariances included).
sd(k) is that of T, as A_k is known only nearly, but not less than for independent estimates.

Where T cannot be told from the other items, the interval is wide, about k times that of one item. It has to be: that
nobody holds the items of T, and that as many users do as the raw estimates say, are then both possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.laws.support import normal_quantile

__all__ = ["Picked", "Rest", "rest_of_fixed", "rest_of_picked"]

_MOST_SETS = 10**290


@dataclass(frozen=True)
class Rest:
    """How many of the users who reported hold an item that is not listed."""

    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Picked:
    """The items with the largest estimates."""

    indexes: Indexes
    raw: Floats
    consistent: Floats
    runner_up: Floats
    """The largest estimates that were not picked."""
    outside: Indexes
    """Their indexes."""


def rest_of_fixed(oracle: FrequencyOracle, indexes: Indexes, raw: Floats, alpha: float) -> Rest:
    """Return how many users hold none of these items, which are different and were fixed beforehand."""
    if not len(indexes):
        return Rest(float(oracle.reports), 0.0, float(oracle.reports), float(oracle.reports))
    error = math.sqrt(oracle.sum_variance(indexes, raw))
    low, high = oracle.sum_interval(indexes, raw, alpha / 2)
    return Rest(oracle.reports - float(raw.sum()), error, oracle.reports - high, oracle.reports - low)


def rest_of_picked(oracle: FrequencyOracle, picked: Picked, alpha: float) -> Rest:
    """Return how many users hold none of the picked items."""
    raw, k, n = picked.raw, len(picked.raw), float(oracle.reports)
    single = oracle.variance(raw)
    variance = max(oracle.sum_variance(picked.indexes, raw), float(single.sum()))
    most = float(raw.sum()) + normal_quantile(alpha / 2) * math.sqrt(variance)
    most = max(most, oracle.sum_interval(picked.indexes, raw, alpha / 2)[1])

    tail = alpha / 8 / oracle.randomizer.size
    low, _ = oracle.intervals(picked.indexes, raw, tail)
    _, above = oracle.intervals(picked.outside, picked.runner_up, tail)
    clear = int((low > above.max(initial=0.0)).sum())
    near = int((above >= low.min()).sum())
    between = k + near if near < len(above) else oracle.randomizer.size
    sets = (k + 1) * oracle.randomizer.size * math.comb(between - clear, k - clear)
    least = float(low.sum())
    if oracle.law is not None and sets < _MOST_SETS:  # beyond it, probabilities are too small for a float
        least = max(least, oracle.sum_interval(picked.indexes, raw, alpha / 4 / sets)[0])

    lowest, highest = np.clip(n - most, 0, n), np.clip(n - least, 0, n)
    values = np.where(low > above.max(initial=0.0), raw, picked.consistent)
    point = np.clip(n - float(values.sum()), lowest, max(lowest, highest))
    return Rest(float(point), math.sqrt(variance), float(lowest), float(max(lowest, highest)))
