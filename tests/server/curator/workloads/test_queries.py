"""K-norm counts and online answers: laws, losses, intervals, and the printed variant that is caught."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of
from benchmarks.curator.workloads import binary, people, stretch_loss
from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import laplace_scale
from ldp_server.curator.laws import laplace_half_width, laplace_law, laplace_tail
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.knorm.counts import KNormCounts
from ldp_server.curator.workloads.knorm.cube import CubeNoise
from ldp_server.curator.workloads.online import OnlineTables
from ldp_server.curator.workloads.universe import Workload, pairs
from tests.server.curator.seeded import Seeded

ONE, DRAWS = Fraction(1), ExactDraws()


# -- the K-norm mechanism of a cube


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_law_of_how_far_the_noise_reaches(count):
    """Over all outcomes of its draws: P(k) is proportional to (2 k + 1)^d q^k."""
    noise = CubeNoise(count, Fraction(4))
    law = law_of(noise.reach, 1e-5)
    q = math.exp(-1 / noise.scale)
    for k in (1, 2):
        want = (2 * k + 1) ** count * q**k
        assert law.chances[k] / law.chances[0] == pytest.approx(want, rel=1e-3)


def test_two_neighbours_differ_by_at_most_epsilon_in_the_law():
    """All d answers may move at once: z and its neighbour are one apart in the norm."""
    noise = CubeNoise(3, Fraction(2))
    chances = law_of(noise.reach, 1e-5).chances
    density = [math.fsum(p / (2 * k + 1) ** 3 for k, p in chances.items() if k >= m) for m in range(5)]
    losses = [math.log(one / other) for one, other in itertools.pairwise(density)]
    assert all(1.99 < loss <= 2 + 1e-3 for loss in losses)


def test_the_exact_sampler_draws_that_law():
    noise = CubeNoise(6, ONE)
    drawn = np.array([noise.add([0] * 6, DRAWS) for _ in range(500)])
    largest = np.abs(drawn).max(axis=1)
    ks = np.arange(400)
    weights = (2.0 * ks + 1) ** 6 - np.where(ks > 0, (2.0 * ks - 1) ** 6, 0)
    weights = weights * np.exp(-ks / noise.scale)
    mean = float(weights @ ks / weights.sum())
    spread = math.sqrt(float(weights @ (ks - mean) ** 2 / weights.sum()))
    assert abs(largest.mean() - mean) < 4 * spread / math.sqrt(500)
    laplace = 6 * math.sqrt(2)
    assert 0.4 < drawn.std() / laplace < 0.6


def test_the_half_width_is_a_quantile():
    """With one query the noise is Laplace's; with twelve it is measured."""
    draws = Seeded(1)
    assert CubeNoise(1, ONE).half_width(0.05) == laplace_half_width(laplace_scale(1, ONE), 0.05)
    noise = CubeNoise(12, ONE)
    width = noise.half_width(0.05)
    outside = np.mean([abs(noise.add([0] * 12, draws)[0]) > width for _ in range(800)])
    assert 0.02 <= outside <= 0.08  # four standard errors


def test_overlapping_groups_are_counted():
    records = ["a"] * 50 + ["b"] * 30 + [None] * 20
    made = KNormCounts((("a",), ("a", "b"), ("b", "never")), Fraction(50))
    assert [row.count for row in made.run(records, DRAWS).rows] == pytest.approx([50, 80, 30], abs=2)
    for wrong in ((), ((),), (("a",),) * 65):
        with pytest.raises(InvalidSpec):
            KNormCounts(wrong, ONE)
    with pytest.raises(InvalidSpec, match="larger epsilon"):
        KNormCounts((("a",),), Fraction(1, 1 << 40))


# -- online answers


@pytest.mark.parametrize("near", [0, 1, 30, 1000])
def test_a_stretch_costs_its_price_however_many_cells_were_near(near):
    """By numerical integration over the threshold's noise; the printed variant's loss grows without bound."""
    assert stretch_loss(1.0, near, printed=False) <= 1 + 1e-6


def test_releasing_the_value_that_was_compared_is_caught():
    assert stretch_loss(1.0, 1000, printed=True) > 1.5
    assert stretch_loss(1.0, 30, printed=True) < stretch_loss(1.0, 1000, printed=True)


def test_whether_a_cell_is_far_has_the_law_that_is_integrated():
    """The code's draws, over all outcomes, beside the closed form with the noises of the docstring."""
    made = OnlineTables(Workload(binary(1), (("f0",),)), Fraction(4), 1)
    assert made.bars == made.scales[:2]
    assert made.scales == pytest.approx((2 / 3, 4 / 3, 1.0))  # three quarters of epsilon for the stretch
    for apart in (0, made.threshold, made.threshold + 3):
        law = law_of(lambda draws, apart=apart: made._far(apart, made._bar(draws), draws), 1e-7)  # type: ignore[misc]
        bars = range(made.threshold - 30, made.threshold + 31)
        want = sum(laplace_law(2 / 3, z - made.threshold) * laplace_tail(4 / 3, z - apart) for z in bars)
        assert law.chances[True] == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize(("count", "updates"), [(3000, 8), (200, 3)])
def test_every_cell_lies_in_its_interval(count, updates):
    draws = Seeded(1)
    work = Workload(binary(5), pairs(binary(5)))
    records = people(np.random.default_rng(14), count, 5)
    truth = [int(one) for table in range(len(work.tables)) for one in work.counted(table, records)]
    right = 0
    for _ in range(20):
        rows = OnlineTables(work, ONE, updates).run(records, draws).rows
        right += all(row.low is None or row.low <= one <= row.high for row, one in zip(rows, truth, strict=True))
    assert right >= 16


def test_a_fit_answers_what_it_knows_and_updates_are_counted():
    """100,000 people, all the same: the first cells cost, then the fit knows them, but for noise (4% of the runs)."""
    work = Workload(binary(3), pairs(binary(3)))
    runs = [OnlineTables(work, Fraction(10), 20).run([0b101] * 100_000, DRAWS) for _ in range(20)]
    updates = [one.details["updated"] for one in runs]
    assert all(2 <= sum(updated) <= 10 for updated in updates)
    assert sum(any(updated[8:]) for updated in updates) <= 8
    found = runs[0]
    errors = [abs(row.count - 100_000 * (row.item == item)) for row, item in _true(work, found)]
    assert max(errors) < 5000
    few = OnlineTables(work, Fraction(10), 1).run([0b101] * 100_000, DRAWS)
    assert sum(few.details["updated"]) == 1
    assert few.rows[-1].low is None
    assert "used up" in few.note
    with pytest.raises(InvalidSpec, match="updates"):
        OnlineTables(work, ONE, 0)


def _true(work, found):
    rows = iter(found.rows)
    for table in range(len(work.tables)):
        held = work.items(table)[int(np.flatnonzero(work.counted(table, [0b101]))[0])]
        for _ in work.items(table):
            yield next(rows), held
