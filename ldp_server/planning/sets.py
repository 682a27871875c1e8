"""From a list of items and the sizes of the users' sets to a question's file, with what it will tell.

Two of users, epsilon and error are given; the third is worked out. The error is that of an item with a planned share f
of the users, as a share of the users. It has two parts:

    noise    half an interval of the item's estimate, from the exact variance of the best d
    cut      f times the part of all holdings that are lost because sets larger than m are cut

A larger m costs noise, a smaller one cuts more. With few users noise decides, with many the cut. Of users with s > m
items each item stays with probability (m-1)/s, so s - m + 1 of s holdings are lost. The plan takes the m with the least
sum of the two parts, if `most` is not given. It assumes that of all holdings that are lost, as large a part are of the
planned item as of all holdings. The answer bounds what was lost without this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ldp_client.collection import Collection, Details
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.set_selection import MAX_ELEMENTS, SetSelection, design
from ldp_client.protocol.domain import Sets
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.base import binomial_variance
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.planning.drafts import question_file
from ldp_server.planning.goals import MOST_EPSILON, MOST_USERS
from ldp_server.planning.planner import least, least_epsilon
from ldp_server.planning.promise import share_in_words

__all__ = ["Choice", "SetsDraft", "SetsGoal", "draft_sets"]

_LARGEST_MOST = 20
"""Where it is free, `most` is not larger than this: the noise grows with it."""
_SHOWN = 4


@dataclass(frozen=True)
class Choice:
    """What one choice of `most` costs; shares of the users."""

    most: int
    noise: float
    """Half an interval of the planned item."""
    cut: float
    """How much the planned item is short because sets are cut."""
    cut_users: float
    """The users whose sets are cut."""

    @property
    def error(self) -> float:
        return self.noise + self.cut


@dataclass(frozen=True)
class SetsGoal:
    """Which items are asked about, how many of them users hold, and two of the three numbers."""

    names: tuple[str, ...]
    sizes: Mapping[int, float] = field(default_factory=dict)
    """How many users hold so many items, in any unit. Empty: nobody holds more than `most`."""
    most: int | None = None
    users: int | None = None
    epsilon: str | None = None
    within: float | None = None
    confidence: float = 0.95
    share: float = 0.1
    """The part of the users who hold the planned item."""

    def __post_init__(self) -> None:
        Sets(self.names, 2 if self.most is None else self.most)  # says what is wrong with either
        if not self.sizes and self.most is None:
            raise InvalidSpec(
                "a plan of sets needs the sizes of the users' sets, such as 0:20, 1:30, 2:30, 5:20, or `most`, where "
                "nobody can hold more items"
            )
        for size in self.sizes:
            if not 0 <= size <= len(self.names):
                raise InvalidSpec(f"nobody can hold {size} items: {len(self.names)} are listed")
        if self.sizes and not (
            all(math.isfinite(weight) and weight >= 0 for weight in self.sizes.values())
            and any(size and weight for size, weight in self.sizes.items())
        ):
            raise InvalidSpec("the weights of sizes are at least 0, and some users hold an item")
        if sum(one is not None for one in (self.users, self.epsilon, self.within)) != 2:
            raise InvalidSpec("a plan of sets needs two of users, epsilon and the error; it works out the third")
        if self.users is not None and not 1 <= self.users <= MOST_USERS:
            raise InvalidSpec(f"users are a whole number from 1 to {MOST_USERS:,}")
        if self.within is not None and not (math.isfinite(self.within) and 0 < self.within < 1):
            raise InvalidSpec("the error is a share of the users between 0 and 1, such as 0.01")
        if not 0 < self.share < 1 or not 0 < self.confidence < 1:
            raise InvalidSpec("a share and a confidence lie strictly between 0 and 1, such as 0.1 and 0.95")

    @cached_property
    def limits(self) -> range:
        """The choices of `most`."""
        if self.most is not None:
            return range(self.most, self.most + 1)
        largest = max(size for size, weight in self.sizes.items() if weight)
        room = MAX_ELEMENTS - 1 - len(self.names)
        return range(2, max(2, min(largest, len(self.names), room, _LARGEST_MOST)) + 1)

    def lost(self, most: int) -> tuple[float, float]:
        """Return the part of the users whose sets are cut, and the part of all holdings that are lost."""
        users = math.fsum(self.sizes.values())
        held = math.fsum(size * weight for size, weight in self.sizes.items())
        cut = {size: weight for size, weight in self.sizes.items() if size > most}
        if not cut:
            return 0.0, 0.0
        lost = math.fsum((size - most + 1) * weight for size, weight in cut.items())
        return math.fsum(cut.values()) / users, lost / held


@dataclass(frozen=True)
class SetsDraft:
    """The file of a question about sets that is not asked yet, and what will be learned from it."""

    text: str
    promise: tuple[str, ...]
    users: int
    epsilon: str
    within: float
    """Noise and cut of an item with the planned share, as a share of the users."""
    share: float
    most: int
    choices: tuple[Choice, ...]
    """What every choice of `most` would cost with these users and this epsilon."""
    parameters: Mapping[str, int]
    collection: Collection = field(metadata={"json": "never"})


def draft_sets(question: str, goal: SetsGoal, **details: object) -> SetsDraft:
    """Plan a question about sets and write its file; `details` are those of `Collection.create`."""
    users, epsilon = _solved(goal)
    choices = _choices(goal, users, epsilon)
    best = min(choices, key=lambda one: one.error)
    parameters = design(epsilon, len(goal.names), best.most)
    known: Details = {**details, "parameters": parameters}  # type: ignore[typeddict-item]  # checked by create
    collection = Collection.create(question, Sets(goal.names, best.most), "set-selection", epsilon, **known)
    promise = tuple(_sentences(goal, users, best, choices, collection))
    text = question_file(collection, promise)
    return SetsDraft(text, promise, users, epsilon, best.error, goal.share, best.most, choices, parameters, collection)


@lru_cache(maxsize=4096)
def _per_user(epsilon: str, items: int, most: int, share: float) -> float:
    """The variance of the planned item's share, times the users."""
    p, q = SetSelection(Epsilon(epsilon), 1 << items, most, **design(epsilon, items, most)).support
    return float(binomial_variance(share, 1.0, float(p), float(q)))


def _choices(goal: SetsGoal, users: int, epsilon: str) -> tuple[Choice, ...]:
    z, found = normal_quantile((1 - goal.confidence) / 2), []
    for most in goal.limits:
        noise = z * math.sqrt(_per_user(epsilon, len(goal.names), most, goal.share) / users)
        cut, lost = goal.lost(most)
        found.append(Choice(most, noise, goal.share * lost, cut))
    return tuple(found)


def _error(goal: SetsGoal, users: int, epsilon: str) -> float:
    return min(one.error for one in _choices(goal, users, epsilon))


def _solved(goal: SetsGoal) -> tuple[int, str]:
    within = goal.within or 1.0
    if goal.epsilon is None:
        return goal.users or 1, _least_epsilon(goal, goal.users or 1, within)
    epsilon = Epsilon.parse(goal.epsilon).text
    if goal.users is not None:
        return goal.users, epsilon
    users = least(1, MOST_USERS, lambda one: _error(goal, one, epsilon) <= within)
    if users is None:
        raise InvalidSpec(_never(goal, within, epsilon))
    return users, epsilon


def _never(goal: SetsGoal, within: float, epsilon: str) -> str:
    """Why no number of users is enough."""
    least = min(goal.share * goal.lost(most)[1] for most in goal.limits)
    if least >= within:
        return (
            f"sets that are cut at {max(goal.limits)} items make this item short by {least:.2g} of the users, however "
            "many report: report more items of each set, or allow a larger error"
        )
    return f"this error takes more than {MOST_USERS:,} users at epsilon {epsilon}"


def _least_epsilon(goal: SetsGoal, users: int, within: float) -> str:
    """The least epsilon on a grid of hundredths with which the error is small enough."""
    found = least_epsilon(lambda one: _error(goal, users, one) <= within)
    if found is None:
        raise InvalidSpec(
            f"{users:,} users are too few for this error, even at epsilon {MOST_EPSILON}: take more users or a larger "
            "error; fewer items a user take fewer users"
        )
    return found


def _sentences(
    goal: SetsGoal, users: int, best: Choice, choices: tuple[Choice, ...], made: Collection
) -> Iterator[str]:
    percent = f"{goal.confidence * 100:.6g}%"
    yield (
        f"With {users:,} reports at epsilon = {made.epsilon.text}, an item that {share_in_words(goal.share)} of the "
        f"users hold is known to +- {min(1.0, best.noise):.2%} of the users ({percent} interval)."
    )
    if best.noise > goal.share:
        yield "Careful: this says little about such an item. Take more users, or items that more users hold."
    if best.cut_users:
        yield (
            f"Sets of more than {best.most} items are cut: those of {best.cut_users:.1%} of the users, as planned. "
            f"Such an item is then short by about {best.cut:.2%} of the users. The answer says how many sets were cut."
        )
    else:
        yield f"Sets of up to {best.most} items are reported whole; as planned, no set is cut."
    others = sorted((one for one in choices if one is not best), key=lambda one: one.error)[:_SHOWN]
    if others:
        costs = "; ".join(f"{one.most}: {one.noise:.2%} and {one.cut:.2%}" for one in others)
        yield f"Other choices of `most`, with their interval and how much the item is short: {costs}."
    size = made.randomizer.report_bytes
    yield f"Half this interval takes {4 * users:,} reports. A report has {size} byte{'s' if size > 1 else ''}."
