"""What a share of volunteers is worth, before anybody is asked: the plan's promise with both sources merged.

Of n users a share v gives raw answers to a curator, who publishes a release at an epsilon of its own, and the others
report. The merged answer is about the population that both come from, so each source has the variance of its noise and
that of drawing so few or so many people (ldp_server/answers/merging/cohorts.py). What is planned is what a merged
answer prints at its expected counts, with the laws of the curator's noise:

    frequencies   a histogram of two items or more: scale 2 / epsilon for each count
    tables        every cell of m tables: scale 2 m / epsilon; for a cell that half of the users are in, because the
                  chance of drawing them is largest there
    average       a sum of numbers over their count (ldp_server/curator/workloads/average.py has the scales), for the
                  numbers with the largest error: half at each end of the range, and noise as for an average at an end

The variance of the reports' noise falls with their number, at the same mechanism. `worth` says how many reports a
volunteer replaces: as many reports as make the merged error are n (alone / merged)^2, of which (1 - v) n are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers, Item
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.merging.averages import CohortAverage, merged_average
from ldp_server.answers.merging.cohorts import CohortCount, merged
from ldp_server.oracles.base import two_sided
from ldp_server.planning.goals import QuestionKind
from ldp_server.planning.planner import Plan
from ldp_server.planning.promise import share_in_words

__all__ = [
    "FEWEST_VOLUNTEERS",
    "VolunteersOutlook",
    "VolunteersWish",
    "outlook_of_plan",
    "outlook_of_tables",
    "release_variance",
    "volunteer_shares",
    "volunteers_in_words",
]

FEWEST_VOLUNTEERS = 10
_ITEM = "item"
_MOST = 20


@dataclass(frozen=True)
class VolunteersWish:
    """Which shares of volunteers are looked at, and at which price of a release; None: that of a report."""

    shares: tuple[float, ...]
    epsilon: str | None = None

    @classmethod
    def of_options(cls, volunteers: str | None, epsilon: str | None) -> VolunteersWish | None:
        """Read the options --volunteers and --volunteer-epsilon."""
        if volunteers is None:
            if epsilon is not None:
                raise InvalidSpec("--volunteer-epsilon goes with --volunteers: which share of the users volunteers?")
            return None
        return cls(volunteer_shares(volunteers), epsilon)


@dataclass(frozen=True)
class VolunteersOutlook:
    """What is known if a share of the users volunteers. Errors are half intervals, in the plan's own unit."""

    share: float
    volunteers: int
    epsilon: str
    """Of the curator's release."""
    alone: float
    """If everybody reported."""
    volunteers_alone: float
    within: float
    """Of both together."""
    worth: float
    """How many reports a volunteer replaces."""


def volunteer_shares(text: str) -> tuple[float, ...]:
    """Read shares of the users, such as "0.01,0.05"."""
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = (math.nan,)
    if len(found) > _MOST or not all(0 < share < 1 for share in found):
        raise InvalidSpec(f"--volunteers: up to {_MOST} shares of the users, between 0 and 1, such as 0.01,0.05")
    return found


def release_variance(scale: float) -> float:
    """Return the variance of a discrete Laplace draw: 2 q / (1 - q)^2 with q = e^(-1 / scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


Errors = Callable[[int, int], tuple[float, float, float]]
"""From so many volunteers and reports to the standard errors of the volunteers, the reports, and both."""


def outlook_of_plan(plan: Plan, shares: Sequence[float], epsilon: str) -> tuple[VolunteersOutlook, ...]:
    """Return the outlook of a plan of frequencies or of an average, for each share of volunteers."""
    goal, price = plan.goal, _price(epsilon)
    if goal.change:
        raise InvalidSpec("--volunteers: a change between two periods is not merged with volunteers")
    if goal.kind is QuestionKind.FREQUENCIES:
        errors = _of_share(plan.truth, plan.standard_error**2 * plan.users, release_variance(2 / price))
    elif goal.kind is QuestionKind.AVERAGE and isinstance(goal.domain, Integers):
        if goal.missing:
            raise InvalidSpec("--volunteers: an average is planned with volunteers where everybody has a number")
        errors = _of_average(goal.domain, plan.standard_error**2 * plan.users, price)
    else:
        raise InvalidSpec(
            f"--volunteers: a curator's release is merged with frequencies, tables and averages, not with "
            f"{goal.kind.value}"
        )
    return _outlooks(plan.users, goal.confidence, errors, shares, epsilon)


def outlook_of_tables(
    tables: int, per_user: float, users: int, confidence: float, shares: Sequence[float], epsilon: str
) -> tuple[VolunteersOutlook, ...]:
    """Return the outlook of the cell with the largest error. `per_user`: the variance of its count over the reports."""
    errors = _of_share(0.5, per_user, release_variance(2 * tables / _price(epsilon)))
    return _outlooks(users, confidence, errors, shares, epsilon)


def _price(epsilon: str) -> float:
    return float(Epsilon.parse(epsilon).value)


def _of_share(share: float, per_user: float, noise: float) -> Errors:
    def errors(volunteers: int, reports: int) -> tuple[float, float, float]:
        one: dict[Item, CohortCount] = {_ITEM: CohortCount(share * volunteers, noise)}
        other: dict[Item, CohortCount] = {_ITEM: CohortCount(share * reports, per_user * reports)}
        (row,) = merged(one, volunteers, other, reports).rows
        return row.volunteers_error, row.reports_error, row.standard_error

    return errors


def _of_average(domain: Integers, per_user: float, price: float) -> Errors:
    width = domain.count - 1
    variances = [release_variance(scale / price) for scale in (4, 2 * width)]
    spread, middle = width * width / 4, domain.lowest + width / 2

    def errors(volunteers: int, reports: int) -> tuple[float, float, float]:
        noise = (variances[1] + width * width * variances[0]) / volunteers**2 / 4
        one = CohortAverage(middle, noise, volunteers)
        other = CohortAverage(middle, per_user / reports, reports)
        found = merged_average(one, other, spread, (domain.lowest, domain.highest))
        return found.volunteers_error, found.reports_error, found.standard_error

    return errors


def _outlooks(
    users: int, confidence: float, errors: Errors, shares: Sequence[float], epsilon: str
) -> tuple[VolunteersOutlook, ...]:
    few = [share for share in shares if round(share * users) < FEWEST_VOLUNTEERS or round(share * users) >= users]
    if few:
        raise InvalidSpec(
            f"--volunteers: of {users:,} users a share of {few[0]:g} leaves fewer than {FEWEST_VOLUNTEERS} volunteers, "
            "or nobody who reports"
        )
    reach, found = two_sided(confidence), []
    for share in shares:
        volunteers = round(share * users)
        first, _, both = errors(volunteers, users - volunteers)
        alone = errors(FEWEST_VOLUNTEERS, users)[1]
        worth = (users * (alone / both) ** 2 - (users - volunteers)) / volunteers
        found.append(VolunteersOutlook(share, volunteers, epsilon, reach * alone, reach * first, reach * both, worth))
    return tuple(found)


def volunteers_in_words(found: Sequence[VolunteersOutlook], *, shares: bool, about: str = "") -> tuple[str, ...]:
    """Return the sentences of a promise. `shares`: whether errors are shares of the users. `about`: of which item."""

    def said(error: float) -> str:
        return f"{share_in_words(error)} of the users" if shares else f"{error:.3g}"

    lines = [
        f"If {share_in_words(one.share)} of them ({one.volunteers:,}) volunteer to a curator at epsilon = "
        f"{one.epsilon} and the others report, both together know it to +- {said(one.within)}, instead of +- "
        f"{said(one.alone)} if everybody reported; volunteers alone to +- {said(one.volunteers_alone)}. A volunteer is "
        f"worth {one.worth:,.3g} reports."
        for one in found
    ]
    if lines:
        lines.append(
            f"What is said with volunteers is about the population that all come from, with the chance of drawing them"
            f"{about}, and holds if volunteers are like everybody else."
        )
    return tuple(lines)
