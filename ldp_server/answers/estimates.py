"""Estimates that a person can use: items with standard errors, intervals, verdicts, and a consistent version.

Three ways to be right with probability 1 - alpha, which differ in what "right" is about (`Coverage`):
    EACH      every single interval, taken alone
    TOGETHER  all intervals of a set fixed *before* looking, at once (Bonferroni over the set)
    SELECTED  all intervals of items that were *picked by their estimates*, at once (Bonferroni over the whole domain)

An interval is the estimate plus and minus the quantile z of the normal law times the standard error, with the
second-order term for skewness, (z^2 - 1) g/6 standard errors, added on either side with its sign: far out in the tail
a binomial count is not symmetric, and |domain|-wide quantiles are far out. Intervals and standard errors belong to
the raw estimates only.

`consistent` values (norm-sub) are non-negative and add up to the number of reports; they have less error on average and
none of the guarantees: a norm-sub value with a raw interval would cover a popular item a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import NONE, Item
from ldp_server.arrays.items import from_ints
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Floats, Oracle

__all__ = [
    "Coverage",
    "Estimate",
    "Rest",
    "Verdict",
    "every_item",
    "given_items",
    "interval",
    "norm_sub",
    "rest",
    "top",
]


class Coverage(Enum):
    """What the stated confidence is about."""

    EACH = "each"
    TOGETHER = "together"
    SELECTED = "selected"


class Verdict(Enum):
    """Whether an item is held by at least as many users as a threshold says."""

    YES = "yes"
    NO = "no"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Estimate:
    """How many of the users who reported hold an item."""

    item: Item
    index: int
    estimate: float
    standard_error: float
    low: float
    high: float
    consistent: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Rest:
    """Everything else: what the listed items leave of all reports."""

    estimate: float
    standard_error: float
    low: float
    high: float


def _quantile(alpha: float, intervals: int) -> float:
    """The two-sided normal quantile that `intervals` intervals exceed with probability alpha at most."""
    if not 0 < alpha < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    # A domain of many thousand bits has no float; log2 of the count is enough to see that, and 1e-300 is no limit.
    tail = alpha / 2 / intervals if intervals < 1 << 900 else 1e-300
    return -NormalDist().inv_cdf(max(tail, 1e-300))


def interval(estimates: Floats, errors: Floats, skewness: float, z: float) -> tuple[Floats, Floats]:
    """Lower and upper ends: the error's law is skewed upwards, so an estimate may lie further above than below."""
    shift = (z * z - 1) * skewness / 6
    return estimates - errors * (z + shift), estimates + errors * max(0.0, z - shift)


def _count(coverage: Coverage, size: int, given: int) -> int:
    return {Coverage.EACH: 1, Coverage.TOGETHER: max(1, given), Coverage.SELECTED: size}[coverage]


def _verdict(low: float, high: float, threshold: float) -> Verdict:
    if low >= threshold:
        return Verdict.YES
    return Verdict.NO if high < threshold else Verdict.CANNOT_TELL


def _build(
    collection: Collection,
    oracle: Oracle,
    indexes: Sequence[int],
    raw: Floats,
    coverage: Coverage,
    confidence: float,
    threshold: float | None,
    consistent: Floats | None = None,
) -> list[Estimate]:
    errors = np.sqrt(as_frequency(oracle).variance(raw))
    z = _quantile(1 - confidence, _count(coverage, collection.domain.size, len(indexes)))
    low, high = interval(raw, errors, as_frequency(oracle).skewness, z)
    return [
        Estimate(
            item=collection.domain.item(index),
            index=index,
            estimate=float(raw[i]),
            standard_error=float(errors[i]),
            low=float(low[i]),
            high=float(high[i]),
            consistent=None if consistent is None else float(consistent[i]),
            verdict=None if threshold is None else _verdict(float(low[i]), float(high[i]), threshold),
        )
        for i, index in enumerate(indexes)
    ]


def given_items(
    collection: Collection,
    oracle: Oracle,
    items: Iterable[Item],
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
) -> list[Estimate]:
    """Estimates of items fixed in advance; None asks for `none`. An item outside the domain is refused."""
    wanted = list(items)
    indexes = [collection.domain.index(item) for item in wanted]
    if any(index == NONE and item is not None for index, item in zip(indexes, wanted, strict=True)):
        raise InvalidSpec("an item asked for lies outside the collection's domain")
    raw = as_frequency(oracle).estimate(from_ints(indexes, collection.domain.bits))
    return _build(collection, oracle, indexes, raw, coverage, confidence, threshold)


def every_item(
    collection: Collection,
    oracle: Oracle,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
) -> list[Estimate]:
    """Estimates of the whole of a domain that can be listed, in its order, `none` first, with consistent values."""
    raw = as_frequency(oracle).estimate_all()
    consistent = norm_sub(raw, oracle.reports)
    return _build(collection, oracle, range(len(raw)), raw, coverage, confidence, threshold, consistent)


def top(
    collection: Collection,
    oracle: Oracle,
    count: int,
    *,
    confidence: float = 0.95,
    threshold: float | None = None,
) -> list[Estimate]:
    """The items of a listable domain with the largest estimates; the intervals allow for having been picked."""
    if count < 1:
        raise InvalidSpec("ask for at least one item")
    raw = as_frequency(oracle).estimate_all()
    consistent = norm_sub(raw, oracle.reports)
    items = np.arange(1, len(raw))
    count = min(count, len(items))
    best = items[np.argpartition(-raw[1:], count - 1)[:count]]
    best = best[np.argsort(-raw[best], kind="stable")]
    indexes = [int(i) for i in best]
    return _build(collection, oracle, indexes, raw[best], Coverage.SELECTED, confidence, threshold, consistent[best])


def rest(oracle: Oracle, listed: Sequence[Estimate], *, confidence: float = 0.95) -> Rest:
    """Everything but the listed items, so that a table adds up to the number of reports."""
    held = np.array([e.estimate for e in listed], np.float64)
    estimate = oracle.reports - float(held.sum())
    error = float(np.sqrt(as_frequency(oracle).sum_variance(held))) if len(held) else 0.0
    z = _quantile(1 - confidence, 1)
    return Rest(estimate, error, estimate - z * error, estimate + z * error)


def norm_sub(raw: Floats, total: float) -> Floats:
    """The nearest non-negative estimates that add up to `total`: all are shifted by one number, then clipped at 0.

    The shift is found exactly: with the estimates in falling order, the first k stay positive for the largest k at
    which the k-th exceeds the shift that makes the first k add up.
    """
    if not len(raw):
        return raw.copy()
    falling = np.sort(raw)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(raw) + 1)
    positive = np.flatnonzero(falling > shifts)
    if not len(positive):
        return np.zeros_like(raw)
    clipped: Floats = np.maximum(raw - shifts[positive[-1]], 0.0)
    return clipped
