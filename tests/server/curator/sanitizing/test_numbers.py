"""Counts below all thresholds: the promise where it could fail, the exact law on small data, what is refused."""

import itertools
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of, smallest_delta
from ldp_client.errors import InvalidSpec
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.base import TooFewPeople
from ldp_server.curator.releases.sanitizing.numbers import NumberSanitizer
from tests.server.curator.seeded import Seeded

DRAWS = ExactDraws()
DELTA = Fraction(1, 10**6)
RNG = np.random.default_rng(12)


def largest_error(numbers, rows):
    """Over all thresholds: only those at a number or just behind one can be the worst."""
    numbers = sorted(numbers)
    released = sorted(value for row in rows for value in [row.item] * row.count)
    cuts = {*numbers, *released, *(number + 1 for number in numbers), *(number + 1 for number in released)}
    return max(abs(bisect_left(numbers, cut) - bisect_left(released, cut)) for cut in cuts)


@pytest.mark.parametrize(
    ("bits", "delta", "made"),
    [
        (40, None, lambda people: RNG.integers(-(1 << 39), 1 << 39, people).tolist()),
        (40, DELTA, lambda people: [7] * (people // 2) + [1 << 38] * (people - people // 2)),
        pytest.param(900, DELTA, lambda people: [1 << (k % 890) for k in range(people)], marks=pytest.mark.long),
    ],
)
def test_every_threshold_is_as_near_as_promised(bits, delta, made):
    draws = Seeded(1)
    release = NumberSanitizer(Fraction(1, 4), bits, Fraction(4), delta)
    people, right = release.smallest, 0
    for _ in range(6):
        numbers = made(people)
        rows = release.run(numbers, draws).rows
        assert sum(row.count for row in rows) in {0, people}
        right += bool(rows) and largest_error(numbers, rows) <= people / 4
    assert right >= 4  # of 6 with 95% or more each: fewer with a probability under 0.3%


def test_the_realised_loss_is_at_most_the_price():
    """Two numbers out of a small range, all data sets of three people."""
    made = NumberSanitizer(Fraction(1, 2), 2, Fraction(2))
    laws = {}
    for data in itertools.combinations_with_replacement((-3, 0, 2), 3):
        laws[data] = law_of(lambda draws, data=data: tuple(row.item for row in made.run(data, draws).rows))
    worst = smaller = 0.0
    for one, other in itertools.permutations(laws, 2):
        if any(sorted([*one[:place], *one[place + 1 :], new]) == sorted(other) for place in range(3) for new in other):
            worst = max(worst, smallest_delta(laws[one], laws[other], 2.0))
            smaller = max(smaller, smallest_delta(laws[one], laws[other], 0.8))
    assert worst <= 1e-9
    assert smaller > 1e-3


def test_too_few_people_and_wrong_parameters():
    made = NumberSanitizer(Fraction(1, 10), 64, Fraction(1), DELTA)
    assert made.smallest < 60_000
    with pytest.raises(TooFewPeople):
        made.check(made.smallest - 1)
    for wrong in ((Fraction(1), 8), (Fraction(1, 1000), 8), (Fraction(1, 4), 0)):
        with pytest.raises(InvalidSpec):
            NumberSanitizer(*wrong, Fraction(1))
    assert made.price.delta == DELTA
    assert NumberSanitizer(Fraction(1, 100), 64, Fraction(1), DELTA).search().epsilon > Fraction(1, 100)
