"""Statistical queries and what is released with them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Field, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.learning.queries import AnyOf, Cohorts, TableQueries, UsedUp, users_for_queries
from ldp_server.learning.release import best_constant, decompose, learn_thresholds, proved_cut
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Unsupported
from simulator import crowd
from tests.server.learning.populations import asked, counted

D = 6
ROWS = np.random.default_rng(5).random((4000, D)) < np.array([0.5, 0.3, 0.2, 0.4, 0.1, 0.25])
EVERY = [frozenset(one) for size in range(D + 1) for one in combinations(range(D), size)]


def share(fields):
    return float(ROWS[:, sorted(fields)].any(axis=1).mean()) if fields else 0.0


def reports(collection, fields, users):
    yes = ROWS[np.array(users) % len(ROWS)][:, sorted(fields)].any(axis=1)
    oracle = oracle_for(collection)
    for part in crowd.simulate(collection.randomizer, yes.astype(np.uint64), seed=users.start):
        oracle.accumulate(pack(part, collection.randomizer.report_bytes))
    return oracle


def test_every_set_belongs_to_one_part_and_is_near_it():
    """With exact answers: S belongs to B <= S, and no field of S adds more than the cut to B."""
    for cut in (0.2, 0.05):
        found = decompose(share, D, cut, EVERY)
        for one in EVERY:
            part = found.part_of(one)
            assert part <= one
            assert part in found.parts
            left_out = [x for x in one - part if x > max(part, default=-1)]
            assert all(share(part | {x}) - share(part) <= cut + 1e-12 for x in left_out)
    assert len(found.parts) <= D ** int(1 / 0.05)


def test_a_smaller_cut_answers_better():
    def worst(cut):
        found = decompose(share, D, cut, EVERY)
        return np.mean([abs(found.answer(one) - share(one)) for one in EVERY])

    constant = best_constant([share(one) for one in EVERY])
    errors = [np.mean([abs(constant - share(one)) for one in EVERY]), worst(0.3), worst(0.1), worst(0.02)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02


def test_parts_that_nobody_asked_for_are_answered_by_themselves():
    found = decompose(share, D, 0.1, [])
    assert all(found.means[part] == share(part) for part in found.parts)
    with pytest.raises(InvalidSpec, match="take a larger cut"):
        decompose(share, D, 0.001, [], most=5)
    with pytest.raises(InvalidSpec, match="between 0 and 1"):
        decompose(share, D, 0, [])


def test_thresholds_answer_within_a_level_of_the_truth():
    found = learn_thresholds(share, D, EVERY, levels=9, ridge=0.01)
    errors = [abs(found.answer(one) - share(one)) for one in EVERY]
    assert np.mean(errors) < 0.1
    assert set(map(found.answer, EVERY)) <= {0.0, *(found.levels.tolist())}
    with pytest.raises(InvalidSpec, match="at least one level"):
        learn_thresholds(share, D, EVERY, levels=0)


def test_the_proved_cut():
    assert proved_cut(0.1, 0.1) == pytest.approx(0.01 / (6 * np.log(20)))
    with pytest.raises(InvalidSpec, match="shares between 0 and 1"):
        proved_cut(0, 0.1)


def test_cohorts_ask_each_user_once_and_are_unbiased():
    used = []

    def collect(collection, fields, users):
        used.extend(users)
        return reports(collection, fields, users)

    cohorts = Cohorts(4000, 400, "2", collect)
    asked_sets = EVERY[1:11]
    found = [cohorts.ask(one) for one in asked_sets]
    assert used == list(range(4000))
    assert cohorts.ask(asked_sets[0]) is found[0]
    assert cohorts.queries == cohorts.most == 10
    with pytest.raises(UsedUp, match="all 4,000 users were asked: 10 queries of 400 users each"):
        cohorts.ask(EVERY[12])
    z = [(one.estimate - ROWS[400 * i : 400 * i + 400][:, sorted(s)].any(axis=1).mean()) / one.standard_error
         for i, (one, s) in enumerate(zip(found, asked_sets, strict=True))]  # fmt: skip
    assert np.sum(np.square(z)) < 30  # chi-square with 10 degrees of freedom: 1 in 1,000
    with pytest.raises(InvalidSpec, match="at least one user"):
        Cohorts(10, 11, "1", collect)


def test_so_many_users_keep_the_tolerance():
    each = users_for_queries(8, 0.1, "1", 0.05) // 8
    cohorts = Cohorts(8 * each, each, "1", reports)
    errors = [abs(cohorts.ask(one).estimate - share(one)) for one in EVERY[1:9]]
    assert max(errors) < 0.1 + 0.05  # the users that are asked are some of ROWS
    assert users_for_queries(1, 0.1, "1") < users_for_queries(8, 0.1, "1")
    with pytest.raises(InvalidSpec, match="at least one query"):
        users_for_queries(0, 0.1, "1")


def test_tables_answer_conjunctions_and_disjunctions_that_were_drawn():
    record = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(D)))
    pairs = [(1 << i | 1 << j, 1, 0, 0) for i in range(D) for j in range(i)]
    collection = asked(record, "sampled-table", "3", parameters_of(sorted(pairs)))
    people = [({f"f{i}": bool(row[i]) for i in range(D)}, 10) for row in ROWS[:1500]]
    queries = TableQueries(collection, counted(collection, people, 1))
    near = ROWS[:1500]
    for one in (frozenset({0}), frozenset({1, 2})):
        names, places = frozenset(f"f{i}" for i in one), sorted(one)
        for every, truth in ((True, near[:, places].all(axis=1).mean()), (False, near[:, places].any(axis=1).mean())):
            found = queries.ask(AnyOf(names, every))
            assert abs(found.estimate - truth) < 5 * found.standard_error
            assert 0 < found.standard_error < 0.05
    assert queries.ask(AnyOf(frozenset())).estimate == 0
    assert queries.ask(AnyOf(frozenset(), every=True)).estimate == 1
    with pytest.raises(Unsupported, match="no device is asked about"):
        queries.ask(AnyOf(frozenset({"f0", "f1", "f2"})))
