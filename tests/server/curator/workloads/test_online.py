"""Online answers for a rho, and over cells that are drawn: what a stretch costs, intervals, what is spread out."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.queries.online import drawn_errors, stretch_divergence
from benchmarks.curator.workloads import binary, people
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.kinds import WorkloadWish, workload_mechanism
from ldp_server.curator.workloads.online import GaussianOnline, OnlineTables, printed_threshold, updated
from ldp_server.curator.workloads.sub_universe import AllCells, SomeCells, cells_needed
from ldp_server.curator.workloads.synthetic import fit_of_release
from ldp_server.curator.workloads.universe import Workload, pairs
from tests.server.curator.seeded import Seeded

ONE, DRAWS = Fraction(1), ExactDraws()
FIVE = Workload(binary(5), pairs(binary(5)))


# -- the price of a rho


@pytest.mark.parametrize("updates", [1, 7, 100])
@pytest.mark.parametrize("rho", [Fraction(1, 50), Fraction(3, 10), Fraction(2)])
def test_all_stretches_and_releases_cost_the_rho(updates, rho):
    """e^2 / 2 of a stretch, 1 / (2 sigma^2) of a release; and nearly all of it is used."""
    made = GaussianOnline(FIVE, rho, updates)
    spent = updates * (made.stretch**2 / 2 + 1 / (2 * Fraction(made.sigma) ** 2))
    assert rho * Fraction(999_999, 1_000_000) < spent <= rho
    assert made.price.rho == rho
    assert made.price.epsilon is None
    near, asked = made.bars
    assert Fraction(near) * made.stretch >= 2
    assert Fraction(asked) * made.stretch >= 4
    assert asked == pytest.approx(2 * near)


@pytest.mark.parametrize("near", [1, 30, 300])
@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_the_divergence_of_a_stretch_is_at_most_that_of_its_epsilon(near, epsilon):
    """By integration over the threshold's noise, over all places of the first far cell, in both directions."""
    for order in (1.5, 2.0, 8.0):
        assert stretch_divergence(epsilon, near, order) / order <= epsilon**2 / 2
    assert stretch_divergence(epsilon, near, 2.0) > 0


def test_for_many_updates_a_rho_has_less_noise_than_a_pure_epsilon():
    """Epsilon 1, and the rho that is epsilon 1 at delta 1e-6."""
    rho = Fraction(17, 1000)
    assert GaussianOnline(FIVE, rho, 1).price.epsilon_at(Fraction(1, 10**6)) <= 1
    few, many = (
        OnlineTables(FIVE, ONE, updates).bars[0] / GaussianOnline(FIVE, rho, updates).bars[0] for updates in (2, 200)
    )
    assert few < 0.7
    assert many > 2.2


def test_the_printed_constants_say_nothing():
    """The threshold of the printed form at a million people, beside this one for 40 updates."""
    assert printed_threshold(1 << 16, 697, 1.0, 1e-6, 10**6) == pytest.approx(0.838, abs=1e-3)
    assert GaussianOnline(FIVE, Fraction(17, 1000), 40).threshold / 10**6 < 0.002


@pytest.mark.parametrize(("count", "updates"), [(3000, 8), (200, 3)])
def test_every_cell_lies_in_its_interval(count, updates):
    records = people(np.random.default_rng(14), count, 5)
    truth = [int(one) for table in range(len(FIVE.tables)) for one in FIVE.counted(table, records)]
    right, draws = 0, Seeded(5)
    for _ in range(30):
        rows = GaussianOnline(FIVE, Fraction(1, 5), updates).run(records, draws).rows
        right += all(row.low is None or row.low <= one <= row.high for row, one in zip(rows, truth, strict=True))
    assert right >= 26


class Silent(ExactDraws):
    """Adds nothing; uniform draws are numbered."""

    def laplace(self, values, scale):
        return list(values)

    gaussian = laplace

    def uniform(self, count):
        return 12345


@pytest.mark.parametrize("made", [OnlineTables(FIVE, Fraction(2), 9), GaussianOnline(FIVE, ONE, 9)])
def test_without_noise_a_cell_is_far_by_its_threshold(made):
    records = people(np.random.default_rng(3), 100_000, 5)
    truth = [int(one) for table in range(len(FIVE.tables)) for one in FIVE.counted(table, records)]
    outcome = made.run(records, Silent())
    for row, one, far in zip(outcome.rows, truth, outcome.details["updated"], strict=True):
        if far:
            assert row.count == one
        elif row.low is not None:
            assert abs(row.count - one) < made.threshold
    assert 0 < sum(outcome.details["updated"]) <= 9
    assert "universe" not in outcome.details


def test_an_update_moves_its_cell_to_what_was_told():
    for over in (AllCells(FIVE), SomeCells(FIVE, 400, 3)):
        theta = updated(over, over.start(), 2, 1, 0.6)
        assert over.shares(2, theta)[1] == pytest.approx(0.6)
        assert over.shares(2, theta).sum() == pytest.approx(1)
        emptied = updated(over, theta, 2, 1, -0.1)
        assert over.shares(2, emptied)[1] == pytest.approx(1e-6)


# -- cells that are drawn


def test_drawn_cells_have_the_shares_that_a_count_gives():
    mixed = Record((Field("a", Integers(0, 4)), Field("b", Integers(0, 2)), Field("c", YesNo())))
    work = Workload(mixed, pairs(mixed))
    over = SomeCells(work, 5000, 11)
    theta = np.random.default_rng(2).normal(size=5000)
    weights = np.exp(theta) / np.exp(theta).sum()
    for table in (0, 2, 1):
        want = np.zeros(work.lengths[table])
        for cell, weight in zip(over.drawn.tolist(), weights, strict=True):
            want += weight * np.asarray(work.counted(table, [cell]))
        assert over.shares(table, theta) == pytest.approx(want)
        values = np.arange(work.lengths[table], dtype=float)
        assert over.spread(table, values) @ weights == pytest.approx(values @ want)
    assert over.drawn.min() >= 0
    assert over.drawn.max() < mixed.size
    assert (SomeCells(work, 5000, 11).drawn == over.drawn).all()
    assert (SomeCells(work, 5000, 12).drawn != over.drawn).any()


def test_the_cells_are_drawn_before_and_without_the_records():
    made = OnlineTables(Workload(binary(30), (("f0", "f1"), ("f1", "f29"))), ONE, 5, 1000)
    ones = made.run([0] * 50, Silent()).details
    others = made.run([(1 << 30) - 1] * 50, Silent()).details
    assert (ones["universe"], ones["seed"]) == (others["universe"], others["seed"]) == (1000, 12345)
    with pytest.raises(InvalidSpec, match="--universe"):
        OnlineTables(Workload(binary(30), (("f0", "f1"),)), ONE, 5)
    with pytest.raises(InvalidSpec, match="--universe: 1 to"):
        OnlineTables(FIVE, ONE, 5, 1 << 21).run([0], DRAWS)
    with pytest.raises(InvalidSpec, match="updates"):
        GaussianOnline(FIVE, ONE, 0)


def test_people_who_are_spread_out_need_few_cells_and_people_who_are_alike_do_not_fit():
    """The intervals hold in each case."""
    asks = {"fields": 16, "people": 20_000, "epsilon": 4}
    smooth, few, spiky = (
        drawn_errors(kind, cells, Seeded(1), **asks)
        for kind, cells in (("smooth", 1 << 11), ("smooth", 1 << 5), ("spiky", 1 << 11))
    )
    assert smooth.inside == few.inside == spiky.inside == 1.0
    assert smooth.error < 0.02
    assert few.error > 2 * smooth.error
    assert spiky.error > 0.05


def test_the_printed_number_of_cells():
    assert cells_needed(1 / 1000, 1000, 1740, 0.05) == math.ceil(4 * (math.log(20) + math.log(1740)) / 0.0025)
    assert cells_needed(1.0, 1 << 30, 10, 0.1) > 1 << 30
    assert cells_needed(1e-9, 1000, 1, 0.9, 0.01) == math.ceil(4 * math.log(100))


# -- from a wish, and to made-up people


def test_the_kind_online_has_both_noises():
    asks = {"record": binary(3), "rounds": 4}
    assert isinstance(workload_mechanism(WorkloadWish("online", "laplace", epsilon=ONE, **asks)), OnlineTables)
    made = workload_mechanism(WorkloadWish("online", "gaussian", rho=ONE, universe=99, **asks))
    assert isinstance(made, GaussianOnline)
    assert (made.updates, made.cells) == (4, 99)
    assert made.parameters()["cells"] == 99


def released(made, records):
    outcome = made.run(records, DRAWS)
    return {
        "kind": "online",
        "people": len(records),
        "parameters": made.parameters(),
        "rows": [{"count": row.count} for row in outcome.rows],
        "details": json.loads(json.dumps(outcome.details)),
    }


def test_the_fit_of_a_release_is_what_it_ended_with():
    work = Workload(binary(3), pairs(binary(3)))
    records = [0b101] * 70_000 + [0b010] * 30_000
    content = released(OnlineTables(work, Fraction(10), 20), records)
    shares = fit_of_release(content)
    assert shares.sum() == pytest.approx(1)
    last = AllCells(work)
    theta = last.start()
    cells = itertools.accumulate(work.lengths, initial=0)
    for table, first in zip(range(len(work.tables)), cells, strict=False):
        for cell in range(work.lengths[table]):
            if content["details"]["updated"][first + cell]:
                theta = updated(last, theta, table, cell, content["rows"][first + cell]["count"] / 100_000)
    want = [last.shares(table, theta) for table in range(3)]
    got = [work.of_cells(table, shares) for table in range(3)]
    assert np.concatenate(got) == pytest.approx(np.concatenate(want))
    content["details"]["updated"].pop()
    with pytest.raises(InvalidSpec, match="another form"):
        fit_of_release(content)
    drawn = released(OnlineTables(work, Fraction(10), 20, 500), records)
    with pytest.raises(InvalidSpec, match="over drawn cells"):
        fit_of_release(drawn)
