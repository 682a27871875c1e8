from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.conversion import best_order, curve_epsilon, renyi_epsilon, tcdp_epsilon
from ldp_client.privacy.curves import ResponseCurve, Tcdp
from tests.client.accounting import GaussianCurve, curve_delta, renyi_delta, tail
from tests.client.privacy.reference import dec

rhos = st.floats(1e-4, 10)
omegas = st.floats(1.5, 200)
deltas = st.floats(1e-12, 1e-2)


@pytest.mark.parametrize(
    ("rho", "omega", "epsilon"), [(0.1, math.inf, 2.451), (0.1, 20, 2.451), (0.1, 5, 3.954), (0.5, math.inf, 5.757)]
)
def test_reference_values(rho, omega, epsilon):
    assert tcdp_epsilon(Tcdp(rho, omega), 1e-6) == pytest.approx(epsilon, abs=5e-4)


@pytest.mark.parametrize(("rho", "plain", "tight"), [(2.63, 14.69, 13.79), (1.02, 8.53, 7.86)])
def test_census_values_plain_and_tight(rho, plain, tight):
    assert tcdp_epsilon(Tcdp(rho), 1e-6) == pytest.approx(plain, abs=0.005)
    assert curve_epsilon(lambda order: rho * order, 1e-6) == pytest.approx(tight, abs=0.005)


@given(rhos, omegas, deltas)
def test_the_two_branches_meet(rho, omega, delta):
    seam = Tcdp(rho, 1 + math.sqrt(-math.log(delta) / rho))
    assert tcdp_epsilon(seam, delta) == pytest.approx(tcdp_epsilon(Tcdp(rho), delta), rel=1e-9)
    assert tcdp_epsilon(Tcdp(rho, omega), delta) >= tcdp_epsilon(Tcdp(rho), delta) * (1 - 1e-12)


@given(rhos, deltas)
def test_tight_is_below_plain_and_above_the_gaussian_truth(rho, delta):
    tight = curve_epsilon(lambda order: rho * order, delta)
    assert tight <= tcdp_epsilon(Tcdp(rho), delta)
    assert tight >= GaussianCurve(1 / math.sqrt(2 * rho)).epsilon(delta, 1e-6) * (1 - 1e-5)


@given(st.floats(0.05, 8), deltas)
def test_conversions_never_go_below_the_exact_curve(epsilon, delta):
    curve = ResponseCurve(epsilon)
    assert curve_epsilon(curve.renyi, delta) >= curve.epsilon(delta) * (1 - 1e-9)
    assert curve_delta(curve.renyi, epsilon / 2) >= curve.delta(epsilon / 2) * (1 - 1e-9)


@given(st.floats(1.01, 200), st.floats(0, 20), deltas)
def test_one_order_both_ways_is_rounded_up(order, divergence, delta):
    a = dec(order)
    exact = dec(divergence) + (1 - 1 / a).ln() - (dec(delta).ln() + a.ln()) / (a - 1)
    epsilon = renyi_epsilon(order, divergence, delta)
    assert dec(epsilon) >= exact
    if epsilon > 0:
        assert dec(epsilon) <= exact + (abs(exact) + dec(divergence) + 40) * dec("1e-10")
        assert renyi_delta(order, divergence, epsilon) <= delta * (1 + 1e-6)
        exponent = (a - 1) * (dec(divergence) - dec(epsilon)) + a * (1 - 1 / a).ln() - (a - 1).ln()
        assert dec(renyi_delta(order, divergence, epsilon)) >= min(dec(1), exponent.exp())


@given(rhos, st.floats(2, 50), st.floats(0, 50))
def test_tail_is_continuous_and_falls(rho, omega, excess):
    seam = 2 * rho * (omega - 1)
    assert tail(Tcdp(rho, omega), seam) == pytest.approx(tail(Tcdp(rho, omega), seam * (1 + 1e-9)), rel=1e-4)
    assert tail(Tcdp(rho, omega), excess + 1) <= tail(Tcdp(rho, omega), excess)


def test_tail_bounds_the_exact_loss_of_randomized_response():
    for epsilon in (0.5, 1.0, 3.0):
        curve = ResponseCurve(epsilon)
        rho = curve.tcdp().rho
        # The loss is epsilon with probability p: it exceeds any t below epsilon just as often.
        assert tail(Tcdp(rho), epsilon * 0.999 - rho) >= curve.p


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(InvalidSpec):
        tcdp_epsilon(Tcdp(0.1), delta)
    with pytest.raises(InvalidSpec):
        renyi_epsilon(2, 1, delta)


def test_orders_must_be_above_one():
    for function in (renyi_epsilon, renyi_delta):
        with pytest.raises(InvalidSpec):
            function(1.0, 0.5, 0.1)
    assert renyi_delta(2, math.inf, 3) == 1.0


def test_between_the_two_branches_the_cut_order_counts():
    """At rho = 1 and omega = 4 the best order for ln(1/delta) = 12 would be 1 + sqrt(12), which is above 4."""
    assert tcdp_epsilon(Tcdp(1.0, 4.0), math.exp(-12)) == pytest.approx(4 + 12 / 3, rel=1e-9)
    assert tcdp_epsilon(Tcdp(1.0, 4.0), math.exp(-8)) == pytest.approx(1 + 2 * math.sqrt(8), rel=1e-9)


def test_tail_of_known_losses():
    assert tail(Tcdp(0.5), -0.1) == 1.0
    assert tail(Tcdp(0.5), 0.0) == 1.0
    assert tail(Tcdp(0.5), 2.0) == pytest.approx(math.exp(-2), rel=1e-9)
    assert tail(Tcdp(0.5, 3.0), 2.5) == pytest.approx(math.exp(2 - 5), rel=1e-9)
    assert tail(Tcdp(0.5, 1.5), 0.5) == pytest.approx(math.exp(-0.125), rel=1e-9)


def test_no_loss_has_no_tail():
    assert tcdp_epsilon(Tcdp(0.0), 1e-6) == 0.0
    assert tail(Tcdp(0.0), 0.1) == 0.0
    assert tail(Tcdp(0.0), 0.0) == 1.0


def test_delta_is_never_above_one():
    assert renyi_delta(2, 5.0, 0.1) == 1.0


def test_orders_stay_below_omega():
    """A curve that is infinite from omega on, and falls towards it, is used as near to omega as one likes."""
    asked = []

    def renyi(order):
        asked.append(order)
        return 0.01

    found = curve_epsilon(renyi, 1e-6, 5.0)
    assert max(asked) < 5.0
    assert found == pytest.approx(renyi_epsilon(5.0, 0.01, 1e-6), rel=1e-6)
    assert min(asked) > 1.0


def test_the_best_order_is_found_between_the_points_of_the_scan():
    """Gaussian noise: the best order solves a cubic; a fine grid around it finds nothing smaller."""
    for rho in (0.003, 0.2, 4.0):
        found = curve_epsilon(lambda order, rho=rho: rho * order, 1e-6)
        grid = (1 + 10 ** (step / 4000) for step in range(-8000, 16000))
        assert found <= min(renyi_epsilon(order, rho * order, 1e-6) for order in grid) * (1 + 1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tcdp_epsilon(Tcdp(0.1), 0.0),
        lambda: renyi_epsilon(2, 1, 1.0),
        lambda: curve_epsilon(lambda order: order, 0.0),
    ],
)
def test_the_error_names_delta(call):
    with pytest.raises(InvalidSpec, match=r"^delta must lie"):
        call()


@pytest.mark.parametrize("omega", [math.inf, 3.0])
def test_the_best_order_is_found_wherever_it_lies(omega):
    """One valley, at any place between order 1.0001 and the largest, the ends included."""
    low, high = math.log(1e-4), math.log(min(1e7, omega - 1) * (1 - 1e-8))
    for step in range(241):
        valley = low + (high - low) * step / 240
        assert best_order(lambda order, valley=valley: abs(math.log(order - 1) - valley), omega) < 1e-6
