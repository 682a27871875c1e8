"""The average of a population from two sources: a curator's sums over volunteers, and randomized reports.

    volunteers   average a_c,  v_c = var(noise) + spread / holders
    reports      average a_l,  v_l = (standard error)^2 + spread / holders

`spread` is the variance of one person's number. It comes from the volunteers' squares, one standard error of their
noise above the estimate, so that both sampling parts are rather too large than too small. And two people more at each
end of the numbers are counted among them (`cautious`), as in cohorts.py: where one in twenty has a large number, twenty
volunteers often show none of them, and no spread at all: 95% intervals held in 64% then. One person who moves from one
end of the numbers to the other is added to each end of the interval, and left out of the difference.

The volunteers' noise is Laplace noise, and the interval has its tails (chances.py). If the two differ beyond chance a
warning says so, with the probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldp_client.errors import InvalidSpec
from ldp_server.answers.merging.chances import beyond, reach
from ldp_server.answers.merging.cohorts import WARN_BELOW, weighed

__all__ = ["CohortAverage", "MergedAverage", "MergedAverages", "averages_answer", "cautious", "merged_average"]

_UNLESS_EMPTY: Mapping[str, str] = {"json": "unless empty"}


@dataclass(frozen=True)
class CohortAverage:
    """The average of those of a cohort who have a number, with the variance of the noise alone."""

    average: float
    noise: float
    holders: float


@dataclass(frozen=True)
class MergedAverage:
    """The average number of a population, and what each source says."""

    estimate: float
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
class MergedAverages:
    """An average with its two sources."""

    volunteers: int
    reports: int
    confidence: float
    average: MergedAverage
    chance: float
    """The probability that two cohorts of one population differ so much."""
    warning: str | None
    """What to say about volunteers who are not like everybody else."""
    volunteers_statement: tuple[str, ...] = field(default=(), metadata=_UNLESS_EMPTY)
    """What was promised to volunteers, in sentences."""

    @property
    def disagree(self) -> bool:
        """Whether the sources differ beyond chance."""
        return self.chance < WARN_BELOW


def merged_average(
    one: CohortAverage, other: CohortAverage, spread: float, ends: tuple[int, int], confidence: float = 0.95
) -> MergedAverage:
    """Merge two averages of numbers between two ends."""
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    if min(one.holders, other.holders) < 1 or not math.isfinite(other.noise):
        raise InvalidSpec("both sources need people with a number: there is nothing to merge")
    variances = [cohort.noise + spread / cohort.holders for cohort in (one, other)]
    estimate, variance = weighed((one.average, variances[0], 0.0), (other.average, variances[1]))
    heavy = (variance / variances[0]) ** 2 * one.noise / variance
    error, width = math.sqrt(variance), reach(1 - confidence, heavy)
    step = ends[1] - ends[0]  # one person more at an end, and one less at the other
    weight = variance / variances[0]
    most = width * error + step * max(weight / one.holders, (1 - weight) / other.holders)
    low, high = (min(max(end, ends[0]), ends[1]) for end in (estimate - most, estimate + most))
    apart = one.average - other.average
    left = max(abs(apart) - step / one.holders - step / other.holders, 0.0)
    z = math.copysign(left, apart) / math.sqrt(sum(variances))
    errors = [math.sqrt(variance) for variance in variances]
    return MergedAverage(estimate, low, high, error, one.average, errors[0], other.average, errors[1], z)


def cautious(spread: float, one: CohortAverage, ends: tuple[float, float]) -> float:
    """Return the spread of a cohort with two people more at each end of the numbers."""
    low, high = ends
    own, people = min(max(one.average, low), high), max(one.holders, 1.0) + 4
    mean = ((people - 4) * own + 2 * (low + high)) / people
    squares = (people - 4) * (spread + (own - mean) ** 2) + 2 * (low - mean) ** 2 + 2 * (high - mean) ** 2
    return min(squares / people, (high - low) ** 2 / 4)


def averages_answer(
    found: MergedAverage, noise: float, volunteers: int, reports: int, confidence: float
) -> MergedAverages:
    """Return the answer with its warning. `noise` is the variance of the volunteers' noise."""
    chance = beyond(found.z, noise / (found.volunteers_error**2 + found.reports_error**2))
    warning = None
    if chance < WARN_BELOW:
        warning = (
            f"the two sources disagree beyond chance (probability {chance:.2g}): volunteers say "
            f"{found.volunteers:.4g} and reports say {found.reports:.4g}. Volunteers are not like everybody else here; "
            "use the reports alone"
        )
    return MergedAverages(volunteers, reports, confidence, found, chance, warning)
