"""From what is wanted to a plan: `solve` works out the users, the epsilon or the error, whichever is not given.

Pure: no clock, disk or network. A plan takes some tens of milliseconds; heavy hitters and quantiles take some tenths of
a second the first time, and are then remembered. An epsilon is looked for on a grid of hundredths, a number of users by
following the error, which falls about as 1/sqrt(n).

What is predicted is what an answer prints at its expected counts (expected.py). Where the error depends on who holds
what, the plan says what it assumes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.heavy_hitters.planner import SketchPlan
from ldp_server.heavy_hitters.promise import BETA, least_users
from ldp_server.planning.goals import LEAST_EPSILON, MOST_EPSILON, MOST_USERS, Goal, QuestionKind
from ldp_server.planning.outlook import Outlook, assumption, list_outlook, outlook, sketch_of, smallest_share

__all__ = ["Plan", "least", "least_epsilon", "solve"]

_CENT = 100
_SLACK = 1e-9
_TINY = 1e-12


@dataclass(frozen=True)
class Plan:
    """A mechanism for a goal, and what it will tell. Errors and shares are shares of the users, but for an average."""

    goal: Goal
    solved: str
    """What was worked out: "users", "epsilon" or "error"."""
    users: int
    epsilon: str
    mechanism: str
    parameters: dict[str, int]
    within: float
    """As in goals.py."""
    standard_error: float
    low: float
    """Where an interval would end."""
    high: float
    truth: float
    """What low, high, `within` and the standard error are about."""
    smallest_share: float | None
    """Frequencies: from this share on an item is told apart from one that nobody holds, with probability 95%, if it was
    not named beforehand. Heavy hitters: from it on an item is listed with 95%. None: no share is, or not asked."""
    smallest_share_all: float | None
    """Heavy hitters: from this share on all items are listed at once, with 95%; None: none is."""
    report_bytes: int
    memory_bytes: int
    seconds: float
    """To count all reports and to estimate or decode once, at a reference speed."""
    users_for_half: int | None
    """Users for half the error; None: more than can be planned for, or there is no error."""
    days: float | None
    """Until so many reports have come, at the goal's reports a day."""
    assumes: str
    """What the error was worked out for."""

    @property
    def unit(self) -> str:
        """What errors are counted in: a part of the users, or the numbers' own unit."""
        return "" if self.goal.kind is QuestionKind.AVERAGE else "share of users"


def solve(goal: Goal) -> Plan:
    """Return the plan. With users, epsilon and error all given, it says the error that users and epsilon give."""
    if goal.users is not None and goal.epsilon is not None:
        solved, found = "error", outlook(goal, goal.users, goal.epsilon)
    elif goal.users is not None:
        solved, found = "epsilon", _least_epsilon(goal, goal.users, _wanted(goal))
    else:
        solved, found = "users", _least_users(goal, str(goal.epsilon), _wanted(goal))
    if not math.isfinite(found.within):
        raise InvalidSpec(_too_few(goal, found))
    return _plan(goal, solved, found)


def _wanted(goal: Goal) -> float:
    if goal.within is None:
        raise AssertionError("a goal has two of the three")
    return goal.within


def _too_few(goal: Goal, found: Outlook) -> str:
    """Why nothing can be promised."""
    if isinstance(found.choice, SketchPlan):
        return f"{found.users:,} users at epsilon {found.epsilon} are too few to list any item: {found.choice.promise}"
    return f"{found.users:,} users at epsilon {found.epsilon} are too few to tell {goal.kind.value}: plan for more"


def _plan(goal: Goal, solved: str, found: Outlook) -> Plan:
    choice, error, domain = found.choice, found.error, goal.domain
    listed, every = _smallest(goal, found)
    low, high = error.low, error.high
    if isinstance(domain, Integers) and goal.kind is QuestionKind.AVERAGE and not goal.change:
        low, high = max(low, float(domain.lowest)), min(high, float(domain.highest))
    return Plan(
        goal=goal,
        solved=solved,
        users=found.users,
        epsilon=Epsilon.parse(found.epsilon).text,
        mechanism=choice.mechanism,
        parameters=dict(choice.parameters),
        within=found.within,
        standard_error=error.standard_error,
        low=low,
        high=high,
        truth=error.truth,
        smallest_share=listed,
        smallest_share_all=every,
        report_bytes=choice.report_bytes,
        memory_bytes=choice.memory_bytes,
        seconds=choice.seconds,
        users_for_half=_users_for_half(goal, found),
        days=None if goal.per_day is None else found.users / goal.per_day,
        assumes=assumption(goal),
    )


def _users_for_half(goal: Goal, found: Outlook) -> int | None:
    try:
        return _least_users(goal, found.epsilon, found.within / 2).users if found.within else None
    except InvalidSpec:
        return None


def _smallest(goal: Goal, found: Outlook) -> tuple[float | None, float | None]:
    choice = found.choice
    if isinstance(choice, SketchPlan):
        every = choice.all_at_once / found.users
        return found.within, every if every <= 1 else None
    if goal.kind is not QuestionKind.FREQUENCIES:
        return None, None
    return smallest_share(goal, found), None


def _least_epsilon(goal: Goal, users: int, wanted: float) -> Outlook:
    """The least epsilon on the grid with which the error is small enough, by steps along the error's own power."""
    least, most = (round(float(end) * _CENT) for end in (LEAST_EPSILON, MOST_EPSILON))
    low, high, guess = least - 1, most + 1, _CENT
    errors: dict[int, Outlook] = {}
    while high - low > 1:
        found = errors[guess] = outlook(goal, users, _decimal(guess))
        if found.within <= wanted:
            high = guess
        else:
            low = guess
        if low == most:
            raise _unreachable(goal, users, found.within, wanted)
        if low < least or high > most:  # not yet on both sides: an error falls at least as 1/epsilon^(1/2)
            ratio = min(max(found.within / wanted, 1 / 16), 16.0)
            guess = min(max(round(guess * ratio), low + 1), high - 1)
        else:
            above, below = (math.log(max(errors[end].within, _TINY) / wanted) for end in (low, high))
            part = above / max(above - below, _TINY) if math.isfinite(above) else 0.5
            near = round(low * (high / low) ** min(max(part, 0.02), 0.98))
            guess = min(max(near, low + 1), high - 1)
    return errors[high]


def least(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """Return the least number that fits, all larger ones fitting too; None if the largest does not."""
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return high


def least_epsilon(fits: Callable[[str], bool]) -> str | None:
    """Return the least epsilon on a grid of hundredths that fits; None if the largest one does not."""
    low, high = (round(float(end) * _CENT) for end in (LEAST_EPSILON, MOST_EPSILON))
    cents = least(low, high, lambda one: fits(_decimal(one)))
    return None if cents is None else _decimal(cents)


def _unreachable(goal: Goal, users: int, within: float, wanted: float) -> InvalidSpec:
    needed = _least_users(goal, "1", wanted).users
    return InvalidSpec(
        f"{users:,} users are too few: at epsilon {MOST_EPSILON} the error is {within:.3g}, not {wanted:.3g}. "
        f"At epsilon 1 it takes {needed:,} users"
    )


def _decimal(cents: int) -> str:
    return f"{cents // _CENT}.{cents % _CENT:02d}".rstrip("0").rstrip(".")


def _least_users(goal: Goal, epsilon: str, wanted: float) -> Outlook:
    """The least number of users, to 0.5%, at which the error is small enough."""
    if goal.kind is QuestionKind.HEAVY_HITTERS:
        return _least_users_of_list(goal, epsilon, wanted)
    low, high, guess = 0, 0, _followed(1000, outlook(goal, 1000, epsilon).within, wanted)
    while not high or high - low > max(1, high // 200):
        if guess > MOST_USERS:
            raise InvalidSpec(f"an error of {wanted:.3g} takes more than {MOST_USERS:,} users at epsilon {epsilon}")
        within = outlook(goal, guess, epsilon).within
        if within <= wanted * (1 + _SLACK):
            high = guess
        else:
            low = guess
        step = _followed(guess, within, wanted)
        if not high:
            guess = max(step, low + low // 100 + 1)
        elif low < step < high:
            guess = step
        else:  # the step is where we are: look half a percent beside it, or in the middle
            guess = max(low + 1, high - max(1, high // 250)) if step >= high else (low + high) // 2
    return outlook(goal, high, epsilon)


def _followed(users: int, error: float, wanted: float) -> int:
    """Where an error that falls as 1/sqrt(n) would be small enough."""
    ratio = min(max(error / wanted, 1e-3), 1e6) if math.isfinite(error) else 8.0
    return max(1, math.ceil(users * ratio**2))


def _least_users_of_list(goal: Goal, epsilon: str, share: float) -> Outlook:
    if share > 1:
        raise InvalidSpec("for heavy hitters the error is the smallest share that is listed, at most 1")
    found = list_outlook(goal, 1_000_000, epsilon)
    plan = found.choice
    if not isinstance(plan, SketchPlan):
        raise AssertionError("a plan of heavy hitters is a sketch")
    sketch = sketch_of(goal, found)
    users = least_users(sketch, plan.decoder, math.log(goal.domain.size), BETA, share)
    if users > MOST_USERS:
        raise InvalidSpec(f"listing items of that share takes more than {MOST_USERS:,} users at epsilon {epsilon}")
    return list_outlook(goal, users, epsilon)
