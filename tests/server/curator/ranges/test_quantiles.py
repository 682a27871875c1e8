"""Quantiles and interior points from huge ranges: the score, the error that is printed, what is refused."""

from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of, smallest_delta
from ldp_client.errors import InvalidSpec
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.base import TooFewPeople
from ldp_server.curator.releases.quantile import ExponentialQuantile
from ldp_server.curator.releases.ranges.quantiles import InteriorPoint, RecursiveQuantile, rank_stretches
from tests.server.curator.seeded import Seeded

DRAWS = ExactDraws()
HALF, ONE, DELTA = Fraction(1, 2), Fraction(1), Fraction(1, 10**6)


def score(numbers, at, value):
    below, up_to = sum(x < value for x in numbers), sum(x <= value for x in numbers)
    return -max(
        0, at.denominator * below - at.numerator * len(numbers), at.numerator * len(numbers) - at.denominator * up_to
    )


@pytest.mark.parametrize("at", [HALF, Fraction(1, 10), Fraction(99, 100)])
@pytest.mark.parametrize("depth", [0, 3, 10**6])
def test_the_stretches_have_the_score_of_the_definition(at, depth):
    rng = np.random.default_rng(2)
    for people in (1, 2, 5, 30):
        numbers = sorted(rng.integers(-9, 10, people).tolist())
        found = rank_stretches(numbers, at.denominator, at.numerator * people, (-9, 9), depth)
        assert [stretch.first for stretch in found] == [-9, *(s.first + s.length for s in found[:-1])]
        for first, length, level in found:
            for value in range(first, first + length):
                expected = score(numbers, at, value)
                assert level == expected or max(level, expected) < -depth


def test_a_small_range_has_the_law_of_the_exponential_mechanism():
    """Up to 32 values it is that mechanism, so its whole law can be listed: pure epsilon, for all neighbours."""
    made = RecursiveQuantile(HALF, 4, ONE, DELTA)
    assert made.search().depth == 1
    laws = [
        law_of(lambda draws, data=data: made.run(data, draws).rows[0].item)
        for data in (["-9", "0", "0", "12"], ["12", "0", "0", "12"])
    ]
    assert smallest_delta(laws[0], laws[1], 1.0) <= 1e-9
    assert smallest_delta(laws[0], laws[1], 0.4) > 1e-3


@pytest.mark.parametrize("at", [Fraction(1, 4), pytest.param(HALF, marks=pytest.mark.long)])
def test_the_rank_is_as_near_as_promised_on_numbers_of_all_magnitudes(at):
    """The smallest data set that is not refused, at the far end of the range."""
    draws = Seeded(1)
    made = RecursiveQuantile(at, 4096, Fraction(2), DELTA)
    people, right = made.smallest, 0
    assert made.ranks < 250 < ExponentialQuantile(at, 4096, Fraction(2)).ranks
    numbers = sorted((1 << 4095) + (1 << (7 * k % 4000)) for k in range(people))
    for _ in range(4):
        rows = made.run(numbers, draws).rows
        if rows:
            low, high = bisect_left(numbers, rows[0].item), bisect_right(numbers, rows[0].item)
            right += low - made.ranks <= at * people <= high + made.ranks
            assert numbers[0] <= rows[0].item <= numbers[-1] or right < 4
    assert right >= 2  # of 4 with 95% or more each: fewer with a probability under 0.05%


def test_an_interior_point_of_one_number_that_everybody_has():
    made = InteriorPoint(2000, Fraction(4), DELTA)
    assert made.at == HALF
    assert made.parameters() == {"bits": 2000, "epsilon": "4", "delta": "1/1000000", "depth": 2}
    assert {made.run(["5"] * made.smallest, DRAWS).rows[0].item for _ in range(4)} <= {5}


def test_too_few_people_are_refused_with_the_number_that_is_needed():
    made = InteriorPoint(256, ONE, DELTA)
    with pytest.raises(TooFewPeople, match=f"needs {made.smallest:,} people"):
        made.check(made.smallest - 1)
    made.check(made.smallest)
    assert made.smallest > 2 * made.ranks


@pytest.mark.parametrize(
    "given",
    [(Fraction(3, 2), 8, ONE, DELTA), (HALF, 0, ONE, DELTA), (HALF, 9000, ONE, DELTA), (HALF, 8, ONE, Fraction(0))],
)
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(InvalidSpec):
        RecursiveQuantile(*given)
    with pytest.raises(InvalidSpec):
        RecursiveQuantile(HALF, 8, ONE, DELTA, 5)
