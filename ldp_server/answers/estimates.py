"""Estimates for people: items with standard errors, intervals, verdicts, and a consistent version.

An interval is right with probability 1 - alpha in one of three senses (`Coverage`):
    EACH      each interval, taken alone
    TOGETHER  all intervals of a set that was fixed *before* looking, at once (Bonferroni over the set)
    SELECTED  all intervals of items that were *picked by their estimates*, at once (Bonferroni over the whole domain)

An interval is the estimate plus and minus z standard errors, z the quantile of the normal law. Both ends are moved by
the second-order term for skewness, (z^2 - 1) g/6 standard errors: a binomial count is not symmetric far out in its
tail, and that is where the quantiles of a Bonferroni correction over a whole domain lie. Intervals and standard errors
belong to the raw estimates only.

`consistent` values (norm-sub) are not negative and add up to the number of reports. Their average error is smaller, but
they have no intervals: the raw interval around a norm-sub value covers a frequent item a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import NormalDist

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import NONE, Item
from ldp_server.answers.columns import Column, Columns, WholeDomain
from ldp_server.arrays.items import from_ints
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Floats, Oracle

__all__ = [
    "Coverage",
    "Estimate",
    "Estimates",
    "Rest",
    "Verdict",
    "every_item",
    "given_items",
    "interval",
    "norm_sub",
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


_UNLESS_NONE: Mapping[str, str] = {"json": "unless None"}


@dataclass(frozen=True)
class Estimate:
    """How many of the users who reported hold an item."""

    item: Item
    estimate: float
    standard_error: float
    low: float
    high: float
    consistent: float | None = field(default=None, metadata=_UNLESS_NONE)
    verdict: Verdict | None = field(default=None, metadata=_UNLESS_NONE)


@dataclass(frozen=True)
class Rest:
    """How many of the users who reported hold an item that is not listed."""

    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """The answer to one question about frequencies."""

    reports: int
    confidence: float
    coverage: Coverage
    rows: Columns[Estimate]
    everything_else: Rest | None
    """So that the table adds up to `reports`; None where every item is listed."""


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


def _verdicts(low: Floats, high: Floats, threshold: float) -> list[Verdict]:
    verdicts = (Verdict.CANNOT_TELL, Verdict.NO, Verdict.YES)
    return [verdicts[i] for i in np.where(low >= threshold, 2, np.where(high < threshold, 1, 0)).tolist()]


@dataclass(frozen=True)
class _Question:
    """What is asked about each item."""

    confidence: float
    coverage: Coverage
    threshold: float | None

    def answer(
        self,
        collection: Collection,
        oracle: Oracle,
        items: Sequence[Item],
        raw: Floats,
        consistent: Floats | None = None,
    ) -> Estimates:
        """Return the raw estimates of these items with everything that follows from them."""
        errors = np.sqrt(as_frequency(oracle).variance(raw))
        z = _quantile(1 - self.confidence, _count(self.coverage, collection.domain.size, len(items)))
        low, high = interval(raw, errors, as_frequency(oracle).skewness, z)
        columns: dict[str, Column] = {
            "item": items,
            "estimate": raw,
            "standard_error": errors,
            "low": low,
            "high": high,
        }
        if consistent is not None:
            columns["consistent"] = consistent
        if self.threshold is not None:
            columns["verdict"] = _verdicts(low, high, self.threshold)
        rest = None if isinstance(items, WholeDomain) else self._rest(oracle, items, raw)
        return Estimates(oracle.reports, self.confidence, self.coverage, Columns(Estimate, columns), rest)

    def _rest(self, oracle: Oracle, items: Sequence[Item], raw: Floats) -> Rest:
        held = raw[list({item: place for place, item in enumerate(items)}.values())]  # an item asked for twice: once
        estimate = oracle.reports - float(held.sum())
        error = float(np.sqrt(as_frequency(oracle).sum_variance(held))) if len(held) else 0.0
        z = _quantile(1 - self.confidence, 1)
        return Rest(estimate, error, estimate - z * error, estimate + z * error)


def given_items(
    collection: Collection,
    oracle: Oracle,
    items: Iterable[Item],
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
) -> Estimates:
    """Estimates of items fixed in advance; None asks for `none`. An item outside the domain is refused."""
    wanted = list(items)
    indexes = [collection.domain.index(item) for item in wanted]
    if any(index == NONE and item is not None for index, item in zip(indexes, wanted, strict=True)):
        raise InvalidSpec("an item asked for lies outside the collection's domain")
    raw = as_frequency(oracle).estimate(from_ints(indexes, collection.domain.bits))
    listed = [collection.domain.item(index) for index in indexes]
    return _Question(confidence, coverage, threshold).answer(collection, oracle, listed, raw)


def every_item(
    collection: Collection,
    oracle: Oracle,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
) -> Estimates:
    """Estimates of the whole of a domain that can be listed, in its order, `none` first, with consistent values."""
    raw = as_frequency(oracle).estimate_all()
    consistent = norm_sub(raw, oracle.reports)
    question = _Question(confidence, coverage, threshold)
    return question.answer(collection, oracle, WholeDomain(collection.domain), raw, consistent)


def top(
    collection: Collection,
    oracle: Oracle,
    count: int,
    *,
    confidence: float = 0.95,
    threshold: float | None = None,
) -> Estimates:
    """Estimates of the items of a listable domain with the largest ones; the intervals allow for the choice."""
    if count < 1:
        raise InvalidSpec("ask for at least one item")
    raw = as_frequency(oracle).estimate_all()
    consistent = norm_sub(raw, oracle.reports)
    items = np.arange(1, len(raw))
    count = min(count, len(items))
    best = items[np.argpartition(-raw[1:], count - 1)[:count]]
    best = best[np.argsort(-raw[best], kind="stable")]
    listed = [collection.domain.item(int(index)) for index in best]
    question = _Question(confidence, Coverage.SELECTED, threshold)
    return question.answer(collection, oracle, listed, raw[best], consistent[best])


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
