"""All items up to a share: the exact law on small data sets, its size, its promise; how a budget is shared out."""

import math
from fractions import Fraction

import pytest

from benchmarks.curator.outcomes import law_of, smallest_delta
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.conversion import tcdp_epsilon
from ldp_client.privacy.curves import Tcdp
from ldp_server.curator.draws import laplace_scale
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.releases.base import ReleasedRow, TooFewPeople
from ldp_server.curator.releases.sanitizing.points import PointSanitizer, held_by_any
from ldp_server.curator.releases.sanitizing.shares import share_out
from tests.server.curator.test_releases import Fixed

DRAWS = ExactDraws()
TENTH, ONE, DELTA = Fraction(1, 10), Fraction(1), Fraction(1, 10**6)


def named_law(made, records):
    """The law of which items are named, in which order; their counts have noise of their own."""
    choosing = made.choosing()
    least = math.ceil(choosing.share * len(records) / 2)
    counted = laplace_scale(1, choosing.epsilon)

    def names(draws):
        return frozenset(row.item for row in made.run(records, draws).rows)

    return law_of(names, 1e-6, {choosing.scale: least, counted: 0})


def worst_of(made, people):
    """An item that one person alone holds, beside one or two that many hold, becomes one more of the first."""
    worst = 0.0
    for held in {people - 1, people // 4}:
        rest = ["b"] * ((people - 1 - held) // 2) + ["d"] * (people - 1 - held - (people - 1 - held) // 2)
        laws = [named_law(made, ["a"] * held + rest + [last]) for last in "ca"]
        epsilon = float(made.epsilon)
        worst = max(worst, smallest_delta(*laws, epsilon), smallest_delta(*reversed(laws), epsilon))
    return worst


def test_it_is_private_from_the_size_on_below_which_it_refuses():
    made = PointSanitizer(Fraction(9, 10), Fraction(3), Fraction(1, 100))
    assert worst_of(made, made.smallest) <= 1 / 100
    assert worst_of(made, 12) > 1 / 100


def test_the_counts_of_named_items_move_by_one():
    """Each has noise for a part of the budget: all rounds together spend it."""
    made, seen = PointSanitizer(Fraction(9, 10), Fraction(3), Fraction(1, 100)), Noted()
    made.run(["a"] * 400 + ["b"] * 300, seen)
    made.run(["a"] * 399 + ["b"] * 301, seen)
    scale = laplace_scale(1, made.choosing().epsilon)
    counts = [value for value, at in seen.noisy if at == scale]
    assert counts == [400, 300, 399, 301]
    assert 2 * made.rounds * made.choosing().epsilon <= made.epsilon * Fraction(1001, 1000)


class Noted(Fixed):
    """Adds no noise, and notes to what it would have been added."""

    def __init__(self):
        super().__init__(0)
        self.noisy = []

    def laplace(self, values, scale):
        self.noisy += [(value, scale) for value in values]
        return list(values)


def test_too_few_people_are_refused():
    made = PointSanitizer(TENTH, ONE, DELTA)
    assert made.smallest == 194_148
    with pytest.raises(TooFewPeople, match="needs 194,148 people"):
        made.check(100_000)
    assert PointSanitizer(TENTH, ONE, DELTA, 2).smallest > 2.8 * made.smallest


def test_what_is_listed_and_what_is_promised_of_the_rest():
    made = PointSanitizer(Fraction(1, 4), Fraction(8), DELTA)
    people = made.smallest
    records = ["a"] * (people // 2) + ["b"] * (people // 4 + 9)
    records += [f"x{k}" for k in range(people - len(records))]
    for _ in range(3):
        found = made.run(records, DRAWS)
        counts = {row.item: row for row in found.rows}
        assert {"a", "b"} <= set(counts)
        assert abs(counts["a"].count - people // 2) < 60
    assert f"at most {people // 4:,} people" in found.note


def test_any_k_items_together():
    rows = (ReleasedRow("a", 500, 490, 510), ReleasedRow("b", 300, 290, 310))
    found = held_by_any(rows, {"a", "z"}, 50, 1000)
    assert (found.count, found.low, found.high) == (500, 490, 560)
    found = held_by_any(rows, {"a", "b", "z"}, 500, 1000)
    assert (found.count, found.low, found.high) == (800, 780, 1000)
    made = PointSanitizer(Fraction(1, 2), Fraction(8), DELTA, 2)
    assert "any 2 items" in made.run(["a"] * 5000, DRAWS).note


@pytest.mark.parametrize("draws", [1, 2, 40, 1000])
def test_a_budget_is_shared_out_and_not_exceeded(draws):
    each = share_out(draws, ONE, DELTA)
    basic = each.epsilon * draws
    rho = draws * each.epsilon**2 / 2
    if each.delta == DELTA:
        assert basic == 1
    else:
        assert basic > 1
        assert 0.999 < tcdp_epsilon(Tcdp(float(rho), math.inf), float(DELTA / 2)) <= 1
    assert (each.delta == DELTA) is (draws <= 2)
    assert each.price(ONE, DELTA).rho <= rho


@pytest.mark.parametrize("given", [(Fraction(0), ONE, DELTA), (TENTH, ONE, Fraction(0)), (TENTH, ONE, DELTA, 0)])
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(InvalidSpec):
        PointSanitizer(*given)
