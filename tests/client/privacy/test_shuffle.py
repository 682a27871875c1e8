from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.shuffle import shuffled_delta, shuffled_epsilon, shuffled_epsilon_closed
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
