"""One answer from two sources: what volunteers gave a curator, and the randomized reports of everybody else.

The question is about the population that both cohorts come from: which share holds an item? Each cohort gives a share
f with a variance of two parts, noise and sampling:

    volunteers   f_c = count / n_c       v_c = var(noise) / n_c^2 + f (1 - f) / n_c
    reports      f_l = estimate / n_l    v_l = (standard error / n_l)^2 + f (1 - f) / n_l

The merged share weighs each by the inverse of its variance; its variance is 1 / (1/v_c + 1/v_l), never above either.
For the sampling part f is the merged share of the noise alone, moved towards one half by two people on each side, so
that it is not 0 where nobody was seen.

This is right if volunteers are like everybody else. Often they are not. So for each item z = (f_c - f_l) / sqrt(v_c +
v_l), and over m items the probability that chance alone makes the largest |z| as large is at most m times that of a
normal variable (Bonferroni). Below 1% a warning says so, with this number. Nothing is then corrected: a merged answer
about two different groups is an answer about neither.

Only counts that were not chosen by their own noise are merged: a histogram or the top k, and estimates of items that
were named beforehand. The curator's list of unknown items is used as the dictionary of the local search instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from ldp_client.errors import InvalidSpec

__all__ = ["CohortCount", "MergedAnswer", "MergedRow", "merged", "of_estimates", "of_release"]

MERGEABLE = ("histogram", "top")
WARN_BELOW = 0.01
_NORMAL = NormalDist()


@dataclass(frozen=True)
class CohortCount:
    """How many people of one cohort hold an item, with the variance of the noise alone."""

    count: float
    variance: float


@dataclass(frozen=True)
class MergedRow:
    """The share of the population that holds an item, and what each source says."""

    item: str
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

    @property
    def disagree(self) -> bool:
        """Whether the sources differ beyond chance."""
        return self.chance < WARN_BELOW

    @property
    def warning(self) -> str | None:
        """What to say about volunteers who are not like everybody else."""
        if not self.disagree:
            return None
        worst = max(self.rows, key=lambda row: abs(row.z))
        return (
            f"the two sources disagree beyond chance (probability at most {self.chance:.2g}): volunteers say "
            f"{worst.volunteers:.2%} and reports say {worst.reports:.2%} about one item. Volunteers are not like "
            "everybody else here; use the reports alone"
        )


def merged(
    volunteers: Mapping[str, CohortCount],
    people: int,
    local: Mapping[str, CohortCount],
    reports: int,
    confidence: float = 0.95,
) -> MergedAnswer:
    """Merge the items that both sources have."""
    if not 0 < confidence < 1:
        raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")
    if people < 1 or reports < 1:
        raise InvalidSpec("both sources need people: there is nothing to merge")
    both = [item for item in volunteers if item in local]
    if not both:
        raise InvalidSpec("the two sources have no item in common: release and estimate the same items")
    width = _NORMAL.inv_cdf(0.5 + confidence / 2)
    rows = tuple(_row(item, volunteers[item], people, local[item], reports, width) for item in both)
    largest = max(abs(row.z) for row in rows)
    return MergedAnswer(people, reports, confidence, rows, min(1.0, len(rows) * math.erfc(largest / math.sqrt(2))))


def _row(item: str, one: CohortCount, people: int, other: CohortCount, reports: int, width: float) -> MergedRow:
    shares = (one.count / people, other.count / reports)
    noise = (one.variance / people**2, other.variance / reports**2)
    widest = (noise[0] + 0.25 / people, noise[1] + 0.25 / reports)
    rough = min(max(_weighed(shares, widest)[0], 0.0), 1.0)
    total = people + reports
    near = (rough * total + 2) / (total + 4)
    variances = (noise[0] + near * (1 - near) / people, noise[1] + near * (1 - near) / reports)
    share, variance = _weighed(shares, variances)
    error = math.sqrt(variance)
    z = (shares[0] - shares[1]) / math.sqrt(sum(variances))
    low, high = max(share - width * error, 0.0), min(share + width * error, 1.0)
    errors = (math.sqrt(variances[0]), math.sqrt(variances[1]))
    return MergedRow(item, share, low, high, error, shares[0], errors[0], shares[1], errors[1], z)


def _weighed(values: Sequence[float], variances: Sequence[float]) -> tuple[float, float]:
    weights = [1 / variance for variance in variances]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights), 1 / sum(weights)


def of_release(content: Mapping[str, Any]) -> tuple[dict[str, CohortCount], int]:
    """Return the counts of a curator's release, and its number of people."""
    if content.get("kind") not in MERGEABLE or content.get("variance") is None:
        raise InvalidSpec(
            f"only releases of the kinds {' and '.join(MERGEABLE)} are merged: other counts were chosen by their noise"
        )
    variance = float(content["variance"])
    rows = {_text(row["item"]): CohortCount(float(row["count"]), variance) for row in content["rows"]}
    return rows, int(content["people"])


def of_estimates(answer: Mapping[str, Any]) -> tuple[dict[str, CohortCount], int]:
    """Return the estimates that `ldp-server estimate --items FILE --json` prints, and the number of reports."""
    if answer.get("coverage") == "selected":
        raise InvalidSpec("these items were chosen by their estimates: ask with --items, about those of the release")
    rows = {
        _text(row["item"]): CohortCount(float(row["estimate"]), float(row["standard_error"]) ** 2)
        for row in answer["rows"]
        if row["standard_error"] is not None
    }
    return rows, int(answer["reports"])


def _text(item: Mapping[str, Any]) -> str:
    ((kind, value),) = item.items()
    return "" if kind == "none" else str(value)
