from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.curves import Tcdp
from ldp_client.privacy.groups import every_group_of, group, group_rules
from tests.client.accounting import (
    grouposition,
    grouposition_approximate,
    tcdp_group,
    tcdp_group_divergence,
    tcdp_group_epsilon,
)
from tests.client.privacy.reference import composed_delta, dec

people = st.integers(1, 8)
epsilons = st.sampled_from(["0.1", "0.5", "1", "3"])
deltas = st.floats(1e-9, 1e-2)


def test_a_hundred_people_at_a_tenth():
    """k = 100, eps = 0.1, delta = 1e-6: grouposition is below k eps = 10, and the exact value below both."""
    rules = {total.rule: total.epsilon for total in group_rules(100, ["0.1"], 1e-6)}
    assert rules["grouposition"] == pytest.approx(100 * 0.005 + 0.1 * math.sqrt(200 * math.log(1e6)))
    assert rules["grouposition"] == pytest.approx(grouposition(100, "0.1", 1e-6))
    assert rules["optimal"] < rules["zcdp"] < rules["grouposition"] < rules["basic"] == 10
    assert group(100, ["0.1"], 1e-6).rule == "optimal"


@given(people, epsilons, deltas)
def test_no_group_statement_is_below_the_truth(k, epsilon, delta):
    for total in group_rules(k, [epsilon], delta):
        assert composed_delta([epsilon] * k, total.epsilon) <= dec(total.delta) + dec("1e-55")


@given(people, epsilons, deltas)
def test_groups_grow(k, epsilon, delta):
    for small, large in zip(
        sorted(group_rules(k, [epsilon], delta), key=lambda t: t.rule),
        sorted(group_rules(k + 1, [epsilon], delta), key=lambda t: t.rule),
        strict=True,
    ):
        assert small.rule == large.rule
        assert small.epsilon <= large.epsilon * (1 + 1e-9)


def test_approximate_reports_add_their_deltas():
    total = grouposition_approximate(10, "0.1", 1e-8, 1e-6)
    assert total.delta == pytest.approx(1e-6 + 1e-7)
    assert total.epsilon == grouposition(10, "0.1", 1e-6)
    with pytest.raises(InvalidSpec):
        grouposition_approximate(10, "0.1", 1.0, 1e-6)


def test_all_groups_at_once_cost_more_than_one_and_less_than_adding_where_it_can():
    for k, users in ((2, 1000), (100, 10**6), (1000, 10**4)):
        every = every_group_of(k, users, ["0.05"], 1e-6)
        assert group(k, ["0.05"], 1e-6).epsilon <= every.epsilon <= k * 0.05 * (1 + 1e-9)
    assert every_group_of(9000, 10**4, ["0.05"], 1e-6).rule == "grouposition"
    assert every_group_of(3, 10, ["1"], 1e-6).rule == "basic"


def test_all_groups_of_one_and_the_group_of_all():
    """One group, that of everybody, needs no union bound. Each of n people alone needs delta / n."""
    for people, users, each in ((100, 100, 1e-6), (1, 1000, 1e-9)):
        value, count = 0.05, 200 * people
        mean, squares = count * value * math.tanh(value / 2), count * value**2
        found = every_group_of(people, users, {Fraction(1, 20): 200}, 1e-6)
        assert found.rule == "grouposition"
        assert found.epsilon == pytest.approx(mean + math.sqrt(-2 * math.log(each) * squares), rel=1e-9)
    for people, users in ((0, 10), (11, 10)):
        with pytest.raises(InvalidSpec, match="at least one person and at most all users"):
            every_group_of(people, users, ["1"], 1e-6)


def test_all_groups_by_listing_every_outcome():
    """With three users and groups of two, the probability that any group's loss exceeds the statement."""
    epsilon, delta = Fraction(1, 2), 0.3
    bound = every_group_of(2, 3, [epsilon], delta).epsilon
    p = math.exp(0.5) / (1 + math.exp(0.5))
    failing = 0.0
    for outcome in range(8):
        bits = [outcome >> i & 1 for i in range(3)]
        losses = [0.5 if bit else -0.5 for bit in bits]
        worst = max(losses[i] + losses[j] for i in range(3) for j in range(i))
        if worst > bound:
            failing += math.prod(p if bit else 1 - p for bit in bits)
    assert failing <= delta


@pytest.mark.parametrize(("k", "divergence", "order"), [(5, 0.624, 2.442), (10, 1.681, 1.535), (20, 6.503, 1.138)])
def test_tcdp_groups_of_any_size(k, divergence, order):
    a, value = tcdp_group_divergence(Tcdp(0.01, 10), k)
    assert (a, value) == (pytest.approx(order, abs=1e-3), pytest.approx(divergence, abs=1e-3))
    # Gaussian noise shifted by k has divergence rho k^2 a: it must lie below.
    assert 0.01 * k**2 * a <= value * 1.0001 or k > 10


def test_tcdp_group_rules():
    larger = tcdp_group(Tcdp(0.01, 10), 4)
    assert (larger.rho, larger.omega) == (pytest.approx(0.16), 2.5)
    a, value = tcdp_group_divergence(Tcdp(0.01, 10), 1)
    assert (a, value) == (pytest.approx(10), pytest.approx(0.1))
    assert tcdp_group_epsilon(Tcdp(0.01, 10), 20, 1e-6) == pytest.approx(137, abs=0.5)
    for call in (
        lambda: tcdp_group(Tcdp(0.01, 10), 10),
        lambda: tcdp_group(Tcdp(0.01, 10), 0),
        lambda: tcdp_group_divergence(Tcdp(0.01), 2),
        lambda: every_group_of(5, 4, ["1"], 0.1),
        lambda: group(0, ["1"], 0.1),
    ):
        with pytest.raises(InvalidSpec):
            call()


def test_every_group_by_its_formula():
    """sum eps tanh(eps/2) + sqrt(2 (ln C(n, k) + ln(1/delta)) sum eps^2): 20 people, 1,000 reports of 1/100 each."""
    value, count = 0.01, 20 * 1000
    reach = 2 * (math.log(math.comb(500, 20)) + math.log(1e6))
    expected = count * value * math.tanh(value / 2) + math.sqrt(reach * count * value**2)
    found = every_group_of(20, 500, ["0.01"] * 1000, 1e-6)
    assert (found.rule, found.delta) == ("grouposition", 1e-6)
    assert expected <= found.epsilon <= expected * (1 + 1e-9)


def test_without_a_delta_a_group_has_pure_rules_only():
    assert group_rules(3, ["1", "2"]) == group_rules(3, ["1", "2"], 0.0)
    assert group(3, ["1", "2"]) == group(3, ["1", "2"], 0.0)
    assert {total.delta for total in group_rules(3, ["1", "2"])} == {0.0}
