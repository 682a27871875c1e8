"""From a workload of tables to a question's file, with what it will tell.

Two of users, epsilon and error are given; the third is worked out. The error is half an interval of a cell that few
users are in, as a share of the users, for the table of the workload that is known least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ldp_client.collection import Collection, Details
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.base import two_sided
from ldp_server.planning.drafts import question_file
from ldp_server.planning.goals import MOST_EPSILON, MOST_USERS
from ldp_server.planning.planner import least_epsilon
from ldp_server.planning.promise import share_in_words
from ldp_server.planning.tables import TablesDesign, design_tables, tables_of
from ldp_server.planning.volunteers import VolunteersOutlook, VolunteersWish, outlook_of_tables, volunteers_in_words

__all__ = ["TablesDraft", "TablesGoal", "draft_tables"]

_UNSEEN, _CLEAR = 0.5, 0.25
_LARGEST = ", for a cell that half of the users are in (others are known better)"


@dataclass(frozen=True)
class TablesGoal:
    """Which tables are to be known, and two of the three numbers."""

    record: Record
    workload: str | tuple[tuple[str, ...], ...]
    """"singles", "pairs", or the names of each table's fields."""
    users: int | None = None
    epsilon: str | None = None
    within: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.users, self.epsilon, self.within)) != 2:
            raise InvalidSpec("a plan of tables needs two of users, epsilon and the error; it works out the third")
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.within is not None and not (math.isfinite(self.within) and self.within > 0):
            raise InvalidSpec("the error is a number above 0, such as 0.01")


@dataclass(frozen=True)
class TablesDraft:
    """The file of a question about records that is not asked yet, and what will be learned from it."""

    text: str
    promise: tuple[str, ...]
    users: int
    epsilon: str
    within: float
    """Half an interval of a cell that few users are in, of the table that is known least, as a share of the users."""
    form: str
    compared: dict[str, float]
    """The standard error of each form that was compared, averaged over the workload, as a share of the users."""
    collection: Collection = field(metadata={"json": "never"})
    volunteers: tuple[VolunteersOutlook, ...] = field(default=(), metadata={"json": "unless empty"})
    """What is known with so many volunteers, if that was asked."""


def draft_tables(
    question: str, goal: TablesGoal, volunteers: VolunteersWish | None = None, **details: object
) -> TablesDraft:
    """Plan a question about records and write its file; `details` are those of `Collection.create`."""
    users, epsilon, designs = _solved(goal)
    both = () if volunteers is None else _with_volunteers(goal, volunteers, users, epsilon, designs[0])
    best, within = designs[0], _reach(goal, designs[0], users)
    _check_seen(users, epsilon, within)
    known: Details = {**details, "parameters": best.parameters}  # type: ignore[typeddict-item]  # checked by create
    collection = Collection.create(question, goal.record, "sampled-table", epsilon, **known)
    promise = tuple(_sentences(goal, designs, users, epsilon, within, collection))
    promise += volunteers_in_words(both, shares=True, about=_LARGEST)
    text = question_file(collection, promise)
    compared = {one.form: one.standard_error(users) for one in designs}
    return TablesDraft(text, promise, users, epsilon, within, best.form, compared, collection, both)


def _with_volunteers(
    goal: TablesGoal, wish: VolunteersWish, users: int, epsilon: str, design: TablesDesign
) -> tuple[VolunteersOutlook, ...]:
    """The outlook of the table that is known least; the curator releases all tables of the workload."""
    tables = len(tables_of(goal.record, goal.workload))
    price = wish.epsilon or epsilon
    return outlook_of_tables(tables, design.worst_per_user, users, goal.confidence, wish.shares, price)


def _reach(goal: TablesGoal, design: TablesDesign, users: int) -> float:
    return two_sided(goal.confidence) * math.sqrt(design.worst_per_user / users)


def _check_seen(users: int, epsilon: str, within: float) -> None:
    """Refuse a workload that tells nothing: half of an interval is as long as half of all users."""
    if within >= _UNSEEN:
        raise InvalidSpec(
            f"{users:,} users are too few for these tables at epsilon {epsilon}: a cell that half of them are in could "
            f"not be told from an empty one. It takes {_users_for(users, within, _UNSEEN):,} users; fewer tables, "
            "coarser fields or a larger epsilon take fewer"
        )


def _users_for(users: int, within: float, wanted: float) -> int:
    """So many users have an error below the wanted one, if these users have the error `within`."""
    return math.floor(users * (within / wanted) ** 2) + 1


def _designs(goal: TablesGoal, epsilon: str) -> list[TablesDesign]:
    return design_tables(goal.record, epsilon, goal.workload)


def _solved(goal: TablesGoal) -> tuple[int, str, list[TablesDesign]]:
    if goal.epsilon is not None:
        epsilon = Epsilon.parse(goal.epsilon).text
        designs = _designs(goal, epsilon)
        users = goal.users
        if users is None:
            wanted = two_sided(goal.confidence) ** 2 * designs[0].worst_per_user / (goal.within or 1.0) ** 2
            users = max(1, math.ceil(wanted))
        if users > MOST_USERS:
            raise InvalidSpec(f"this error takes more than {MOST_USERS:,} users at epsilon {epsilon}")
        return users, epsilon, designs
    return _least_epsilon(goal, goal.users or 1, goal.within or 1.0)


def _least_epsilon(goal: TablesGoal, users: int, within: float) -> tuple[int, str, list[TablesDesign]]:
    """The least epsilon on a grid of hundredths with which the error is small enough."""
    epsilon = least_epsilon(lambda one: _reach(goal, _designs(goal, one)[0], users) <= within)
    if epsilon is None:
        at_one = _designs(goal, "1")[0].worst_per_user
        needed = math.ceil(two_sided(goal.confidence) ** 2 * at_one / within**2)
        raise InvalidSpec(
            f"{users:,} users are too few for these tables, even at epsilon {MOST_EPSILON}. At epsilon 1 it takes "
            f"{needed:,} users; fewer tables or coarser fields take fewer"
        )
    return users, epsilon, _designs(goal, epsilon)


def _sentences(
    goal: TablesGoal, designs: Sequence[TablesDesign], users: int, epsilon: str, within: float, made: Collection
) -> Iterable[str]:
    best, percent = designs[0], f"{goal.confidence * 100:.6g}%"
    error = best.standard_error(users)
    yield (
        f"With {users:,} reports at epsilon = {epsilon}, the share of users in a cell is known to +- "
        f"{share_in_words(within)} of the users in the table that is known least ({percent} interval), for users who "
        "are spread evenly over its cells. A cell that most users are in may be known less well. The standard error, "
        f"averaged over all tables, is {share_in_words(error)}."
    )
    if error * goal.record.size > 1 and within > _CLEAR:
        needed = _users_for(users, within, _CLEAR), _users_for(users, error, 1 / goal.record.size)
        yield f"Careful: this is too few users to tell most cells from empty ones. It takes {min(needed):,}."
    for other in designs[1:]:
        yield f"If asked as {other.form}, it would be {share_in_words(other.standard_error(users))}."
    drawn = ", ".join(f"{name} {float(chance):.0%}" for name, chance in made.randomizer.parts)
    number = len(best.parameters["tables"])
    asked = "answers the one table" if number == 1 else f"draws one of {number} tables ({best.form}) and answers it"
    size = made.randomizer.report_bytes
    yield f"Each device {asked}. How often each field: {drawn}."
    yield f"Half this error takes {4 * users:,} reports. A report has {size} byte{'s' * (size > 1)}."
