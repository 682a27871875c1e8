"""One answer from two sources: what volunteers gave a curator, and the randomized reports of everybody else.

The question is about the population that both cohorts come from: which share holds an item, or is in a cell of a table?
Each cohort gives a share f with a variance of two parts, noise and sampling:

    volunteers   f_c = count / n_c       v_c = var(noise) / n_c^2 + f (1 - f) / n_c
    reports      f_l = estimate / n_l    v_l = (standard error / n_l)^2 + f (1 - f) / n_l

The merged share weighs each by the inverse of its variance; its variance is 1 / (1/v_c + 1/v_l), never above either.
For the sampling part f is the merged share of the noise alone, moved towards one half by two people on each side, so
that it is not 0 where nobody was seen.

Volunteers who were reweighed by the reports (reweighed.py) have a part b^2 of their variance from these same reports.
How it goes together with the reports' own error s is not known. For every correlation the variance of w f_c + (1 - w)
f_l is at most w^2 v + (w b + (1 - w) s)^2, where v is the volunteers' other part. w is chosen for the smallest bound,
w = s (s - b) / (v + (s - b)^2), and the bound is what is stated. Without reweighing w is the inverse of the variance.

This is right if volunteers are like everybody else. Often they are not. So for each item z = (f_c - f_l) / sqrt(v_c +
v_l), and over m items the probability that chance alone makes the largest |z| as large is at most m times that of a
normal variable (Bonferroni). Below 1% a warning says so, with this number. Nothing is then corrected: a merged answer
about two different groups is an answer about neither.

Only counts that were not chosen by their own noise are merged: a histogram, the top k or tables, and estimates of items
that were named beforehand. The curator's list of unknown items is used as the dictionary of the local search instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item

__all__ = ["CohortCount", "CohortShare", "MergedAnswer", "MergedRow", "disagreement", "matched", "merged", "weighed"]

_UNLESS_EMPTY: Mapping[str, str] = {"json": "unless empty"}
WARN_BELOW = 0.01
_NORMAL = NormalDist()


@dataclass(frozen=True)
class CohortCount:
    """How many people of one cohort hold an item, with the variance of the noise alone."""

    count: float
    variance: float


@dataclass(frozen=True)
class CohortShare:
    """Which share of one cohort holds an item. Its variance is `noise` + f (1 - f) / `people`."""

    share: float
    noise: float
    people: float
    shared: float = 0.0
    """The part b^2 of the variance that comes from the other cohort."""


@dataclass(frozen=True)
class MergedRow:
    """The share of the population that holds an item, and what each source says."""

    item: Item
    share: float
    low: float
    high: float
    standard_error: float
    volunteers: float
    volunteers_error: float
    reports: float
    reports_error: float
    z: float
    """By how many standard errors the two sources differ."""


@dataclass(frozen=True)
class MergedAnswer:
    """One answer with its two sources."""

    volunteers: int
    reports: int
    confidence: float
    """Of each interval, taken alone."""
    rows: tuple[MergedRow, ...]
    chance: float
    """An upper bound of the probability that two cohorts of one population differ so much somewhere."""
    warning: str | None
    """What to say about volunteers who are not like everybody else."""
    fields: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """Of the table, where the items are cells of one."""
    reweighed_by: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """The fields in which the volunteers were made to be like everybody else."""
    volunteers_statement: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """What was promised to volunteers, in sentences."""

    @property
    def disagree(self) -> bool:
        """Whether the sources differ beyond chance."""
        return self.chance < WARN_BELOW


def merged(
    volunteers: Mapping[Item, CohortCount],
    people: int,
    local: Mapping[Item, CohortCount],
    reports: int,
    confidence: float = 0.95,
) -> MergedAnswer:
    """Merge the items that both sources have."""
    return matched(_shares(volunteers, people), people, _shares(local, reports), reports, confidence)


def _shares(counts: Mapping[Item, CohortCount], people: int) -> dict[Item, CohortShare]:
    if people < 1:
        raise InvalidSpec("both sources need people: there is nothing to merge")
    return {item: CohortShare(one.count / people, one.variance / people**2, people) for item, one in counts.items()}


def matched(
    volunteers: Mapping[Item, CohortShare],
    people: int,
    local: Mapping[Item, CohortShare],
    reports: int,
    confidence: float = 0.95,
) -> MergedAnswer:
    """Merge the shares of the items that both sources have."""
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    known = {_key(item): one for item, one in volunteers.items()}
    both = [item for item in local if _key(item) in known]
    if not both:
        raise InvalidSpec("the two sources have no item in common: release and estimate the same items")
    width = _NORMAL.inv_cdf(0.5 + confidence / 2)
    rows = tuple(_row(item, known[_key(item)], local[item], width) for item in both)
    largest = max(rows, key=lambda row: abs(row.z))
    chance = disagreement(largest.z, len(rows))
    warning = None
    if chance < WARN_BELOW:
        warning = (
            f"the two sources disagree beyond chance (probability at most {chance:.2g}): volunteers say "
            f"{largest.volunteers:.2%} and reports say {largest.reports:.2%} about one item. Volunteers are not like "
            "everybody else here; use the reports alone"
        )
    return MergedAnswer(people, reports, confidence, rows, chance, warning)


def disagreement(z: float, rows: int) -> float:
    """Return a bound of the probability that chance alone makes the largest of so many differences this large."""
    return min(1.0, rows * math.erfc(abs(z) / math.sqrt(2)))


def _key(item: Item) -> object:
    """What names the same item in both sources: a file has numbers as text, and nothing at all is `none`."""
    if isinstance(item, Mapping):
        held = tuple(sorted((name, str(value)) for name, value in item.items() if value is not None))
        return held or None
    return str(item) if isinstance(item, int) else item


def _row(item: Item, one: CohortShare, other: CohortShare, width: float) -> MergedRow:
    rough, _ = weighed(
        (one.share, one.noise + _sampled(0.5, one), one.shared), (other.share, other.noise + _sampled(0.5, other))
    )
    total = other.people + (0 if math.isinf(one.people) else one.people)
    near = (min(max(rough, 0.0), 1.0) * total + 2) / (total + 4)
    own, local = one.noise + _sampled(near, one), other.noise + _sampled(near, other)
    share, variance = weighed((one.share, own, one.shared), (other.share, local))
    z = (one.share - other.share) / math.sqrt(own + (math.sqrt(one.shared) + math.sqrt(local)) ** 2)
    error = math.sqrt(variance)
    low, high = max(share - width * error, 0.0), min(share + width * error, 1.0)
    errors = math.sqrt(own + one.shared), math.sqrt(local)
    return MergedRow(item, share, low, high, error, one.share, errors[0], other.share, errors[1], z)


def _sampled(share: float, cohort: CohortShare) -> float:
    return share * (1 - share) / cohort.people


def weighed(one: tuple[float, float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Merge (value, variance of its own, variance that comes from the other) with (value, variance)."""
    value, own, shared = one
    b, s = math.sqrt(shared), math.sqrt(other[1])
    weight = min(max(s * (s - b) / (own + (s - b) ** 2), 0.0), 1.0)
    variance = weight**2 * own + (weight * b + (1 - weight) * s) ** 2
    return weight * value + (1 - weight) * other[0], variance
