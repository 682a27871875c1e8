from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import down, exact, exp_ceil, exp_floor, fraction_up, log_up, positive, up
from ldp_client.protocol.epsilon import Epsilon
from tests.client.privacy.reference import dec

fractions = st.fractions(min_value=-40, max_value=40, max_denominator=10**6)


@given(fractions)
def test_exp_bounds_hold_the_truth_tightly(exponent):
    truth = Fraction(dec(exponent).exp())
    low, high = exp_floor(exponent), exp_ceil(exponent)
    dust = truth / 10**55  # the reference's own error
    assert low <= truth + dust
    assert high >= truth - dust
    assert high - low < truth / 10**45


def test_exp_of_large_and_zero_exponents():
    assert exp_floor(Fraction(0)) == 1
    assert exp_floor(Fraction(3000)) <= Fraction(dec(3000).exp()) * (1 + Fraction(1, 10**50))
    with pytest.raises(InvalidSpec):
        exp_floor(Fraction(4001))


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_log_is_rounded_up_and_close(value):
    truth = dec(value).ln()
    assert dec(log_up(value)) >= truth
    assert dec(log_up(value)) <= truth + abs(truth) * dec("1e-10") + dec("1e-11")


def test_log_of_a_number_just_above_one_keeps_its_digits():
    assert log_up(1 + Fraction(1, 10**20)) == pytest.approx(1e-20, rel=1e-9)


@given(st.fractions(min_value=0, max_value=10**9))
def test_fraction_up_is_the_next_float(value):
    rounded = fraction_up(value)
    assert Fraction(rounded) >= value
    assert value == 0 or Fraction(math.nextafter(rounded, 0.0)) < value


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_up_and_down_enclose(value):
    assert down(value) < value < up(value)
    assert up(value) <= value * (1 + 1e-11)


def test_exact_reads_text_numbers_and_epsilons_alike():
    assert exact("0.1") == exact(Epsilon("0.1")) == Fraction(1, 10)
    assert exact(0.1) == Fraction(0.1) != Fraction(1, 10)
    for bad in ("much", math.inf, math.nan):
        with pytest.raises(InvalidSpec):
            exact(bad)
    for bad in (0, -1, "-0.5"):
        with pytest.raises(InvalidSpec):
            positive(bad, "epsilon")
