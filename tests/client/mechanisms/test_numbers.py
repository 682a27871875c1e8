"""Bounded numbers and the hierarchy, by enumeration; unbiased exactly; variance against known mechanisms."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, hierarchy
from ldp_client.mechanisms.bounded_number import BoundedNumber, Window
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.protocol.domain import Categories, Integers
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms.battery import check_declared

ONE, TWO, FOUR = Epsilon("1"), Epsilon("2"), Epsilon("4")

EPSILONS = ["0.01", "0.1", "1", "2", "5", "10", "20"]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_declared(epsilon):
    eps = Epsilon(epsilon)
    for answers, window in ((2, 1), (3, 1), (8, 3), (256, 10)):
        check_declared(BoundedNumber(eps, 1002, answers, window))
        check_declared(BoundedNumber(eps, 1002, answers, window, 16))
    check_declared(BoundedNumber(eps, 1 << 64, **bounded_number.design(epsilon)))
    check_declared(Hierarchy(eps, 1001, 4, 3))
    check_declared(Hierarchy(eps, 1001, **hierarchy.design(epsilon, 1000)))


@pytest.mark.parametrize(("answers", "window"), [(2, 1), (3, 1), (7, 2), (12, 3)])
def test_the_estimate_is_unbiased_exactly(answers, window):
    """From the exact law: the mean of (Y - A)/(B J) is v/R, up to the rounding of 2^-64, and 1/2 for none."""
    randomizer = BoundedNumber(TWO, 103, answers, window)
    law = randomizer.law
    for index in (0, 1, 2, 50, 77, 102):
        mean = sum(y * randomizer.probability(index, y) for y in range(answers))
        estimate = (mean - law.base) / (law.step * (answers - window))
        truth = Fraction(index - 1, 101) if index else Fraction(1, 2)
        assert abs(estimate - truth) < Fraction(1, 1 << 60)


@pytest.mark.parametrize(("answers", "window"), [(2, 1), (3, 1), (7, 2)])
def test_the_worst_variance_is_the_worst(answers, window):
    randomizer = BoundedNumber(TWO, 1003, answers, window)
    law, scale = randomizer.law, float(randomizer.law.step * (answers - window))
    found = []
    for index in range(1, 1003, 7):
        mean = sum(y * randomizer.probability(index, y) for y in range(answers))
        square = sum(y * y * randomizer.probability(index, y) for y in range(answers))
        found.append(float(square - mean**2) / scale**2)
    assert max(found) == pytest.approx(law.worst_variance, rel=2e-3)
    assert max(found) <= law.worst_variance * (1 + 1e-9)


def one_bit(e):
    return ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2


def piecewise(e):
    z = math.exp(e / 2)
    return 1 / (z - 1) + (z + 3) / (3 * (z - 1) ** 2)


def hybrid(e):
    z = math.exp(e / 2)
    return one_bit(e) if e <= 0.61 else (z + 3) / (3 * z * (z - 1)) + one_bit(e) / z


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "1.5", "2", "3", "4", "6"])
def test_near_optimal_variance(epsilon):
    """Worst-case variance on [-1, 1] against the one-bit, piecewise and hybrid mechanisms' published formulas."""
    e = float(epsilon)
    found = bounded_number.design(epsilon)
    mine = 4 * Window(Epsilon(epsilon), found["answers"], found["window"]).worst_variance
    assert mine <= 1.10 * min(one_bit(e), piecewise(e), hybrid(e))
    if e >= 2:
        assert mine < min(one_bit(e), piecewise(e), hybrid(e))


def test_pieces_at_64_bits():
    """Within the words of the window, of the lies and of the rest, answers follow each other round and round."""
    law = Window(TWO, 7, 2)
    split = 2 * law.truth
    assert split + 5 * law.lie == law.used <= 1 << 64
    for place in range(6):
        lies = [y for y in range(7) if not place <= y < place + 2]
        for start in (0, split - 8):
            assert [law.choose(start + i, place) for i in range(8)] == [place + (start + i) % 2 for i in range(8)]
        for start in (split, law.used - 10):
            found = [law.choose(start + i, place) for i in range(10)]
            assert found == [lies[(start - split + i) % 5] for i in range(10)]
        for word in range(law.used, 1 << 64):
            assert law.choose(word, place) == (word - law.used) % 7
        assert sum(law.weight(place, y) for y in range(7)) == 1 << 64


def test_levels_of_the_tree():
    tree = Hierarchy(ONE, 1001, 4, 3)
    assert [level.size - 1 for level in tree.levels] == [4, 16, 63, 250, 1000]
    assert tree.widths == (256, 64, 16, 4, 1)
    assert [tree.cell(0, index) for index in (0, 1, 256, 257, 1000)] == [0, 1, 1, 2, 4]
    assert [tree.cell(4, index) for index in (0, 1, 1000)] == [0, 1, 1000]
    assert tree.bound == sum(level.bound for level in tree.levels)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: BoundedNumber(ONE, 2, 2, 1), "two integers"),
        (lambda: BoundedNumber(ONE, 10, 2, 2), "window"),
        (lambda: BoundedNumber(ONE, 10, 2, 0), "window"),
        (lambda: BoundedNumber(ONE, 10, 257, 1), "answers"),
        (lambda: BoundedNumber(ONE, 10, 2, 1, 256), "presence"),
        (lambda: BoundedNumber(ONE, 10, 200, 100, 0, 4), "too few"),
        (lambda: Hierarchy(ONE, 10, 1, 3), "branching"),
        (lambda: Hierarchy(ONE, 1 << 25, 4, 3), "divide its numbers"),
        (lambda: Hierarchy(ONE, 10, 4, 6), "prime"),
        (lambda: hierarchy.design("1", 1), "integers"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(make, text):
    with pytest.raises(InvalidSpec, match=text):
        make()


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [("bounded-number", bounded_number.design("1", presence=32)), ("hierarchy", hierarchy.design("1", 200))],
)
def test_in_a_collection(mechanism, parameters):
    def make(domain):
        return Collection.create("How many?", domain, mechanism, "1", opens=1, closes=2, parameters=parameters)

    collection = make(Integers(-100, 200))
    assert Collection.from_toml(collection.to_toml()) == collection
    assert Collection.from_bytes(collection.spec_bytes).randomizer == collection.randomizer
    words = (1 << 63, 12345, 1 << 40)
    assert len({len(collection.randomize(item, words)) for item in (None, -100, 0, 99, 10**9)}) == 1
    with pytest.raises(InvalidSpec, match="integers domain"):
        make(Categories(tuple(map(str, range(200)))))
