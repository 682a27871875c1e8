r"""Two periods, two spans, or two collections: how much larger is the share, or the average, of the second one?

Crowds differ in size, so frequencies are compared as shares of the reports. The two sets of reports are randomized
independently of each other given the items, also where the same people are in both. The interval of a difference is

    [ low_2 - high_1, high_2 - low_1 ]

from two intervals that each err with half of 1 - confidence. It is right whenever both are. The two estimates being
independent, a narrower interval is usual: the square root of the two widths' squares. It was tried and left out. With
20 reports beside 400, its real coverage at 95% was between 74% and 90% at some frequencies, because intervals of few
reports are neither symmetric nor continuous.

Where the reports of a side are not independent, the intervals of this side are wider (copies.py), and so is that of the
difference.

Of a table of fields, each side is pooled from its own reports. The errors of two sides have the covariance 0: table and
answer of each report are drawn anew. So the variance of a difference is the sum of both, also of a slice or a sum of
cells, whose own covariances are in the variance of each side.

The difference is about the people who reported in each of the two. It is no statement about those who did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.numbers import share_of
from ldp_server.answers.over_time.copies import accepted_set, worst_of
from ldp_server.answers.over_time.trend import TrendQuestion, Value, values_of
from ldp_server.oracles.base import Oracle, TooFewReports
from ldp_server.oracles.independence.result import INDEPENDENT, Independence

__all__ = ["Comparison", "Difference", "Direction", "compare"]


class Direction(Enum):
    """What an interval says about a difference."""

    ROSE = "rose"
    FELL = "fell"
    CANNOT_TELL = "cannot tell"

    @classmethod
    def of(cls, low: float, high: float) -> Direction:
        return cls.ROSE if low > 0 else cls.FELL if high < 0 else cls.CANNOT_TELL


@dataclass(frozen=True)
class Difference:
    """The second value minus the first. Frequencies are shares of the reports."""

    label: str
    first: float
    second: float
    difference: float
    standard_error: float
    low: float
    high: float
    direction: Direction


@dataclass(frozen=True)
class Comparison:
    """The answer to one question about two sets of reports."""

    first_reports: int
    second_reports: int
    confidence: float
    coverage: Coverage
    unit: str
    """share, or number: in the unit of the domain."""
    rows: tuple[Difference, ...]
    independence: Independence = INDEPENDENT
    """The worse of the two sides."""


def compare(
    first: tuple[Collection, Oracle],
    second: tuple[Collection, Oracle],
    asked: TrendQuestion,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Coverage.EACH,
) -> Comparison:
    """Return the differences. The two collections must be able to answer the same question."""
    if asked.quantiles:
        raise InvalidSpec("quantiles are not compared: compare ranges, or look at a trend")
    if not (first[1].reports and second[1].reports):
        raise TooFewReports("one of the two has no reports yet")
    names = ("the first side", "the second side")
    (one, seen), (other, seen_there) = (
        accepted_set(side[1], name) for side, name in zip((first, second), names, strict=True)
    )
    reports, sides = (one.reports, other.reports), ((first[0], one), (second[0], other))
    labels = asked.labels(first[0])
    if labels != asked.labels(second[0]):
        raise InvalidSpec("the two collections have different cells there: compare what both have")
    each = share_of(confidence, coverage, len(labels))
    before, after = (values_of(collection, oracle, asked, 1 - (1 - each) / 2) for collection, oracle in sides)
    shown = worst_of(tuple(zip(names, (seen, seen_there), strict=True)))
    return Comparison(
        *reports,
        confidence,
        coverage,
        "share" if asked.counts_users else "number",
        _differences(before, after, reports if asked.counts_users else (1, 1)),
        shown,
    )


def _differences(
    before: Sequence[Value], after: Sequence[Value], divided_by: tuple[int, int]
) -> tuple[Difference, ...]:
    scales = [1 / number for number in divided_by]
    rows = []
    for one, two in zip(before, after, strict=True):
        low, high = two.low * scales[1] - one.high * scales[0], two.high * scales[1] - one.low * scales[0]
        error = math.hypot(one.standard_error * scales[0], two.standard_error * scales[1])
        values = (one.estimate * scales[0], two.estimate * scales[1])
        row = (*values, values[1] - values[0], error, low, high, Direction.of(low, high))
        rows.append(Difference(one.label, *row))
    return tuple(rows)
