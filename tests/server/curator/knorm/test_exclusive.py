"""Noise on patterns whose sum is public: its law over all outcomes, its price, its intervals, and the wrong scale."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of
from benchmarks.curator.queries.audits import exclusive_loss
from benchmarks.curator.wrong import PrintedExclusive
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.workloads.knorm.counts import KNormCounts, group_noises
from ldp_server.curator.workloads.knorm.exclusive import ExclusiveNoise, exclusive_noise
from ldp_server.curator.workloads.knorm.hull import hull_noise
from tests.server.curator.knorm.test_hull import nested, units

ONE = Fraction(1)
ANSWERS = {
    "one": units(1),
    "two apart": units(2),
    "three nested": nested(3),
    "all of two": [*itertools.product((0, 1), repeat=2)],
}
EVERY = pytest.mark.parametrize("name", ANSWERS)


@pytest.mark.parametrize("answers", [units(1), units(2)], ids=["one", "two apart"])
def test_the_law_of_the_draws(answers):
    """All outcomes of one attempt: those that are kept have probabilities proportional to e^(-epsilon |z|_1 / 2)."""
    noise = exclusive_noise(answers, Fraction(4))
    law = law_of(lambda draws: tuple(noise.attempt(draws) or ()), 1e-7).chances
    nothing = law.pop(())
    zero = law[(0,) * len(noise.patterns)]
    seen = 0
    for z, chance in law.items():
        assert sum(z) == 0
        if sum(map(abs, z)) <= 6:
            assert chance / zero == pytest.approx(math.exp(-4 * sum(map(abs, z)) / 2), rel=1e-3)
            seen += 1
    assert seen == {2: 7, 3: 37}[len(noise.patterns)]
    assert 0 < nothing < 0.75


@EVERY
def test_the_realised_loss_is_epsilon(name):
    assert exclusive_loss(ExclusiveNoise(np.array(ANSWERS[name]), Fraction(2)), 4) == pytest.approx(2, rel=1e-9)


@EVERY
def test_the_scale_for_adding_or_removing_is_caught(name):
    """Each count moves by 1 if a person is added; the sum is public only where nobody is."""
    assert exclusive_loss(PrintedExclusive(np.array(ANSWERS[name]), Fraction(2)), 4) == pytest.approx(4, rel=1e-9)


@EVERY
def test_the_law_of_each_count(name):
    """Beside the sum over all points of a large box."""
    noise = exclusive_noise(ANSWERS[name], Fraction(3))
    patterns = noise.patterns
    side = np.arange(-16, 17)
    free = np.stack(np.meshgrid(*[side] * (len(patterns) - 1), indexing="ij"), axis=-1).reshape(-1, len(patterns) - 1)
    z = np.column_stack([free, -free.sum(axis=1)])
    chances = np.exp(-1.5 * np.abs(z).sum(axis=1))
    chances = chances / chances.sum()
    for count in range(patterns.shape[1]):
        values = z @ patterns[:, count]
        for t in range(5):
            assert noise.laws[count][t] == pytest.approx(chances[values == t].sum(), rel=1e-6)
        assert noise.variances[count] == pytest.approx(float(chances @ (values * values)), rel=1e-5)
        for beta in (0.3, 0.05, 0.01):
            w = noise.half_width(count, beta)
            assert chances[np.abs(values) > w].sum() <= beta
            assert w == 0 or chances[np.abs(values) > w - 1].sum() > beta


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), ONE, Fraction(8)])
@pytest.mark.parametrize("answers", [units(3), nested(4), nested(2)], ids=["units", "four", "two"])
def test_where_no_answer_follows_from_others_it_is_the_hull(answers, epsilon):
    """Two ways to the same law, each with its own arithmetic."""
    hull, exclusive = hull_noise(answers, epsilon), exclusive_noise(answers, epsilon)
    assert exclusive.variances == pytest.approx(hull.variances, rel=1e-6)
    for count in range(len(answers[0])):
        assert exclusive.half_width(count, 0.05) == hull.half_width(count, 0.05)
        assert 2 * exclusive.laws[count].sum() - exclusive.laws[count][0] == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("answers", "least"), [(nested(8), 0.62), (nested(16), 0.47), (units(8), 0.88)])
def test_it_errs_less_than_a_cube_or_laplace_in_many_dimensions(answers, least):
    found = {one.name: one.error for one in group_noises(answers, ONE)}
    assert min(found, key=found.get) == "exclusive"
    assert found["exclusive"] <= least * min(found["cube"], found["laplace"])


def test_the_exact_sampler_draws_that_law():
    """300 releases of six nested groups: each count lies outside with a chance of 5% at most.

    40 of 300 or more outside has a probability below 1e-7 for a count, and twice or a third of the mean square over the
    independent releases one below 1e-6.
    """
    noise, truth = exclusive_noise(nested(6), ONE), [10, 20, 30, 40, 50, 60]
    found = np.array([noise.add(truth, ExactDraws()) for _ in range(300)]) - np.array(truth)
    for count in range(6):
        assert (np.abs(found[:, count]) > noise.half_width(count, 0.05)).sum() < 40
    assert 1 / 3 < np.square(found).mean() / np.mean(noise.variances) < 2


def test_a_group_of_everybody_is_known():
    """A count that all patterns have is the number of people."""
    noise = exclusive_noise([(1, 0), (1, 1)], ONE)
    assert noise.variances[0] == 0 and noise.half_width(0, 0.05) == 0
    assert noise.add([9, 4], ExactDraws())[0] == 9


def test_where_it_is_not_worked_out():
    assert exclusive_noise([(1, 0)], ONE) is None
    assert exclusive_noise(units(3), Fraction(1, 10**6)) is None
    assert {one.name for one in group_noises(nested(5), Fraction(1, 10**5))} == {"cube", "laplace"}


def test_a_release_of_many_groups():
    groups = tuple(tuple(f"i{place}" for place in range(end)) for end in range(1, 13))
    made = KNormCounts(groups, Fraction(6))
    outcome = made.run(["i0"] * 40 + ["i5"] * 30 + [None] * 30, ExactDraws())
    assert outcome.details["noise"] == made.parameters()["noise"] == "exclusive"
    assert [row.count for row in outcome.rows] == pytest.approx([40] * 5 + [70] * 7, abs=12)
    assert outcome.details["variances"] == made.noise.variances
