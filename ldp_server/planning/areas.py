"""From a map to a question's file, with what it will tell.

Two of users, epsilon and error are given; the third is worked out. The sizes of the grids follow from users and
epsilon. The error is half an interval of one tile of the map that few users are in, as a share of the users: an upper
bound, before columns and rows help. It falls as users or epsilon grow, also where the grids get finer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ldp_client.collection import Collection, Details
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.records.sampled_grid import SampledGrid, design
from ldp_client.protocol.domain import Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.base import two_sided
from ldp_server.planning.drafts import question_file
from ldp_server.planning.goals import MOST_EPSILON, MOST_USERS
from ldp_server.planning.planner import least, least_epsilon
from ldp_server.planning.promise import share_in_words

__all__ = ["AreasDraft", "AreasGoal", "draft_areas"]


@dataclass(frozen=True)
class AreasGoal:
    """The two numbers of a map, and two of the three numbers of a plan."""

    record: Record
    users: int | None = None
    epsilon: str | None = None
    within: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if len(self.record.fields) != 2 or not all(isinstance(one.domain, Integers) for one in self.record.fields):
            raise InvalidSpec('a map has two fields of integers, such as --field "x: 0..255" --field "y: 0..255"')
        if sum(one is not None for one in (self.users, self.epsilon, self.within)) != 2:
            raise InvalidSpec("a plan of a map needs two of users, epsilon and the error; it works out the third")
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.within is not None and not (math.isfinite(self.within) and self.within > 0):
            raise InvalidSpec("the error is a number above 0, such as 0.01")
        if not 0 < self.confidence < 1:
            raise InvalidSpec("confidence lies strictly between 0 and 1, such as 0.95")


@dataclass(frozen=True)
class AreasDraft:
    """The file of a question for a map that is not asked yet, and what will be learned from it."""

    text: str
    promise: tuple[str, ...]
    users: int
    epsilon: str
    within: float
    """Half an interval of a tile that few users are in, as a share of the users."""
    parameters: Mapping[str, int]
    collection: Collection = field(metadata={"json": "never"})


def draft_areas(question: str, goal: AreasGoal, **details: object) -> AreasDraft:
    """Plan a question for a map and write its file; `details` are those of `Collection.create`."""
    users, epsilon = _solved(goal)
    parameters, within = design(epsilon, goal.record, users), _reach(goal, users, epsilon)
    known: Details = {**details, "parameters": parameters}  # type: ignore[typeddict-item]  # checked by create
    collection = Collection.create(question, goal.record, "sampled-grid", epsilon, **known)
    promise = tuple(_sentences(goal, users, within, collection))
    text = question_file(collection, promise)
    return AreasDraft(text, promise, users, epsilon, within, parameters, collection)


def _reach(goal: AreasGoal, users: int, epsilon: str) -> float:
    made = SampledGrid(Epsilon(epsilon), goal.record, **design(epsilon, goal.record, users))
    response = made.responses[2]
    if isinstance(response, LinearHash):
        p, s = (float(one) for one in response.support)
    else:
        p, s = float(response.response.p), float(response.response.q)
    per_user = s * (1 - s) / (p - s) ** 2 / float(made.chance(2))
    return min(1.0, two_sided(goal.confidence) * math.sqrt(per_user / users))


def _solved(goal: AreasGoal) -> tuple[int, str]:
    within = goal.within or 1.0
    if goal.epsilon is not None:
        epsilon = Epsilon.parse(goal.epsilon).text
        if goal.users is not None:
            return goal.users, epsilon
        users = least(1, MOST_USERS, lambda n: _reach(goal, n, epsilon) <= within)
        if users is None:
            raise InvalidSpec(f"this error takes more than {MOST_USERS:,} users at epsilon {epsilon}")
        return users, epsilon
    users = goal.users or 1
    found = least_epsilon(lambda one: _reach(goal, users, one) <= within)
    if found is None:
        needed = least(1, MOST_USERS, lambda n: _reach(goal, n, "1") <= within)
        known = "more than can be planned for" if needed is None else f"{needed:,}"
        raise InvalidSpec(
            f"{users:,} users are too few for this error, even at epsilon {MOST_EPSILON}. At epsilon 1 it takes {known}"
        )
    return users, found


def _sentences(goal: AreasGoal, users: int, within: float, made: Collection) -> Iterable[str]:
    grid = made.randomizer
    sizes = grid.parameters()
    percent = f"{goal.confidence * 100:.6g}%"
    yield (
        f"With {users:,} reports at epsilon = {made.epsilon.text}, the share of users in a tile of the map that few "
        f"are in is known to +- {share_in_words(within)} of the users ({percent} interval), or better."
    )
    yield (
        f"The map has {sizes['across']} by {sizes['down']} tiles, for areas along their sides. "
        f"{sizes['columns']} columns and {sizes['rows']} rows are counted besides, for areas over the whole map."
    )
    yield "The interval of an area that cuts tiles holds wherever the users of these tiles are, and is wider for it."
    if within > 1 / 8:
        yield "Careful: this is too few users to tell most tiles from empty ones."
    length = grid.report_bytes
    yield f"With four times as many reports the tiles get finer too. A report has {length} byte{'s' * (length > 1)}."
