from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.charges import basic, tally
from ldp_client.privacy.composition import Total, advanced, compose, every_rule
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.optimal import Losses
from tests.client.accounting import compose_tcdp, optimal_delta, optimal_epsilon
from tests.client.privacy.reference import composed_delta, dec, many_delta

charges = st.lists(st.sampled_from(["0.05", "0.1", "0.5", "1", "2.25"]), min_size=1, max_size=8)
deltas = st.floats(1e-10, 1e-2)


def by_rule(amounts, delta=1e-6):
    return {total.rule: total.epsilon for total in every_rule(amounts, delta)}


@pytest.mark.parametrize(
    ("epsilon", "count", "simple", "zcdp", "exact"),
    # The zcdp column is rho + 2 sqrt(rho ln(1/delta)) with rho = T eps tanh(eps/2); delta = 1e-6.
    [
        ("0.1", 100, 10, 5.75, 4.77),
        ("0.1", 1000, 100, 21.61, 19.34),
        ("1", 30, 30, 41.54, 29.99),
        ("1", 365, 365, 265.22, 244.63),
        ("4", 10, 40, 84.7, 40.0),
    ],
)
def test_reference_table_of_many_reports(epsilon, count, simple, zcdp, exact):
    rules = by_rule([epsilon] * count)
    assert rules["basic"] == simple
    assert rules["zcdp"] == pytest.approx(zcdp, abs=0.05)
    assert rules["optimal"] == pytest.approx(exact, abs=0.01)
    assert compose([epsilon] * count, 1e-6).epsilon == min(rules.values())


@given(charges, deltas)
def test_no_rule_is_below_the_exact_curve(amounts, delta):
    for total in every_rule(amounts, delta):
        assert composed_delta(amounts, total.epsilon) <= dec(total.delta) + dec("1e-55")


@given(charges, deltas)
def test_the_optimal_rule_is_exact(amounts, delta):
    epsilon = optimal_epsilon(amounts, delta)
    if epsilon > 0:
        assert composed_delta(amounts, epsilon * (1 - 1e-6)) > dec(delta) * dec("0.9999")
    assert dec(optimal_delta(amounts, epsilon)) >= composed_delta(amounts, epsilon)


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 1000), ("1", 365), ("0.01", 3000)])
def test_many_equal_reports_against_the_binomial_sum(epsilon, count):
    for share in (0.01, 0.2, 0.6):
        asked = share * float(epsilon) * count
        truth = many_delta(epsilon, count, asked)
        value = dec(optimal_delta([epsilon] * count, asked))
        assert truth <= value <= truth * (1 + dec("1e-6")) + dec("1e-30")


def test_a_window_of_the_binomial_law_never_loses_delta():
    counts = {Fraction(1, 10): 30_000}
    asked = optimal_epsilon(counts, 1e-6)
    truth = many_delta("0.1", 30_000, asked)
    assert truth <= dec(1e-6)
    assert truth >= dec(1e-6) * dec("0.999")


def test_unequal_epsilons_without_a_common_step_are_rounded_up():
    amounts = ["0.123456789", "1", "0.31830988"] * 3
    losses = Losses(amounts)
    for asked in (0.5, 1.5, 3.0):
        truth = composed_delta(amounts, asked)
        assert truth <= dec(losses.delta(asked)) <= truth * dec("1.02")


@given(charges, charges, deltas)
def test_composition_is_monotone_and_basic_is_additive(some, more, delta):
    assert basic(some) + basic(more) == basic(some + more)
    both, one = by_rule(some + more, delta), by_rule(some, delta)
    for rule in both:
        assert both[rule] >= one[rule] * (1 - 1e-9)
    tighter = by_rule(some, delta / 10)
    for rule in one:
        assert tighter[rule] >= one[rule] * (1 - 1e-9)


@given(st.permutations(["0.1", "0.5", "0.1", "2"]))
def test_order_does_not_matter(amounts):
    assert every_rule(amounts, 1e-6) == every_rule(sorted(amounts), 1e-6)


def test_counts_and_lists_are_the_same_charges():
    assert compose({Fraction(1): 365}, 1e-6) == compose([1] * 365, 1e-6)
    assert tally({Fraction(1): 0}) == tally([]) == {}


def test_charges_of_nothing_are_no_charges():
    """So that they neither change the lattice of losses nor count as reports."""
    assert tally({"0": 5, "0.5": 2}) == tally([0, "0.5", 0, "0.5"]) == {Fraction(1, 2): 2}
    assert optimal_epsilon([0] * 9, 1e-6) == 0.0
    assert compose([0, 1, 0, 1], 1e-6) == compose([1, 1], 1e-6)


def test_without_delta_only_basic_applies_and_nothing_costs_nothing():
    assert [total.rule for total in every_rule(["1"] * 3)] == ["basic"]
    assert compose([]) == compose([], 1e-6) == Total(0.0, 0.0, "basic")
    assert optimal_epsilon([], 0.5) == 0.0
    assert str(compose(["0.5"] * 2)) == "eps = 1 (basic)"
    assert str(compose(["1"] * 365, 1e-6)) == "eps = 244.635 at delta = 1e-06 (optimal)"


def test_advanced_uses_the_exact_mean():
    value = advanced(["1"] * 100, 1e-6)
    assert value == pytest.approx(100 * math.tanh(0.5) + math.sqrt(200 * math.log(1e6)))


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(1.1, 50)), min_size=1, max_size=5))
def test_tcdp_adds_rho_and_keeps_the_smallest_omega(parts):
    total = compose_tcdp(Tcdp(rho, omega) for rho, omega in parts)
    assert total.rho >= math.fsum(rho for rho, _ in parts)
    assert total.rho == pytest.approx(sum(rho for rho, _ in parts))
    assert total.omega == min(omega for _, omega in parts)


@pytest.mark.parametrize("bad", [["-1"], ["much"], {Fraction(1): -1}])
def test_bad_charges(bad):
    with pytest.raises(InvalidSpec):
        compose(bad, 1e-6)


@pytest.mark.parametrize(("rho", "omega"), [(-1, 2), (1, 1), (math.nan, 2)])
def test_bad_tcdp(rho, omega):
    with pytest.raises(InvalidSpec):
        Tcdp(rho, omega)


@pytest.mark.parametrize(("epsilon", "count"), [("0.5", 3), ("2", 12), ("0.01", 500)])
def test_the_exact_sum_is_rounded_up_by_its_margin(epsilon, count):
    """The weights' margin: 2^-40, and 2^-46 for each unit of what lgamma and the powers could lose."""
    asked = float(epsilon) * count / 3
    value, truth = dec(optimal_delta([epsilon] * count, asked)), many_delta(epsilon, count, asked)
    units = math.lgamma(count + 1) + count * (1 + float(epsilon))
    stated = 2.0**-46 * units + 2.0**-40 + 2.0**-40  # and the result's own
    excess = float(value / truth - 1)
    assert 0.8 * stated < excess
    # What a loss is moved by counts too: 2^-50 of it, beside its distance from what was asked.
    assert excess < 1.3 * stated + 2.0**-48 * count * float(epsilon) / min(1.0, float(epsilon))


def test_outcomes_outside_the_window_are_all_charged():
    """Above 20,000 equal reports the sum leaves out two tails, and 10^-30 is added for them."""
    assert Losses({Fraction(1, 10): 20_000}).lost == 0.0
    assert Losses({Fraction(1, 10): 20_001}).lost == 1e-30
    assert Losses({Fraction(1, 10): 20_001}).delta(2000.1) == 1e-30


def test_few_lies_among_many_reports_are_in_the_window():
    """At epsilon 20 hardly any of 30,000 reports lies: the window begins at no lie at all."""
    losses = Losses({Fraction(20): 30_000})
    truth = 30_000 * -math.log1p(math.exp(-20))
    assert losses.delta(600_000 * (1 - 1e-9)) == pytest.approx(math.exp(truth) * -math.expm1(-6e-4), rel=1e-5)
    assert losses.delta(0.0) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("tolerance", [0.3, 0.01])
@pytest.mark.parametrize("charges", [["0.7"], ["1", "2", "0.5"]])
def test_a_coarse_tolerance_is_kept(charges, tolerance):
    losses = Losses(charges)
    for step in range(1, 40):
        delta = losses.delta(0.0) * step / 40
        excess = losses.epsilon(delta, tolerance) - losses.epsilon(delta)
        assert -1e-9 <= excess <= tolerance * max(1.0, float(losses.basic)) * (1 + 1e-9)
