r"""How many users hold an item that is not listed, with an interval, so that a table adds up to the number of reports.

Items fixed beforehand: n minus the sum of their estimates, with the interval of that sum.

Items picked by their estimates were picked for errors that are positive, so this subtracts too much. Here T is the set
of the k largest raw estimates r(1) >= ... >= r(k), F(B) the number of users who hold an item of B, e(B) the sum of the
errors of the estimates of B, and A_j the set of the j items that most users hold. A_j does not depend on the reports.

- Point value: n minus the consistent values of T, which are not biased by the choice in this way.
- Upper end of F(T). F(T) <= F(A_k), and F(A_k) = r(A_k) - e(A_k) <= r(T) - e(A_k), since T has the largest sum of
  estimates of all sets of k. So F(T) <= r(T) + z sd(k), which errs with probability alpha/2 at most: A_k is one fixed
  set, and the choice costs nothing on this side.
- Lower end of F(T). Let [low, high] be intervals that hold for the whole domain at once, with probability
  1 - alpha/4. Then F(T) is at least the sum of the lower ends of T. Better where items stand out: let j be the
  number of items of T whose lower end lies above the upper ends of all items outside T. At least j items are held by
  more users than any item outside T, so A_j lies within T, and

      F(T) = r(T) - e(A_j) - e(T without A_j) >= r(T) - z_j sd(j) - D,

  with z_j for alpha/8 over the k sets A_1 ... A_k. The larger of the two bounds is taken. D bounds the errors of the
  m = k - j doubtful items, and is the smaller of two numbers: the m largest r - low in T; and, where counts are large
  enough to be normal, a bound for the sum of the m largest errors of all d items. For every t that sum is at most
  m t + sum of (e(x) - t)+ over all x. Its mean is at most d sigma phi(t), t = Phi^-1(1 - m/d), whatever the
  dependence, and it exceeds its mean by z sigma sqrt(m) with probability alpha/8 at most (concentration of a maximum
  of normal variables).

sd is the root of the larger of two variances: that of the sum over T with its covariances, from the counts, and the sum
of the single variances. (A_j is known only nearly, so its covariances are too.)

Where T cannot be told from the other items, the interval is wide, about k times that of one item. It has to be: that
nobody holds the items of T, and that as many users do as the raw estimates say, are then both possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.support_law import normal_quantile

__all__ = ["Picked", "Rest", "rest_of_fixed", "rest_of_picked"]

NORMAL = 100.0
"""The least variance of a count that is taken for normal in a sum of many."""


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
    """The largest estimate that was not picked, if there is one."""
    outside: Indexes
    """Its index."""


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
    doubtful = float(np.sort(raw - low)[::-1][: k - clear].sum())
    doubtful = min(doubtful, _largest_errors(oracle, raw[clear:], alpha / 8))
    reach = normal_quantile(alpha / 8 / k) * math.sqrt(variance if clear == k else _largest(single, clear))
    least = max(float(low.sum()), float(raw.sum()) - doubtful - (reach if clear else 0.0))

    lowest, highest = np.clip(n - most, 0, n), np.clip(n - least, 0, n)
    point = np.clip(n - float(picked.consistent.sum()), lowest, max(lowest, highest))
    return Rest(float(point), math.sqrt(variance), float(lowest), float(max(lowest, highest)))


def _largest_errors(oracle: FrequencyOracle, doubtful: Floats, tail: float) -> float:
    """A bound on the sum of the largest errors, as many as there are doubtful items."""
    law, m, d = oracle.law, len(doubtful), oracle.randomizer.size
    if not m or m >= d:
        return math.inf if m else 0.0
    if law is None or law.reports * law.s * (1 - law.s) < NORMAL:
        return math.inf
    normal, sigma = NormalDist(), math.sqrt(float(oracle.variance(max(0.0, float(doubtful.max())))))
    return sigma * (d * normal.pdf(normal.inv_cdf(1 - m / d)) + normal_quantile(tail) * math.sqrt(m))


def _largest(variances: Floats, count: int) -> float:
    return float(np.sort(variances)[::-1][:count].sum())
