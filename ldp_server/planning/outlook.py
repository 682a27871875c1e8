"""The error at a given number of users and a given epsilon: the mechanism that is chosen, and what it will print."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from ldp_client.collection import Collection
from ldp_client.mechanisms import MECHANISMS, bounded_number
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.protocol.domain import Attributes, Domain, Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.stream import SEED_BYTES
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.candidates import Kind
from ldp_server.answers.choose import DEFAULT_SKEW, Alternative, choose
from ldp_server.heavy_hitters.planner import SketchPlan, plans
from ldp_server.oracles.base import two_sided
from ldp_server.oracles.hierarchy import HierarchyOracle
from ldp_server.planning.expected import Expected, Floats, expected_oracle, frequency_error, widening
from ldp_server.planning.goals import Goal, QuestionKind

__all__ = [
    "Outlook",
    "assumption",
    "item_of",
    "list_outlook",
    "outlook",
    "range_of",
    "shares_of",
    "sketch_of",
    "smallest_share",
]

_KINDS = {
    QuestionKind.FREQUENCIES: Kind.FREQUENCIES,
    QuestionKind.AVERAGE: Kind.AVERAGE,
    QuestionKind.QUANTILES: Kind.QUANTILES,
    QuestionKind.RANGES: Kind.QUANTILES,
    QuestionKind.ATTRIBUTES: Kind.ATTRIBUTES,
    QuestionKind.PAIRS: Kind.ATTRIBUTES,
}
_USUAL = {
    QuestionKind.FREQUENCIES: 0.1,
    QuestionKind.QUANTILES: 0.5,
    QuestionKind.RANGES: 0.5,
    QuestionKind.ATTRIBUTES: 0.5,
    QuestionKind.PAIRS: 0.5,
}
_POWER = 1.6448536269514722
"""The quantile of 95%."""
PRESENCE = 32
"""Of 256 devices, so many are asked whether they have a number, where some have none."""


@dataclass(frozen=True)
class Outlook:
    """What is known at a number of users and an epsilon."""

    users: int
    epsilon: str
    choice: Alternative | SketchPlan
    error: Expected
    within: float


_ASSUMED = {
    QuestionKind.HEAVY_HITTERS: "whatever else the users hold",
    QuestionKind.FREQUENCIES: "for an item that {share} of the users hold; rarer items have smaller errors, commoner "
    "ones larger",
    QuestionKind.AVERAGE: "for {numbers}",
    QuestionKind.QUANTILES: "for numbers spread {spread}; the error is that of the share of users at or below the "
    "quantile {quantile}",
    QuestionKind.RANGES: "for numbers spread {spread}, and the range from the lowest number that holds about "
    "{share} of them",
    QuestionKind.ATTRIBUTES: "for {sets}",
    QuestionKind.PAIRS: "for {sets}",
}


def assumption(goal: Goal) -> str:
    """Return in words what an error is worked out for."""
    planned = item_of(goal)[1] if goal.kind is QuestionKind.FREQUENCIES else goal.share or _USUAL.get(goal.kind, 0.0)
    share, sampled = f"{planned * 100:.3g}%", goal.sample is not None
    return _ASSUMED[goal.kind].format(
        share=share,
        quantile=f"{planned:.3g}",
        spread="as in the sample" if sampled else "evenly",
        numbers="numbers spread as in the sample" if sampled else "the numbers with the largest error",
        sets="the one with the largest error, if sets are held as in the sample"
        if sampled
        else f"attributes that {share} of the users hold, independently of each other",
    )


def outlook(goal: Goal, users: int, epsilon: str) -> Outlook:
    """Choose the mechanism for so many users and this epsilon, and work out its error; infinite: it tells nothing."""
    if goal.kind is QuestionKind.HEAVY_HITTERS:
        return list_outlook(goal, users, epsilon)
    found = _outlook_without_error(goal, users, epsilon)
    error = _ERRORS[goal.kind](goal, found)
    if goal.change:
        error = error.changed(goal.confidence)
    reach = error.reach if math.isfinite(error.standard_error) else math.inf
    return replace(found, error=error, within=reach)


def _outlook_without_error(goal: Goal, users: int, epsilon: str) -> Outlook:
    return Outlook(users, epsilon, _choice(goal, users, epsilon), Expected(0.0, 0.0, 0.0, 0.0), math.inf)


def _choice(goal: Goal, users: int, epsilon: str) -> Alternative:
    # Only Hashtogram depends on the number of users, and only frequencies may take it.
    seen = users if goal.kind is QuestionKind.FREQUENCIES else 1_000_000
    pairs = goal.kind is QuestionKind.PAIRS
    found = _chosen(seen, goal.domain.size, epsilon, _KINDS[goal.kind], goal.memory, _skew(goal), pairs)
    if goal.missing:
        parameters = bounded_number.design(epsilon, presence=PRESENCE)
        found = replace(found, parameters=parameters)
    return replace(found, seconds=found.seconds * users / seen)


@lru_cache(maxsize=4096)
def _chosen(users: int, size: int, epsilon: str, kind: Kind, memory: int, skew: float, pairs: bool) -> Alternative:
    return choose(users, size, epsilon, kind, memory=memory, skew=skew, pairs=pairs)


def _skew(goal: Goal) -> float:
    if goal.sample is None:
        return DEFAULT_SKEW
    shares = np.array(goal.sample) / math.fsum(goal.sample)
    return float(shares @ shares)


def _randomizer(goal: Goal, found: Outlook) -> Randomizer:
    kind, parameters = MECHANISMS[found.choice.mechanism], found.choice.parameters
    return kind.build(Epsilon.parse(found.epsilon), goal.domain, bytes(SEED_BYTES), parameters)


def _collection(goal: Goal, found: Outlook) -> Collection:
    """Return a collection of the planned mechanism, for a question of no words."""
    chosen = found.choice
    return Collection.create(
        "plan", goal.domain, chosen.mechanism, found.epsilon, parameters=chosen.parameters, opens=0, closes=1
    )


def shares_of(goal: Goal) -> Floats:
    """Return which part of the users holds each index of the domain: the sample's, or what is assumed."""
    if goal.sample is not None:
        return np.array(goal.sample) / math.fsum(goal.sample)
    shares = np.zeros(goal.domain.size)
    if isinstance(goal.domain, Attributes):
        held = goal.share or _USUAL[goal.kind]
        one = np.array([1.0])
        for _ in goal.domain.names:
            one = np.concatenate((one * (1 - held), one * held))
        return one
    shares[1:] = 1 / (goal.domain.size - 1)
    return shares


def item_of(goal: Goal) -> tuple[int, float]:
    """Return the index that a goal about frequencies is planned for, and its share: in a sample, the nearest share."""
    share = goal.share or _USUAL[goal.kind]
    if goal.sample is None:
        return 1, share
    shares = shares_of(goal)
    index = int(np.argmin(np.abs(shares[1:] - share))) + 1
    return index, float(shares[index])


def _frequencies(goal: Goal, found: Outlook) -> Expected:
    _, share = item_of(goal)
    error = frequency_error(_randomizer(goal, found), found.users, share, _skew(goal), goal.confidence)
    return error.scaled(1 / found.users)


def _average(goal: Goal, found: Outlook) -> Expected:
    collection = _collection(goal, found)
    crowds = [shares_of(goal)] if goal.sample is not None else _extremes(goal.domain.size)
    answers = [
        numbers.average_answer(
            collection, expected_oracle(collection, crowd, found.users), confidence=goal.confidence
        ).average
        for crowd in crowds
    ]
    worst = max(answers, key=lambda one: one.standard_error)
    error, middle = worst.standard_error, worst.estimate
    if goal.sample is None and not goal.missing:  # between the places that were tried it may be a little larger
        error = max(error, (goal.domain.size - 2) * math.sqrt(_worst_variance(found.epsilon) / found.users))
    reach = two_sided(goal.confidence) * error
    return Expected(middle, error, middle - reach, middle + reach)


@lru_cache(maxsize=256)
def _worst_variance(epsilon: str) -> float:
    design = bounded_number.design(epsilon)
    return bounded_number.Window(Epsilon.parse(epsilon), design["answers"], design["window"]).worst_variance


def _extremes(size: int) -> list[Floats]:
    """All users at one number, for some numbers, or half of them at each end."""
    crowds = []
    for place in np.unique(np.linspace(1, size - 1, 17).round().astype(int)):
        crowd = np.zeros(size)
        crowd[place] = 1.0
        crowds.append(crowd)
    ends = np.zeros(size)
    ends[1] = ends[-1] = 0.5
    return [*crowds, ends]


def _tree(goal: Goal, found: Outlook) -> HierarchyOracle:
    oracle = expected_oracle(_collection(goal, found), shares_of(goal), found.users)
    if not isinstance(oracle, HierarchyOracle):
        raise AssertionError("quantiles and ranges are planned for a tree")
    return oracle


def _quantile(goal: Goal, found: Outlook) -> Expected:
    share = goal.share or _USUAL[goal.kind]
    error = _tree(goal, found).quantile_error(share) / found.users
    asked = replace(goal, users=1, epsilon="1", within=None, per_day=None)
    larger, wider = _widening(asked, _near_epsilon(found.epsilon), _near(found.users))
    reach = two_sided(goal.confidence) * error * wider
    return Expected(share, error * larger, max(0.0, share - reach), min(1.0, share + reach))


def _near(users: int) -> int:
    """A number of users within 7% of this one, eight of them to a doubling."""
    cut = max(0, users.bit_length() - 4)
    return ((users >> cut) << cut) + ((1 << cut) >> 1)


def _near_epsilon(epsilon: str) -> str:
    """An epsilon within 12% of this one."""
    return f"{max(0.01, 1.25 ** round(math.log(float(epsilon)) / math.log(1.25))):.2f}"


@lru_cache(maxsize=256)
def _widening(goal: Goal, epsilon: str, users: int) -> tuple[float, float]:
    """What shared noise does to a quantile; remembered, since it hardly depends on the number of users."""
    collection = _collection(goal, _outlook_without_error(goal, users, epsilon))
    return widening(collection, shares_of(goal), users, goal.share or _USUAL[goal.kind], goal.confidence)


def range_of(goal: Goal) -> tuple[int, int]:
    """Return the range that a goal about ranges is planned for: from the lowest number on."""
    domain = goal.domain
    if not isinstance(domain, Integers):
        raise AssertionError("a goal has checked its domain")
    sums = np.cumsum(shares_of(goal)[1:])
    last = int(np.searchsorted(sums, (goal.share or _USUAL[goal.kind]) * sums[-1] - 1e-12))
    return domain.lowest, domain.lowest + min(last, domain.count - 1)


def _range(goal: Goal, found: Outlook) -> Expected:
    first, last = range_of(goal)
    collection, oracle = _collection(goal, found), _tree(goal, found)
    one = numbers.count_between(collection, oracle, first, last, confidence=goal.confidence)
    return Expected(one.estimate, one.standard_error, one.low, one.high).scaled(1 / found.users)


def _attributes(goal: Goal, found: Outlook) -> Expected:
    collection = _collection(goal, found)
    oracle = expected_oracle(collection, shares_of(goal), found.users)
    answer = attributes_answer(collection, oracle, pairs=goal.kind is QuestionKind.PAIRS, confidence=goal.confidence)
    rows = [Expected(row.estimate, row.standard_error, row.low, row.high) for row in answer.rows]
    return max(rows, key=lambda row: row.reach).scaled(1 / found.users)


_ERRORS: dict[QuestionKind, Callable[[Goal, Outlook], Expected]] = {
    QuestionKind.FREQUENCIES: _frequencies,
    QuestionKind.AVERAGE: _average,
    QuestionKind.QUANTILES: _quantile,
    QuestionKind.RANGES: _range,
    QuestionKind.ATTRIBUTES: _attributes,
    QuestionKind.PAIRS: _attributes,
}


def list_outlook(goal: Goal, users: int, epsilon: str) -> Outlook:
    """Return the same for heavy hitters."""
    best = _sketches(users, goal.domain, epsilon, goal.memory)[0]
    share = best.reliable / users if best.enough else math.inf
    found = Outlook(users, epsilon, best, Expected(0.0, 0.0, 0.0, 0.0), share)
    sketch = sketch_of(goal, found)
    p, s = (float(x) for x in sketch.inner.support)
    error = math.sqrt(s * (1 - s) / (p - s) ** 2 / users)
    if best.mechanism == "prefix-tree":
        error *= math.sqrt(sketch.teams)  # the last level's users only
    reach = two_sided(goal.confidence) * error
    return replace(found, error=Expected(share, error, share - reach, share + reach))


@lru_cache(maxsize=1024)
def _sketches(users: int, domain: Domain, epsilon: str, memory: int) -> list[SketchPlan]:
    return plans(users, domain, epsilon, memory=memory)


def sketch_of(goal: Goal, found: Outlook) -> TeamSketch:
    """Return the planned sketch, with a seed of zeros: what is promised does not depend on the seed."""
    made = _randomizer(goal, found)
    if not isinstance(made, TeamSketch):
        raise AssertionError("every plan of heavy hitters is a sketch")
    return made


def smallest_share(goal: Goal, found: Outlook) -> float | None:
    """Return the share from which an unnamed item is told apart from one that nobody holds; None: no share is."""
    nobody = frequency_error(_randomizer(goal, found), found.users, 0.0, _skew(goal), goal.confidence)
    z = -NormalDist().inv_cdf(max((1 - goal.confidence) / 2 / goal.domain.size, 1e-300))
    share = (z + _POWER) * nobody.standard_error / found.users
    return share if share <= 1 else None
