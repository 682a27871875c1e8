"""A plan in sentences: what will be learned, what it costs, and what more would take."""

from __future__ import annotations

import math

from ldp_client.collection import Schedule
from ldp_client.privacy.information import best_guess
from ldp_server.planning.goals import QuestionKind
from ldp_server.planning.planner import Plan

__all__ = ["plan_in_words", "share_in_words"]


def plan_in_words(plan: Plan, schedule: Schedule | None = None, window: float = math.inf) -> tuple[str, ...]:
    """Return the sentences, the error first. `window` is for how many seconds reports are taken."""
    seconds = window if schedule is None else schedule.period_seconds
    found = [_error(plan), *_smallest(plan), *_more(plan), *_short(plan, seconds), _cost(plan), _privacy(plan)]
    if schedule is not None:
        found.append(
            f"This is about one period of the schedule. All {schedule.reports} reports of a person together cost "
            f"{schedule.reports} times epsilon."
        )
    return tuple(found)


def share_in_words(share: float) -> str:
    """Write a share of the users as a percentage with two digits that count."""
    percent = 100 * share
    digits = max(0, 1 - math.floor(math.log10(percent))) if percent > 0 else 0
    return f"{percent:.{min(digits, 12)}f}%"


def _error(plan: Plan) -> str:
    start = f"With {plan.users:,} reports at epsilon = {plan.epsilon}, "
    percent = f"{plan.goal.confidence * 100:.6g}%"
    if plan.goal.kind is QuestionKind.HEAVY_HITTERS:
        return (
            f"{start}an item that {share_in_words(plan.within)} of the users hold is listed with probability 95%. The "
            f"standard error of its share is {share_in_words(plan.standard_error)}."
        )
    what = {
        QuestionKind.FREQUENCIES: "the share of an item",
        QuestionKind.AVERAGE: "the average",
        QuestionKind.QUANTILES: "the share of numbers at or below a quantile",
        QuestionKind.RANGES: "the share of numbers in a range",
        QuestionKind.ATTRIBUTES: "the share of an attribute",
        QuestionKind.PAIRS: "the share of a pair of attributes",
    }[plan.goal.kind]
    if plan.goal.change:
        what = f"the change of {what.removeprefix('the ')} between two periods"
    if plan.unit:
        error = f"+- {share_in_words(plan.within)} of the users"
        spread = share_in_words(plan.standard_error)
    else:
        error, spread = f"+- {plan.within:.3g}", f"{plan.standard_error:.3g}"
    return f"{start}{what} is known to {error} ({percent} interval; standard error {spread}), {plan.assumes}."


def _smallest(plan: Plan) -> list[str]:
    if plan.goal.kind is QuestionKind.HEAVY_HITTERS:
        if plan.smallest_share_all is None:
            return ["There are too few users to list all items above a share at once."]
        return [f"All items above {share_in_words(plan.smallest_share_all)} are listed at once, with probability 95%."]
    if plan.goal.kind is not QuestionKind.FREQUENCIES or plan.goal.change:
        return []
    if plan.smallest_share is None:
        return ["No share of an item is large enough to tell it from an item that nobody holds."]
    return [
        f"The smallest share that is told apart from none, without naming the item beforehand, is "
        f"{share_in_words(plan.smallest_share)}."
    ]


def _more(plan: Plan) -> list[str]:
    found, rate = [], plan.goal.per_day
    what = "that share" if plan.goal.kind is QuestionKind.HEAVY_HITTERS else "this error"
    if plan.days is not None:
        found.append(f"At {rate:,.6g} reports a day that takes {_days(plan.days)}.")
    if plan.users_for_half is None:
        return [*found, f"Half {what} is out of reach."]
    half = f"Half {what} takes {plan.users_for_half:,} reports"
    if rate is not None:
        half += f", {_days(plan.users_for_half / rate)} at this rate"
    return [*found, half + "."]


def _short(plan: Plan, seconds: float) -> list[str]:
    """Say so if the window or the period ends before so many reports have come."""
    if plan.days is None or plan.goal.per_day is None or plan.days * 86_400 <= seconds:
        return []
    expected = plan.goal.per_day * seconds / 86_400
    return [
        f"Careful: reports are taken for {_days(seconds / 86_400)}. At this rate about {expected:,.0f} will come, "
        "fewer than planned: take them for longer, or plan for fewer."
    ]


def _days(days: float) -> str:
    whole = max(1, math.ceil(days))
    return f"{whole:,} day{'s' if whole > 1 else ''}"


def _cost(plan: Plan) -> str:
    seconds = f"about {plan.seconds:.2g} seconds" if plan.seconds >= 0.01 else "less than 0.01 seconds"
    size = f"{plan.report_bytes} byte{'s' if plan.report_bytes > 1 else ''}"
    return (
        f"A report has {size}. Counting all of them and answering once takes {seconds} of one core and "
        f"{max(1, round(plan.memory_bytes / 1e6)):,} MB."
    )


def _privacy(plan: Plan) -> str:
    guess = math.ceil(best_guess(plan.epsilon, 0.5) * 1000) / 10
    return (
        f"Whoever believed a fact about a user with probability 50% believes it with at most {guess:.1f}% after seeing "
        "the user's report, whatever else they know."
    )
