"""Release: all disjunctions of some width, from queries to fresh users, beside tables and the best constant.

Users have 10 yes/no fields that go together (four kinds of users). The figure of a method is its mean absolute error
over all sets of so many fields, as a share of the users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.row import Options, Row, row
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Field, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.learning.queries import AnyOf, Cohorts, TableQueries, UsedUp, users_for_queries
from ldp_server.learning.release import Fields, best_constant, decompose, learn_thresholds, proved_cut
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.planning.tables import design_tables
from simulator import crowd

__all__ = ["run"]

_FIELDS, _EPSILON = 10, "1"
_ASKED = 100
"""Sets that are asked for the means of parts, and for thresholds."""
_QUERIES = 600
"""The queries that the decomposition has users for."""

Bits = npt.NDArray[np.bool_]


def run(options: Options) -> Iterator[Row]:
    """Measure them with 10^5 and 10^6 users; `--full` takes three crowds instead of one."""
    for users in (100_000, 1_000_000):
        for width in (2, 3):
            found: dict[str, list[float]] = {}
            for seed in range(3 if options.full else 1):
                for name, value in _methods(users, width, seed):
                    found.setdefault(name, []).append(value)
            start = f"{users:,} users, any of {width} of {_FIELDS} fields, epsilon {_EPSILON}"
            for name, values in found.items():
                yield row(f"{start}: {name}", float(np.mean(values)), "share" if "error" in name else "count")
    yield row(
        "decomposition: cut that proves an error of 0.1 on all but 0.1 of the sets", proved_cut(0.1, 0.1), "share"
    )
    log = math.log10(_FIELDS) / proved_cut(0.1, 0.1)
    yield row("decomposition: log10 of its bound on the number of parts at this cut", log, "")
    needed = users_for_queries(math.comb(_FIELDS, 3), 0.01, _EPSILON)
    yield row("each set of 3 asked: users that prove an error of 0.01 for all at once", needed, "users")


def _crowd(users: int, seed: int) -> Bits:
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, users, p=(0.4, 0.3, 0.2, 0.1))
    shares = rng.beta(0.7, 2.0, (_FIELDS, 4))
    return rng.random((users, _FIELDS)) < shares[:, kind].T


def _methods(users: int, width: int, seed: int) -> Iterator[tuple[str, float]]:
    people = _crowd(users, seed)
    sets = [frozenset(one) for one in combinations(range(_FIELDS), width)]
    truth = np.array([people[:, sorted(one)].any(axis=1).mean() for one in sets])

    def error(answer: Callable[[Fields], float]) -> float:
        return float(np.mean(np.abs(np.array([answer(one) for one in sets]) - truth)))

    constant = best_constant(truth)
    yield "the best constant, which knows the truth: error", error(lambda _: constant)
    tables = _tables(people, width, seed)
    yield "tables of all these fields: error", error(lambda one: tables.ask(_any(one)).estimate)
    each = _cohorts(people, len(sets), seed)
    yield "each set asked of fresh users: error", error(lambda one: each.ask(one).estimate)
    rng = np.random.default_rng(seed)
    some = [sets[i] for i in rng.permutation(len(sets))[:_ASKED]]
    cohorts = _cohorts(people, len(some), seed)
    learned = learn_thresholds(lambda one: cohorts.ask(one).estimate, _FIELDS, some)
    yield f"thresholds, {len(some)} sets asked: error", error(learned.answer)
    yield from _decomposed(people, some, error, seed)


def _decomposed(
    people: Bits, some: Sequence[Fields], error: Callable[[Callable[[Fields], float]], float], seed: int
) -> Iterator[tuple[str, float]]:
    for cut in (0.2, 0.1, 0.05):
        cohorts = _cohorts(people, _QUERIES, seed)
        try:
            made = decompose(lambda one, cohorts=cohorts: cohorts.ask(one).estimate, _FIELDS, cut, some)  # type: ignore[misc]
        except UsedUp:
            yield f"decomposition, cut {cut}: queries when the users were used up", float(cohorts.queries)
            continue
        yield f"decomposition, cut {cut}: error", error(made.answer)
        yield f"decomposition, cut {cut}: parts", float(len(made.parts))
        yield f"decomposition, cut {cut}: queries, in {_FIELDS + 1} rounds", float(cohorts.queries)


def _any(fields: Fields) -> AnyOf:
    return AnyOf(frozenset(f"f{x}" for x in fields))


def _tables(people: Bits, width: int, seed: int) -> TableQueries:
    record = Record(tuple(Field(f"f{x}", YesNo(none_is_no=True)) for x in range(_FIELDS)))
    workload = [[f"f{x}" for x in one] for one in combinations(range(_FIELDS), width)]
    design = design_tables(record, _EPSILON, workload)[0]
    collection = Collection.create(
        "Benchmark?", record, "sampled-table", _EPSILON, opens=0, closes=1, parameters=design.parameters
    )
    strides = np.array(record.strides[:-1], np.uint64)
    indexes: npt.NDArray[np.uint64] = np.dot(people.astype(np.uint64), strides)
    return TableQueries(collection, _counted(collection, indexes, seed))


def _cohorts(people: Bits, queries: int, seed: int) -> Cohorts[Fields]:
    def reports(collection: Collection, fields: Fields, users: range) -> Oracle:
        held = np.asarray(people[users.start : users.stop][:, sorted(fields)].any(axis=1))
        return _counted(collection, held.astype(np.uint64), seed + users.start)

    return Cohorts(len(people), len(people) // queries, _EPSILON, reports)


def _counted(collection: Collection, indexes: npt.NDArray[np.uint64], seed: int) -> Oracle:
    oracle = oracle_for(collection)
    for reports in crowd.simulate(collection.randomizer, indexes, seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle
