r"""How many users hold an item that is not listed, with an interval, so that a table adds up to the number of reports.

Items fixed beforehand: n minus the sum of their estimates, with the interval of that sum.

Items picked by their estimates were picked for errors that are positive, so this subtracts too much. By how much is
estimated from the estimates near the threshold, without bias for any crowd (laws/picked_sums.py). That is added to the
point value, and the interval is the point value with its standard errors to both sides.

The standard error there is that of independent estimates. The oracle knows the variance of the sum of the picked
estimates with its covariances. If they make that variance larger, all of the difference is added. If they make it
smaller, only half of the difference is subtracted, because the estimates near the threshold are correlated with those
picked in the same way.

Mechanisms without such a law (a tree over the integers, composed response) have a wider interval. Its upper end for
the picked items is that of a fixed set: no set of as many items has a larger sum of estimates. Its lower end is the sum
of the lower ends of intervals that hold for the whole domain at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.independence.result import Independence
from ldp_server.oracles.laws.picked_sums import excess_of_picked
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile

__all__ = ["Picked", "Rest", "rest_at_every_look", "rest_of_fixed", "rest_of_picked"]

_LEAST = 0.25
"""Covariances may reduce the variance of a picked sum to this part of it, and no further."""


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
    others: Floats
    """The estimates of all other items."""


def rest_of_fixed(oracle: FrequencyOracle, indexes: Indexes, raw: Floats, alpha: float, widened: Independence) -> Rest:
    """Return how many users hold none of these items, which are different and were fixed beforehand."""
    if not len(indexes):
        return Rest(float(oracle.reports), 0.0, float(oracle.reports), float(oracle.reports))
    error = widened.error(math.sqrt(oracle.sum_variance(indexes, raw)))
    low, high = oracle.sum_interval(indexes, raw, widened.tail(alpha / 2))
    return Rest(oracle.reports - float(raw.sum()), error, oracle.reports - high, oracle.reports - low)


def rest_of_picked(oracle: FrequencyOracle, picked: Picked, alpha: float, widened: Independence) -> Rest:
    """Return how many users hold none of the picked items."""
    n, raw = float(oracle.reports), picked.raw
    law = oracle.error_law
    if law is None:
        return _rest_without_law(oracle, picked, alpha, widened)
    if widened.widened > 1 and isinstance(law, SupportLaw):
        return _rest_of_copies(oracle, law, picked, alpha, widened)
    excess = excess_of_picked(law, raw, picked.others)
    together = oracle.picked_variance(picked.indexes, raw) - float(np.square(law.spread(raw)).sum())
    error = math.sqrt(max(excess.variance + (together if together > 0 else together / 2), _LEAST * excess.variance))
    point = n - float(raw.sum()) + excess.mean
    reach = normal_quantile(alpha / 2) * error + excess.allowance
    low, high = np.clip((point - reach, point + reach), 0, n)
    return Rest(point, error, float(low), float(high))


def _rest_of_copies(
    oracle: FrequencyOracle, law: SupportLaw, picked: Picked, alpha: float, widened: Independence
) -> Rest:
    """The same where copies make the variances f times as large: as of n/f independent reports, each f times."""
    n, raw, f = float(oracle.reports), picked.raw, widened.widened
    fewer = replace(law, reports=max(1, round(n / f)))
    excess = excess_of_picked(fewer, raw / f, picked.others / f)
    together = oracle.picked_variance(picked.indexes, raw) - float(np.square(law.spread(raw)).sum())
    variance = f * f * excess.variance + f * (together if together > 0 else together / 2)
    error = math.sqrt(max(variance, _LEAST * f * f * excess.variance))
    point = n - float(raw.sum()) + f * excess.mean
    reach = normal_quantile(alpha / 2) * error + f * excess.allowance
    low, high = np.clip((point - reach, point + reach), 0, n)
    return Rest(point, error, float(low), float(high))


def _rest_without_law(oracle: FrequencyOracle, picked: Picked, alpha: float, widened: Independence) -> Rest:
    n, raw = float(oracle.reports), picked.raw
    variance = max(oracle.sum_variance(picked.indexes, raw), float(oracle.variance(raw).sum()))
    error, tail = widened.error(math.sqrt(variance)), widened.tail(alpha / 2 / oracle.listed)
    most = float(raw.sum()) + normal_quantile(alpha / 2) * error
    least = float(oracle.intervals(picked.indexes, raw, tail)[0].sum())
    low, high = np.clip((n - most, n - least), 0, n)
    point = np.clip(n - float(picked.consistent.sum()), low, max(low, high))
    return Rest(float(point), error, float(low), float(max(low, high)))


def rest_at_every_look(oracle: FrequencyOracle, found: Rest, low: Floats, high: Floats) -> Rest:
    """Return the rest with the interval that follows from ends that hold for all listed items and looks at once."""
    n = float(oracle.reports)
    least, most = np.clip((n - float(high.sum()), n - float(low.sum())), 0, n)
    return Rest(found.estimate, found.standard_error, float(least), float(most))
