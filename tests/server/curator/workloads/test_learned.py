"""Parities, MWEM and the fit: their price over all outcomes, printed variants that are caught, and their promises."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import every_law, largest_loss, law_of, worst_divergence
from benchmarks.curator.wrong import AddRemoveFourier, PrintedMwem
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads import mwem
from ldp_server.curator.workloads.fit import Measured, answers, distribution, fitted, uniform
from ldp_server.curator.workloads.fourier import GaussianFourier, LaplaceFourier, parities_of
from ldp_server.curator.workloads.mwem import MwemTables
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload, pairs
from tests.server.curator.seeded import Seeded

ONE, DRAWS = Fraction(1), ExactDraws()


def bits(count):
    return Record(tuple(Field(f"f{k}", YesNo(none_is_no=True)) for k in range(count)))


def people(rng, count, fields):
    """Three kinds of people, each with its own frequency of each field."""
    kinds = rng.choice(3, count, p=(0.5, 0.3, 0.2))
    held = rng.random((count, fields)) < rng.beta(0.6, 0.6, (3, fields))[kinds]
    return (held @ (1 << np.arange(fields))).tolist()


def error(mechanism, records):
    """The mean error of a cell, as a share."""
    work = mechanism.workload
    truth = np.concatenate([work.counted(table, records) for table in range(len(work.tables))])
    found = np.array([row.count for row in mechanism.run(records, DRAWS).rows])
    return float(np.abs(found - truth).mean()) / len(records)


# -- parities


def test_cells_come_from_their_parities():
    """Without noise they are the counts, for tables of any order of fields."""
    work = Workload(bits(4), (("f2", "f0"), ("f1",), ("f3", "f1", "f0")))
    records = people(np.random.default_rng(1), 300, 4)
    rows = LaplaceFourier(work, Fraction(1000)).run(records, DRAWS).rows
    truth = [int(one) for table in range(3) for one in work.counted(table, records)]
    assert [row.count for row in rows] == truth
    assert parities_of([0b1011, 0b0001, None], [(0,), (0, 1), (2,)]) == [2, 1, 0]


PAIR = Workload(bits(2), (("f0", "f1"),))


def told(mechanism, records):
    """The law of the noisy parities: the cells follow from them."""
    return law_of(lambda draws: tuple(mechanism._noisy(parities_of(records, mechanism.subsets), draws)), 1e-5)


def test_the_realised_loss_of_parities_is_their_price():
    """Two records that differ in everything that is told: 00 and 10 differ in two parities, 01 and 11 in one."""
    made, wrong = LaplaceFourier(PAIR, Fraction(9)), AddRemoveFourier(PAIR, Fraction(9))
    laws = {cell: told(made, [cell]) for cell in range(4)}
    losses = [largest_loss(laws[one], laws[other]) for one, other in itertools.combinations(laws, 2)]
    assert max(losses) == pytest.approx(9, abs=1e-6)
    assert largest_loss(told(wrong, [0]), told(wrong, [1])) == pytest.approx(18, abs=1e-6)
    for fields in (3, 5):
        wide = LaplaceFourier(Workload(bits(fields), (*pairs(bits(fields)), ("f0", "f1", "f2"))), ONE)
        every = range(1 << fields)
        odd = [parities_of([cell], wide.subsets) for cell in every]
        assert wide.moved == max(sum(a != b for a, b in zip(odd[0], odd[cell], strict=True)) for cell in every)
    alone = GaussianFourier(Workload(bits(1), (("f0",),)), ONE)
    laws = every_law(alone, (1,), 2, 1e-9)
    assert worst_divergence(laws, (1,), 2.0) <= 2.0 * (1 + 1e-6)


@pytest.mark.long
def test_the_interval_of_a_cell_of_parities_holds():
    draws = Seeded(1)
    work = Workload(bits(5), (*pairs(bits(5)), ("f0", "f1", "f2")))
    records = people(np.random.default_rng(2), 3000, 5)
    truth = [int(one) for table in range(len(work.tables)) for one in work.counted(table, records)]
    for made in (LaplaceFourier(work, ONE), GaussianFourier(work, Fraction(1, 10))):
        inside, apart = [], []
        for _ in range(12):
            rows = made.run(records, draws).rows
            inside.append(np.mean([row.low <= one <= row.high for row, one in zip(rows, truth, strict=True)]))
            apart += [row.count - one for row, one in zip(rows[:40], truth[:40], strict=True)]
        assert np.mean(inside) >= 0.95
        stated = made.run(records, draws).details["tables"][0]["variance"]
        assert 0.4 < np.mean(np.square(apart)) / stated < 2.2


@pytest.mark.long
def test_parities_beat_tables_of_the_same_price():
    records = people(np.random.default_rng(3), 5000, 6)
    work = Workload(bits(6), pairs(bits(6)))
    both = [(error(LaplaceFourier(work, ONE), records), error(LaplaceTables(work, ONE), records)) for _ in range(12)]
    assert np.mean([one for one, _ in both]) < 0.85 * np.mean([other for _, other in both])
    with pytest.raises(InvalidSpec, match="two values"):
        LaplaceFourier(Workload(Record((Field("n", Integers(0, 3)),)), (("n",),)), ONE)


# -- the fit


def test_a_fit_without_noise_is_exact_in_what_was_measured():
    record = Record((Field("a", Integers(0, 2)), Field("b", Integers(0, 1)), Field("c", YesNo())))
    work = Workload(record, pairs(record))
    p = np.random.default_rng(4).dirichlet(np.ones(record.size) * 2)
    exact = [np.asarray(work.of_cells(table, p)) for table in range(3)]
    measured = [Measured(table, shares, 1e-4) for table, shares in enumerate(exact)]
    theta = fitted(work, measured, uniform(work), 4000)
    assert distribution(theta).sum() == pytest.approx(1)
    for got, want in zip(answers(work, theta), exact, strict=True):
        assert np.abs(got - want).max() < 2e-3


def test_a_fit_does_not_follow_noise():
    """Measurements that are as far from uniform as their noise leave the uniform distribution as it is."""
    work = Workload(bits(3), pairs(bits(3)))
    measured = [Measured(table, np.array([0.3, 0.2, 0.25, 0.25]), 0.2) for table in range(3)]
    assert np.ptp(fitted(work, measured, uniform(work), 100)) == 0


# -- MWEM

SINGLES = Workload(bits(2), (("f0",), ("f1",)))


def law_of_mwem(made, records):
    truth = [made.workload.counted(table, records) for table in range(2)]
    return law_of(lambda draws: repr(made._rounds(truth, len(records), draws)[1]), 1e-3)


def test_a_round_costs_what_it_says_and_the_printed_weights_cost_more():
    """Everything that is told, for two data sets in which the one score rises and the other falls."""
    one, other = [0b01, 0b01, 0b01], [0b01, 0b01, 0b10]
    made = MwemTables(SINGLES, Fraction(8), rounds=1, steps=1)
    laws = [law_of_mwem(made, records) for records in (one, other)]
    assert max(law.lost for law in laws) < 0.02
    assert 3.5 < largest_loss(*laws) <= 7.2 + 1e-9
    scale = made.selection(Fraction(4))
    assert PrintedMwem(SINGLES, Fraction(8)).selection(Fraction(4)) == scale / 2


def selection_loss(made, price):
    """The largest loss of choosing a table, over all data sets of three people and all neighbours."""
    laws = {}
    for data in itertools.combinations_with_replacement(range(4), 3):
        counts = [np.asarray(made.workload.counted(table, data)) for table in range(2)]
        chances = law_of(lambda draws, counts=counts: made._measured(counts, FIT, 3, price, _Quiet(draws))[0])  # type: ignore[misc]
        laws[data] = chances.chances
    worst = 0.0
    for data, law in laws.items():
        for place, cell in itertools.product(range(3), range(4)):
            moved = tuple(sorted((*data[:place], cell, *data[place + 1 :])))
            worst = max(worst, *(float(np.log(p / laws[moved][table])) for table, p in law.items()))
    return worst


FIT = [np.array([0.5, 0.5])] * 2


class _Quiet:
    """Chooses with the draws that are listed, and adds no noise."""

    def __init__(self, draws):
        self.select = draws.select

    def laplace(self, values, scale):
        return list(values)


def test_the_loss_of_a_selection_over_all_neighbours():
    price = Fraction(2)
    assert 0.5 < selection_loss(MwemTables(SINGLES, ONE), price) <= 1 + 1e-9
    assert selection_loss(PrintedMwem(SINGLES, ONE), price) > 1.3


class Prices(MwemTables):
    """Notes the price of each round."""

    def _measured(self, truth, fit, people, price, draws):
        SPENT.append(price)
        return super()._measured(truth, fit, people, price, draws)


SPENT: list[Fraction] = []


@pytest.mark.parametrize("rounds", [1, 3, 7, 40])
def test_all_rounds_together_cost_nine_tenths(rounds):
    """Also where the price doubles, because there is nothing to find."""
    records = np.random.default_rng(5).integers(0, 16, 500).tolist()
    SPENT.clear()
    Prices(Workload(bits(4), pairs(bits(4))), ONE, rounds=rounds, steps=5).run(records, DRAWS)
    assert sum(SPENT) == Fraction(9, 10)
    assert len(SPENT) <= rounds


def test_all_cells_lie_in_the_interval_that_is_promised():
    """Where the fit is bad, because there is hardly any budget, and where it is good."""
    draws = Seeded(1)
    record = Record((Field("a", Integers(0, 4)), Field("b", Integers(0, 2)), Field("c", YesNo())))
    work = Workload(record, pairs(record))
    rng = np.random.default_rng(6)
    for epsilon, count in ((Fraction(1, 20), 200), (Fraction(2), 4000)):
        records = (rng.integers(0, 3, count) * rng.integers(0, record.size // 3, count)).tolist()
        truth = [int(one) for table in range(3) for one in work.counted(table, records)]
        right = 0
        for _ in range(20):
            rows = MwemTables(work, epsilon, steps=20).run(records, draws).rows
            right += all(row.low <= one <= row.high for row, one in zip(rows, truth, strict=True))
        assert right >= 16  # of 20 with 95%: fewer with a probability under 3e-3


@pytest.mark.long
def test_few_people_are_better_served_by_mwem_and_many_by_parities():
    rng = np.random.default_rng(7)
    work = Workload(bits(8), pairs(bits(8)))
    few, many = people(rng, 300, 8), people(rng, 30_000, 8)
    epsilon = Fraction(1, 10)
    errors = [np.mean([error(MwemTables(work, epsilon, steps=40), few) for _ in range(3)])]
    errors.append(np.mean([error(LaplaceFourier(work, epsilon), few) for _ in range(3)]))
    assert errors[0] < 0.5 * errors[1]
    assert error(LaplaceFourier(work, ONE), many) < error(MwemTables(work, ONE, steps=40), many)


@pytest.mark.parametrize("most", [1 << 12, 1])
def test_the_last_fit_begins_anew_where_there_are_few_cells(monkeypatch, most):
    """It gets all that was measured, and follows it more closely than the fits between the rounds."""
    calls = []

    def noted(work, measured, theta, steps, enough=0.5):
        calls.append((len(measured), float(np.ptp(theta)), steps, enough))
        return fitted(work, measured, theta, steps, enough)

    monkeypatch.setattr(mwem, "fitted", noted)
    monkeypatch.setattr(mwem, "_REFITTED", most)
    made = MwemTables(Workload(bits(4), pairs(bits(4))), Fraction(4), rounds=3, steps=20)
    truth = [made.workload.counted(table, [0b0101] * 300) for table in range(6)]
    told = made._rounds(truth, 300, DRAWS)[1]
    last = calls.pop() if most > 1 else (len(told), 0.0, 60, 0.25)
    assert last == (len(told), 0.0, 60, 0.25)
    assert [(count, steps, enough) for count, _, steps, enough in calls] == [
        (number, 20, 0.5) for number in range(1, len(told) + 1)
    ]


def test_what_a_fit_cannot_keep_is_refused():
    huge = Record(tuple(Field(f"f{k}", Integers(0, 30)) for k in range(8)))
    with pytest.raises(InvalidSpec, match="ask for tables"):
        MwemTables(Workload(huge, (("f0",),)), ONE)
    with pytest.raises(InvalidSpec, match="--rounds"):
        MwemTables(SINGLES, ONE, rounds=-1)
    assert laplace_variance(MwemTables(SINGLES, ONE)._noise(ONE)) == laplace_variance(4.0)
