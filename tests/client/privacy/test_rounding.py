"""Rounding towards privacy: bounds hold the truth, and no number is pushed further than the stated margin.

The truth is computed in 60 digits. A margin that is half the stated one (unsafe) or twice (useless) fails.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.composition import advanced, every_rule
from ldp_client.privacy.conversion import renyi_epsilon, tcdp_epsilon
from ldp_client.privacy.curves import ResponseCurve, Tcdp, pure_rho
from ldp_client.privacy.filters import RenyiFilter
from ldp_client.privacy.groups import every_group_of
from ldp_client.privacy.information import best_guess, mutual_information, odds_factor
from ldp_client.privacy.rounding import (
    exact,
    exp_ceil,
    exp_floor,
    fraction_up,
    log_up,
    positive,
    shown,
    up,
)
from ldp_client.privacy.shuffle import shuffled
from ldp_client.privacy.yardsticks import d_opt, lower_bound_shape, optimal_scan_error, sigma_opt, v_opt
from ldp_client.protocol.epsilon import Epsilon
from simulator.reproductions.subsampling import hidden_epsilon, hidden_renyi, hidden_tcdp, visible_renyi
from tests.client.accounting import (
    GaussianCurve,
    block_information,
    block_total_variation,
    compose_tcdp,
    grouposition,
    grouposition_approximate,
    information_of_response,
    max_information,
    renyi_delta,
    tcdp_group,
    tcdp_group_divergence,
    tcdp_group_epsilon,
)
from tests.client.clones import closed_epsilon
from tests.client.privacy.reference import dec, delta, renyi, response_law

fractions = st.fractions(min_value=-40, max_value=40, max_denominator=10**6)


@given(fractions)
def test_exp_bounds_hold_the_truth_tightly(exponent):
    truth = Fraction(dec(exponent).exp())
    low, high = exp_floor(exponent), exp_ceil(exponent)
    dust = truth / 10**55  # the reference's own error
    assert low <= truth + dust
    assert high >= truth - dust
    assert high - low < truth / 10**45


@pytest.mark.parametrize("exponent", [Fraction(-1, 2), Fraction(-1, 10**6), Fraction(0), Fraction(1, 2), Fraction(9)])
def test_the_two_bounds_of_exp_are_apart_by_what_is_stated(exponent):
    for ratio, bits in (
        (exp_ceil(exponent, 64) / exp_floor(exponent, 64), 64),
        (exp_ceil(exponent) / exp_floor(exponent), 192),
    ):
        assert Fraction(9, 10) < (ratio - 1) * 2 ** (bits - 22) < Fraction(11, 10)


def test_exp_of_large_and_zero_exponents():
    assert exp_floor(Fraction(0)) == 1
    assert exp_floor(Fraction(3000)) <= Fraction(dec(3000).exp()) * (1 + Fraction(1, 10**50))
    for allowed in (exp_floor(Fraction(4000)), exp_ceil(Fraction(4000))):
        assert allowed.numerator.bit_length() - allowed.denominator.bit_length() == pytest.approx(5771, abs=1)
    with pytest.raises(InvalidSpec):
        exp_floor(4000 + Fraction(1, 10**9))


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_log_is_rounded_up_and_close(value):
    truth = dec(value).ln()
    assert dec(log_up(value)) >= truth
    assert dec(log_up(value)) <= truth + abs(truth) * dec("1e-10") + dec("1e-11")


def test_log_of_a_number_near_one_keeps_its_digits():
    assert log_up(1 + Fraction(1, 10**20)) == pytest.approx(1e-20, rel=1e-9, abs=0.0)
    assert log_up(1 - Fraction(1, 10**20)) == pytest.approx(-1e-20, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("value", [0, Fraction(-1, 2), -3])
def test_what_is_not_above_zero_has_no_logarithm(value):
    with pytest.raises(InvalidSpec, match="logarithm"):
        log_up(Fraction(value))


@given(st.fractions(min_value=0, max_value=10**9))
def test_fraction_up_is_the_next_float(value):
    rounded = fraction_up(value)
    assert Fraction(rounded) >= value
    assert value == 0 or Fraction(math.nextafter(rounded, 0.0)) < value


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_up_is_above_and_close(value):
    assert value < up(value) <= value * (1 + 1e-11)
    assert -value < up(-value) <= -value * (1 - 1e-11)


def test_exact_reads_text_numbers_and_epsilons_alike():
    assert exact("0.1") == exact(Epsilon("0.1")) == Fraction(1, 10)
    assert exact(0.1) == Fraction(0.1) != Fraction(1, 10)
    for bad in ("much", math.inf, math.nan):
        with pytest.raises(InvalidSpec):
            exact(bad)
    for bad in (0, -1, "-0.5"):
        with pytest.raises(InvalidSpec):
            positive(bad, "epsilon")


# How far: the margins.

ROWS = response_law("0.5", 3)
E = dec("0.5").exp()


def tanh(x: Decimal) -> Decimal:
    return ((2 * x).exp() - 1) / ((2 * x).exp() + 1)


def most_information(epsilon: str) -> Decimal:
    e = dec(epsilon)
    c = e * e.exp() / (e.exp() - 1)
    return c - 1 - c.ln()


def margins() -> list[tuple]:
    """What is computed, the truth, and the stated margin; computed anew in each test."""
    return [
        ("odds_factor", odds_factor("0.5"), E, -38),
        ("best_guess", best_guess("0.5", 0.25), E / 4 / (1 + (E - 1) / 4), -36),
        ("mutual_information", mutual_information("0.5"), most_information("0.5"), -36),
        ("mutual_information of little", mutual_information("0.01"), most_information("0.01"), -36),
        ("mutual_information of much", mutual_information("3", 7), 7 * most_information("3"), -36),
        ("information_of_response", information_of_response("0.5", 3),
         ROWS[0][0] * (3 * ROWS[0][0]).ln() + 2 * ROWS[0][1] * (3 * ROWS[0][1]).ln(), -30),
        ("max_information", max_information(1, "0.5", 0.1).epsilon, dec("0.5"), -40),
        ("block_information", block_information(3, "0.5"), dec("1.125"), -40),
        ("block_total_variation", block_total_variation(2, "0.1"), dec("0.4").exp() - 1, -40),
        ("pure_rho", pure_rho("0.5"), dec("0.5") * tanh(dec("0.25")), -40),
        ("ResponseCurve.renyi", ResponseCurve("0.5", 3).renyi(1.5), renyi(ROWS[0], ROWS[1], "1.5"), -36),
        ("ResponseCurve.renyi, high order", ResponseCurve("0.5", 3).renyi(30), renyi(ROWS[0], ROWS[1], 30), -36),
        ("ResponseCurve.delta", ResponseCurve("0.5", 3).delta("0.25"), delta(ROWS[0], ROWS[1], "0.25"), -36),
        ("ResponseCurve.divergence", ResponseCurve("0.5", 3).divergence, (ROWS[0][0] - ROWS[0][1]) / 2, -40),
        ("GaussianCurve.renyi", GaussianCurve(2.0).renyi(3), dec("0.375"), -40),
        ("GaussianCurve.tcdp", GaussianCurve(2.0).tcdp().rho, dec("0.125"), -40),
        ("tcdp_epsilon", tcdp_epsilon(Tcdp(0.5), 0.25), dec("0.5") + 2 * (dec("0.5") * dec(4).ln()).sqrt(), -40),
        ("tcdp_epsilon, cut", tcdp_epsilon(Tcdp(0.5, 2.0), 0.25), 1 + dec(4).ln(), -40),
        ("compose_tcdp", compose_tcdp([Tcdp(0.5), Tcdp(0.25, 3.0)]).rho, dec("0.75"), -40),
        ("advanced", advanced(["0.5", "0.5"], 0.25),
         dec("0.5") * tanh(dec("0.25")) * 2 + (2 * dec(4).ln() * dec("0.5")).sqrt(), -40),
        ("grouposition", grouposition(3, "0.5", 0.25), dec("0.375") + dec("0.5") * (6 * dec(4).ln()).sqrt(), -40),
        ("grouposition_approximate", grouposition_approximate(4, "0.5", 0.125, 0.25).delta, dec("0.75"), -40),
    ]  # fmt: skip


def margins_of_many() -> list[tuple]:
    """The same for groups, crowds and what is hidden."""
    return [
        ("tcdp_group", tcdp_group(Tcdp(0.5), 3).rho, dec("4.5"), -40),
        ("tcdp_group_divergence", tcdp_group_divergence(Tcdp(0.5, 2.0), 3)[1], dec(7), -40),
        ("tcdp_group_epsilon", tcdp_group_epsilon(Tcdp(0.5, 2.0), 3, 0.25), dec(3).exp() * (2 + dec(4).ln()), -40),
        ("closed_epsilon", closed_epsilon("0.5", 10**6, 0.25),
         (1 + tanh(dec("0.25")) * (8 * (E * dec(16).ln() / 10**6).sqrt() + 8 * E / 10**6)).ln(), -40),
        ("visible_renyi", visible_renyi(0.5, 2.0, 0.25), (dec("0.75") + E / 4).ln(), -36),
        ("visible_renyi, large", visible_renyi(2.0, 2.0, 0.25), (dec("0.75") + dec(2).exp() / 4).ln(), -36),
        ("hidden_epsilon", hidden_epsilon("0.5", 0.25), (1 + (E - 1) / 4).ln(), -40),
        ("hidden_epsilon, large", hidden_epsilon(2, 0.25), (1 + (dec(2).exp() - 1) / 4).ln(), -40),
        ("hidden_renyi", hidden_renyi(lambda _: 0.5, 2, 0.25), (dec("0.9375") + E / 16).ln(), -36),
        ("hidden_tcdp", hidden_tcdp(Tcdp(0.0625), 2.0**-10).rho, 13 * dec("0.0625") / 2**20, -40),
        ("log_up", log_up(Fraction(5, 4)), dec("1.25").ln(), -40),
        ("log_up, large", log_up(Fraction(9, 4)), dec("2.25").ln(), -38),
        ("log_up, small", log_up(Fraction(3, 2) ** 9), (dec("1.5") ** 9).ln(), -38),
        ("up", up(3.0), dec(3), -40),
        ("up, of its own", up(3.0, 2.0**-20), dec(3), -20),
    ]  # fmt: skip


def all_margins() -> list[tuple]:
    return margins() + margins_of_many()


@pytest.mark.parametrize("place", range(len(all_margins())), ids=[row[0] for row in all_margins()])
def test_the_margin(place):
    _, value, truth, bits = all_margins()[place]
    excess = (dec(value) / truth - 1) * dec(2) ** -bits
    assert dec("0.75") < excess < dec("1.5")


def test_one_order_is_rounded_by_the_sizes_of_its_parts():
    """bonus = ln(1/2) - ln(1/4) - ln(2) = 0: nothing but the divergence and its margin is left."""
    assert renyi_epsilon(2.0, 0.5, 0.25) == pytest.approx(0.5 + 0.5 * 2.0**-40, rel=1e-15)
    bonus = math.log1p(-1 / 4) - (math.log(1e-3) + math.log(4)) / 3
    assert renyi_epsilon(4.0, 0.5, 1e-3) - (0.5 + bonus) == pytest.approx((0.5 + bonus) * 2.0**-40, rel=0.01)


def test_a_delta_is_rounded_by_the_sizes_in_its_exponent():
    exact = dec(3) * (dec("0.5") - dec(6)) + 4 * (dec("0.75")).ln() - dec(3).ln()
    slack = dec(renyi_delta(4.0, 0.5, 6.0)) / exact.exp() - 1
    assert slack == pytest.approx(dec((3 * 6.5 + 2.0) * 2.0**-40 + 2.0**-40), rel=dec("0.01"))


def test_the_limit_of_a_filter_is_rounded_down():
    guard = RenyiFilter(4, 0.25, 2.0)  # the conversion adds nothing at this order and delta
    assert 4 - guard.limit == pytest.approx(8 * 2.0**-40, rel=0.01)
    assert guard.reports_left(1) == math.floor(guard.limit / ResponseCurve(1).renyi(2.0))


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(7), Fraction(300), Fraction(-5, 2)])
@pytest.mark.parametrize("bits", [64, 100])
def test_the_bounds_of_exp_are_as_wide_as_stated(exponent, bits):
    truth = Fraction(dec(exponent).exp())
    low, high = exp_floor(exponent, bits), exp_ceil(exponent, bits)
    dust = Fraction(1, 10**50)
    assert truth * (1 - Fraction(1, 1 << (bits - 24))) <= low <= truth * (1 + dust)
    assert truth * (1 - dust) <= high <= truth * (1 + Fraction(1, 1 << (bits - 24)))


def test_the_yardsticks_are_the_formulas():
    """Nothing is rounded here: yardsticks promise nothing."""
    n, size, beta = 10**4, 10**6, 0.01
    optimum = 4 * math.e / (math.e - 1) ** 2
    assert v_opt(1) == pytest.approx(optimum, rel=1e-12)
    assert sigma_opt(n, 1) == pytest.approx(math.sqrt(n * optimum), rel=1e-12)
    assert d_opt(n, 1, size, beta) == pytest.approx(math.sqrt(n * optimum * 2 * math.log(2 * size / beta)), rel=1e-12)
    assert lower_bound_shape(n, 2, size, beta) == pytest.approx(math.sqrt(n * math.log(size / beta)) / 2, rel=1e-12)
    # At 2^30 items the two forms of the tail agree, so the error grows evenly through the seam.
    below, at, above = (optimal_scan_error(n, 1, size) for size in ((1 << 30) - 1, 1 << 30, (1 << 30) + 1))
    assert 0 < at - below < 1e-8 * at
    assert 0 < above - at < 1e-8 * at


def test_shown_numbers_forgive_the_margin_and_nothing_more():
    assert shown(up(2.0), 4) == "2"
    assert shown(2.0 * (1 + 3 * 2.0**-40), 4) == "2"
    assert shown(2.0 * (1 + 4.5 * 2.0**-40), 4) == "2.001"
    assert [shown(value, 3) for value in (1e-5, 0.9e-5, 999e9, 1e12)] == ["0.00001", "9E-6", "999000000000", "1E+12"]
    assert shown(math.inf, 3) == "inf"


NAMES = [
    ("epsilon", lambda: pure_rho(0)),
    ("epsilon", lambda: ResponseCurve(0)),
    ("sigma", lambda: GaussianCurve(0)),
    ("sensitivity", lambda: GaussianCurve(1, 0)),
    ("epsilon", lambda: RenyiFilter(0, 0.1, 8)),
    ("delta", lambda: RenyiFilter(1, 1.0, 8)),
    ("delta", lambda: advanced(["1"], 1.0)),
    ("delta", lambda: every_rule(["1"], 1.0)),
    ("epsilon", lambda: grouposition(2, 0, 0.1)),
    ("delta", lambda: grouposition(2, 1, 1.0)),
    ("delta", lambda: every_group_of(2, 10, ["1"], 1.0)),
    ("epsilon", lambda: odds_factor(0)),
    ("epsilon", lambda: mutual_information(0)),
    ("epsilon", lambda: information_of_response(0)),
    ("epsilon", lambda: max_information(2, 0, 0.1)),
    ("beta", lambda: max_information(2, 1, 1.0)),
    ("the prior", lambda: best_guess(1, 1.0)),
    ("epsilon", lambda: block_information(1, 0)),
    ("epsilon", lambda: block_total_variation(1, 0)),
    ("epsilon", lambda: hidden_epsilon(0, 0.5)),
    ("epsilon", lambda: v_opt(0)),
    ("epsilon", lambda: lower_bound_shape(10, 0, 10)),
    ("beta", lambda: d_opt(10, 1, 10, 1.0)),
    ("beta", lambda: optimal_scan_error(10, 1, 10, 1.0)),
    ("delta", lambda: shuffled(1, 10, 0.0)),
]


@pytest.mark.parametrize(("name", "call"), NAMES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(NAMES)])
def test_the_error_names_what_is_refused(name, call):
    with pytest.raises(InvalidSpec, match=f"^{name} must"):
        call()
