"""RecConcave: its parts against brute force, its exact law on small ranges, its error on huge ones."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.curator import wrong
from benchmarks.curator.concave_law import concave_law, moved_scores, needed_delta
from benchmarks.curator.outcomes import law_of
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.mode import GRAIN
from ldp_server.curator.releases.ranges.concave import concave_search
from ldp_server.curator.releases.ranges.steps import (
    Stretch,
    block_lead,
    cropped,
    draw_value,
    joined,
    selection_error,
    size_of,
    window_levels,
)
from tests.server.curator.seeded import Seeded

DRAWS = ExactDraws()
RNG = np.random.default_rng(11)
ONE = Fraction(1)


def stretches(scores, first=0, floor=-(10**6)):
    return joined([Stretch(first + place, 1, int(score)) for place, score in enumerate(scores)], floor)


def random_scores(size):
    return RNG.integers(-4, 5, size) // int(RNG.integers(1, 4))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 33, 64])
def test_the_levels_of_windows_are_those_of_brute_force(size):
    for _ in range(20):
        scores = random_scores(size)
        found = window_levels(stretches(scores, first=-5))
        lengths = [1 << j for j in range(size.bit_length())]
        assert found == [max(min(scores[at : at + n]) for at in range(size - n + 1)) for n in lengths]


@pytest.mark.parametrize("offset", [0, 4])
def test_the_lead_of_a_block_is_that_of_brute_force(offset):
    for size in (3, 8, 9, 12, 13, 40):
        for _ in range(20):
            scores = random_scores(size)
            tops = {}
            for place, score in enumerate(scores):
                block = (place - offset) // 8
                tops[block] = max(tops.get(block, -99), int(score))
            block, lead = block_lead(stretches(scores, first=100), 8, offset)
            ordered = sorted(tops.values(), reverse=True)
            assert tops[block] == ordered[0]
            assert lead == (ordered[0] - ordered[1] if len(ordered) > 1 else None)


def test_stretches_are_joined_and_cropped():
    made = joined([Stretch(0, 2, 5), Stretch(2, 3, -9), Stretch(5, 1, -7), Stretch(6, 0, 1)], -6)
    assert made == [Stretch(0, 2, 5), Stretch(2, 4, -6)]
    assert size_of(made) == 6
    assert cropped(made, [(1, 3), (5, 9)]) == [Stretch(1, 1, 5), Stretch(2, 1, -6), Stretch(5, 1, -6)]


def test_a_drawn_value_has_the_law_of_the_exponential_mechanism():
    """Also that a score one below is as unlikely as the scale says, to what the rounding may change."""
    law = law_of(lambda draws: draw_value(stretches([3, 3, 1, 1, 1, 0]), 1, Fraction(2), draws)).chances
    assert math.log(law[0] / law[2]) == pytest.approx(2 * 2 / 2, abs=1e-3)
    assert law[0] == pytest.approx(law[1])
    assert sum(law.values()) == pytest.approx(1)


def test_the_error_of_a_drawn_value_is_a_bound():
    """A worst case: one value at the top, all others just below what is promised."""
    for beta in (0.3, 0.01):
        bound = selection_error(math.log(50), 1, ONE, beta)
        score = stretches([bound + 1, *[0] * 49])
        assert law_of(lambda draws, score=score: draw_value(score, 1, ONE, draws)).chances[0] >= 1 - beta


SMALL = concave_search(40, Fraction(8), Fraction(1, 50))


@pytest.mark.long
def test_the_law_of_the_code_is_the_one_that_brute_force_computes():
    for scores in (list(range(0, 200, 10)) + list(range(200, 0, -10)), moved_scores(RNG, 40, 60)[0]):
        law = law_of(
            lambda draws, scores=scores: SMALL.solve(stretches(scores), 60, draws),
            thresholds={SMALL.scale: SMALL.threshold},
        ).chances
        expected = concave_law(SMALL, scores, 60)
        assert [law.get(value, 0.0) for value in range(40)] == pytest.approx(expected[:-1], abs=1e-4)
        assert law.get(None, 0.0) == pytest.approx(expected[-1], abs=1e-4)


def audited(search, size, pairs, part=1):
    """The largest delta at a part of epsilon over neighbouring scores, whether the promise holds or not."""
    worst = 0.0
    rng = np.random.default_rng(5)
    for _ in range(pairs):
        peak = int(search.threshold / GRAIN * rng.uniform(0.8, 1.2))
        one, other = moved_scores(rng, size, peak)
        laws = [concave_law(search, scores, peak) for scores in (one, other)]
        worst = max(worst, needed_delta(*laws, float(part * search.epsilon)))
    return worst


@pytest.mark.parametrize("share", [Fraction(4), pytest.param(Fraction(1), marks=pytest.mark.long)])
def test_the_realised_loss_is_at_most_the_price(share):
    search = concave_search(64, share, Fraction(1, 10**3))
    assert search.epsilon <= share
    assert search.delta == Fraction(1, 10**3)
    assert audited(search, 64, 25) <= float(search.delta)
    assert audited(search, 64, 25, Fraction(1, 10)) > float(search.delta)  # this test can fail


def test_what_is_printed_is_caught():
    """The naming of a block, which is where the printed constants are wrong, on two scores with the blocks' peaks."""
    search = concave_search(64, ONE, Fraction(1, 10**6))
    printed = wrong.PrintedConcaveSearch(**vars(search))
    one = [14] + [0] * 15
    other = [13] + [0] * 7 + [1] + [0] * 7
    for made, caught in ((search, False), (printed, True)):
        laws = [
            law_of(
                lambda draws, scores=scores, made=made: made._named(stretches(scores), 8, 0, draws) != [],
                thresholds={made.scale: made.threshold},
            ).chances
            for scores in (one, other)
        ]
        factor = math.exp(float(made.naming))
        delta = max(laws[0].get(True, 0) - factor * laws[1].get(True, 0), 0)
        assert (delta > float(search.naming_delta) * 1.0001) is caught


def test_the_shares_of_a_budget_never_exceed_it():
    for bits in (3, 5, 6, 20, 64, 8192):
        for depth in (1, 2, 3, 4):
            for epsilon in (Fraction(1, 10), ONE, Fraction(7, 3)):
                made = concave_search(1 << bits, epsilon, Fraction(1, 10**6), 2, depth)
                assert made.epsilon <= epsilon
                assert made.delta <= Fraction(1, 10**6)
                assert min(made.last, made.naming, made.inside, made.error) > 0
                assert made.depth == (1 if bits <= 5 else min(depth, 2 if bits < 32 else 3))


@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.long)])
def test_the_error_holds_where_it_is_hardest(depth):
    """Scores that fall by one each time the distance from the peak doubles, at a random place of a huge range."""
    draws = Seeded(1)
    bits, right, runs = 600, 0, 10
    search = concave_search(1 << bits, Fraction(2), Fraction(1, 10**6), 1, depth)
    for _ in range(runs):
        place = int.from_bytes(RNG.bytes(bits // 8), "big")
        ends = sorted({*(min(place + (1 << i), (1 << bits) - 1) for i in range(bits)), place})
        low = sorted({max(place - (1 << i), 0) for i in range(bits)} - {place})
        corners = [0, *low, *ends, 1 << bits]
        marks = sorted(set(corners))
        score = [Stretch(a, b - a, -(max(place - a, b - 1 - place, 1)).bit_length()) for a, b in pairwise(marks)]
        found = search.solve(joined(score, -(10**9)), -1, draws)
        right += found is not None and -max(abs(found - place), 1).bit_length() >= -1 - search.error
    assert right >= 7  # of 10 with 95% or more each: fewer with a probability under 0.2%
