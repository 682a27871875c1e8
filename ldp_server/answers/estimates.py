"""Estimates for people: items with standard errors, intervals, verdicts, and a consistent version.

An interval is right with probability 1 - alpha in one of three senses (`Coverage`):
    EACH      each interval, taken alone
    TOGETHER  all intervals of a set that was fixed *before* looking, at once (Bonferroni over the set)
    SELECTED  all intervals of items that were *picked by their estimates*, at once (Bonferroni over the whole domain)

Where reports are not independent (ldp_server/oracles/independence), intervals and standard errors are wider, and beyond
a limit nothing is estimated. A copied report counts as often as it came: the estimates are about the reports.

An interval comes from the exact law of the counts, inverted (ldp_server/oracles/laws/support.py), where the mechanism
has one. It lies within [0, n], is not symmetric, and need not contain a negative estimate. Intervals and standard
errors belong to the raw estimates only. everything_else.py says how many users hold none of the listed items.

With `every_look`, intervals are right at every number of reports at once (every_look.py): whoever looks every day and
stops when the answer looks good is still right with this confidence.

`consistent` values (norm-sub) are not negative and add up to the number of reports. Their average error is smaller, but
they have no intervals. In a large domain they are too small for frequent items: with 65,536 items and 100,000 users at
epsilon = 1, the raw 95% interval, moved to the norm-sub value, holds the truth about a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import NONE, Item
from ldp_server.answers.columns import Column, Columns, WholeDomain
from ldp_server.answers.every_look import frequency_ends
from ldp_server.answers.everything_else import Picked, Rest, rest_at_every_look, rest_of_fixed, rest_of_picked
from ldp_server.answers.more import more_for_half
from ldp_server.answers.sets import SetSizes, set_sizes, single_items
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints
from ldp_server.oracles import as_frequency
from ldp_server.oracles.base import Floats, FrequencyOracle, Oracle
from ldp_server.oracles.independence.judge import accepted, widening
from ldp_server.oracles.independence.result import INDEPENDENT, Independence
from ldp_server.oracles.laws.projection import norm_sub

__all__ = [
    "Coverage",
    "Estimate",
    "Estimates",
    "Rest",
    "Verdict",
    "every_item",
    "given_items",
    "item_indexes",
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


_UNLESS_EMPTY: Mapping[str, str] = {"json": "unless empty"}
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
class Estimates:
    """The answer to one question about frequencies."""

    reports: int
    confidence: float
    coverage: Coverage
    rows: Columns[Estimate]
    everything_else: Rest | None
    """None where every item is listed, and where a user may hold several items. With the estimates of fixed items it
    adds up to `reports`."""
    every_look: bool = False
    """Whether the intervals are right at every number of reports at once, and not only at one."""
    more_for_half: int | None = None
    """How many more reports half the error takes, as a share of the users; None: no number of them does."""
    independence: Independence = INDEPENDENT
    fields: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """The fields of the table, where the items are cells of one (records.py)."""
    where: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """Which users alone are counted there, in words."""
    sets: SetSizes | None = field(default=None, metadata=_UNLESS_NONE)
    """How large the users' sets are, where the items are those of sets (sets.py)."""


def _tail(alpha: float, intervals: int) -> float:
    """The probability with which each end may err, so that all `intervals` hold with probability 1 - alpha."""
    if not 0 < alpha < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    # A domain's size may be too large for a float. An end then errs with probability 1e-300, which is never reached.
    return alpha / 2 / intervals if intervals < 1 << 900 else 1e-300


def _count(coverage: Coverage, size: int, given: int) -> int:
    return {Coverage.EACH: 1, Coverage.TOGETHER: max(1, given), Coverage.SELECTED: size}[coverage]


def _verdicts(low: Floats, high: Floats, threshold: float) -> list[Verdict]:
    verdicts = (Verdict.CANNOT_TELL, Verdict.NO, Verdict.YES)
    return [verdicts[i] for i in np.where(low >= threshold, 2, np.where(high < threshold, 1, 0)).tolist()]


@dataclass(frozen=True)
class _Listed:
    """The items of an answer, with their raw and their consistent estimates."""

    items: Sequence[Item]
    indexes: Indexes
    raw: Floats
    consistent: Floats | None = None

    def first_places(self) -> list[int]:
        """Where each item is listed first."""
        return sorted({item: place for place, item in reversed(list(enumerate(self.items)))}.values())


@dataclass(frozen=True)
class _Question:
    """What is asked about each item."""

    confidence: float
    coverage: Coverage
    threshold: float | None
    every_look: bool

    def answer(
        self, collection: Collection, oracle: FrequencyOracle, listed: _Listed, picked: Picked | None = None
    ) -> Estimates:
        """Return the raw estimates of these items with everything that follows from them."""
        alpha, raw, widened = 1 - self.confidence, listed.raw, widening(oracle)
        tail = _tail(alpha, _count(self.coverage, collection.domain.counted.size, len(listed.items)))
        if self.every_look:
            low, high = widened.stretched(raw, *frequency_ends(oracle, listed.indexes, raw, tail), oracle.reports)
        else:
            low, high = oracle.intervals(listed.indexes, raw, widened.tail(tail))
        columns: dict[str, Column] = {
            "item": listed.items,
            "estimate": raw,
            "standard_error": widened.errors(oracle.standard_errors(listed.indexes, raw)),
            "low": low + 0.0,  # not -0.0
            "high": high,
        }
        if listed.consistent is not None:
            columns["consistent"] = listed.consistent
        if self.threshold is not None:
            columns["verdict"] = _verdicts(low, high, self.threshold)
        rest = self._rest(oracle, listed, picked, (low, high))
        found, (_, seen), more = Columns(Estimate, columns), accepted(oracle), more_for_half(oracle)
        sizes = set_sizes(oracle, alpha / 2, every_look=self.every_look)
        return Estimates(
            oracle.reports, self.confidence, self.coverage, found, rest, self.every_look, more, seen, sets=sizes
        )

    def _rest(
        self, oracle: FrequencyOracle, listed: _Listed, picked: Picked | None, ends: tuple[Floats, Floats]
    ) -> Rest | None:
        alpha, raw, widened = 1 - self.confidence, listed.raw, widening(oracle)
        if not oracle.exclusive:
            return None
        if picked is not None:
            found = rest_of_picked(oracle, picked, alpha, widened)
            return rest_at_every_look(oracle, found, *ends) if self.every_look else found
        if isinstance(listed.items, WholeDomain):
            return None
        places = listed.first_places()  # an item asked for twice: once
        found = rest_of_fixed(oracle, listed.indexes[places], raw[places], alpha, widened)
        if not self.every_look:
            return found
        wide = frequency_ends(oracle, listed.indexes[places], raw[places], _tail(alpha, len(places) or 1))
        return rest_at_every_look(oracle, found, *widened.stretched(raw[places], *wide, oracle.reports))


def _indexes(collection: Collection, items: Iterable[Item]) -> list[int]:
    wanted = list(items)
    indexes = [collection.domain.counted.index(item) for item in wanted]
    if any(index == NONE and item not in (None, frozenset()) for index, item in zip(indexes, wanted, strict=True)):
        raise InvalidSpec("an item asked for lies outside the collection's domain")
    return indexes


def item_indexes(collection: Collection, items: Iterable[Item]) -> Indexes:
    """Return the indexes of items; one outside the domain is refused."""
    return from_ints(_indexes(collection, items), collection.domain.counted.bits)


def given_items(
    collection: Collection,
    oracle: Oracle,
    items: Iterable[Item],
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
    every_look: bool = False,
) -> Estimates:
    """Estimates of items fixed in advance; None, or no attribute, asks for `none`. An item outside is refused."""
    indexes, domain = _indexes(collection, items), collection.domain.counted
    places, (frequencies, _) = from_ints(indexes, domain.bits), accepted(as_frequency(single_items(oracle)))
    items = [domain.item(index) for index in indexes]
    listed = _Listed(items, places, frequencies.estimate(places))
    return _Question(confidence, coverage, threshold, every_look).answer(collection, frequencies, listed)


def every_item(
    collection: Collection,
    oracle: Oracle,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
    threshold: float | None = None,
    every_look: bool = False,
) -> Estimates:
    """Estimates of the whole of a domain that can be listed, in its order, `none` first, with consistent values."""
    frequencies, _ = accepted(as_frequency(single_items(oracle)))
    raw = frequencies.estimate_all()
    items, indexes = WholeDomain(collection.domain.counted), np.arange(len(raw), dtype=np.uint64)
    listed = _Listed(items, indexes, raw, frequencies.possible(raw))
    return _Question(confidence, coverage, threshold, every_look).answer(collection, frequencies, listed)


def top(
    collection: Collection,
    oracle: Oracle,
    count: int,
    *,
    confidence: float = 0.95,
    threshold: float | None = None,
    every_look: bool = False,
) -> Estimates:
    """Estimates of the items of a listable domain with the largest ones; the intervals allow for the choice."""
    if count < 1:
        raise InvalidSpec("ask for at least one item")
    frequencies, _ = accepted(as_frequency(single_items(oracle)))
    raw = frequencies.estimate_all()
    consistent = frequencies.possible(raw)
    order = np.argsort(-raw[1:], kind="stable") + 1
    best = order[:count]
    indexes = best.astype(np.uint64)
    picked = Picked(indexes, raw[best], consistent[best], raw[order[count:]])
    items = [collection.domain.counted.item(int(index)) for index in best]
    listed = _Listed(items, indexes, raw[best], consistent[best])
    return _Question(confidence, Coverage.SELECTED, threshold, every_look).answer(
        collection, frequencies, listed, picked
    )
