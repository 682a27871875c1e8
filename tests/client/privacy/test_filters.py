from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_client.privacy.conversion import renyi_epsilon
from ldp_client.privacy.curves import ResponseCurve
from ldp_client.privacy.filters import PrivacyFilter, RenyiFilter
from ldp_client.protocol.epsilon import Epsilon
from tests.client.privacy.reference import composed_delta, dec

amounts = st.sampled_from(["0.01", "0.1", "0.3", "1", "2.5"])


@given(st.fractions(min_value=0, max_value=20, max_denominator=100), st.lists(amounts, max_size=40))
def test_the_filter_never_exceeds_and_never_wastes(budget, wanted):
    guard = PrivacyFilter(budget)
    accepted = Fraction(0)
    for amount in wanted:
        fits = accepted + Fraction(amount) <= budget
        assert guard.can_spend(amount) == fits
        if fits:
            accepted += Fraction(amount)
            assert guard.spend(amount) == accepted
        else:
            with pytest.raises(BudgetExceeded):
                guard.spend(amount)
        assert guard.spent == accepted
        assert guard.left == budget - accepted


def test_ten_tenths_fill_one_exactly():
    guard = PrivacyFilter("1")
    for _ in range(10):
        guard.spend(Epsilon("0.1"))
    assert guard.left == 0
    assert not guard.can_spend("0.01")


def test_a_budget_lowered_after_spending_leaves_nothing():
    guard = PrivacyFilter("1", spent="2")
    assert guard.left == 0
    assert guard.reports_left("0.1") == 0
    assert not guard.can_spend("0.1")


@given(st.integers(1, 400))
def test_reports_left_is_how_many_fit(count):
    guard = PrivacyFilter(Fraction(count, 7))
    left = guard.reports_left("0.1")
    for _ in range(left):
        guard.spend("0.1")
    assert not guard.can_spend("0.1")


def test_the_renyi_filter_lets_more_through_than_adding_does():
    guard = RenyiFilter.for_reports(265, 1e-6, 1)
    assert guard.reports_left(1) > 365
    for _ in range(guard.reports_left(1)):
        guard.spend(1)
    with pytest.raises(BudgetExceeded):
        for _ in range(3):
            guard.spend(1)


@pytest.mark.parametrize("epsilon", [2.0, 3.5])
@pytest.mark.thinned(1)
def test_the_renyi_filter_keeps_its_promise_whatever_is_chosen_on_the_way(epsilon):
    """Every course of amounts that the filter admits, up to eight reports, is within (epsilon, delta) exactly."""
    delta = 1e-3
    for order in (6.0, 8.0):
        for course in itertools.product(["0.25", "1"], repeat=8):
            guard = RenyiFilter(epsilon, delta, order)
            admitted = []
            for amount in course:
                if guard.can_spend(amount):
                    guard.spend(amount)
                    admitted.append(amount)
            if admitted and len(set(admitted)) == 2:
                assert composed_delta(admitted, epsilon) <= dec(delta)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyFilter(-1),
        lambda: PrivacyFilter(1, -1),
        lambda: PrivacyFilter("a lot"),
        lambda: PrivacyFilter(1).spend(0),
        lambda: PrivacyFilter(1).can_spend(-1),
        lambda: PrivacyFilter(1).reports_left(0),
        lambda: RenyiFilter(1, 1e-6, 1.0),
        lambda: RenyiFilter(1, 1e-6, 1.5),
        lambda: RenyiFilter(1, 0.0, 10),
        lambda: RenyiFilter(1, 1e-6, 100, spent=-1),
    ],
)
def test_bad_input(make):
    with pytest.raises(InvalidSpec):
        make()


def test_repr_shows_the_state():
    assert repr(PrivacyFilter("0.5", "0.1")) == "PrivacyFilter(budget=1/2, spent=1/10)"
    assert "order=8" in repr(RenyiFilter(2, 1e-3, 8))


def test_a_renyi_filter_that_spent_more_than_its_limit_leaves_nothing():
    guard = RenyiFilter(2, 1e-3, 8, spent=100)
    assert guard.reports_left(1) == 0
    assert not guard.can_spend("0.01")
    with pytest.raises(BudgetExceeded):
        guard.spend("0.01")
    assert guard.spent == 100


def test_a_renyi_filter_spends_to_the_last_report():
    """Reports are admitted while their sum, rounded up each time, is at most the limit."""
    guard = RenyiFilter(4, 0.25, 2.0)
    cost = ResponseCurve(1).renyi(2.0)
    fits = math.floor(guard.limit / cost)
    for number in range(fits):
        assert guard.reports_left(1) == fits - number
        guard.spend(1)
    assert guard.spent == pytest.approx(fits * cost)
    assert guard.spent >= fits * cost
    assert guard.reports_left(1) == 0
    assert not guard.can_spend(1)


def test_a_renyi_filter_begins_with_nothing_spent_and_may_be_small():
    """At order 50 the conversion takes some 0.2 of epsilon = 0.5: the limit lies well below 1."""
    small = RenyiFilter("0.5", 1e-6, 50.0)
    assert small.spent == 0.0
    assert 0 < small.limit < 0.5


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_as_many_reports_as_are_promised_fit(count):
    """Where the limit is a multiple of the cost up to rounding, the last report is not promised."""
    guard = RenyiFilter(4, 1e-6, 40.0)
    guard.limit = count * ResponseCurve("0.1").renyi(40.0)
    left = guard.reports_left("0.1")
    assert left == count - 1
    for _ in range(left):
        guard.spend("0.1")


@pytest.mark.parametrize(("epsilon", "delta", "each"), [(3, 1e-6, "0.1"), (60, 1e-9, "1"), (1, 1e-3, "0.01")])
def test_the_order_of_a_filter_admits_nearly_as_many_reports_as_any(epsilon, delta, each):
    best = 0
    for step in range(1, 800):
        with contextlib.suppress(InvalidSpec):
            best = max(best, RenyiFilter(epsilon, delta, 1 + 1.02**step * 1e-2).reports_left(each))
    assert best > 10
    assert RenyiFilter.for_reports(epsilon, delta, each).reports_left(each) >= 0.99 * best


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf])
def test_a_filter_s_order_is_above_one_and_finite(order):
    with pytest.raises(InvalidSpec, match="above 1 and finite"):
        RenyiFilter(1, 1e-6, order)


@pytest.mark.parametrize("order", [2.0, 8.0, 11.0])
def test_an_order_at_which_the_conversion_takes_everything_is_refused(order):
    """Also where it takes only a little more than epsilon."""
    over = renyi_epsilon(order, 0.0, 1e-6)
    for epsilon in (0.999 * over, 0.5 * over):
        with pytest.raises(InvalidSpec, match="the conversion alone takes more than epsilon: use a larger order"):
            RenyiFilter(epsilon, 1e-6, order)
    left = RenyiFilter(1.001 * over, 1e-6, order).limit
    assert 0 < left <= 0.001 * over
    assert left == pytest.approx(0.001 * over, rel=1e-6)


@pytest.mark.parametrize("spent", [-1e-9, -1.0, math.nan])
def test_nothing_less_than_nothing_was_spent(spent):
    with pytest.raises(InvalidSpec, match="what was spent must not be negative"):
        RenyiFilter("4", 1e-6, 40.0, spent)
    assert RenyiFilter("4", 1e-6, 40.0, 0.0).spent == 0.0
