"""All sets of so many fields are answered by several methods, each with users of its own coins, beside the truth.

The rounds are really asked: each query goes to users who were asked nothing before, their one-bit reports are made as a
device makes them, and what a later query asks depends on what came back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.learning.queries import AnyOf, Cohorts, QueryAnswer, TableQueries, UsedUp
from ldp_server.learning.release import Fields, best_constant, decompose, learn_thresholds
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.planning.tables import design_tables
from simulator import crowd
from simulator.experiments.queries.limits import query_limits
from simulator.shapes import QueriesRun, QueryMethod

__all__ = ["QueriesGoal", "measured", "run"]

Bits = npt.NDArray[np.bool_]
_MOST_FIELDS, _MOST_SETS = 16, 1000


@dataclass(frozen=True)
class QueriesGoal:
    """What is to be answered, and with what."""

    width: int = 2
    """Fields of a set."""
    every: bool = False
    """Whether all fields of a set hold (conjunctions), or any of them (disjunctions)."""
    epsilon: str = "1"
    asked: int = 100
    """Sets that are asked for thresholds, and for the means of a decomposition's parts."""
    queries: int = 600
    """The queries that a decomposition has users for."""
    cut: float = 0.1
    levels: int = 9
    seed: int = 1


def run(people: Bits, goal: QueriesGoal, tell: Callable[[str], None] = lambda _: None) -> QueriesRun:
    """Answer all sets of the goal's width by every method; `people` has a line for each user."""
    users, fields = people.shape
    _check(users, fields, goal)
    people = people[np.random.default_rng(goal.seed).permutation(users)]  # whom a query goes to is drawn
    sets = math.comb(fields, goal.width)
    return {
        "users": users,
        "epsilon": goal.epsilon,
        "fields": fields,
        "width": goal.width,
        "kind": "all" if goal.every else "any",
        "sets": sets,
        "cut": goal.cut,
        "levels": goal.levels,
        "methods": list(measured(people, goal, tell=tell)),
        "limits": query_limits(fields, sets, users, goal.epsilon, goal.levels),
    }


def measured(
    people: Bits, goal: QueriesGoal, methods: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None
) -> Iterator[QueryMethod]:
    """Measure the best constant and all methods, or these methods. The users are asked in the order of the lines."""
    sets = [frozenset(one) for one in combinations(range(people.shape[1]), goal.width)]
    truth = np.array([_held(people, one, goal.every).mean() for one in sets])
    if not methods:
        yield _constant(truth)
    for name in methods or _METHODS:
        tell(name)
        yield _measured(name, _METHODS[name](people, sets, goal), sets, truth)


def _check(users: int, fields: int, goal: QueriesGoal) -> None:
    if not 2 <= fields <= _MOST_FIELDS:
        raise InvalidSpec(f"queries are about 2 to {_MOST_FIELDS} fields here: choose some (--columns)")
    if not 1 <= goal.width <= fields:
        raise InvalidSpec(f"a set has 1 to {fields} of the {fields} fields")
    sets = math.comb(fields, goal.width)
    if sets > _MOST_SETS:
        raise InvalidSpec(f"{fields} fields have {sets:,} sets of {goal.width}, more than {_MOST_SETS:,}: take fewer")
    most = max(sets, goal.queries)
    if users < most:
        raise InvalidSpec(f"{most:,} queries to users who were asked nothing before take as many users at least")


@dataclass(frozen=True)
class _Answered:
    """What a method says about a set, and what it took; `answer` is None if its users were used up."""

    answer: Callable[[Fields], float] | None
    queries: int
    each: int
    """Users of one query."""
    rounds: int


def _held(people: Bits, fields: Fields, every: bool) -> Bits:
    chosen = people[:, sorted(fields)]
    return np.asarray(chosen.all(axis=1) if every else chosen.any(axis=1))


def _constant(truth: npt.NDArray[np.float64]) -> QueryMethod:
    errors = np.abs(truth - best_constant(truth))
    return _row("the best constant", (0, 0, 0), errors)


def _row(name: str, took: tuple[int, int, int], errors: npt.NDArray[np.float64] | None) -> QueryMethod:
    return {
        "method": name,
        "queries": took[0],
        "users_each": took[1],
        "rounds": took[2],
        "error": None if errors is None else float(errors.mean()),
        "largest_error": None if errors is None else float(errors.max()),
    }


def _measured(name: str, found: _Answered, sets: Sequence[Fields], truth: npt.NDArray[np.float64]) -> QueryMethod:
    took = found.queries, found.each, found.rounds
    if found.answer is None:
        return _row(name, took, None)
    return _row(name, took, np.abs(np.array([found.answer(one) for one in sets]) - truth))


def _tables(people: Bits, sets: Sequence[Fields], goal: QueriesGoal) -> _Answered:
    """One question about records, whose devices are asked about the sets of this width."""
    names = [f"f{place}" for place in range(people.shape[1])]
    record = Record(tuple(Field(name, YesNo(none_is_no=True)) for name in names))
    workload = [[names[place] for place in sorted(one)] for one in sets]
    design = design_tables(record, goal.epsilon, workload)[0]
    collection = Collection.create(
        "Simulated?", record, "sampled-table", goal.epsilon, opens=0, closes=1, parameters=design.parameters
    )
    strides = np.array(record.strides[:-1], np.uint64)
    indexes: npt.NDArray[np.uint64] = np.dot(people.astype(np.uint64), strides)
    source = TableQueries(collection, _counted(collection, indexes, goal.seed))

    def answer(one: Fields) -> float:
        return source.ask(AnyOf(frozenset(names[place] for place in one), goal.every)).estimate

    return _Answered(answer, 1, len(people), 1)


def _counted(collection: Collection, indexes: npt.NDArray[np.uint64], seed: int) -> Oracle:
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, indexes, seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


def _cohorts(people: Bits, queries: int, goal: QueriesGoal) -> Cohorts[Fields]:
    """Each query goes to the next users: do all, or any, of these fields hold?"""

    def reports(collection: Collection, fields: Fields, users: range) -> Oracle:
        held = _held(people[users.start : users.stop], fields, goal.every)
        return _counted(collection, held.astype(np.uint64), goal.seed + users.start)

    return Cohorts(len(people), len(people) // queries, goal.epsilon, reports)


def _each(people: Bits, sets: Sequence[Fields], goal: QueriesGoal) -> _Answered:
    cohorts = _cohorts(people, len(sets), goal)
    found: dict[Fields, QueryAnswer] = {one: cohorts.ask(one) for one in sets}
    return _Answered(lambda one: found[one].estimate, len(sets), len(people) // len(sets), 1)


def _any_of(cohorts: Cohorts[Fields], goal: QueriesGoal) -> Callable[[Fields], float]:
    """The share for which any of the fields holds; of conjunctions, any of the fields turned round."""
    return lambda one: 1 - cohorts.ask(one).estimate if goal.every else cohorts.ask(one).estimate


def _turned(answer: Callable[[Fields], float], goal: QueriesGoal) -> Callable[[Fields], float]:
    return (lambda one: 1 - answer(one)) if goal.every else answer


def _some(sets: Sequence[Fields], goal: QueriesGoal) -> list[Fields]:
    order = np.random.default_rng(goal.seed).permutation(len(sets))
    return [sets[place] for place in order[: goal.asked]]


def _thresholds(people: Bits, sets: Sequence[Fields], goal: QueriesGoal) -> _Answered:
    some = _some(sets, goal)
    cohorts = _cohorts(people, len(some), goal)
    learned = learn_thresholds(_any_of(cohorts, goal), people.shape[1], some, goal.levels)
    return _Answered(_turned(learned.answer, goal), len(some), len(people) // len(some), 1)


def _decomposed(people: Bits, sets: Sequence[Fields], goal: QueriesGoal) -> _Answered:
    fields, each = people.shape[1], len(people) // goal.queries
    cohorts = _cohorts(people, goal.queries, goal)
    took = partial(_Answered, each=each, rounds=fields + 1)
    try:
        made = decompose(_any_of(cohorts, goal), fields, goal.cut, _some(sets, goal))
    except UsedUp:
        return took(None, queries=cohorts.queries)
    return took(_turned(made.answer, goal), queries=cohorts.queries)


_METHODS: dict[str, Callable[[Bits, Sequence[Fields], QueriesGoal], _Answered]] = {
    "tables of the fields": _tables,
    "each set asked": _each,
    "thresholds": _thresholds,
    "decomposition": _decomposed,
}
