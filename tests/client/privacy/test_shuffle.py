"""What a shuffler is worth: the function that statements use, its limits, and bounds that it must not fall below."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from benchmarks.anonymity.multisets import Multisets, law_table, worst_delta
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.shared.pair_law import clones
from ldp_client.privacy import shuffle
from ldp_client.privacy.blanket import Blanket
from ldp_client.privacy.composition import compose
from ldp_client.privacy.rounding import exp_ceil, positive
from ldp_client.privacy.shuffle import batches, grouped, shuffled
from ldp_client.protocol.epsilon import Epsilon
from tests.client.clones import Clones, closed_epsilon, shuffled_delta
from tests.client.privacy.reference import dec

TERNARY = RandomizedResponse(Epsilon("1"), 3)


def of_clones(epsilon0: float, users: int) -> Blanket:
    return Blanket((clones(exp_ceil(Epsilon(str(epsilon0)).value)),), users)


def worst_case(epsilon0: float, users: int) -> tuple[Counter, Counter]:
    """The pair of laws in clones.py, listed: (a, b) -> probability."""
    truth = dec(epsilon0).exp() / (1 + dec(epsilon0).exp())
    clone = (-dec(epsilon0)).exp()
    one, two = Counter(), Counter()
    for c in range(users):
        many = math.comb(users - 1, c) * clone**c * (1 - clone) ** (users - 1 - c)
        for a in range(c + 1):
            weight = many * math.comb(c, a) / Decimal(2) ** c
            one[a + 1, c - a] += weight * truth
            one[a, c - a + 1] += weight * (1 - truth)
            two[a + 1, c - a] += weight * (1 - truth)
            two[a, c - a + 1] += weight * truth
    return one, two


@pytest.mark.parametrize(("epsilon0", "users"), [("0.5", 2), ("1", 7), ("2", 40), ("3", 60)])
def test_the_law_of_clones_gives_their_worst_case(epsilon0, users):
    """The listed worst case; 60 people are summed by the contour, within its smoothing."""
    one, two = worst_case(float(epsilon0), users)
    assert sum(one.values()) == pytest.approx(1)
    for share in (0.0, 0.1, 0.5, 0.9):
        epsilon = share * float(epsilon0)
        grown = dec(epsilon).exp()
        truth = sum(max(Decimal(0), one[key] - grown * two[key]) for key in one)
        value = dec(of_clones(epsilon0, users).delta(epsilon))
        assert truth <= value <= truth * dec("1.02") + dec("1e-12")


@pytest.mark.parametrize(("epsilon0", "users"), [("1", 500), ("2", 3000), ("4", 30_000)])
def test_the_law_of_clones_against_another_computation(epsilon0, users):
    """The buckets of clones.py cost up to 1%, the smoothing of the contour up to 3%."""
    older = Clones(float(epsilon0), users, 1e-14)
    for share in (0.02, 0.05, 0.1):
        epsilon = share * float(epsilon0)
        have, want = of_clones(epsilon0, users).delta(epsilon), older.delta(epsilon)
        assert want < 1e-11 or want * 0.98 < have < want * 1.04


def test_shuffled_binary_response_is_within_the_bound():
    """Everybody else holds 0: the multiset is a sum of bits. 400 people are beyond any list of multisets."""
    users, p = 400, float(RandomizedResponse(Epsilon("1"), 2).probability(0, 0))
    others = np.array([1.0])
    for _ in range(users - 1):
        others = np.convolve(others, [p, 1 - p])
    zero, one = np.convolve(others, [p, 1 - p]), np.convolve(others, [1 - p, p])
    bound = Blanket(RandomizedResponse(Epsilon("1"), 2).pair_laws, users)
    for epsilon in (0.02, 0.05, 0.1, 0.15):
        for first, second in ((zero, one), (one, zero)):
            exact = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
            assert exact <= bound.delta(epsilon)


def variation_ratio(ratio: float, categories: int, users: int, epsilon: float) -> float:
    """delta(epsilon) as the mechanism-specific "variation ratio" has it, which is wrong.

    The others are clones with probability 2/(e + k - 1), as if their other reports told nothing, and so is the person
    whose report is neither x0 nor x1.
    """
    truth, lie = ratio / (ratio + categories - 1), 1 / (ratio + categories - 1)
    one, two = Counter(), Counter()
    for c in range(users):
        many = math.comb(users - 1, c) * (2 * lie) ** c * (1 - 2 * lie) ** (users - 1 - c)
        for a in range(c + 1):
            weight = many * math.comb(c, a) / 2**c
            for law, first, second in ((one, truth, lie), (two, lie, truth)):
                law[a + 1, c - a] += weight * first
                law[a, c - a + 1] += weight * second
                law[a, c - a] += weight * (1 - truth - lie)
    return sum(max(0.0, one[key] - math.exp(epsilon) * two[key]) for key in one)


def test_the_brute_force_catches_a_bound_that_does_not_hold():
    """Ternary response, two people, the other one holds x0: {x0, x0} alone has .3319 against .1221."""
    p, q = (float(TERNARY.probability(0, report)) for report in (0, 1))
    assert (round(p * p, 4), round(p * q, 4)) == (0.3319, 0.1221)
    (exact,) = worst_delta(law_table(TERNARY), 2, [0.8])
    wrong = variation_ratio(float(TERNARY.ratio), 3, 2, 0.8)
    assert round(exact, 4) == 0.0602
    assert wrong == pytest.approx(0.0273, abs=1e-4)
    assert wrong < exact <= Blanket(TERNARY.pair_laws, 2).delta(0.8) <= exact * 1.03


@pytest.mark.parametrize(
    ("epsilon", "q", "t", "users", "value"),
    [("1", 3, 9, 10**4, 0.0305), ("1", 3, 9, 10**6, 0.0025), ("2", 7, 5, 10**5, 0.024), ("4", 53, 3, 10**6, 0.0239)],
)
def test_reference_values(epsilon, q, t, users, value):
    """The blanket of a linear hash with many points, as measured elsewhere."""
    found = shuffled(LinearHash(Epsilon(epsilon), q**t, q, t), users, 1e-6)
    assert (found.rule, found.delta) == ("privacy blanket", 1e-6)
    assert found.epsilon == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize(("users", "value"), [(10**4, 0.05303), (10**6, 0.00434)])
def test_reference_values_of_clones(users, value):
    """As the product stated them before, by another computation."""
    total = shuffled("1", users, 1e-6)
    assert (total.rule, total.delta) == ("clones", 1e-6)
    assert total.epsilon == pytest.approx(value, rel=2e-3)
    assert total.epsilon < closed_epsilon("1", users, 1e-6)


@given(
    st.sampled_from(("0.01", "0.3", "1", "2.5", "6", "20")),
    st.integers(0, 30).map(lambda power: 2**power + power),
    st.integers(3, 15).map(lambda power: 10.0**-power),
)
@settings(max_examples=20, deadline=None)
def test_shuffling_never_hurts_and_keeps_its_delta(text, users, delta):
    mechanism = LinearHash(Epsilon(text), 9, 3, 2)
    total = shuffled(mechanism, users, delta)
    local = positive(text, "epsilon")
    assert 0 <= total.epsilon <= local
    assert (total.delta == 0) == (total.epsilon == local) == (total.rule == "local")
    if total.delta:
        assert Blanket(mechanism.pair_laws, users).delta(total.epsilon) <= delta
    assert total.epsilon <= shuffled(text, users, delta).epsilon * (1 + 1e-3)


@pytest.mark.parametrize("delta", [pytest.param(1e-3, marks=pytest.mark.slow), 1e-15])
def test_more_users_hide_better_and_more_epsilon_worse(delta):
    """Over everything that is counted; 3e-4 is twice the tolerance of the search and some of the smoothing."""
    users = (1, 2, 10, 13, 15, 300, 10**5, 10**9, 10**12, 10**15)
    found = {
        text: [shuffled(LinearHash(Epsilon(text), 9, 3, 2), n, delta).epsilon for n in users]
        for text in ("0.01", "1", "20")
    }
    for values in found.values():
        assert all(more <= fewer * (1 + 3e-4) for fewer, more in itertools.pairwise(values))
    for smaller, larger in (("0.01", "1"), ("1", "20")):
        assert all(a <= b * (1 + 3e-4) for a, b in zip(found[smaller], found[larger], strict=True))
    assert found["20"][0] == pytest.approx(20, rel=1e-3)
    assert found["0.01"][-1] < 1e-6


def test_a_larger_delta_needs_a_smaller_epsilon():
    found = [shuffled(TERNARY, 2000, 10.0**-power).epsilon for power in range(3, 16, 3)]
    assert found == sorted(found)
    assert shuffled(TERNARY, 10**6, 0.5).epsilon == 0.0


@pytest.mark.parametrize(("users", "count"), [(10**4, 12), (1000, 365), (10, 3)])
@pytest.mark.thinned(1)
def test_several_batches_are_worth_less_than_one(users, count):
    one, many = shuffled(TERNARY, users, 1e-6), batches(TERNARY, users, count, 1e-6)
    local = compose({Epsilon("1").value: count}, 1e-6)
    assert one.epsilon < many.epsilon <= local.epsilon
    assert many.delta in (0.0, 1e-6)
    assert many.epsilon <= count * shuffled(TERNARY, users, 1e-6 / count).epsilon * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 100])
def test_batches_of_a_mechanism_whose_loss_is_nearly_normal(count):
    """Among 10^6 people the loss of m batches is nearly normal: its exact epsilon is the floor, and is not far."""
    mechanism = LinearHash(Epsilon("1"), 9, 3, 2)
    deviation = math.sqrt(count) * Blanket(mechanism.pair_laws, 10**6).deviation

    def normal_delta(epsilon):
        law = stats.norm
        return law.cdf(deviation / 2 - epsilon / deviation) - math.exp(epsilon) * law.cdf(
            -deviation / 2 - epsilon / deviation
        )

    exact = optimize.brentq(lambda epsilon: normal_delta(epsilon) - 1e-6, 0, 20 * deviation)
    found = batches(mechanism, 10**6, count, 1e-6)
    assert found.rule == "privacy blanket, renyi"
    assert exact <= found.epsilon <= 1.15 * exact


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
def test_the_integral_of_delta_is_the_renyi_divergence(order, monkeypatch):
    """Of one report alone, whose laws are known: the chords cost little, and never give too little."""
    mechanism, seen = RandomizedResponse(Epsilon("1"), 3), []
    law, other = law_table(mechanism)[:2]
    exact = math.log(sum(law**order * other ** (1 - order))) / (order - 1)
    monkeypatch.setattr(shuffle, "curve_epsilon", lambda divergence, delta: seen.append(divergence(order)) or 1.0)
    shuffle._renyi(Blanket(mechanism.pair_laws, 1), 1, 1e-6, 1.0)
    assert exact <= seen[0] <= 1.01 * exact


def test_the_plain_sum_of_batches_splits_delta(monkeypatch):
    monkeypatch.setattr(shuffle, "_renyi", lambda *_: math.inf)
    total = batches(TERNARY, 10**4, 3, 1e-6)
    assert total.rule == "privacy blanket, basic"
    assert total.epsilon == pytest.approx(3 * shuffled(TERNARY, 10**4, 1e-6 / 3).epsilon, rel=1e-6)


@pytest.mark.parametrize("count", [1, 30])
def test_what_is_cut_from_the_loss_is_counted(count, monkeypatch):
    """Batches that tell nothing but what is cut: its mass is in the moments, and in delta once for each batch."""

    class Nothing:
        def epsilon(self, rare, most):
            seen.append(rare)
            return 0.1

        def delta(self, epsilon):
            return 0.0

    seen: list[float] = []
    monkeypatch.setattr(
        shuffle, "curve_epsilon", lambda divergence, delta: seen.extend((divergence(5.0), delta)) or 1.0
    )
    assert shuffle._renyi(Nothing(), count, 1e-3, 1.0) == 1.0
    rare, divergence, left = seen
    assert 0 < count * rare + left <= 1e-3 <= 1.01 * left
    assert divergence == pytest.approx(count * math.log1p(4 * rare) / 4, rel=1e-6)


def test_the_batches_of_two_people_by_brute_force():
    """Two batches of the same two people: the product law of their multisets, over all items of the other."""
    table = law_table(TERNARY)
    sets = Multisets(3, 2)
    for other in range(3):
        laws = [sets.add(sets.add(np.ones(1), table[other], 0), row, 1) for row in table]
        for delta in (1e-2, 1e-3):
            bound = batches(TERNARY, 2, 2, delta)
            for one, two in itertools.permutations(laws, 2):
                lost = np.outer(one, one) - math.exp(bound.epsilon) * np.outer(two, two)
                assert np.maximum(lost, 0).sum() <= delta


@pytest.mark.parametrize("delta", [0.05, 1e-2])
def test_two_reports_in_one_batch_by_brute_force(delta):
    """The person's two reports and 28 of others who hold one item, over all three items."""
    table, sets = law_table(TERNARY), Multisets(3, 30)
    bound = grouped(TERNARY, 30, 2, delta)
    assert (bound.rule, bound.delta) == ("privacy blanket, group", delta)
    law = np.ones(1)
    for size in range(28):
        law = sets.add(law, table[2], size)
    laws = [sets.add(sets.add(law, row, 28), row, 29) for row in table]
    for p, q in itertools.permutations(laws, 2):
        assert np.maximum(p - math.exp(bound.epsilon) * q, 0).sum() <= delta


@pytest.mark.parametrize(("users", "count"), [(10**4, 12), (1000, 5), (10**6, 365)])
def test_the_steps_of_reports_that_lie_together_add_up_to_delta(users, count):
    total = grouped(TERNARY, users, count, 1e-6)
    each = total.epsilon / count
    steps = sum(math.exp(each * step) for step in range(count))
    spent = Blanket(TERNARY.pair_laws, users).delta(each) * steps
    assert total.rule == "privacy blanket, group"
    assert 0.9e-6 <= spent <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize(("users", "count"), [(10**4, 12), pytest.param(10**5, 365, marks=pytest.mark.slow), (10, 3)])
@pytest.mark.thinned(1)
def test_reports_that_lie_together_are_worth_more_than_apart(users, count):
    apart, together = batches(TERNARY, users, count, 1e-6), grouped(TERNARY, users, count, 1e-6)
    local = compose({Epsilon("1").value: count}, 1e-6)
    assert apart.epsilon <= together.epsilon <= local.epsilon
    assert grouped(TERNARY, users, 1, 1e-6).epsilon == pytest.approx(shuffled(TERNARY, users, 1e-6).epsilon, rel=1e-3)


def test_one_batch_is_one_batch():
    assert batches(TERNARY, 1000, 1, 1e-6) == shuffled(TERNARY, 1000, 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shuffled(0, 10, 1e-6), "^epsilon must be above 0"),
        (lambda: shuffled(1, 10, 1.0), "^delta must lie"),
        (lambda: shuffled(1, 10, 0.0), "^delta must lie"),
        (lambda: shuffled(1, 0, 1e-6), "at least one report"),
        (lambda: shuffled(60, 0, 1e-6), "at least one report"),
        (lambda: Blanket(TERNARY.pair_laws, 0), "at least one report"),
        (lambda: batches(1, 10, 0, 1e-6), "at least one batch"),
        (lambda: grouped(1, 10, 0, 1e-6), "at least one report"),
    ],
)
def test_the_error_names_what_is_wrong(call, message):
    with pytest.raises(InvalidSpec, match=message):
        call()


def test_a_huge_epsilon_is_left_as_it_is():
    assert str(shuffled(60, 10**9, 1e-6)) == "eps = 60 (local)"


def test_the_older_bounds_agree_with_each_other():
    assert shuffled_delta(1, 1000, 0.2) <= 1e-6 < shuffled_delta(1, 1000, 0.1)
    assert closed_epsilon(5, 1000, 1e-6) == 5.0


@pytest.mark.parametrize("count", [2, 3, 7, 100])
@pytest.mark.parametrize("delta", [1e-6, 3e-9, 0.1])
@pytest.mark.thinned(4)
def test_the_deltas_of_all_batches_add_up_to_no_more_than_delta(count, delta, monkeypatch):
    """In exact numbers: each batch has its part, rounded down."""
    parts = []

    def noted(asked, reports, each):
        parts.append(each)
        return found(asked, reports, each)

    found = shuffle._best
    monkeypatch.setattr(shuffle, "_best", noted)
    batches(TERNARY, 2000, count, delta)
    assert len(parts) == 1
    assert Fraction(delta) * (1 - Fraction(1, 10**11)) < count * Fraction(parts[0]) <= Fraction(delta)


def test_what_is_cut_off_is_paid_by_delta_on_both_sides(monkeypatch):
    """A cut takes at most its delta from P and from Q, so twice that is missing when the rest is converted."""
    asked = []
    monkeypatch.setattr(shuffle, "curve_epsilon", lambda curve, delta: asked.append(delta) or 1.0)
    for rare in (0.001, 0.2):
        monkeypatch.setattr(shuffle, "_RARE", rare)
        shuffle._renyi(Blanket(TERNARY.pair_laws, 5000), 4, 1e-5, 1.0)
    assert asked == [pytest.approx(1e-5 * 0.998, rel=1e-12), pytest.approx(1e-5 * 0.6, rel=1e-12)]
