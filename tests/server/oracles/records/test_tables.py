"""Tables out of real reports: unbiased, with the stated errors; intervals that hold; projected, never worse."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from ldp_client.collection import Collection
from ldp_client.errors import ServerRefused
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.estimates import top
from ldp_server.answers.records import RecordTable
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.oracles.laws.projection import below_simplex, norm_sub
from ldp_server.oracles.records.mixture import MixtureLaw
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import pooling, table_view
from tests.server.oracles.cases import filled, reports_of

YES = YesNo(none_is_no=True)
BITS = Record(tuple(Field(name, YES) for name in "abcd"))
MIXED = Record((Field("a", Integers(0, 3)), Field("b", Categories(tuple("wxyz"))), Field("c", YES)))
PARITIES = sorted(
    [(1 << i, 3, 1, 0) for i in range(4)] + [(1 << i | 1 << j, 2, 1, 0) for i in range(4) for j in range(i)]
)
"""All tables of one and two fields, answered by their parities."""
PAIRS = [(3, 2, 2, 4), (5, 1, 0, 0), (6, 1, 3, 4)]
"""Pairs of mixed fields, each by another response."""
CONFIDENCE = 0.8


def made(record, tables, epsilon="1"):
    return Collection.create("?", record, "sampled-table", epsilon, opens=0, closes=1, parameters=parameters_of(tables))


def people(record, users):
    """Skewed: rare values, values that nearly everybody holds, and fields that go together."""
    place = np.arange(users)
    if record is BITS:
        rare = place % 37 == 0
        values = [rare, rare | (place % 50 == 1), place % 10 > 0, place % 2]
    else:
        values = [np.minimum(place % 9, 3), np.where(place % 9 < 3, place % 5, 0), place % 20 == 0]
    return np.array(values, np.int64)


def indexes(record, values):
    return sum(row * stride for row, stride in zip(values, record.strides, strict=False)).astype(np.uint64)


def asked(record, fields, where=()):
    return AskedTable(record, fields, tuple((place, frozenset(held)) for place, held in where))


def truth(record, values, question):
    inside = np.ones(values.shape[1], bool)
    for place, held in question.where:
        inside &= np.isin(values[place], list(held))
    if not question.fields:
        return np.bincount(inside.astype(int), minlength=2)
    rows, stride = 0, 1
    for place in question.fields:
        rows, stride = rows + stride * values[place], stride * record.sizes[place]
    return np.bincount(rows[inside], minlength=stride)


CASES = {
    "parities": (BITS, PARITIES, "1", [((0,), ()), ((1, 0), ()), ((3,), ((0, [1]),)), ((), ((2, [1]), (3, [0])))]),
    "parities of a large epsilon": (BITS, PARITIES, "5", [((2,), ()), ((0, 1), ()), ((3,), ((2, [0]),))]),
    "mixed": (MIXED, PAIRS, "1", [((0,), ()), ((2,), ()), ((1, 0), ()), ((0,), ((1, [1, 2]),)), ((), ((2, [1]),))]),
    "mixed, large epsilon": (MIXED, PAIRS, "4", [((2, 1), ()), ((0,), ((2, [0]),))]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("users", [60, 2000])
@pytest.mark.thinned(1)
def test_tables_slices_and_counts_hold_and_are_as_wide_as_stated(name, users, request):
    """Over all cells: bounds that fail once in ten thousand runs of the test. Runs of one crowd are independent."""
    record, tables, epsilon, questions = CASES[name]
    slow = request.config.getoption("--slow")
    runs, questions = (120, questions) if slow else (4, questions[-2:] if users < 100 else questions[:2])
    collection, values = made(record, tables, epsilon), people(record, users)
    oracles = [filled(collection.randomizer, indexes(record, values), 100 * users + run) for run in range(runs)]
    for fields, where in questions:
        question, right, z = asked(record, fields, where), [], []
        true = truth(record, values, question)
        for oracle in oracles:
            try:
                view = table_view(oracle, record, question)
            except TooFewReports:  # nobody drew a parity: that is told, and nothing is estimated
                continue
            cells, raw = np.arange(len(true), dtype=np.uint64), view.estimate_all()
            low, high = view.intervals(cells, raw, (1 - CONFIDENCE) / 2)
            right.append((low <= true) & (true <= high))
            z.append((raw - true) / view.standard_errors(cells, true.astype(float)))
        assert len(right) >= runs / 2
        hits = np.array(right).mean(axis=1)  # of one run, whose cells depend on each other
        assert hits.mean() > CONFIDENCE - 3.8 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / len(hits))
        together = np.array(z)
        assert abs(together.mean(axis=1).mean()) < 3.9 / math.sqrt(len(together))
        if users > 1000:  # the square of an error is near its variance, if all cells of a run had the same error
            assert chi2.ppf(1e-5, len(z)) < np.square(together).mean() * len(z) < chi2.isf(1e-5, len(z))


@pytest.mark.parametrize("name", ["parities", "mixed"])
@pytest.mark.thinned(1)
def test_intervals_of_picked_cells_and_of_the_rest_hold(name, request):
    """The largest cells are picked for errors that are positive: all their intervals at once, and that of the rest."""
    record, tables, epsilon, _ = CASES[name]
    runs = 120 if request.config.getoption("--slow") else 4
    collection, values = made(record, tables, epsilon), people(record, 700)
    table = RecordTable(collection, record.names[:2])
    true = truth(record, values, asked(record, (0, 1)))
    picked = rest = moved = 0
    for run in range(runs):
        found = top(
            table.collection,
            table.oracle(filled(collection.randomizer, indexes(record, values), run)),
            2,
            confidence=CONFIDENCE,
        )
        held = [true[table.collection.domain.index(row.item)] for row in found.rows]
        picked += all(row.low <= one <= row.high for row, one in zip(found.rows, held, strict=True))
        rest += found.everything_else.low <= len(values[0]) - sum(held) <= found.everything_else.high
        moved += sum(row.estimate - one for row, one in zip(found.rows, held, strict=True))
    least = runs * CONFIDENCE - 3.8 * math.sqrt(runs * CONFIDENCE * (1 - CONFIDENCE))
    assert min(picked, rest) >= least
    assert moved > 0  # they were picked for their errors: a test of fixed cells would not see it


def _exact(law, holders):
    """All sums and their probabilities, for independent reports."""
    found = {0.0: 1.0}
    for s, count in enumerate(law.counts.astype(int)):
        share = holders / law.users
        chances = law.outside[s] + share * (law.inside[s] - law.outside[s])
        for _ in range(count):
            grown = {}
            for (total, weight), (value, chance) in itertools.product(
                found.items(), zip(law.values[s], chances, strict=True)
            ):
                if chance:
                    key = round(total + value, 9)
                    grown[key] = grown.get(key, 0.0) + weight * chance
            found = grown
    return found


@pytest.mark.parametrize(
    ("counts", "told"),
    [((5,), (0.73,)), ((1,), (0.9,)), ((6, 3), (0.73, 0.73)), ((8, 2), (0.98, 0.7)), ((4, 4, 3), (0.6, 0.8, 0.95))],
)
@pytest.mark.thinned(1)
def test_intervals_of_a_few_reports_hold_by_counting_all_sums(counts, told, request):
    """Nothing is sampled: for every number of holders, the probability of all sums whose interval has it."""
    if len(counts) > 2 and not request.config.getoption("--slow"):
        counts = (2, 2, 1)  # the same with fewer sums
    p, n = np.array(told), float(sum(counts) * 3)
    scale = 1 / (2 * p - 1) / len(counts) * n / np.array(counts)
    values = np.stack([-(1 - p) * scale, p * scale], axis=1)
    law = MixtureLaw(n, np.array(counts, float), values, np.stack([1 - p, p], axis=1), np.stack([p, 1 - p], axis=1))
    for tail in (0.1, 0.025)[: 1 + request.config.getoption("--slow")]:
        for holders in (0.0, n // 3, n):
            sums = _exact(law, holders)
            low, high = law.intervals(np.array(list(sums)), tail)
            chance = np.array(list(sums.values()))
            assert chance[(low > holders)].sum() <= tail * 1.1 + 1e-9
            assert chance[(high < holders)].sum() <= tail * 1.1 + 1e-9
            assert chance[(low <= holders) & (holders <= high)].sum() >= 1 - 2.2 * tail


def test_projected_is_never_worse_than_raw():
    """A thousand crowds with errors of any size and any law: what is possible is convex, and holds the truth."""
    rng = np.random.default_rng(1)
    better = 0
    for _ in range(1000):
        cells, total = int(rng.integers(1, 40)), float(rng.integers(1, 5000))
        true = rng.multinomial(int(total), rng.dirichlet(np.full(cells, rng.uniform(0.01, 2)))).astype(float)
        raw = true + rng.standard_cauchy(cells) * rng.uniform(0, total)
        for project, inside in ((norm_sub, true), (below_simplex, true * rng.random())):
            found = project(raw - true + inside, total)
            error, before = np.linalg.norm(found - inside), np.linalg.norm(raw - true)
            assert error <= before * (1 + 1e-12) + 1e-9 * total
            assert found.min() >= 0 and found.sum() <= total * (1 + 1e-9)
            better += error < before * 0.99
    assert better > 1000


def test_a_table_of_what_was_not_asked_together_is_refused_with_a_way_out():
    collection, values = made(BITS, PARITIES), people(BITS, 500)
    oracle = filled(collection.randomizer, indexes(BITS, values), 1)
    with pytest.raises(Unsupported, match="a and b and c together: ask for tables of at most 2 fields"):
        table_view(oracle, BITS, asked(BITS, (0, 1, 2)))
    with pytest.raises(Unsupported, match="together"):
        table_view(oracle, BITS, asked(BITS, (0, 1), ((2, [1]),)))
    with pytest.raises(TooFewReports, match="no reports"):
        table_view(oracle_for(collection), BITS, asked(BITS, (0,)))
    alone = oracle_for(collection)
    alone.accumulate(pack(reports_of(collection.randomizer, np.zeros(1, np.uint64), 3), 1))
    with pytest.raises(TooFewReports, match="nobody was asked"):
        table_view(alone, BITS, asked(BITS, (0, 1)))


def test_the_state_adds_up_and_damage_is_seen():
    collection = made(MIXED, PAIRS)
    oracle = filled(collection.randomizer, indexes(MIXED, people(MIXED, 3000)), 1)
    assert oracle.counts.drawn().sum() == oracle.reports == 3000
    again = restore(collection, oracle.to_bytes())
    assert again.counts.values.tolist() == oracle.counts.values.tolist()
    oracle.counts.values[0] += 1  # a set with one cell too many
    with pytest.raises(ServerRefused, match="do not add up"):
        restore(collection, oracle.to_bytes())


def test_tables_that_share_fields_agree_about_them_before_anything_is_projected():
    for record, tables in ((MIXED, PAIRS), (BITS, PARITIES), (MIXED, [(1, 2, 0, 0), (3, 1, 2, 4), (6, 1, 3, 4)])):
        oracle = filled(made(record, tables).randomizer, indexes(record, people(record, 900)), 4)
        shapes = record.sizes
        first = table_view(oracle, record, asked(record, (0, 1))).estimate_all().reshape(shapes[:2], order="F")
        second = table_view(oracle, record, asked(record, (2, 1))).estimate_all().reshape(shapes[2:0:-1], order="F")
        single = table_view(oracle, record, asked(record, (1,))).estimate_all()
        assert first.sum(axis=0) == pytest.approx(single)
        assert second.sum(axis=0) == pytest.approx(single)
        assert single.sum() == pytest.approx(900)


def _trial(seed):
    """A crowd and a design of its own: sizes, shares, epsilon, forms and the number of users are drawn."""
    rng = np.random.default_rng(seed)
    binary = seed % 3 == 0
    sizes = [2] * 4 if binary else rng.integers(2, 7, 3).tolist()
    fields = [YES if size == 2 else Integers(1, size - 1) for size in sizes]
    record = Record(tuple(Field(name, field) for name, field in zip("abcd", fields, strict=False)))
    sets = [(1 << i, 3, 1, 0) for i in range(len(sizes))] if binary else []
    pairs = [1 << i | 1 << j for i in range(len(sizes)) for j in range(i)]
    forms = [(1, 0)] if binary else [(0, 0), (2, 2), (3, 3)]
    tables = sorted(sets + [(mask, int(rng.integers(1, 9)), *forms[mask % len(forms)]) for mask in pairs])
    users = int(rng.integers(200, 4000))
    kinds = [rng.dirichlet(np.full(size, rng.uniform(0.05, 1)), 2) for size in sizes]
    kind = rng.random(users) < 0.5
    values = np.array(
        [np.where(kind, rng.choice(len(a[0]), users, p=a[0]), rng.choice(len(a[0]), users, p=a[1])) for a in kinds]
    )
    return record, tables, str(rng.choice(["0.5", "1", "3"])), values


@pytest.mark.long
def test_all_tables_made_possible_agree_and_are_together_never_worse_than_raw(request):
    """In every trial, over all tables of the question: what is possible is convex, and holds the truth."""
    better = trials = 0
    for seed in range(1000 if request.config.getoption("--slow") else 60):
        record, tables, epsilon, values = _trial(seed)
        oracle = filled(made(record, tables, epsilon).randomizer, indexes(record, values), seed)
        found = pooling(oracle, record)
        if not found.possible:  # nobody drew some table
            continue
        before = after = 0.0
        singles = {}
        for places, table in found.possible.items():
            true = truth(record, values, asked(record, places)).reshape(table.shape, order="F")
            before += float(np.square(found.table(places) - true).sum())
            after += float(np.square(table - true).sum())
            assert table.min() >= 0
            assert table.sum() == pytest.approx(values.shape[1])
            for axis, place in enumerate(places):
                sums = table.sum(axis=tuple(one for one in range(table.ndim) if one != axis))
                assert sums == pytest.approx(singles.setdefault(place, sums), abs=1e-6 * values.shape[1])
        assert after <= before * (1 + 1e-6)
        better += after < before * 0.9
        trials += 1
    assert trials > 50
    assert better > trials / 4


def test_possible_values_that_are_asked_for_agree():
    oracle = filled(made(MIXED, PAIRS).randomizer, indexes(MIXED, people(MIXED, 400)), 4)
    views = {fields: table_view(oracle, MIXED, asked(MIXED, fields)) for fields in ((1, 0), (1, 2), (1,))}
    sums = [view.possible(view.estimate_all()).reshape(5, -1, order="F").sum(axis=1) for view in views.values()]
    assert sums[0] == pytest.approx(sums[1], abs=0.01)
    assert sums[0] == pytest.approx(sums[2], abs=0.01)
    alone = views[1, 0].estimate_all()
    assert alone.min() < 0  # there was something to make possible
    sliced = table_view(oracle, MIXED, asked(MIXED, (1,), ((2, [1]),)))
    assert sliced.possible(sliced.estimate_all()).sum() <= 400


@pytest.mark.parametrize("alone", [(1, 40, 0, 0), (2, 40, 2, 2)])
def test_a_single_that_is_drawn_by_itself_helps_its_pairs_and_they_help_it(alone):
    """Stated errors fall; that they are true is the test of tables above. Without pooling neither would change."""
    pairs = [(3, 20, 2, 4), (6, 20, 3, 4)]
    values = indexes(MIXED, people(MIXED, 3000))
    field = alone[0].bit_length() - 1

    def error(oracle):
        view = table_view(oracle, MIXED, asked(MIXED, (field,)))
        cells = np.arange(view.listed, dtype=np.uint64)
        return float(np.mean(np.square(view.standard_errors(cells, np.full(len(cells), 10.0)))))

    oracle = filled(made(MIXED, sorted([alone, *pairs])).randomizer, values, 3)
    drawn = int(oracle.counts.drawn()[oracle.tables.index(next(one for one in oracle.tables if len(one.places) == 1))])
    only = error(filled(made(MIXED, [alone]).randomizer, values, 3)) * oracle.reports / drawn
    assert error(oracle) < only * 0.99  # nothing but the draws' own reports, if tables were not pooled


def test_a_sum_of_cells_is_known_better_than_its_cells_by_themselves():
    oracle = filled(made(BITS, PARITIES).randomizer, indexes(BITS, people(BITS, 3000)), 3)
    view = table_view(oracle, BITS, asked(BITS, (0, 1)))
    cells = np.arange(4, dtype=np.uint64)
    raw = view.estimate_all()
    assert view.sum_variance(cells[:2], raw[:2]) < float(np.square(view.standard_errors(cells[:2], raw[:2])).sum())
    single = table_view(oracle, BITS, asked(BITS, (1,))).estimate_all()
    assert raw[:2].sum() == pytest.approx(single[0])


def test_a_slice_of_all_values_is_no_slice_and_one_of_a_field_that_is_asked_is_empty_elsewhere():
    oracle = filled(made(MIXED, PAIRS).randomizer, indexes(MIXED, people(MIXED, 3000)), 3)
    cells = np.arange(4, dtype=np.uint64)
    plain, sliced = (table_view(oracle, MIXED, asked(MIXED, (0,), where)) for where in ((), ((2, [0, 1]),)))
    assert sliced.estimate_all() == pytest.approx(plain.estimate_all())
    for one, other in zip(
        sliced.intervals(cells, sliced.estimate_all(), 0.05),
        plain.intervals(cells, plain.estimate_all(), 0.05),
        strict=True,
    ):
        assert np.abs(one - other).max() <= 3
    own = table_view(oracle, MIXED, asked(MIXED, (0,), ((0, [1, 2]),)))
    low, high = own.intervals(cells, own.estimate_all(), 0.05)
    assert own.estimate_all()[[0, 3]].tolist() == low[[0, 3]].tolist() == high[[0, 3]].tolist() == [0, 0]
    assert own.estimate_all()[1:3] == pytest.approx(plain.estimate_all()[1:3])
    everybody = table_view(oracle, MIXED, asked(MIXED, (), ((1, range(5)),)))
    low, high = everybody.intervals(cells[:2], everybody.estimate_all(), 0.05)
    assert (low[1], high[1]) == (3000, 3000)


def test_all_cells_of_a_table_are_everybody():
    collection, values = made(MIXED, [(7, 1, 0, 0)], "4"), people(MIXED, 800)
    view = table_view(filled(collection.randomizer, indexes(MIXED, values), 2), MIXED, asked(MIXED, (2, 0)))
    cells = np.arange(8, dtype=np.uint64)
    assert view.sum_variance(cells, view.estimate_all()) == 0
    assert view.sum_interval(cells, view.estimate_all(), 0.05) == (800, 800)
    assert view.estimate_all().sum() == pytest.approx(800)
    half = cells[:4]
    low, high = view.sum_interval(half, view.estimate(half), 0.025)
    assert low <= view.estimate(half).sum() <= high
