from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.composition import every_rule
from ldp_client.privacy.conversion import curve_epsilon, tcdp_epsilon
from ldp_client.privacy.curves import LawCurve, ResponseCurve, Tcdp
from simulator.reproductions.subsampling import hidden_epsilon, hidden_renyi, hidden_tcdp, visible_renyi
from tests.client.privacy import reference
from tests.client.privacy.reference import dec

shares = st.floats(0.001, 1.0)


@pytest.mark.parametrize(("rho", "share", "omega"), [(0.01, 0.01, 57.99), (0.1, 0.01, 18.20)])
def test_hidden_tcdp_reference_values(rho, share, omega):
    found = hidden_tcdp(Tcdp(rho), share)
    assert found is not None
    assert found.omega == pytest.approx(omega / 2, abs=0.005)
    assert found.rho == pytest.approx(13 * share**2 * rho)


@pytest.mark.parametrize(
    ("rho", "share", "omega"),
    [(0.001, 0.1, math.inf), (0.11, 0.01, math.inf), (0.01, 0.01, 2.0), (0.01, 0.01, 1.5), (0.01, 1.0, math.inf)],
)
def test_where_the_conditions_fail_nothing_is_claimed(rho, share, omega):
    assert hidden_tcdp(Tcdp(rho, omega), share) is None


@given(st.floats(1e-5, 0.1), st.floats(1e-5, 1.0), st.floats(2.01, 500))
def test_whatever_is_claimed_meets_the_conditions(rho, share, omega):
    found = hidden_tcdp(Tcdp(rho, omega), share)
    if found is None:
        return
    w = 2 * found.omega
    gap = math.log(1 / ((w - 2) * share))
    assert 2 < w <= omega
    assert 2 + math.log2(1 / rho) + gap / math.log(2) <= w <= gap / rho * (1 + 1e-9)


@given(st.floats(0.001, 0.1), st.floats(0.0001, 0.1))
def test_the_claim_holds_for_gaussian_noise(rho, share):
    found = hidden_tcdp(Tcdp(rho), share)
    if found is not None:
        for order in range(2, min(60, math.floor(found.omega)) + 1):
            assert hidden_renyi(lambda k: rho * k, order, share) <= found.rho * order


@pytest.mark.parametrize(
    ("rho", "share", "ratio"),
    [(0.1, 0.1, 1.182), (0.01, 0.01, 1.034), pytest.param(0.001, 0.001, 1.004, marks=pytest.mark.slow)],
)
def test_amplification_is_close_to_the_square_of_the_share(rho, share, ratio):
    last = math.log(1 / share) / (4 * rho)
    orders = range(2, math.floor(last) + 1)
    worst = max(hidden_renyi(lambda k: rho * k, order, share) / (share**2 * rho * order) for order in orders)
    assert 1 < worst <= ratio * 1.001


@pytest.mark.long
def test_the_cliff():
    """At rho = s = 0.01 the gain is gone from order 462 on, next to ln(1/s)/rho = 460.5."""
    first = next(a for a in range(2, 600) if hidden_renyi(lambda k: 0.01 * k, a, 0.01) > 13 * 0.01**3 * a)
    assert first == 462


@given(
    st.fractions(min_value=Fraction(1, 10), max_value=4, max_denominator=20), st.floats(0.01, 0.99), st.integers(2, 12)
)
def test_hidden_renyi_against_the_mixture_itself(epsilon, share, order):
    p, q = reference.response_law(epsilon, 2)
    s = dec(share)
    mixture = [s * a + (1 - s) * b for a, b in zip(p, q, strict=True)]
    truth = reference.renyi(mixture, q, order)
    value = dec(hidden_renyi(ResponseCurve(epsilon).renyi, order, share))
    assert truth <= value <= truth * (1 + dec("1e-6")) + dec("1e-12")


@given(st.floats(0.01, 20), st.floats(1.01, 60), shares)
def test_visible_participation_is_an_average_not_a_square(divergence, order, share):
    value = visible_renyi(divergence, order, share)
    a, d, s = dec(order), dec(divergence), dec(share)
    truth = (1 - s + s * ((a - 1) * d).exp()).ln() / (a - 1)
    assert truth <= dec(value) <= truth * (1 + dec("1e-9"))
    assert value >= share * divergence * (1 - 1e-9)


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=6, max_denominator=50),
    st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=100),
    st.integers(2, 9),
)
@pytest.mark.long
def test_dummies_of_a_random_item_are_amplified_as_stated(epsilon, share, k):
    e = Fraction(math.exp(epsilon)).limit_denominator(10**9)
    rows = [[(e if x == y else Fraction(1)) / (e + k - 1) for y in range(k)] for x in range(k)]
    mean = [Fraction(1, k)] * k
    mixed = LawCurve([[share * p + (1 - share) * u for p, u in zip(row, mean, strict=True)] for row in rows])
    assert mixed.pure <= hidden_epsilon(epsilon, float(share)) * (1 + 1e-7) + 1e-9


def test_a_year_of_binary_reports_three_ways():
    """365 reports at epsilon = 1, participation 0.1, delta = 1e-6: always, visibly sampled, with dummies."""
    curve = ResponseCurve(1)
    rho = curve.tcdp().rho
    assert tcdp_epsilon(Tcdp(365 * rho), 1e-6) == pytest.approx(265.2, abs=0.1)
    visible = curve_epsilon(lambda order: 365 * visible_renyi(curve.renyi(order), order, 0.1), 1e-6)
    assert visible <= 50.2
    p = 0.1 * curve.p + 0.45
    dummy = math.log(p / (1 - p))
    assert dummy == pytest.approx(0.0925, abs=1e-4)
    assert hidden_epsilon(1, 0.1) == pytest.approx(0.1586, abs=1e-4)
    rules = {total.rule: total.epsilon for total in every_rule([dummy] * 365, 1e-6)}
    assert rules["zcdp"] == pytest.approx(10.85, abs=0.01)
    assert rules["optimal"] == pytest.approx(9.41, abs=0.01)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_bad_shares(share):
    for call in (
        lambda: hidden_epsilon(1, share),
        lambda: visible_renyi(1, 2, share),
        lambda: hidden_tcdp(Tcdp(0.01), share),
    ):
        with pytest.raises(InvalidSpec):
            call()


def test_full_participation_changes_nothing():
    assert hidden_epsilon(2, 1.0) == pytest.approx(2)
    assert visible_renyi(0.3, 4, 1.0) == pytest.approx(0.3)
    assert hidden_renyi(lambda k: 0.1 * k, 6, 1.0) == pytest.approx(0.6)
    with pytest.raises(InvalidSpec):
        hidden_renyi(lambda k: 0.1 * k, 1, 0.5)
