from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.privacy import curves
from ldp_client.privacy.curves import LawCurve, ResponseCurve, Tcdp, pure_rho
from ldp_client.protocol.epsilon import Epsilon
from tests.client.accounting import Composed, GaussianCurve
from tests.client.privacy import reference
from tests.client.privacy.reference import dec

epsilons = st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=1000)
orders = st.floats(min_value=1.0001, max_value=500)


def law(randomizer):
    return [[randomizer.probability(x, y) for y in range(randomizer.bound)] for x in range(randomizer.size)]


@given(epsilons, st.integers(2, 300), orders)
def test_response_renyi_is_just_above_the_truth(epsilon, k, order):
    e = dec(epsilon).exp()
    truth, lie = e / (e + k - 1), 1 / (e + k - 1)
    row = [truth, lie, *([lie] * (k - 2))]
    other = [lie, truth, *([lie] * (k - 2))]
    value = dec(ResponseCurve(epsilon, k).renyi(order))
    expected = reference.renyi(row, other, order)
    assert value >= expected
    assert value <= expected * (1 + dec("1e-9"))


@given(epsilons, st.floats(0, 25))
def test_response_delta_is_just_above_the_truth(epsilon, asked):
    rows = reference.response_law(epsilon, 2)
    value, expected = dec(ResponseCurve(epsilon).delta(asked)), reference.delta(*rows, asked)
    assert value >= expected
    assert value <= expected * (1 + dec("1e-9")) + dec("1e-14")


@pytest.mark.parametrize(
    ("k", "epsilon", "rho"),
    # Measured with quadrature outside this package.
    [(2, 1, 0.4621), (2, 2, 1.523), (2, 4, 3.856), (16, 1, 0.1129), (256, 1, 0.0497)],
)
def test_reference_values_of_rho(k, epsilon, rho):
    assert ResponseCurve(epsilon, k).tcdp().rho == pytest.approx(rho, rel=1e-3)


def test_the_supremum_of_many_answers_is_not_at_order_one():
    curve = ResponseCurve(1, 256)
    best = max((1.0 + step / 10 for step in range(1, 300)), key=lambda order: curve.renyi(order) / order)
    assert best == pytest.approx(10.6, abs=0.2)


@given(epsilons, st.integers(2, 200), orders)
@settings(max_examples=50)
def test_rho_dominates_every_order(epsilon, k, order):
    curve = ResponseCurve(epsilon, k)
    assert curve.renyi(order) <= curve.tcdp(tolerance=1e-4).rho * order * (1 + 1e-9)


@given(epsilons, orders)
def test_binary_rho_is_proved_and_tight(epsilon, order):
    rho = pure_rho(epsilon)
    curve = ResponseCurve(epsilon)
    assert curve.renyi(order) <= rho * order * (1 + 1e-9)
    assert curve.renyi(1 + 1e-9) == pytest.approx(rho, rel=1e-4)
    assert rho <= float(epsilon) ** 2 / 2 * (1 + 1e-9)


@given(epsilons, st.integers(2, 40), st.floats(0.0, 1.0), orders)
def test_binary_response_is_above_every_other_mechanism(epsilon, k, share, order):
    binary, other = ResponseCurve(epsilon), ResponseCurve(epsilon, k)
    assert other.renyi(order) <= binary.renyi(order) * (1 + 1e-9)
    asked = share * float(epsilon)
    assert other.delta(asked) <= binary.delta(asked) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(
    "randomizer",
    [
        RandomizedResponse(Epsilon("1"), 3, word_bits=16),
        LinearHash(Epsilon("1"), 9, 3, 2, word_bits=16),
        LinearHash(Epsilon("0.5"), 7, 2, 3, word_bits=16),
    ],
    ids=lambda randomizer: f"{randomizer.name}-{randomizer.size}",
)
def test_exact_laws_of_mechanisms(randomizer):
    curve = LawCurve(law(randomizer))
    assert curve.ratio == randomizer.ratio
    assert curve.pure >= randomizer.realised_epsilon
    binary = ResponseCurve(randomizer.epsilon)
    for order in (1.01, 1.5, 2, 10, 100):
        assert curve.renyi(order) <= binary.renyi(order) * (1 + 1e-9)
    for step in range(10):
        asked = Fraction(step, 10) * randomizer.epsilon.value
        assert curve.delta_exact(asked) <= Fraction(binary.delta(asked))
    assert curve.delta(randomizer.epsilon) == 0.0
    assert curve.tcdp().rho <= binary.tcdp().rho
    assert curve.epsilon(1e-3) < curve.epsilon(1e-6) < curve.pure


@given(st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=4), orders)
def test_law_curve_against_decimals(weights, order):
    rows = [[Fraction(w, sum(row)) for w in row] for row in weights]
    curve = LawCurve(rows)
    pairs = [([dec(p) for p in one], [dec(q) for q in two]) for one in rows for two in rows if one is not two]
    worst = max(reference.renyi(p, q, order) for p, q in pairs)
    assert worst - dec("1e-50") <= dec(curve.renyi(order)) <= worst * (1 + dec("1e-9")) + dec("1e-13")
    delta = max(reference.delta(p, q, Fraction(1, 3)) for p, q in pairs)
    assert delta - dec("1e-50") <= dec(curve.delta_exact(Fraction(1, 3))) <= delta + dec("1e-40")


def test_a_law_with_a_forbidden_output_has_no_pure_epsilon():
    half = Fraction(1, 2)
    curve = LawCurve([[half, half, Fraction(0)], [half, Fraction(0), half]])
    assert curve.ratio is None
    assert curve.pure == curve.renyi(2) == math.inf
    assert curve.delta(5) == 0.5
    assert curve.epsilon(0.4) == math.inf
    assert curve.epsilon(0.5) == 0.0
    with pytest.raises(InvalidSpec):
        curve.tcdp()


def test_one_law_for_all_reveals_nothing():
    curve = LawCurve([[Fraction(1, 3), Fraction(2, 3)]] * 3)
    assert curve.pure == curve.delta(0) == 0
    assert curve.tcdp() == Tcdp(0.0)


@pytest.mark.parametrize(
    "rows", [[], [[Fraction(1)]], [[Fraction(1), Fraction(1)]] * 2, [[Fraction(1)], [Fraction(1, 2)] * 2]]
)
def test_what_is_not_a_law_is_refused(rows):
    with pytest.raises(InvalidSpec):
        LawCurve(rows)


def test_composed_curves_add():
    one, two = ResponseCurve(1), ResponseCurve("0.5", 5)
    both = Composed([one, two])
    for order in (1.5, 2.0, 30.0):
        assert both.renyi(order) == pytest.approx(one.renyi(order) + two.renyi(order), rel=1e-9)
    assert both.pure == pytest.approx(1.5)
    assert both.delta(both.pure) == 0.0
    assert both.epsilon(1e-6) <= 1.5 * (1 + 1e-9)


def test_gaussian_curve():
    curve = GaussianCurve(2.0, 1.0)
    assert curve.renyi(3) == pytest.approx(3 / 8)
    assert curve.tcdp(50).rho == pytest.approx(1 / 8)
    # delta(eps) by numerical integration of the two densities.
    steps = 200_000
    width = 40 / steps
    density = [math.exp(-((-20 + i * width) ** 2) / 8) / math.sqrt(8 * math.pi) for i in range(steps)]
    shift = round(1 / width)
    mass = sum(max(0.0, density[i - shift] - math.exp(0.3) * density[i]) for i in range(shift, steps)) * width
    assert curve.delta(0.3) == pytest.approx(mass, rel=1e-3)
    assert curve.delta(curve.epsilon(1e-6)) <= 1e-6
    with pytest.raises(InvalidSpec):
        curve.tcdp(0.5)


@given(st.lists(epsilons, min_size=2, max_size=2), orders)
def test_curves_grow_with_epsilon(pair, order):
    small, large = sorted(pair)
    assert ResponseCurve(small).renyi(order) <= ResponseCurve(large).renyi(order) * (1 + 1e-9)
    assert ResponseCurve(small).renyi(order) <= ResponseCurve(small).renyi(order + 1) * (1 + 1e-9)


class Lopsided:
    """Three items and two reports: a law that is not symmetric."""

    size, bound = 3, 2
    rows = ((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 5), Fraction(4, 5)))

    def probability(self, index, report):
        return self.rows[index][report]


def test_the_law_of_a_randomizer_is_listed_item_by_item():
    assert LawCurve.of(Lopsided()).ratio == Fraction(5, 2)
    assert LawCurve.of(Lopsided()).delta_exact(0) == Fraction(3, 10)


def test_a_law_that_is_too_long_is_not_listed():
    class Long(Lopsided):
        size = (1 << 19) + 1

    with pytest.raises(InvalidSpec, match="at most 1048576 probabilities"):
        LawCurve.of(Long())


def test_the_longest_law_that_is_listed(monkeypatch):
    monkeypatch.setattr(curves, "MAX_LAW", 6)
    assert LawCurve.of(Lopsided()).ratio == Fraction(5, 2)
    monkeypatch.setattr(curves, "MAX_LAW", 5)
    with pytest.raises(InvalidSpec, match="at most 5 probabilities"):
        LawCurve.of(Lopsided())


def test_the_orders_of_tcdp_are_above_one():
    curve = ResponseCurve(1, 5)
    for omega in (0.5, 1.0):
        with pytest.raises(InvalidSpec, match=r"^omega must be above 1"):
            curve.tcdp(omega)
    assert curve.renyi(1.5) / 1.5 <= curve.tcdp(1.5).rho <= curve.tcdp().rho * (1 + 1e-6)
    assert curve.tcdp(1.5).omega == 1.5


@pytest.mark.parametrize("k", [3, 16, 256])
@pytest.mark.parametrize("tolerance", [0.5, 0.05, 1e-6])
def test_a_coarse_search_for_rho_is_never_below_the_supremum(k, tolerance):
    curve = ResponseCurve(1, k)
    orders = [1 + 1.02**step * 1e-4 for step in range(700)]
    supremum = max(curve.renyi(order) / order for order in orders)
    found = curve.tcdp(tolerance=tolerance).rho
    assert supremum * (1 - 1e-12) <= found <= supremum * (1 + tolerance) * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [60, 100, 900])
def test_the_smallest_epsilon_of_a_large_one_is_found(epsilon):
    """delta(e) = p - e^e q, so e = epsilon + ln(1 - delta / p); the search ends where floats are coarse."""
    assert ResponseCurve(epsilon).epsilon(0.5) == pytest.approx(epsilon + math.log(0.5), rel=1e-11)


def test_a_divergence_that_rounding_makes_negative_is_none():
    """Two laws that differ by 4e-17: the sum of the moments is rounding alone, and comes out negative."""
    one, two = Fraction(196, 267), Fraction(53, 125 * 10**16)
    assert LawCurve([[one, 1 - one], [one + two, 1 - one - two]]).renyi(1.5) == 0.0


@pytest.mark.parametrize("tolerance", [0.3, 0.01])
@pytest.mark.parametrize("epsilon", ["0.7", "5"])
def test_a_coarse_tolerance_is_kept(epsilon, tolerance):
    curve = ResponseCurve(epsilon)
    for step in range(1, 40):
        delta = curve.delta(0) * step / 40
        exact = curve.epsilon(delta)
        excess = curve.epsilon(delta, tolerance) - exact
        assert -1e-9 <= excess <= tolerance * max(1.0, float(epsilon)) * (1 + 1e-9)


def test_small_differences_keep_their_digits():
    one, two = Fraction(1, 2), Fraction(1, 10**6)
    laws = [[one, one], [one + two, one - two]]
    p, q = ([dec(x) for x in law] for law in laws)
    worst = max(reference.renyi(p, q, 2), reference.renyi(q, p, 2))
    assert LawCurve(laws).renyi(2) == pytest.approx(float(worst), rel=1e-7)


def test_the_ends_of_a_response_curve():
    curve = ResponseCurve(1)
    assert curve.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    assert curve.tcdp().rho == pure_rho(1)
    assert ResponseCurve(1, 3).tcdp(1 + 1e-5).rho == pytest.approx(ResponseCurve(1, 3).renyi(1 + 1e-5), rel=1e-4)
    for order in (1.0, 0.5):
        with pytest.raises(InvalidSpec, match="order is above 1"):
            curve.renyi(order)
    for k in (1, 0):
        with pytest.raises(InvalidSpec, match="at least two answers"):
            ResponseCurve(1, k)
