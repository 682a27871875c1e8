from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.shuffle import Clones, shuffled_epsilon, shuffled_epsilon_closed
from tests.client.accounting import shuffled_delta
from tests.client.privacy.reference import dec


def worst_case(epsilon0: float, users: int) -> tuple[Counter, Counter]:
    """The pair of laws in the module's text, listed: (a, b) -> probability."""
    truth = dec(epsilon0).exp() / (1 + dec(epsilon0).exp())
    clone = (-dec(epsilon0)).exp()
    one, two = Counter(), Counter()
    for c in range(users):
        many = (
            math.comb(users - 1, c) * clone**c * (1 - clone) ** (users - 1 - c)
            if clone < 1
            else Decimal(c == users - 1)
        )
        for a in range(c + 1):
            weight = many * math.comb(c, a) / Decimal(2) ** c
            one[a + 1, c - a] += weight * truth
            one[a, c - a + 1] += weight * (1 - truth)
            two[a + 1, c - a] += weight * (1 - truth)
            two[a, c - a + 1] += weight * truth
    return one, two


@pytest.mark.parametrize(("epsilon0", "users"), [(0.5, 2), (1.0, 7), (2.0, 40), (3.0, 60)])
def test_the_sum_against_the_listed_worst_case(epsilon0, users):
    one, two = worst_case(epsilon0, users)
    assert sum(one.values()) == pytest.approx(1)
    for epsilon in (0.0, 0.1, 0.5, epsilon0 * 0.9):
        grown = dec(epsilon).exp()
        truth = sum(max(Decimal(0), one[key] - grown * two[key]) for key in one)
        value = dec(shuffled_delta(epsilon0, users, epsilon))
        assert truth <= value <= truth * dec("1.001") + dec("2e-12")


@pytest.mark.parametrize(("epsilon0", "users"), [(1.0, 12), (2.0, 20)])
def test_shuffled_randomized_response_itself_is_within_the_bound(epsilon0, users):
    """Binary responses, everybody else holding 0: the multiset is a sum of bits; its exact hockey stick."""
    p = dec(epsilon0).exp() / (1 + dec(epsilon0).exp())
    others = [math.comb(users - 1, ones) * (1 - p) ** ones * p ** (users - 1 - ones) for ones in range(users)] + [
        Decimal(0)
    ]
    zero = [p * others[i] + (1 - p) * others[i - 1] for i in range(users + 1)]
    one = [(1 - p) * others[i] + p * others[i - 1] for i in range(users + 1)]
    for epsilon in (0.1, 0.4, 0.8):
        grown = dec(epsilon).exp()
        for first, second in ((zero, one), (one, zero)):
            exact = sum(max(Decimal(0), a - grown * b) for a, b in zip(first, second, strict=True))
            assert exact <= dec(shuffled_delta(epsilon0, users, epsilon))


def test_reference_values():
    """A closed form of 0.0726 and a numerical bound of at most 0.0155 at n = 10^5, eps0 = 1, delta = 1e-6."""
    assert shuffled_epsilon_closed(1, 10**5, 1e-6) == pytest.approx(0.0726, abs=1e-4)
    assert 0.014 < shuffled_epsilon(1, 10**5, 1e-6) <= 0.0155


@given(st.floats(0.1, 4), st.integers(2, 3000), st.floats(1e-9, 1e-2))
@settings(max_examples=25)
def test_shuffling_never_hurts_and_keeps_its_delta(epsilon0, users, delta):
    epsilon = shuffled_epsilon(epsilon0, users, delta)
    assert 0 <= epsilon <= shuffled_epsilon_closed(epsilon0, users, delta) * (1 + 1e-9) <= epsilon0 * (1 + 1e-6)
    if epsilon < epsilon0 * (1 - 1e-3):
        # The two leave out different shares of rare numbers of clones, so their buckets differ a little.
        assert shuffled_delta(epsilon0, users, epsilon) <= delta * 1.02 + 1e-12


@pytest.mark.parametrize("users", [100, 2000])
def test_more_users_and_more_delta_hide_better(users):
    base = shuffled_epsilon(1, users, 1e-6)
    assert shuffled_epsilon(1, 4 * users, 1e-6) < base
    assert shuffled_epsilon(1, users, 1e-4) < base
    assert shuffled_epsilon(2, users, 1e-6) > base


def test_the_closed_form_is_not_used_outside_its_condition():
    assert shuffled_epsilon_closed(5, 1000, 1e-6) == 5.0
    assert shuffled_epsilon_closed("0.1", 10, 1e-6) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "call",
    [lambda: shuffled_epsilon(1, 1, 1e-6), lambda: shuffled_epsilon(1, 10, 0.0), lambda: shuffled_delta(0, 10, 1)],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shuffled_epsilon(0, 10, 1e-6), "^epsilon must be above 0"),
        (lambda: shuffled_epsilon_closed(0, 10, 1e-6), "^epsilon must be above 0"),
        (lambda: shuffled_delta(0, 10, 1), "^epsilon must be above 0"),
        (lambda: shuffled_epsilon(1, 10, 1.0), "^delta must lie"),
        (lambda: shuffled_epsilon_closed(1, 10, 1.0), "^delta must lie"),
        (lambda: shuffled_delta(1, 1, 1), "at least two users"),
        (lambda: shuffled_epsilon_closed(1, 1, 1e-6), "at least two users"),
    ],
)
def test_the_error_names_what_is_wrong(call, message):
    with pytest.raises(InvalidSpec, match=message):
        call()


def test_the_condition_of_the_closed_form_at_its_edge():
    """eps0 <= ln(n / (16 ln(2/delta))): just inside the form is used where it helps, just outside it is not."""
    users, delta = 10**6, 1e-6
    edge = math.log(users / (16 * math.log(2 / delta)))
    inside, outside = edge * (1 - 1e-9), edge * (1 + 1e-9)
    spread = 8 * math.sqrt(math.exp(inside) * math.log(4 / delta) / users) + 8 * math.exp(inside) / users
    assert shuffled_epsilon_closed(inside, users, delta) == pytest.approx(
        math.log1p(math.tanh(inside / 2) * spread), rel=1e-9
    )
    assert shuffled_epsilon_closed(inside, users, delta) < inside
    assert shuffled_epsilon_closed(edge, users, delta) < edge
    assert shuffled_epsilon_closed(outside, users, delta) == outside


@pytest.mark.parametrize(("epsilon0", "users", "delta"), [(1.0, 500, 1e-6), (3.0, 5000, 1e-4), (0.3, 50, 1e-2)])
def test_the_smallest_epsilon_is_found_to_its_tolerance(epsilon0, users, delta):
    found = shuffled_epsilon(epsilon0, users, delta)
    assert shuffled_delta(epsilon0, users, found) <= delta * (1 + 1e-2)
    assert shuffled_delta(epsilon0, users, found * (1 - 5e-3)) > delta


def test_two_people_hide_little_and_everybody_much():
    assert shuffled_epsilon(1, 2, 1e-9) == 1.0
    assert shuffled_epsilon("0.01", 100, 0.5) == 0.0
    assert shuffled_delta(1, 2, 1.0) <= 2e-12


def test_many_users_lose_only_the_rare_numbers_of_clones():
    """Among 200,000 users the window of clones leaves out 10^-12; buckets cost less than 1% of the sum."""
    users, epsilon0, epsilon = 200_000, 1.0, 0.008
    chance = math.exp(-epsilon0)
    mean = (users - 1) * chance
    # All clones in one number, their mean: the sum over numbers is close to it, and never far below.
    middle = _single(epsilon0, round(mean), epsilon)
    assert middle * 0.98 < shuffled_delta(epsilon0, users, epsilon) < middle * 1.1


def _single(epsilon0, clones, epsilon):
    """The hockey stick with this many clones, all terms summed."""
    m, truth, grown = clones + 1, 1 / (1 + math.exp(-epsilon0)), math.exp(epsilon)
    total = 0.0
    for a in range(m + 1):
        gain = (truth * a + (1 - truth) * (m - a)) - grown * ((1 - truth) * a + truth * (m - a))
        if gain > 0:
            logs = math.lgamma(m + 1) - math.lgamma(a + 1) - math.lgamma(m - a + 1) - m * math.log(2)
            total += 2 * math.exp(logs) * gain / m
    return total


def test_rare_numbers_of_clones_are_charged_where_some_are_left_out():
    """The window of few users begins at 0 and leaves nothing out; that of many begins above."""
    assert Clones(1.0, 10, 1e-9).rare == 0.0
    assert Clones(1.0, 10, 1e-9).buckets[0][0] == 0
    many = Clones(1.0, 100_000, 1e-9)
    assert many.rare == 1e-9
    assert many.buckets[0][0] > 0
    assert many.delta(1.0) == pytest.approx(1e-9, rel=1e-6)  # at epsilon itself, nothing but what was left out
    assert sum(mass for _, mass in many.buckets) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("clones", "share"), [(0, 0.5), (1, 0.5), (2, 0.0), (99, 0.3), (9_999, 0.02)])
def test_the_sum_of_one_number_of_clones_is_just_above_the_truth(clones, share):
    """Every term as an integer: C(m, a) times the gain at a, over 2^m; the tail that is not summed counts too."""
    epsilon0 = 1.0
    m, truth, grown = clones + 1, 1 / (1 + (-dec(epsilon0)).exp()), dec(share * epsilon0).exp()
    total, choose = Decimal(0), 1
    for a in range(m + 1):
        gain = (truth * a + (1 - truth) * (m - a)) - grown * ((1 - truth) * a + truth * (m - a))
        total += choose * max(Decimal(0), gain)
        choose = choose * (m - a) // (a + 1)
    exact = 2 * total / m / Decimal(2) ** m
    found = dec(Clones(epsilon0, 2, 0.5)._given(clones, share * epsilon0))
    assert exact * (1 - dec("1e-12")) <= found <= exact * (1 + dec("1e-8"))


def test_at_an_epsilon_below_the_precision_of_floats_everybody_is_a_clone():
    """1e-17: e^-eps is 1 as a float, and no number of clones but n - 1 has any probability."""
    clones = Clones(1e-17, 10, 1e-9)
    assert clones.buckets[-1] == (9, pytest.approx(1.0))
    assert sum(mass for _, mass in clones.buckets) == pytest.approx(1.0)


@pytest.mark.parametrize("tolerance", [0.3, 0.01])
def test_a_coarse_tolerance_is_kept(tolerance):
    for users in (50, 300, 2000):
        for delta in (1e-6, 1e-3):
            exact = shuffled_epsilon(1, users, delta, 1e-7)
            assert exact * (1 - 1e-6) <= shuffled_epsilon(1, users, delta, tolerance) <= exact * (1 + tolerance) * 1.01
