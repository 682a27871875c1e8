"""Tables of records at the expected counts: the truth, whatever is asked of them. And the small steps on the way.

If there are as many reports of each number as there are on average, every unbiased estimate is the truth. So each
table, slice and sum that can be asked for is compared with the crowd itself; no chance is in it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.oracles.records.averages import CellLaw
from ldp_server.oracles.records.parts import DrawnPart, centred, marginal
from ldp_server.oracles.records.sampled_grid.sums import GridReports
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.together.joint import all_possible
from ldp_server.oracles.records.view import drawn_view, likely_parts, pooling, table_view
from tests.examples import whole_table

YES = YesNo(none_is_no=True)
BITS = Record(tuple(Field(name, YES) for name in "abc"))
MIXED = Record((Field("a", Integers(0, 2)), Field("b", Categories(tuple("xyz"))), Field("c", YES)))
PARITIES = [(1, 3, 1, 0), (2, 1, 1, 0), (3, 2, 1, 0), (4, 1, 1, 0), (5, 1, 1, 0), (6, 2, 1, 0)]
RESPONSES = [(3, 2, 0, 0), (5, 1, 0, 0), (6, 1, 0, 0)]
HASHES = [(3, 2, 2, 4), (5, 1, 3, 3), (6, 1, 2, 4)]
WHOLE = [(7, 1, 0, 0)]
QUESTIONS = {
    "parities": (BITS, PARITIES), "responses": (MIXED, RESPONSES), "hashes": (MIXED, HASHES), "whole": (MIXED, WHOLE),
}  # fmt: skip


MANY = 1e9
"""Users of one of the crowd's, so that whole counts are near enough."""


def crowd_of(record):
    return MANY * np.random.default_rng(record.size).integers(0, 30, record.size).astype(float)


def expected(randomizer, crowd):
    """The oracle with the expected counts, rounded."""
    law = whole_table(randomizer)
    oracle = oracle_for(randomizer)
    adds = np.zeros((randomizer.bound, len(oracle.counts.values)))
    for report in range(randomizer.bound):
        one = oracle_for(randomizer)
        one.accumulate(report.to_bytes(randomizer.report_bytes, "little"))
        adds[report] = one.counts.values
    oracle.counts.values = np.rint(crowd @ law @ adds).astype(np.uint64)
    oracle.counts.total = int(crowd.sum())
    return oracle


def near(found, wanted):
    """Equal, but for the rounding of the counts."""
    return np.abs(np.asarray(found) - wanted).max() < 1e-6 * MANY


@pytest.fixture(scope="module", params=QUESTIONS)
def asked(request):
    record, tables = QUESTIONS[request.param]
    collection = Collection.create(
        "?", record, "sampled-table", "2", opens=0, closes=1, parameters=parameters_of(tables)
    )
    crowd = crowd_of(record)
    oracle = expected(collection.randomizer, crowd)
    return record, crowd.reshape(record.sizes, order="F"), oracle


def truth(table, fields, where=()):
    """The users in each cell of the fields, of those whose values are in the slices."""
    for place, held in where:
        keep = np.isin(np.arange(table.shape[place]), list(held))
        table = np.where(np.expand_dims(keep, [i for i in range(table.ndim) if i != place]), table, 0.0)
    sums = table.sum(axis=tuple(i for i in range(table.ndim) if i not in fields))
    order = sorted(fields)
    return np.transpose(sums, [order.index(one) for one in fields]).ravel(order="F") if fields else sums.ravel()


@pytest.mark.parametrize("fields", [(0,), (1,), (2,), (0, 1), (1, 0), (2, 1), (0, 2)])
def test_every_table_is_the_crowd(asked, fields):
    record, table, oracle = asked
    view = table_view(oracle, record, AskedTable(record, fields, ()))
    assert near(view.estimate_all(), truth(table, fields))
    assert view.listed == len(view.estimate_all()) and view.can_list
    some = np.array([view.listed - 1, 0], np.uint64)
    assert near(view.estimate(some), truth(table, fields)[[-1, 0]])
    assert view.possible(view.estimate_all()).sum() == pytest.approx(table.sum())
    assert view.sum_variance(np.arange(view.listed, dtype=np.uint64), view.estimate_all()) == 0.0
    assert view.sum_interval(np.arange(view.listed, dtype=np.uint64), view.estimate_all(), 0.025) == (
        table.sum(), table.sum(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "where"), [((0,), ((1, (1,)),)), ((2,), ((0, (0, 1)),)), ((1,), ((2, (1,)),)), ((0,), ((0, (1,)),))]
)
def test_a_slice_counts_its_users_alone(asked, fields, where):
    record, table, oracle = asked
    question = AskedTable(record, fields, tuple((place, frozenset(held)) for place, held in where))
    view = table_view(oracle, record, question)
    assert near(view.estimate_all(), truth(table, fields, where))
    assert view.possible(view.estimate_all()).sum() <= table.sum() * (1 + 1e-9)
    low, high = view.intervals(np.arange(view.listed, dtype=np.uint64), view.estimate_all(), 0.025)
    assert (low <= truth(table, fields, where) + MANY / 1e6).all()
    assert (high >= truth(table, fields, where) - MANY / 1e6).all()
    errors = view.standard_errors(np.arange(view.listed, dtype=np.uint64), view.estimate_all())
    assert (errors >= 0).all() and errors.max() > 0


def test_a_slice_of_every_value_has_the_intervals_of_no_slice(asked):
    """A parity of the two fields says nothing more then: no cell differs from a row in the field of the slice."""
    record, table, oracle = asked
    every = ((0, frozenset(range(record.sizes[0]))),)
    plain, sliced = (table_view(oracle, record, AskedTable(record, (2,), where)) for where in ((), every))
    cells = np.arange(plain.listed, dtype=np.uint64)
    for one, other in zip(
        *(view.intervals(cells, view.estimate_all(), 0.025) for view in (plain, sliced)), strict=True
    ):
        assert np.abs(one - other).max() < 3e-5 * MANY
    assert near(sliced.estimate_all(), truth(table, (2,)))


def test_how_many_are_in_a_slice(asked):
    record, table, oracle = asked
    question = AskedTable(record, (), ((2, frozenset((1,))),))
    found = table_view(oracle, record, question).estimate_all()
    inside = float(truth(table, (), ((2, (1,)),))[0])
    assert near(found, [table.sum() - inside, inside])


def test_what_was_not_drawn_together(asked):
    record, _, oracle = asked
    every = AskedTable(record, (0, 1, 2), ())
    if len(oracle.tables) == 1:
        assert len(drawn_view(oracle, record, every).estimate_all()) == record.size
        return
    with pytest.raises(Unsupported, match="no device is asked about a and b and c together: ask for tables of at"):
        table_view(oracle, record, every)
    with pytest.raises(Unsupported, match=f"that one of the {len(oracle.tables)} drawn tables has"):
        drawn_view(oracle, record, every)


def test_the_chance_of_each_table_is_known(asked):
    record, _, oracle = asked
    parts = likely_parts(oracle, record)
    assert sum(one.chance for one in parts) == pytest.approx(1)
    assert len(parts) == len(oracle.tables) == len(pooling(oracle, record).parts)
    assert [one.chance for one in parts] == oracle.likely


def test_before_the_first_report():
    collection = Collection.create(
        "?", BITS, "sampled-table", "2", opens=0, closes=1, parameters=parameters_of(PARITIES)
    )
    with pytest.raises(TooFewReports, match="no reports yet"):
        table_view(oracle_for(collection), BITS, AskedTable(BITS, (0,), ()))
    oracle = oracle_for(collection)
    oracle.accumulate(bytes([0]) * collection.randomizer.report_bytes)
    with pytest.raises(TooFewReports, match="nobody was asked about these fields together yet"):
        table_view(oracle, BITS, AskedTable(BITS, (0, 1), ()))


# -- sums and effects


def test_sums_of_a_table_and_what_is_left_without_its_means():
    table = np.arange(24.0).reshape(2, 3, 4)
    assert marginal(table, (1, 4, 7), (4,)).tolist() == table.sum(axis=(0, 2)).tolist()
    assert marginal(table, (1, 4, 7), (1, 7)).tolist() == table.sum(axis=1).tolist()
    assert marginal(table, (1, 4, 7), ()) == table.sum()
    found = centred(table * table)
    for axis in range(3):
        assert np.abs(found.sum(axis=axis)).max() < 1e-9
    assert np.abs(centred(table)).max() < 1e-9  # a sum of single effects has none of all three
    assert np.abs(centred(found) - found).max() < 1e-9


def part_of(randomizer, sizes, parity=False):
    return DrawnPart(tuple(range(len(sizes))), sizes, parity, oracle_for(randomizer))


@pytest.mark.parametrize(
    "randomizer",
    [RandomizedResponse(Epsilon("1"), 6), SubsetSelection(Epsilon("1"), 6, 2), LinearHash(Epsilon("1"), 6, 2, 3)],
)
def test_what_one_report_adds_has_the_exact_moments(randomizer):
    """The sum of g over the supported cells, for every user and report: mean, variance and third moment of its law."""
    g = np.array([2.0, -1.0, -1.0, 0.5, 0.5, -1.0])
    classes, sizes = np.array([2.0, -1.0, 0.5]), np.array([1.0, 3.0, 2.0])
    part = part_of(randomizer, (2, 3))
    law = np.array([[float(randomizer.probability(x, y)) for y in range(randomizer.bound)] for x in range(6)])
    supports = np.array([_supported(randomizer, y) for y in range(randomizer.bound)])
    p, s = part.told
    assert pytest.approx(np.where(np.eye(6, dtype=bool), p, s), abs=1e-9) == supports.T @ law.T
    atoms = part.atoms(classes, sizes, 1.0)
    assert atoms.chances.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    for line, one in enumerate(classes):
        user = int(np.flatnonzero(g == one)[0])
        added = supports @ g
        mean = float(law[user] @ added)
        found = float(atoms.chances[line] @ atoms.values)
        assert found == pytest.approx(mean, abs=1e-9)
        spread = float(law[user] @ (added - mean) ** 2)
        assert float(atoms.chances[line] @ (atoms.values - found) ** 2) == pytest.approx(spread, rel=0.35)
        if not isinstance(randomizer, LinearHash):
            assert float(atoms.chances[line] @ (atoms.values - found) ** 2) == pytest.approx(spread, rel=1e-9)
            third = float(law[user] @ (added - mean) ** 3)
            assert float(atoms.chances[line] @ (atoms.values - found) ** 3) == pytest.approx(third, rel=1e-6, abs=1e-9)


def _supported(randomizer, report):
    """Which cells a report supports, as counted by the oracle: what it adds to each estimate, without the mean."""
    one, none = oracle_for(randomizer), oracle_for(randomizer)
    one.counts.values = np.zeros(len(one.counts.values))
    one.accumulate(int(report).to_bytes(randomizer.report_bytes, "little"))
    p, s = (one.law.p, one.law.s)
    none.counts.total = 1
    return np.rint(one.estimate_all() * (p - s) + s)


def test_the_noise_of_a_part_is_that_of_an_even_crowd():
    for randomizer in (RandomizedResponse(Epsilon("1"), 6), SubsetSelection(Epsilon("1"), 6, 2)):
        part, (p, s) = part_of(randomizer, (2, 3)), part_of(randomizer, (2, 3)).told
        law = np.array([[float(randomizer.probability(x, y)) for y in range(randomizer.bound)] for x in range(6)])
        supports = np.array([_supported(randomizer, y) for y in range(randomizer.bound)])
        e = np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])  # of an effect: it adds up to 0
        even = law.mean(axis=0)
        variance = float(even @ (supports @ e / (p - s)) ** 2)
        assert part.noise / 6 * float(e @ e) == pytest.approx(variance, rel=1e-9)


def test_a_parity_knows_its_own_fields_alone():
    parity = part_of(RandomizedResponse(Epsilon("1"), 2), (2, 2), parity=True)
    table = part_of(RandomizedResponse(Epsilon("1"), 4), (2, 2))
    for subset in map(frozenset, ((), (0,), (0, 1), (2,))):
        assert table.knows(subset) == (2 not in subset)
        assert parity.knows(subset) == (subset == {0, 1})
    atoms = parity.atoms(np.array([3.0, -3.0]), np.array([2.0, 2.0]), 1.0)
    p = parity.told[0]
    assert atoms.values.tolist() == [3.0, -3.0]
    assert atoms.chances == pytest.approx(np.array([[p, 1 - p], [1 - p, p]]))


# -- all tables at once


def test_tables_that_are_possible_stay_as_they_are():
    table = np.array([[3.0, 4.0, 5.0], [1.0, 0.0, 7.0]])
    given = {(0, 1): table, (0,): table.sum(axis=1), (1,): table.sum(axis=0)}
    found = all_possible(20, (2, 3), given)
    for places, wanted in given.items():
        assert found[places] == pytest.approx(wanted, abs=1e-9)


def test_the_nearest_possible_table_by_itself_is_the_projection():
    raw = np.array([[9.0, -4.0], [2.0, 13.0]])
    found = all_possible(20, (2, 2), {(0, 1): raw})[0, 1]
    assert found.sum() == pytest.approx(20) and found.min() >= 0
    assert found == pytest.approx(np.array([[23 / 3, 0.0], [2 / 3, 35 / 3]]), abs=0.01)


def test_possible_tables_agree_and_none_is_negative():
    """Pairs of three fields of sizes 2, 3 and 2, which agreed and were negative in places."""
    rng = np.random.default_rng(3)
    whole = rng.normal(5, 9, (2, 3, 2))
    whole += (60 - whole.sum()) / whole.size
    given = {pair: marginal(whole, (0, 1, 2), pair) for pair in itertools.combinations(range(3), 2)}
    assert min(table.min() for table in given.values()) < 0
    found = all_possible(60, (2, 3, 2), given)
    for one, other in itertools.permutations(found, 2):
        (shared,) = set(one) & set(other)
        assert marginal(found[one], one, (shared,)) == pytest.approx(marginal(found[other], other, (shared,)), abs=0.02)
    assert all(table.min() >= 0 and table.sum() == pytest.approx(60, abs=0.02) for table in found.values())


# -- averages and maps


@pytest.mark.parametrize("inner", [RandomizedResponse(Epsilon("1"), 7), LinearHash(Epsilon("1"), 7, 3, 2)])
def test_the_law_of_a_cell_s_two_elements(inner):
    """Supported by a report: neither, down alone, up alone, both. By the exact law, for each kind of user."""
    law = np.array([[float(inner.probability(x, y)) for y in range(inner.bound)] for x in range(7)])
    supports = np.array([_supported(inner, y) for y in range(inner.bound)]) > 0.5
    found = CellLaw.of(inner)
    down, up = supports[:, 3], supports[:, 4]
    kinds = [~down & ~up, down & ~up, ~down & up, down & up]
    assert found.down == pytest.approx([float(law[3][kind].sum()) for kind in kinds], abs=1e-9)
    assert found.up == pytest.approx([float(law[4][kind].sum()) for kind in kinds], abs=1e-9)
    for user in (0, 1, 6):
        assert found.other == pytest.approx([float(law[user][kind].sum()) for kind in kinds], abs=1e-9)
    p, s = float(law[3][down].sum()), float(law[0][down].sum())
    assert (found.gap, found.chance) == pytest.approx((p - s, s))
    half = found.inside(np.array([0.0, 0.25, 1.0]))
    assert half == pytest.approx(np.array([found.down, 0.75 * found.down + 0.25 * found.up, found.up]))


def test_the_spread_of_a_cell_s_sum():
    law = CellLaw.of_response(0.6, 0.1)
    mean = 0.25
    values = np.array([0.0, -mean, 1 - mean, 1 - 2 * mean])
    inside = 0.75 * np.array([0.3, 0.6, 0.1, 0.0]) + 0.25 * np.array([0.3, 0.1, 0.6, 0.0])
    other = np.array([0.8, 0.1, 0.1, 0.0])

    def variance(chances):
        return float(chances @ values**2 - (chances @ values) ** 2)

    found = law.deviations(np.array([mean]), np.array([30.0]), 100.0)
    assert found == pytest.approx([math.sqrt(30 * variance(inside) + 70 * variance(other))])


@pytest.mark.parametrize("response", [RandomizedResponse(Epsilon("1"), 5), LinearHash(Epsilon("1"), 5, 2, 3)])
def test_a_weighted_sum_of_a_grid_s_cells(response):
    """What is read off the counts is the spread of what each report adds, by adding it up report by report."""
    rng = np.random.default_rng(2)
    counts, weights = rng.integers(0, 9, response.bound), np.array([0.0, 1.0, -2.0, 0.5, 0.0])
    users = float(counts.sum())
    part = GridReports(response, counts, 3 * users, users)
    p, s = part.law
    supports = np.array([_supported(response, y) for y in range(response.bound)])
    h = 3 * (supports @ weights - s * weights.sum()) / (p - s)
    total = float(counts @ h)
    found = part.sum(weights)
    assert found.read_off == pytest.approx(float(counts @ h**2) - total**2 / users)
    assert part.noise == pytest.approx(9 * users * s * (1 - s) / (p - s) ** 2)
    assert found.lies == pytest.approx(5.25 * part.noise)
    assert found.per_user == pytest.approx(3 * p / (p - s) ** 2 * (weights - total / (3 * users)) ** 2)
    held = part.variances(np.array([0.0, users, 9 * users]))
    f = np.array([0.0, users / 3, users])
    assert held == pytest.approx(9 * (f * p * (1 - p) + (users - f) * s * (1 - s)) / (p - s) ** 2)


def test_a_map_s_grids_at_the_expected_counts():
    record = Record((Field("x", Integers(0, 8)), Field("y", Integers(0, 4))))
    grid = SampledGrid(Epsilon("2"), record, 4, 2, 2, 2, 1, 1, 0, 0)
    crowd = np.zeros(record.size)
    crowd[1 + 9 * 1 : 1 + 9 * 1 + 8] = 3e9, 1e9, 0.0, 2e9, 5e8, 5e8, 4e9, 0.0
    crowd[0] = 15e8
    oracle = expected(grid, crowd)
    assert oracle._users().sum() == pytest.approx(crowd.sum(), rel=1e-7)
    assert all(one.most == one.least for one in oracle.teams())
    held = crowd.reshape(record.sizes, order="F")[1:, 1:]
    for x, y in (((0, 3), (0, 3)), ((4, 7), (0, 1)), ((2, 5), (1, 1)), ((0, 7), (2, 3)), ((0, 7), (0, 3))):
        found = oracle.area(x, y, 0.95)
        inside = held[x[0] : x[1] + 1, y[0] : y[1] + 1].sum()
        assert found.low - 1e-6 * MANY <= inside <= found.high + 1e-6 * MANY
    assert oracle.holders() == pytest.approx(held.sum(), rel=1e-6)
    with pytest.raises(TooFewReports, match="a grid of the map has no reports yet"):
        oracle_for(grid).agreed()
