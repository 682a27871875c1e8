"""Queries as rows, how far a person moves the rows of a strategy, weights, and the bound below all strategies."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.curator.workloads.matrix import optimised, plans, sensitivity
from ldp_server.curator.workloads.matrix.optimised import best_gram, centred, weighted
from ldp_server.curator.workloads.matrix.plans import STRATEGIES, Price, best_plan, gaussian_bound
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.matrix.strategies import PLAIN, all_rows, marginal_rows, without_constants

MIXED = Record((Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 10)), Field("dark", YesNo(True))))
AGE = Record((Field("age", Integers(0, 17)),))
PURE, RHO = Price(epsilon=Fraction(1)), Price(rho=Fraction(1, 2))


def holds(record, query, index):
    """Whether a record of this index fulfils a query, by its definition."""
    return all(index // record.strides[place] % record.sizes[place] in held for place, held in query.held)


def of_mixed(*texts, ranges=(), tables=()):
    asked = [condition(MIXED, text) for text in texts]
    asked += [query for name in ranges for query in ranges_of(MIXED, name)]
    return LinearQueries(MIXED, (*asked, *table_queries(MIXED, tables)))


# -- queries


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("plan: paid", {0: {2}}),
        ("plan: none", {0: {0}}),
        ("age: 2..4", {1: {3, 4, 5}}),
        ("age: 0, 7..8 ; dark: yes", {1: {1, 8, 9}, 2: {1}}),
        ("dark: no", {2: {0}}),
        ("dark:yes,no; plan:free,none", {0: {0, 1}, 2: {0, 1}}),
        ("age: 9..9", {1: {10}}),
    ],
)
def test_a_condition_names_values_of_fields(text, held):
    assert condition(MIXED, text).held == tuple((place, frozenset(values)) for place, values in sorted(held.items()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age", "names fields with values"),
        ("town: a", "names fields with values"),
        ("age: 3; age: 4", "each field once"),
        ("age: 4..2", "a range of them"),
        ("age: 4..10", "values of the field 'age'"),
        ("plan: free..paid", "values of the field 'plan'"),
        ("plan: gold", "values of the field 'plan'"),
        ("dark: maybe", "values of the field 'dark'"),
        ("age:", "values of the field 'age'"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(text, said):
    with pytest.raises(InvalidSpec, match=said):
        condition(MIXED, text)


def test_a_name_of_a_query_has_single_spaces():
    assert condition(MIXED, " age:  2..4,7;dark :yes").item == "age: 2..4, 7; dark: yes"


def test_values_that_no_query_tells_apart_are_one():
    asked = of_mixed("age: 2..4", "age: 3..9; plan: paid")
    assert asked.sizes == (2, 4, 1)
    assert asked.columns == 8
    groups = asked.groups[1]
    assert groups[1] == groups[2] == groups[0]
    assert groups[4] == groups[5] != groups[3]
    assert len({groups[k] for k in range(6, 11)}) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rows_count_whom_the_queries_mean(seed):
    rng = np.random.default_rng(seed)
    asked = of_mixed("age: 2..4", "age: 3..9; plan: paid", "dark: yes; plan: none, free", tables=[("dark", "plan")])
    records = [*rng.integers(0, MIXED.size, 300).tolist(), None]
    truth = [sum(holds(MIXED, query, index or 0) for index in records) for query in asked.queries]
    assert (asked.matrix @ asked.counts(records)).tolist() == truth
    assert int(asked.counts(records).sum()) == 301


def test_all_ranges_of_a_field():
    asked = LinearQueries(AGE, tuple(ranges_of(AGE, "age")))
    assert len(asked.queries) == 17 * 18 // 2
    assert asked.queries[0].item == "age: 0..0"
    assert asked.queries[-1].item == "age: 16..16"
    assert asked.matrix.sum() == sum((last - first + 1) for first in range(17) for last in range(first, 17))
    for name in ("town", "plan"):
        with pytest.raises(InvalidSpec, match="whole numbers"):
            ranges_of(MIXED, name)
    with pytest.raises(InvalidSpec, match="coarser"):
        ranges_of(Record((Field("n", Integers(0, 300)),)), "n")


def test_what_is_too_much_is_refused():
    wide = Record((Field("a", Integers(0, 30)), Field("b", Integers(0, 30))))
    with pytest.raises(InvalidSpec, match="at most 512"):
        LinearQueries(wide, tuple(table_queries(wide, [("a", "b")])))
    with pytest.raises(InvalidSpec, match="--query"):
        LinearQueries(wide, ())


# -- how far one person moves the rows


@pytest.mark.parametrize("seed", range(6))
def test_the_sensitivity_is_the_largest_distance_of_two_columns(seed):
    rng = np.random.default_rng(seed)
    signs, weights = rng.integers(-1, 2, (7, 9)), rng.integers(1, 50, 7)
    for rows in (signs * weights[:, None], rng.integers(-30, 30, (5, 6)), np.eye(4, dtype=np.int64)):
        columns = rows.T
        pairs = list(itertools.combinations(columns, 2))
        assert sensitivity.largest_l1(rows) == max(int(np.abs(a - b).sum()) for a, b in pairs)
        assert sensitivity.largest_squared(rows) == max(int(((a - b) ** 2).sum()) for a, b in pairs)


def test_rows_of_signs_become_steps_with_the_same_distances():
    signs = np.array([[-1, 0, 1], [0, 0, 1]])
    steps = sensitivity.steps_of(signs)
    assert steps.shape == (4, 3)
    for i, j in itertools.combinations(range(3), 2):
        assert np.square(steps[:, i] - steps[:, j]).sum() == np.abs(signs[:, i] - signs[:, j]).sum()


def test_sums_that_floats_would_round_are_refused():
    rows = np.array([[0, 1 << 27]])
    with pytest.raises(InvalidSpec, match="add up exactly"):
        sensitivity.largest_squared(rows)
    with pytest.raises(InvalidSpec, match="add up exactly"):
        sensitivity.largest_l1(rows << 26)


# -- strategies


@pytest.mark.parametrize("name", PLAIN)
def test_each_strategy_has_rows_of_signs(name):
    asked = of_mixed("age: 2..4", "age: 3..9; plan: paid")
    rows = PLAIN[name](asked)
    assert set(np.unique(rows)) <= {-1, 0, 1}
    assert rows.shape[1] == asked.columns


def test_the_trees_of_one_field():
    asked = LinearQueries(AGE, tuple(ranges_of(AGE, "age")))
    assert asked.sizes == (18,)
    tree, haar = PLAIN["hierarchy"](asked), PLAIN["wavelet"](asked)
    assert len(tree) == 2 * 18 - 1
    assert len(haar) == 18
    assert tree[0].tolist() == haar[0].tolist() == [1] * 18
    assert tree[1].tolist() == [1] * 9 + [0] * 9
    assert haar[1].tolist() == [1] * 9 + [-1] * 9
    assert np.linalg.matrix_rank(haar) == 18
    assert {int(row.sum()) for row in tree} == {18, 9, 5, 4, 3, 2, 1}


def test_for_yes_and_no_the_wavelet_is_the_parities():
    record = Record(tuple(Field(f"f{k}", YesNo(True)) for k in range(3)))
    asked = LinearQueries(record, tuple(table_queries(record, [("f0", "f1"), ("f1", "f2")])))
    rows = {tuple(row) for row in PLAIN["wavelet"](asked).tolist()}
    parity = {tuple((-1) ** (cell & mask).bit_count() for cell in range(8)) for mask in range(8)}
    assert rows == parity
    made = best_plan(asked, RHO, "wavelet")
    assert len(made.rows) == 5  # three fields, two pairs: parities that no answer uses are left out


def test_tables_of_fewer_fields_are_marginals():
    asked = of_mixed("age: 2..4; plan: paid", "dark: yes")
    rows, groups = marginal_rows(asked)
    assert len(rows) == len(groups) == 2 + 2 + 2 * 2 + 2
    for group in set(groups):
        assert rows[[one == group for one in groups]].sum(axis=0).tolist() == [1] * asked.columns


def test_rows_that_are_the_same_for_everybody_are_left_out():
    rows = np.array([[1, 1], [0, 1], [0, 0], [0, 1]])
    assert without_constants(rows).tolist() == [[0, 1]]
    assert len(without_constants(np.ones((1, 2), np.int64))) == 0
    many = all_rows(of_mixed("age: 2..4", "age: 3..9; plan: paid"))
    assert len({row.tobytes() for row in many}) == len(many)


@pytest.mark.parametrize("price", [PURE, RHO], ids=["laplace", "gaussian"])
def test_every_answer_follows_from_the_rows(price):
    """R A + c 1^T is the matrix of the queries, for each strategy; and the best one comes first."""
    asked = of_mixed("age: 2..4", "age: 3..9; plan: paid", "dark: yes; plan: none, free", tables=[("dark",)])
    found = plans.plans(asked, price)
    assert {plan.name for plan in found} == set(STRATEGIES)
    for plan in found:
        back = plan.answers @ plan.rows + plan.people[:, None]
        assert np.abs(back - asked.matrix).max() <= plan.off + 1e-9 < 1e-6
        assert np.abs(plan.answers).max(axis=0).min() > 0
    errors = [plan.error for plan in found]
    assert errors == sorted(errors)


def test_rows_that_cannot_answer_are_no_plan():
    asked = of_mixed("age: 2..4", "plan: paid")
    assert plans._plan("one row", asked.matrix[:1], asked, PURE) is None
    assert plans._plan("no row", np.zeros((2, asked.columns), np.int64), asked, PURE) is None
    with pytest.raises(InvalidSpec, match="--strategy: one of identity"):
        best_plan(asked, PURE, "guess")


def test_a_query_that_everybody_fulfils_needs_no_noise():
    asked = of_mixed("age: 2..4", "dark: yes, no")
    made = best_plan(asked, PURE)
    assert made.variances[1] == 0
    assert made.widths(0.05)[1] == 0
    assert made.people[1] == pytest.approx(1)
    assert made.variances[0] == pytest.approx(2, rel=1e-3)  # one count moves by 1: Laplace noise of scale 1


# -- weights and the bound


def pairs_of(fields):
    record = Record(tuple(Field(f"f{k}", YesNo(True)) for k in range(fields)))
    return LinearQueries(record, tuple(table_queries(record, list(itertools.combinations(record.names, 2)))))


ASKED = {
    "ranges": LinearQueries(AGE, tuple(ranges_of(AGE, "age"))),
    "prefixes": LinearQueries(AGE, tuple(condition(AGE, f"age: 0..{k}") for k in range(17))),
    "pairs": pairs_of(4),
    "mixed": of_mixed("age: 2..4", "age: 3..9; plan: paid", "dark: yes; plan: none, free"),
}


@pytest.mark.parametrize("name", ASKED)
def test_no_strategy_is_below_the_bound_and_the_best_one_is_near_it(name):
    asked = ASKED[name]
    bound = gaussian_bound(asked, Fraction(1, 2))
    found = {plan.name: plan.error for plan in plans.plans(asked, RHO)}
    assert all(error >= bound * (1 - 1e-9) for error in found.values())
    assert found["optimised"] <= 1.01 * bound
    assert min(found.values()) == pytest.approx(found["optimised"], rel=2e-3)


def test_the_bound_of_a_histogram_is_that_of_its_counts():
    """All columns alike: any two are 2 apart, squared, and k - 1 of k counts are free."""
    for k in (3, 8):
        gram, bound = best_gram(centred(np.eye(k, dtype=np.int64)))
        assert bound == pytest.approx(2 * (k - 1), rel=1e-6)
        assert gram[0, 0] / gram[0, 1] == pytest.approx(-(k - 1), rel=1e-6)


def test_more_columns_than_are_worked_out_have_no_bound_and_no_weights(monkeypatch):
    monkeypatch.setattr(plans, "_MOST_OPTIMISED", 17)
    asked = ASKED["ranges"]
    assert gaussian_bound(asked, Fraction(1)) is None
    assert {plan.name for plan in plans.plans(asked, RHO)} == set(PLAIN)


@pytest.mark.parametrize("squared", [False, True], ids=["laplace", "gaussian"])
def test_the_gradient_of_the_weights(squared):
    """Beside differences; at the sharpest the smoothed distance is nearly the largest one."""
    asked = ASKED["mixed"]
    rows = all_rows(asked)
    problem = optimised._Weights(centred(asked.matrix), rows, np.arange(len(rows)), squared)
    logs = np.random.default_rng(4).normal(0, 0.3, len(rows))
    error, gradient = problem.look(logs, 1e5)
    for k in range(0, len(rows), 5):
        step = np.zeros(len(rows))
        step[k] = 1e-6
        ends = [problem.look(logs + sign * step, 1e5)[0] for sign in (1, -1)]
        assert (math.log(ends[0]) - math.log(ends[1])) / 2e-6 == pytest.approx(gradient[k], abs=1e-4)
    answers = centred(asked.matrix) @ np.linalg.pinv(centred(rows), rcond=1e-10)
    moved = sensitivity.largest_squared(rows) if squared else sensitivity.largest_l1(rows) ** 2
    assert problem.look(np.zeros(len(rows)), 30)[0] == pytest.approx(np.square(answers).sum() * moved, rel=1e-6)
    assert error > 0


@pytest.mark.parametrize("price", [PURE, RHO], ids=["laplace", "gaussian"])
def test_weights_are_never_worse_than_their_start(price):
    asked = ASKED["mixed"]
    rows = all_rows(asked)
    start = np.zeros(len(rows))
    made = weighted(centred(asked.matrix), rows, np.arange(len(rows)), start, squared=not price.pure, rounds=60)
    assert made.max() == 1
    assert made.min() >= math.exp(-8) * (1 - 1e-9)
    problem = optimised._Weights(centred(asked.matrix), rows, np.arange(len(rows)), not price.pure)
    assert problem.look(np.log(made), 30)[0] < 0.6 * problem.look(start, 30)[0]


def test_weights_find_what_no_plain_strategy_has():
    ages = Record((*MIXED.fields[::2], Field("age", Integers(0, 7))))
    others = [condition(ages, text) for text in ("plan: paid; age: 2..4", "dark: yes; plan: none, free")]
    asked = LinearQueries(ages, (*ranges_of(ages, "age"), *others))
    found = {plan.name: plan.error for plan in plans.plans(asked, PURE)}
    assert found["optimised"] < 0.9 * min(error for name, error in found.items() if name in PLAIN)


def test_two_thresholds_of_a_field_are_best_as_three_counts_or_two():
    """A worked example: below 5, below 9. Laplace noise of scale 2 on two of three counts; or of scale 2 on both."""
    asked = LinearQueries(AGE, (condition(AGE, "age: 0..4"), condition(AGE, "age: 0..8")))
    found = {plan.name: plan for plan in plans.plans(asked, PURE)}
    workload = found["workload"]
    assert workload.sensitivity == 2 * 4096
    assert workload.scale == 2 * 4096
    assert workload.variances.tolist() == pytest.approx([8, 8], rel=1e-3)
    identity = found["identity"]
    assert identity.variances[0] == pytest.approx(8 * 2 / 3, rel=1e-3)
