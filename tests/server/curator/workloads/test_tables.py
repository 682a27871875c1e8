"""Tables and averages: their price on every small data set, their intervals, and the cells that they are about."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import every_law, largest_loss, law_of, worst_delta, worst_divergence
from benchmarks.curator.wrong import AddRemoveTables, SumAlone
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.kinds import WorkloadWish, workload_mechanism
from ldp_server.curator.workloads.tables import GaussianTables, LaplaceTables
from ldp_server.curator.workloads.universe import Workload, encoded, pairs
from tests.server.curator.seeded import Seeded

BITS = Record((Field("a", YesNo(none_is_no=True)), Field("b", YesNo(none_is_no=True))))
SINGLES = Workload(BITS, (("a",), ("b",)))
ALONE = Workload(BITS, (("a",),))
MIXED = Record((Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 3)), Field("dark", YesNo())))
ONE, FOUR, DRAWS = Fraction(1), Fraction(4), ExactDraws()


# -- cells


def test_a_table_counts_what_the_domain_of_records_counts():
    """The cells of a table are the indexes of the record of its fields, in its own order of the fields."""
    work = Workload(MIXED, (("age", "plan"), ("dark",), ("plan", "age", "dark")))
    rng = np.random.default_rng(1)
    records = rng.integers(0, MIXED.size, 500).tolist()
    histogram = work.histogram(records)
    for table, names in enumerate(work.tables):
        part = MIXED.part(names)
        held = [MIXED.item(index) or dict.fromkeys(MIXED.names) for index in records]
        truth = np.bincount([part.index({name: one[name] for name in names}) for one in held], minlength=part.size)
        assert work.counted(table, records).tolist() == truth.tolist()
        for people in (records, records[: MIXED.size - 1], [*records, None]):
            found = work.every_count(people)[table]
            assert found.dtype == np.int64
            assert found.tolist() == work.counted(table, people).tolist()
        assert work.of_cells(table, histogram).tolist() == truth.tolist()
        spread = np.broadcast_to(work.spread(table, truth.astype(float)), MIXED.sizes).ravel(order="F")
        assert spread[records[0]] == truth[part.index({name: held[0][name] for name in names})]
        assert [part.index(item) for item in work.items(table)] == list(range(part.size))


def test_columns_of_text_become_cells():
    found = encoded(MIXED, [["free", "paid", None, "gold"], ["0", "3", "9", None], ["yes", "no", None, "TRUE"]])
    want = [{"plan": "free", "age": 0, "dark": True}, {"plan": "paid", "age": 3, "dark": False}, None, None]
    assert found == [MIXED.index(one) for one in want]


def test_a_workload_that_makes_no_sense_is_refused():
    for tables in ((), (("plan",), ("plan",)), (("plan", "plan"),), (("town",),), ((),)):
        with pytest.raises(InvalidSpec):
            Workload(MIXED, tables)
    huge = Record(tuple(Field(f"f{k}", Integers(0, 30)) for k in range(8)))
    with pytest.raises(InvalidSpec, match="leave fields out"):
        Workload(huge, (("f0",),)).histogram([0])
    with pytest.raises(InvalidSpec, match="cells together"):
        Workload(huge, (tuple(huge.names[:5]),))
    assert LaplaceTables(Workload(huge, (("f0", "f7"),)), ONE).run([5] * 9, DRAWS).rows


# -- the price


CELLS = (0, 1, 2, 3)


def test_the_realised_loss_of_tables_is_their_price():
    assert worst_delta(every_law(LaplaceTables(ALONE, FOUR), (1,), 1, 1e-7), (1,), 4.0) <= 1e-6
    two = every_law(LaplaceTables(SINGLES, Fraction(16)), (3,), 1, 1e-4)
    assert largest_loss(*two.values()) == pytest.approx(16, abs=1e-6)
    laws = every_law(GaussianTables(ALONE, ONE), (1,), 1, 1e-9)
    for order in (1.1, 2.0, 4.0):
        assert worst_divergence(laws, (1,), order) <= order * (1 + 1e-6)


def test_noise_for_one_added_person_is_caught():
    assert worst_delta(every_law(AddRemoveTables(ALONE, FOUR), (1,), 1), (1,), 4.0) > 0.01


def average_loss(made, people):
    """The largest epsilon over all neighbours, from the law of the three noises in closed form.

    The noises are independent, and the loss of a discrete Laplace draw is its shift over its scale, reached in a tail.
    """
    values = [*range(made.lowest, made.highest + 1), None]
    worst = 0.0
    for one, other in itertools.product(values, values):
        sums = []
        for value in (one, other):
            z = None if value is None else 2 * value - made.lowest - made.highest
            sums.append((0, 0, 0) if z is None else (1, z, z * z))
        shifts = zip(*sums, made.scales, strict=True)
        worst = max(worst, sum(abs(a - b) / scale for a, b, scale in shifts))
    del people
    return worst


@pytest.mark.parametrize("ends", [(0, 1), (0, 10), (-7, 20)])
def test_the_three_sums_cost_what_the_sum_alone_costs(ends):
    made = LaplaceAverage(*ends, FOUR)
    assert average_loss(made, 2) == pytest.approx(4.0, abs=1e-9)
    wrong = SumAlone(*ends, FOUR)
    assert average_loss(wrong, 2) > 4.9


def test_the_law_of_an_average_is_that_of_its_sums():
    """The code itself, over all outcomes: one person with the lowest number, with the highest, with none."""
    made = LaplaceAverage(0, 1, Fraction(10))
    laws = [
        law_of(lambda draws, one=one: tuple(row.count for row in made.run([one, "0"], draws).rows), 1e-5)  # type: ignore[misc]
        for one in ("0", "1", None)
    ]
    for a, b in itertools.combinations(laws, 2):
        assert largest_loss(a, b) <= 10 + 1e-6
    assert largest_loss(laws[0], laws[1]) == pytest.approx(10, abs=1e-6)


# -- what is promised


def test_cells_lie_in_their_intervals():
    draws = Seeded(1)
    work = Workload(MIXED, pairs(MIXED))
    made = LaplaceTables(work, ONE)
    records = np.random.default_rng(3).integers(0, MIXED.size, 2000).tolist()
    truth = [int(one) for table in range(len(work.tables)) for one in work.counted(table, records)]
    inside = [row.low <= one <= row.high for row, one in zip(made.run(records, draws).rows, truth, strict=True)]
    for _ in range(9):
        rows = made.run(records, draws).rows
        inside += [row.low <= one <= row.high for row, one in zip(rows, truth, strict=True)]
    assert len(inside) == 330
    assert np.mean(inside) >= 0.92  # 95% each: fewer with a probability of 1e-3


@pytest.mark.parametrize("records", [["0"] * 3, ["100"] * 40, ["0", "100", None] * 30, [None] * 9 + ["7"]])
def test_the_average_lies_in_its_interval(records):
    """Also with few people, whose count the noise may hide."""
    draws = Seeded(1)
    made = LaplaceAverage(0, 100, ONE)
    held = [int(one) for one in records if one is not None]
    right = 0
    for _ in range(100):
        low, high = made.ends(made.run(records, draws).rows, len(records))
        right += low <= sum(held) / len(held) <= high
    assert right >= 88  # of 100 with 95% or more each: fewer with a probability under 1e-2.5


def test_the_spread_is_that_of_one_number():
    records = [str(v) for v in np.random.default_rng(5).normal(40, 12, 20_000).round().clip(0, 100).astype(int)]
    told = LaplaceAverage(0, 100, ONE).run(records, DRAWS).details["average"]
    assert told["average"] == pytest.approx(40, abs=0.3)
    assert told["spread"] == pytest.approx(144, abs=8 * told["spread_error"] + 3)
    nobody = LaplaceAverage(0, 100, Fraction(100)).run([None] * 5, DRAWS).details["average"]
    assert nobody["average"] is None
    outside = LaplaceAverage(0, 10, Fraction(100)).run(["-5", "99"] * 50, DRAWS).details["average"]
    assert outside["average"] == pytest.approx(5, abs=0.2)
    assert math.isfinite(outside["noise_variance"])


def test_wishes_without_what_they_need():
    for wish, said in (
        (WorkloadWish("tables", "laplace", epsilon=ONE), "--field"),
        (WorkloadWish("tables", "laplace", record=MIXED), "--epsilon"),
        (WorkloadWish("average", "laplace", epsilon=ONE), "--range"),
        (WorkloadWish("average", "gaussian", rho=ONE, ends=(0, 1)), "--noise laplace"),
        (WorkloadWish("average", "laplace", epsilon=ONE, ends=(1, 1)), "--range"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            workload_mechanism(wish)
    assert workload_mechanism(WorkloadWish("tables", "gaussian", rho=ONE, record=MIXED)).price.rho == 1
