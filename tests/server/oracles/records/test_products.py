"""Tables of fields that are answered independently, against whole tables of probabilities that are solved plainly."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms import shifted_channel
from ldp_client.mechanisms.records.every_field import EveryField, design
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.synthetic.tables import FieldsSignal, _signals
from ldp_server.arrays.packing import pack
from ldp_server.learning.shares import CellTotals
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.oracles.laws.skewed import Jumps, skewed_intervals
from ldp_server.oracles.records.products import ProductTables, product_rows
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import MOST_ROWS, all_tables, drawn_view, table_view
from tests.examples import whole_table

RECORD = Record((Field("a", YesNo()), Field("n", Integers(0, 4)), Field("b", Categories(("red",)))))
SIZES = (3, 5, 2)
WIDE = Record((Field("x", Integers(0, 11)), Field("y", Integers(0, 9)), Field("z", YesNo(none_is_no=True))))
ASKED = {
    "one field": ((1,), ()),
    "a pair": ((2, 1), ()),
    "all": ((1, 0, 2), ()),
    "slice": ((2,), ((1, {2, 3}),)),
    "slice of two": ((0,), ((1, {0, 4}), (2, {1}))),
    "slice of its own field": ((1, 0), ((1, {1, 2, 3}),)),
    "a slice of everything": ((0,), ((1, {0, 1, 2, 3, 4}),)),
    "count": ((), ((0, {1}), (1, {0, 2, 4}))),
    "count of one": ((), ((2, {0}),)),
}


def asked(name, record=RECORD):
    fields, where = ASKED[name]
    return AskedTable(record, fields, tuple((place, frozenset(held)) for place, held in where))


@cache
def made(kind):
    if kind == "every-field":
        return EveryField.build(Epsilon("3.75"), RECORD, b"", design(RECORD, {"a": "1.5", "n": "2", "b": "0.25"}))
    parameters = shifted_channel.design("6", RECORD, rings=(0, 1, 0), steps=(2, 1, 3))
    return ShiftedChannel.build(Epsilon("6"), RECORD, b"", parameters)


@cache
def table_of(kind):
    return whole_table(made(kind))


def counted(one, counts):
    oracle = oracle_for(one)
    reports = np.repeat(np.arange(one.bound, dtype=np.uint64), counts)
    oracle.accumulate(pack(reports, one.report_bytes))
    return oracle


HELD = np.arange(30) ** 2 * 7 % 23 + np.where(np.arange(30) == 8, 60, 0)
"""How many users hold each record."""


@cache
def expected(kind, times=20_000):
    """The oracle that has seen about what it is expected to see of so many times these users, and the users."""
    users = HELD * times
    counts = np.rint(users @ table_of(kind)).astype(np.int64)
    return counted(made(kind), counts), users


KINDS = ("every-field", "shifted-channel")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ASKED)
def test_rows_are_sums_of_the_whole_records_and_their_errors_those_of_the_exact_law(kind, name):
    """The estimates solve the equations of the whole table. Where the counts are what is expected, the stated variance
    is the exact one for the users there are, and so are those of sums.
    """
    oracle, users = expected(kind)
    view, table = table_view(oracle, RECORD, asked(name)), table_of(kind)
    solved = np.linalg.solve(table.T, oracle.counts.values.astype(float))
    rows = asked(name).rows_of((0, 1, 2))
    assert view.listed == asked(name).rows == len(view.estimate_all())
    known = np.array([solved[rows == row].sum() for row in range(view.listed)])
    assert view.estimate_all() == pytest.approx(known, abs=1e-6 * users.sum())
    inverse = np.linalg.inv(table.T)

    def variance(chosen):
        g = inverse[np.isin(rows, chosen)].sum(axis=0)
        return float(users @ (table @ g**2 - (table @ g) ** 2))

    every = np.arange(view.listed, dtype=np.uint64)
    exact = np.array([variance([row]) for row in range(view.listed)])
    assert view.standard_errors(every, known) ** 2 == pytest.approx(exact, rel=2e-3, abs=1)
    for chosen in ([0], [view.listed - 1], list(range(0, view.listed, 2)), [0, view.listed - 1]):
        at = np.array(chosen, np.uint64)
        stated = view.sum_variance(at, np.maximum(known[chosen], 0))
        if len(chosen) < view.listed:
            assert stated == pytest.approx(variance(chosen), rel=2e-3, abs=1)


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_of_cells_are_exact(kind):
    oracle, users = expected(kind)
    table = table_of(kind)
    inverse, rows = np.linalg.inv(table.T), asked("a pair").rows_of((0, 1, 2))
    g = np.array([inverse[rows == row].sum(axis=0) for row in range(10)])
    mean = table @ g.T
    exact = np.einsum("x,xy,iy,jy->ij", users, table, g, g) - np.einsum("x,xi,xj->ij", users, mean, mean)
    sums = CellTotals(table_view(oracle, RECORD, asked("a pair")))
    found = [[sums.covariance(frozenset({i}), frozenset({j})) for j in range(10)] for i in range(10)]
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs(np.array(found) - exact).max() < 4e-3 * scale.max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ASKED)
def test_scores_of_a_single_report_have_the_stated_ends_means_and_variances(kind, name):
    """For intervals at every look: each bound is one over all reports, or over all cells of a row or outside it."""
    one, table, rows = made(kind), table_of(kind), asked(name).rows_of((0, 1, 2))
    inverse = np.linalg.inv(table.T)
    oracle = counted(one, np.bincount([17], minlength=one.bound))
    view = table_view(oracle, RECORD, asked(name))
    for row, stated in enumerate(view.look_sums(range(view.listed))):
        counts_for = rows == row
        g = inverse[counts_for].sum(axis=0)
        assert stated.reports == 1
        assert stated.total == pytest.approx(g[17], abs=1e-6)
        if not counts_for.any():
            assert (stated.most, stated.least, stated.inside, stated.outside) == (0, 0, 0, 0)
            continue
        spread = table @ g**2 - (table @ g) ** 2
        assert (stated.most, stated.least) == pytest.approx((g.max(), g.min()), rel=1e-6)
        assert stated.inside == pytest.approx(spread[counts_for].max(), rel=1e-6, abs=1e-9)
        outside = spread[~counts_for].max(initial=0.0)
        assert stated.outside == pytest.approx(outside, rel=1e-6, abs=1e-9)


def drawn(one, users, seed):
    """An oracle with reports of these users, drawn from the exact law of each field."""
    rng, answers = np.random.default_rng(seed), np.zeros(len(users), np.uint64)
    for (stride, size), response in zip(one.steps, one.responses, strict=True):
        table = np.array([[float(response.probability(x, y)) for y in range(size)] for x in range(size)]).cumsum(axis=1)
        own = users // stride % size
        said = (rng.random(len(users))[:, None] > table[own]).sum(axis=1).clip(max=size - 1)
        answers += np.uint64(stride) * said.astype(np.uint64)
    return counted(one, np.bincount(answers.astype(np.intp), minlength=one.bound))


def misses(record, epsilons, users, where, crowds=40):
    """Of 97.5% ends of one table: how often the true number lies below or above, over all rows and the fullest one."""
    each = design(record, dict(zip(record.names, epsilons, strict=True)))
    total = sum(map(float, epsilons))
    one = EveryField.build(Epsilon.parse(f"{total:g}"), record, b"", each)
    rows = where.rows_of(tuple(range(len(record.names))))[users]
    true = np.bincount(rows[rows >= 0], minlength=where.rows)
    below = above = 0
    for seed in range(crowds):
        low, high = table_view(drawn(one, users, seed), record, where)._rows.intervals(0.025)
        below, above = below + (true < low), above + (true > high)
    top = int(true.argmax())
    return below.mean() / crowds, above.mean() / crowds, int(below[top]), int(above[top])


CROWDS = {
    "few users, large epsilon": (("8", "8", "1"), 50, 0.8, ((0, 1), ())),
    "a hundred users": (("4", "4", "1"), 100, 0.5, ((0, 1), ())),
    "many users, small epsilon": (("1", "0.5", "0.25"), 4000, 0.2, ((1,), ())),
    "unequal fields": (("8", "0.5", "2"), 300, 0.3, ((2,), ((0, {1, 2, 3}),))),
    "a count": (("3", "3", "3"), 60, 0.4, ((), ((0, {4, 5}), (1, {2, 6, 7})))),
}


LONG = ("few users, large epsilon", "a hundred users", "many users, small epsilon")


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.long if one in LONG else ()) for one in CROWDS])
def test_intervals_hold_the_truth(name):
    """Each end errs with 1/40. Over all rows and crowds the mean is near it or below; 8 misses of one side in 40 crowds
    of the fullest row, whose noise is of few reports, have a chance below 1 in 10^5.
    """
    epsilons, people, share, (fields, where) = CROWDS[name]
    rng = np.random.default_rng(7)
    users = np.where(rng.random(people) < share, 4 + 12 * 6, rng.integers(0, WIDE.size, people))
    table = AskedTable(WIDE, fields, tuple((place, frozenset(held)) for place, held in where))
    below, above, *top = misses(WIDE, epsilons, users, table)
    assert max(below, above) < 0.045
    assert max(top) < 8


def test_intervals_that_forget_that_answers_are_lies_would_be_caught():
    """The same check fails on intervals a third as wide."""
    rng = np.random.default_rng(7)
    users = rng.integers(0, WIDE.size, 4000)
    one = EveryField.build(Epsilon("1.75"), WIDE, b"", design(WIDE, {"x": "1", "y": "0.5", "z": "0.25"}))
    table, below = AskedTable(WIDE, (1,)), 0
    true = np.bincount(users // 12 % 10, minlength=10)
    for seed in range(10):
        view = table_view(drawn(one, users, seed), WIDE, table)
        low, _ = view._rows.intervals(0.025)
        below = below + (true < view.estimate_all() - (view.estimate_all() - low) / 3)
    assert below.mean() / 10 > 0.15


def test_wide_tables_by_patterns_and_by_the_normal_law_agree():
    """With many users, what randomized response says by patterns is what the moments say."""
    rng = np.random.default_rng(3)
    users = rng.integers(0, WIDE.size, 30_000)
    one = EveryField.build(Epsilon("5"), WIDE, b"", design(WIDE, {"x": "2", "y": "2", "z": "1"}))
    oracle = drawn(one, users, 1)
    view = table_view(oracle, WIDE, AskedTable(WIDE, (0, 1)))
    low, high = view._rows.intervals(0.025)
    plain = type(view._rows)(view._asked, (0, 1), *_parts_of(oracle))
    normal_low, normal_high = plain.intervals(0.025)
    inside = (low > 0) & (high < 30_000)
    assert inside.sum() > 20
    assert low[inside] == pytest.approx(normal_low[inside], rel=0.06, abs=25)
    assert high[inside] == pytest.approx(normal_high[inside], rel=0.06, abs=25)


def _parts_of(oracle):
    """The same rows, taken for answers that are no randomized response."""
    rows = table_view(oracle, WIDE, AskedTable(WIDE, (0, 1)))._rows
    return rows.sides, rows.counts, False


def test_everybody_is_known_and_rows_that_cannot_be_are_empty():
    oracle, _ = expected("every-field")
    view = table_view(oracle, RECORD, asked("slice of its own field"))
    reports = oracle.reports
    none_of_n = np.arange(view.listed) % 5 % 4 == 0
    every = np.arange(view.listed, dtype=np.uint64)
    low, high = view.intervals(every, view.estimate_all(), 0.025)
    for found in (view.estimate_all(), view.standard_errors(every, view.estimate_all()), low, high):
        assert (found[none_of_n] == 0).all()
        assert (found[~none_of_n] != 0).any()
    whole = table_view(oracle, RECORD, AskedTable(RECORD, (), ((0, frozenset({0, 1, 2})),)))
    assert whole.estimate_all().tolist() == [0, reports]
    assert [end.tolist() for end in whole.intervals(every[:2], whole.estimate_all(), 0.1)] == [[0, reports]] * 2
    pair = table_view(oracle, RECORD, asked("a pair"))
    assert pair.sum_variance(every[:10], pair.estimate_all()) == 0
    assert pair.sum_interval(every[:10], pair.estimate_all(), 0.1) == (reports, reports)


def test_those_who_are_asked_for_and_all_others_have_one_error_and_mirrored_ends():
    oracle, _ = expected("shifted-channel", 3)
    view = table_view(oracle, RECORD, asked("count"))
    both = np.array([0, 1], np.uint64)
    low, high = view.intervals(both, view.estimate_all(), 0.05)
    assert (low[0], high[0]) == (oracle.reports - high[1], oracle.reports - low[1])
    errors = view.standard_errors(both, view.estimate_all())
    assert errors[0] == errors[1] > 0
    for row in (0, 1):
        assert view.sum_interval(both[row : row + 1], view.estimate_all(), 0.05) == (low[row], high[row])
        alone = view.sum_variance(both[row : row + 1], view.estimate_all()[row : row + 1])
        assert alone == pytest.approx(errors[row] ** 2)


@pytest.mark.parametrize("kind", KINDS)
def test_effects_of_noise_have_the_stated_variance(kind):
    """Of users spread evenly, who are drawn anew each time: an effect's numbers have together what `variance` says."""
    one, table = made(kind), table_of(kind)
    rng, users = np.random.default_rng(5), 40_000
    even = np.full(30, 1 / 30) @ table
    found = {subset: [] for subset in ((0,), (1,), (0, 1), (1, 2))}
    for _ in range(300):
        tables = all_tables(counted(one, rng.multinomial(users, even)), RECORD)
        for subset, squares in found.items():
            squares.append(float(np.square(tables.effect(subset)).sum()))
    for subset, squares in found.items():
        free = math.prod(SIZES[place] - 1 for place in subset)
        assert np.mean(squares) == pytest.approx(free * tables.variance(subset), rel=0.25)


def test_all_tables_are_those_of_two_fields_and_agree_with_the_views():
    oracle, _ = expected("every-field")
    tables = all_tables(oracle, RECORD)
    assert isinstance(tables, ProductTables)
    assert tables.largest == ((0, 1), (0, 2), (1, 2))
    view = table_view(oracle, RECORD, AskedTable(RECORD, (0, 1)))
    assert tables.table((0, 1)).ravel(order="F") == pytest.approx(view.estimate_all())
    assert tables.table((0, 1)).sum(axis=1) == pytest.approx(tables.table((0,)))
    assert tables.effect((0, 1)).sum(axis=0) == pytest.approx(np.zeros(5), abs=1e-6)
    told = {one.fields: one for one in _signals(RECORD, tables, 1.0)}
    assert told[("a",)].told and isinstance(told[("a", "n")], FieldsSignal)
    single = Record(RECORD.fields[:1])
    alone = EveryField.build(Epsilon("1"), single, b"", design(single, {"a": "1"}))
    assert all_tables(counted(alone, np.array([5, 3, 2])), single).largest == ((0,),)


@pytest.mark.parametrize("seed", range(12))
def test_possible_tables_agree_and_are_nearer_to_the_truth(seed):
    """Of a few users, whose raw tables have many negative cells: all pairs together are not farther than the raw."""
    users = np.random.default_rng(seed).integers(0, 12, 60) + 30 * 4
    one = EveryField.build(Epsilon("4.5"), WIDE, b"", design(WIDE, {"x": "1.5", "y": "2", "z": "1"}))
    oracle = drawn(one, users, seed)
    raw_error = error = 0.0
    found = {}
    for fields in ((0, 1), (0, 2), (1, 2), (1, 0), (1,)):
        view = table_view(oracle, WIDE, AskedTable(WIDE, fields))
        raw, found[fields] = view.estimate_all(), view.possible(view.estimate_all())
        true = np.bincount(view._asked.rows_of((0, 1, 2))[users], minlength=len(raw))
        assert found[fields].min() >= 0
        assert found[fields].sum() == pytest.approx(60)
        if fields in ((0, 1), (0, 2), (1, 2)):
            raw_error, error = raw_error + np.sum((raw - true) ** 2), error + np.sum((found[fields] - true) ** 2)
    assert error < raw_error
    x_y, y_x = found[0, 1].reshape(12, 10, order="F"), found[1, 0].reshape(10, 12, order="F")
    assert x_y == pytest.approx(y_x.T)
    for table in (x_y.sum(axis=0), found[1, 2].reshape(10, 2, order="F").sum(axis=1)):
        assert table == pytest.approx(found[(1,)], abs=1e-6)
    own = table_view(oracle, WIDE, AskedTable(WIDE, (1,), ((0, frozenset({3, 4})),)))
    assert own.possible(own.estimate_all()) == pytest.approx(x_y[[3, 4]].sum(axis=0), abs=1e-6)
    count = table_view(oracle, WIDE, AskedTable(WIDE, (), ((0, frozenset({3, 4})),)))
    inside = x_y[[3, 4]].sum()
    assert count.possible(count.estimate_all()) == pytest.approx([60 - inside, inside], abs=1e-6)
    three = table_view(oracle, WIDE, AskedTable(WIDE, (0, 1, 2)))
    assert three.possible(three.estimate_all()).sum() == pytest.approx(60)


def test_all_tables_are_worked_out_anew_when_reports_come():
    oracle, _ = expected("every-field", 1)
    kept = all_tables(oracle, RECORD)
    assert all_tables(oracle, RECORD) is kept
    more = counted(made("every-field"), oracle.counts.values)
    assert all_tables(more, RECORD) is not kept
    before = all_tables(more, RECORD)
    more.accumulate(bytes(more.randomizer.report_bytes))
    assert all_tables(more, RECORD).users == before.users + 1


def test_counts_of_fields_of_other_sizes_are_not_added_up():
    """Name, epsilon, size and parameters are the same, and a report means something else."""
    each = {"epsilons": (10**9, 10**9)}
    sizes = ((Integers(0, 2), Integers(0, 5)), (Integers(0, 5), Integers(0, 2)), (Integers(1, 2), Integers(7, 5)))
    one, other, same = (
        oracle_for(EveryField.build(Epsilon("2"), Record((Field("a", a), Field("b", b))), b"", each)) for a, b in sizes
    )
    one.merge(same)
    with pytest.raises(InvalidSpec, match="different mechanisms"):
        one.merge(other)
    with pytest.raises(ServerRefused, match="another mechanism"):
        type(one).from_bytes(other.randomizer, one.to_bytes())


def test_what_cannot_be_answered_is_refused():
    oracle, _ = expected("every-field")
    with pytest.raises(TooFewReports, match="no reports yet"):
        table_view(oracle_for(made("every-field")), RECORD, asked("a pair"))
    large = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(21)))
    one = EveryField.build(Epsilon("10.5"), large, b"", {"epsilons": (500_000_000,) * 21})
    full = oracle_for(one)
    full.accumulate(pack(np.zeros(10, np.uint64), one.report_bytes))
    with pytest.raises(Unsupported, match=f"at most {MOST_ROWS} cells"):
        table_view(full, large, AskedTable(large, tuple(range(21))))
    assert table_view(full, large, AskedTable(large, (0, 20))).listed == 4
    assert drawn_view(oracle, RECORD, asked("a pair")).listed == 10
    with pytest.raises(Unsupported, match="no tables of fields here"):
        from ldp_server.oracles.records.view import pooling

        pooling(oracle, RECORD)


FINE = Record((Field("x", Integers(1, 9)), Field("y", Integers(1, 9))))
"""100 cells: too many for the law of a table."""


@pytest.mark.parametrize("merged", [True, False])
def test_where_one_lie_makes_the_noise_it_does_not_end_an_interval(merged):
    """300 users at epsilon 9: that one of them lies about itself into 20 cells has a chance of 9%, and each end errs
    with 2.5% at most. The normal law's interval ended above the truth then. Of a table with more cells than patterns
    are looked at, it is the same.
    """
    made = EveryField.build(Epsilon("18"), FINE, b"", design(FINE, {"x": "9", "y": "9"}))
    wide = AskedTable(FINE, (0, 1))
    chosen = np.arange(20, dtype=np.uint64)
    held = np.repeat([99, 88, 5], [280, 14, 6])
    inside = float((held < 20).sum())
    lies = [[float(made.probability(one, int(said))) for said in chosen] for one in (99, 88)]
    assert 1 - np.prod((1 - np.array(lies)).prod(axis=1) ** [280, 14]) > 2 * 0.025
    for said in (19, 9):  # the second value is that of another field alone
        counts = np.bincount(np.append(held[1:], said), minlength=100)
        oracle = counted(made, counts)
        view = table_view(oracle, FINE, wide)
        if merged:
            low, high = view.sum_interval(chosen, view.estimate(chosen), 0.025)
        else:
            rows = product_rows(counts.reshape(10, 10, order="F"), oracle.axes, wide, lumps=False)
            low, high = (end[said] for end in rows.intervals(0.025))
        assert low <= (inside if merged else 0) <= high


def test_ends_of_few_jumps_are_those_of_every_law():
    """Of one element among 100, too: the sum of 300 reports, with what one of them may add."""
    raw, moments = np.array([1.0]), lambda holders: (np.full(len(holders), 0.01), np.zeros(len(holders)))
    low, high = skewed_intervals(raw, moments, 300.0, 0.025, Jumps(np.array([1.0]), np.array([0.3])))
    log = -math.log(0.025)
    assert high[0] == pytest.approx(1 + math.sqrt(2 * 0.3 * log) + log / 3)
    assert low[0] == 0.0
    bare = skewed_intervals(raw, moments, 300.0, 0.025)
    assert bare[0][0] > 0.7
    many = skewed_intervals(raw, moments, 300.0, 0.025, Jumps(np.array([0.04]), np.array([0.3])))
    assert [end[0] for end in many] == [end[0] for end in bare]
