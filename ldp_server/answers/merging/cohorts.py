"""One answer from two sources: what volunteers gave a curator, and the randomized reports of everybody else.

The question is about the population that both cohorts come from: which share holds an item, or is in a cell of a table?
Each cohort gives a share f with a variance of two parts, noise and sampling:

    volunteers   f_c = count / n_c       v_c = var(noise) / n_c^2 + f (1 - f) / n_c
    reports      f_l = estimate / n_l    v_l = (standard error / n_l)^2 + f (1 - f) / n_l

The merged share weighs each by the inverse of its variance; its variance is 1 / (1/v_c + 1/v_l), never above either.
For the sampling part f is the merged share of the noise alone, moved towards one half by two people on each side, so
that it is not 0 where nobody was seen. They count beside as many people as the cohorts are worth: a cohort of n people
is worth n where it has no noise, and nobody where it has much. Where the curator's noise is a large part of the error,
the interval has its tails (chances.py). Both ends lie further out by what one person of a cohort moves: shares move by
whole people, which the normal law leaves out. Without this, the 95% interval of 5 people and 5 held in 89% of all
cases.

Volunteers who were reweighed by the reports (reweighed.py) have a part b^2 of their variance from these same reports.
How it goes together with the reports' own error s is not known. For every correlation the variance of w f_c + (1 - w)
f_l is at most w^2 v + (w b + (1 - w) s)^2, where v is the volunteers' other part. w is chosen for the smallest bound,
w = s (s - b) / (v + (s - b)^2), and the bound is what is stated. Without reweighing w is the inverse of the variance.

Some counts of a curator are not a true count with noise: a fit has answered, or a classifier. All that is known is that
they are off by at most d, but for a chance that the release states. Such a source is weighed as if d^2 were a part of
its variance, and w d is added to each side of the interval; half of what the interval may err goes to that chance.

This is right if volunteers are like everybody else. Often they are not. So for each item z = (f_c - f_l) / sqrt(v_c +
v_l), without the part of the difference that d explains or one person more or less in each cohort, and over m items the
probability that chance alone makes the largest |z| as large is at most m times that of one (Bonferroni). Below 1% a
warning says so, with this number. Nothing is then corrected: a merged answer about two different groups is an answer
about neither.

Only counts that were not chosen by their own noise are merged: a histogram, the top k, tables, conditions, and
estimates of items that were named beforehand. The curator's list of unknown items is used as the dictionary of the
local search instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item
from ldp_server.answers.merging.chances import beyond, reach

__all__ = [
    "CohortCount",
    "CohortShare",
    "ErrorBound",
    "MergedAnswer",
    "MergedRow",
    "matched",
    "merged",
    "shares_of",
    "weighed",
]

_UNLESS_EMPTY: Mapping[str, str] = {"json": "unless empty"}
_UNLESS_NONE: Mapping[str, str] = {"json": "unless None"}
WARN_BELOW = 0.01


@dataclass(frozen=True)
class ErrorBound:
    """By how much a source is off at most, but for a chance."""

    chance: float
    most: float


@dataclass(frozen=True)
class CohortCount:
    """How many people of one cohort hold an item, with the variance of the noise alone."""

    count: float
    variance: float
    laplace: bool = False
    """Whether the noise is Laplace noise."""
    alone: bool = True
    """Whether the noise is independent of that of the other counts of its table."""
    bounds: tuple[ErrorBound, ...] = ()
    """How far it may be off besides; the chances fall."""


@dataclass(frozen=True)
class CohortShare:
    """Which share of one cohort holds an item. Its variance is `noise` + f (1 - f) / `people`."""

    share: float
    noise: float
    people: float
    shared: float = 0.0
    """The part b^2 of the variance that comes from the other cohort."""
    laplace: float = 0.0
    """The part of `noise` that is Laplace noise."""
    bounds: tuple[ErrorBound, ...] = ()

    def bound(self, chance: float) -> ErrorBound:
        """Return how far it may be off besides, with a chance of at most so much."""
        if not self.bounds:
            return ErrorBound(0.0, 0.0)
        found = next((one for one in self.bounds if one.chance <= chance * (1 + 1e-9)), None)
        if found is None:
            raise InvalidSpec(f"these counts come from a fit: ask for a --confidence of at most {_surest(self.bounds)}")
        return found


def _surest(bounds: tuple[ErrorBound, ...]) -> str:
    return f"{1 - 2 * bounds[-1].chance:.6g}"


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
    volunteers_off: float | None = field(default=None, metadata=_UNLESS_NONE)
    """By how much the volunteers' share may be off besides, where it comes from a fit."""

    @property
    def volunteers_text(self) -> str:
        """What volunteers say, with one standard error; and by how much a fit may be off besides."""
        off = "" if self.volunteers_off is None else f" ± {self.volunteers_off:.2%}"
        return f"{self.volunteers:.2%} ± {self.volunteers_error:.2%}{off}"


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
    return matched(shares_of(volunteers, people), people, shares_of(local, reports), reports, confidence)


def shares_of(counts: Mapping[Item, CohortCount], people: int) -> dict[Item, CohortShare]:
    """Return counts as shares of a cohort."""
    if people < 1:
        raise InvalidSpec("both sources need people: there is nothing to merge")
    return {item: _share_of(one, people) for item, one in counts.items()}


def _share_of(one: CohortCount, people: int) -> CohortShare:
    if not math.isfinite(one.count) or not 0 <= one.variance < math.inf:
        raise InvalidSpec("a count of these sources is no number, or its variance is none: there is nothing to merge")
    noise = one.variance / people**2
    bounds = tuple(ErrorBound(bound.chance, bound.most / people) for bound in one.bounds)
    return CohortShare(one.count / people, noise, people, laplace=noise if one.laplace else 0.0, bounds=bounds)


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
    found = [_row(item, known[_key(item)], local[item], confidence) for item in both]
    row, least = min(found, key=lambda one: (one[1], -abs(one[0].z)))
    chance = min(1.0, len(found) * least + max(_last(one.bounds).chance for one in known.values()))
    warning = None
    if chance < WARN_BELOW:
        warning = (
            f"the two sources disagree beyond chance (probability at most {chance:.2g}): volunteers say "
            f"{row.volunteers:.2%} and reports say {row.reports:.2%} about one item. Volunteers are not like "
            "everybody else here; use the reports alone"
        )
    return MergedAnswer(people, reports, confidence, tuple(one for one, _ in found), chance, warning)


def _key(item: Item) -> object:
    """What names the same item in both sources: a file has numbers as text, and nothing at all is `none`."""
    if isinstance(item, Mapping):
        held = tuple(sorted((name, str(value)) for name, value in item.items() if value is not None))
        return held or None
    return str(item) if isinstance(item, int) else item


def _row(item: Item, one: CohortShare, other: CohortShare, confidence: float) -> tuple[MergedRow, float]:
    """Return the merged row, and the probability that chance alone makes its sources differ so much."""
    bound = one.bound((1 - confidence) / 2)
    own, local = _variances(one, other, bound.most**2)
    weight = _weight(own + bound.most**2, one.shared, local)
    share, variance = weight * one.share + (1 - weight) * other.share, _merged(weight, own, one.shared, local)
    error, off = math.sqrt(variance), weight * bound.most
    width = error * reach(1 - confidence - bound.chance, weight**2 * one.laplace / variance)
    most = off + width + max(weight / one.people, (1 - weight) / other.people)
    low, high = (min(max(end, 0.0), 1.0) for end in (share - most, share + most))
    apart, apart_variance = one.share - other.share, own + (math.sqrt(one.shared) + math.sqrt(local)) ** 2
    explained = _last(one.bounds).most + 1 / one.people + 1 / other.people
    left = math.copysign(max(abs(apart) - explained, 0.0), apart)
    z = left / math.sqrt(apart_variance)
    sources = one.share, math.sqrt(own + one.shared), other.share, math.sqrt(local)
    row = MergedRow(item, share, low, high, error, *sources, z, bound.most if one.bounds else None)
    return row, beyond(z, one.laplace / apart_variance)


def _last(bounds: tuple[ErrorBound, ...]) -> ErrorBound:
    """The bound that holds most surely: it decides about a warning."""
    return bounds[-1] if bounds else ErrorBound(0.0, 0.0)


def _variances(one: CohortShare, other: CohortShare, off: float) -> tuple[float, float]:
    """Return the variance of each source, sampling included. `off` is as good as noise of the first one."""
    own, local = (cohort.noise + _sampled(0.5, cohort) for cohort in (one, other))
    weight = _weight(own + off, one.shared, local)
    rough = weight * one.share + (1 - weight) * other.share
    near, people = 0.5, 0.0
    for _ in range(2):  # what its noise leaves of a cohort depends on the share
        people = _worth(near, one) + _worth(near, other)
        near = (min(max(rough, 0.0), 1.0) * people + 2) / (people + 4)
    return one.noise + _sampled(near, one), other.noise + _sampled(near, other)


def _worth(share: float, cohort: CohortShare) -> float:
    """Of how many people without noise a cohort tells as much; 0 where sampling is a part of the noise."""
    sampled = _sampled(share, cohort)
    return cohort.people * sampled / (sampled + cohort.noise) if sampled else 0.0


def _sampled(share: float, cohort: CohortShare) -> float:
    return share * (1 - share) / cohort.people


def _weight(own: float, shared: float, local: float) -> float:
    """Return the first source's weight, from its variance, the part that comes from the other, and the other's."""
    b, s = math.sqrt(shared), math.sqrt(local)
    return min(max(s * (s - b) / (own + (s - b) ** 2), 0.0), 1.0)


def _merged(weight: float, own: float, shared: float, local: float) -> float:
    return weight**2 * own + (weight * math.sqrt(shared) + (1 - weight) * math.sqrt(local)) ** 2


def weighed(one: tuple[float, float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Merge (value, variance of its own, variance that comes from the other) with (value, variance)."""
    value, own, shared = one
    weight = _weight(own, shared, other[1])
    return weight * value + (1 - weight) * other[0], _merged(weight, own, shared, other[1])
