"""From a table whose averages are wanted to a question's file, with what it will tell.

Two of users, epsilon and error are given; the third is worked out. The error is half an interval of the average in a
cell with a planned share of the users, in the number's own unit, for the numbers for which it is largest: all users of
the cell at one end of the range, or, at a large epsilon, all of them in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ldp_client.collection import Collection, Details
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.averaged_table import AveragedTable, design
from ldp_client.protocol.domain import Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.oracles.records.averages import FOR_THE_COUNT, CellLaw
from ldp_server.planning.drafts import question_file
from ldp_server.planning.goals import MOST_EPSILON, MOST_USERS
from ldp_server.planning.planner import least_epsilon
from ldp_server.planning.promise import share_in_words

__all__ = ["AveragesDraft", "AveragesGoal", "draft_averages"]


@dataclass(frozen=True)
class AveragesGoal:
    """Which number is averaged in the cells of which fields, and two of the three numbers."""

    record: Record
    number: str
    """The field that is averaged; all others are the table."""
    users: int | None = None
    epsilon: str | None = None
    within: float | None = None
    confidence: float = 0.95
    share: float | None = None
    """The part of all users who are in the cell that is planned for. None: as if all cells had as many."""

    def __post_init__(self) -> None:
        if self.number not in self.record.names:
            raise InvalidSpec(f"the number to average is one of the fields: {', '.join(self.record.names)}")
        if not isinstance(self.range, Integers) or self.range.count < 2:
            raise InvalidSpec(f'{self.number!r} is no number: give it a range, such as --field "{self.number}: 0..100"')
        if sum(one is not None for one in (self.users, self.epsilon, self.within)) != 2:
            raise InvalidSpec("a plan of averages needs two of users, epsilon and the error; it works out the third")
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.within is not None and not (math.isfinite(self.within) and self.within > 0):
            raise InvalidSpec("the error is a number above 0, in the unit of the number")
        if self.share is not None and not 0 < self.share <= 1:
            raise InvalidSpec("a share lies above 0 and is at most 1, such as 0.05")
        if not 0 < self.confidence < 1:
            raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")

    @property
    def range(self) -> object:
        """The domain of the number's field."""
        return self.record.fields[self.record.names.index(self.number)].domain

    @property
    def reach(self) -> int:
        """How far the highest number is from the lowest."""
        return self.range.count - 1 if isinstance(self.range, Integers) else 0

    @property
    def cells(self) -> Record:
        return self.record.part(name for name in self.record.names if name != self.number)

    @property
    def planned_share(self) -> float:
        """The share that was given; else that of one cell, if all have as many users and every field has an answer."""
        if self.share is not None:
            return self.share
        kinds = [one.domain for one in self.cells.fields]
        return 1 / math.prod(one.size - (not (isinstance(one, YesNo) and one.none_is_no)) for one in kinds)


@dataclass(frozen=True)
class AveragesDraft:
    """The file of a question for averages that is not asked yet, and what will be learned from it."""

    text: str
    promise: tuple[str, ...]
    users: int
    epsilon: str
    within: float
    """Half an interval of the average in a cell with the planned share, in the number's unit."""
    share: float
    parameters: Mapping[str, int]
    collection: Collection = field(metadata={"json": "never"})


def draft_averages(question: str, goal: AveragesGoal, **details: object) -> AveragesDraft:
    """Plan a question for averages and write its file; `details` are those of `Collection.create`."""
    users, epsilon = _solved(goal)
    parameters, within = design(epsilon, goal.record, goal.number), _reach(goal, users, epsilon)
    known: Details = {**details, "parameters": parameters}  # type: ignore[typeddict-item]  # checked by create
    collection = Collection.create(question, goal.record, "averaged-table", epsilon, **known)
    promise = tuple(_sentences(goal, users, within, collection))
    text = question_file(collection, promise)
    return AveragesDraft(text, promise, users, epsilon, within, goal.planned_share, parameters, collection)


def _errors(goal: AveragesGoal) -> float:
    """How many standard errors the interval of an average reaches: a part of its error is for the number of users."""
    return normal_quantile((1 - goal.confidence) / 2 * (1 - FOR_THE_COUNT))


def _per_user(goal: AveragesGoal, epsilon: str) -> float:
    """The largest variance of the average, as a part of the range, times the users."""
    made = AveragedTable(Epsilon(epsilon), goal.record, **design(epsilon, goal.record, goal.number))
    law, f = CellLaw.of(made.inner), np.full(3, goal.planned_share)
    errors = law.deviations(np.array([0.0, 0.5, 1.0]), f, 1.0) / (law.gap * goal.planned_share)
    return float(np.max(errors) ** 2)


def _reach(goal: AveragesGoal, users: int, epsilon: str) -> float:
    whole = _errors(goal) * math.sqrt(_per_user(goal, epsilon) / users)
    return goal.reach * min(1.0, whole)


def _solved(goal: AveragesGoal) -> tuple[int, str]:
    z = _errors(goal)
    if goal.epsilon is None:
        return goal.users or 1, _least_epsilon(goal, goal.users or 1, goal.within or 1.0)
    epsilon = Epsilon.parse(goal.epsilon).text
    if goal.users is not None:
        return goal.users, epsilon
    users = max(1, math.ceil((z * goal.reach / (goal.within or 1.0)) ** 2 * _per_user(goal, epsilon)))
    if users > MOST_USERS:
        raise InvalidSpec(f"this error takes more than {MOST_USERS:,} users at epsilon {epsilon}")
    return users, epsilon


def _least_epsilon(goal: AveragesGoal, users: int, within: float) -> str:
    """The least epsilon on a grid of hundredths with which the error is small enough."""
    found = least_epsilon(lambda one: _reach(goal, users, one) <= within)
    if found is None:
        needed = math.ceil((_errors(goal) * goal.reach / within) ** 2 * _per_user(goal, "1"))
        raise InvalidSpec(
            f"{users:,} users are too few for this error, even at epsilon {MOST_EPSILON}. At epsilon 1 it takes "
            f"{needed:,} users; fewer cells or a narrower range take fewer"
        )
    return found


def _sentences(goal: AveragesGoal, users: int, within: float, made: Collection) -> Iterable[str]:
    percent, share = f"{goal.confidence * 100:.6g}%", share_in_words(goal.planned_share)
    cells = goal.cells.size
    yield (
        f"With {users:,} reports at epsilon = {made.epsilon.text}, the average of {goal.number} in a cell with {share} "
        f"of the users is known to +- {within:,.4g} ({percent} interval) on a range of {goal.reach:,}."
    )
    if within > goal.reach / 4:
        yield "Careful: this says little about such a cell. Take more users, fewer cells or a narrower range."
    yield (
        f"The table has {cells:,} cells. A cell with a tenth of these users is known ten times less well, and of one "
        "with far fewer nothing is told."
    )
    size = made.randomizer.report_bytes
    yield f"Half this error takes {4 * users:,} reports. A report has {size} byte{'s' if size > 1 else ''}."
