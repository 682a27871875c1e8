"""The privacy blanket: each mechanism's pair laws against its exact law, the sum against lists and brute force."""

from __future__ import annotations

import cmath
import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from benchmarks.anonymity.multisets import law_table, worst_delta
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.shared.pair_law import Atom, PairLaw, clones, merged, mixed, together, uniform
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.privacy import blanket
from ldp_client.privacy.blanket import Blanket, Spread
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms.battery import enumerate_law
from tests.client.privacy.reference import dec
from tests.examples import ENUMERABLE, FULL, LISTABLE, label

WIDE = [BoundedNumber(Epsilon("1"), 7, 4, 3), BoundedNumber(Epsilon("2"), 9, 7, 5, presence=64)]
"""Windows of more than half of the answers: some answers are in every window."""
SMALL = [*(one for one in (*LISTABLE, *ENUMERABLE) if one.size**2 * one.bound <= 15_000), *WIDE]
"""So small that the pair laws of all pairs of items are worked out."""
EXACT = {
    *("randomized-response", "linear-hash", "hashtogram", "subset-selection"),
    *("composed-response", "sampled-attribute", "hierarchy", "prefix-tree"),
}
"""With 64 bits, their pair laws are those of the worst pair, to the last digits.

The others have an imagined pair: one that differs in every team, or in place and presence at once.
"""


def words_of_all_items(randomizer: Randomizer) -> int:
    return randomizer.size << randomizer.word_bits * randomizer.words


@cache
def true_laws(randomizer: Randomizer) -> tuple[Fraction, set[PairLaw]]:
    """The mass of the exact blanket, and the pair laws of all pairs of items in both directions."""
    table = [[randomizer.probability(index, y) for y in range(randomizer.bound)] for index in range(randomizer.size)]
    least = [min(column) for column in zip(*table, strict=True)]
    laws = set()
    for one, two in itertools.permutations(range(randomizer.size), 2):
        atoms = [Atom(b, table[one][y] / b, table[two][y] / b) for y, b in enumerate(least) if b]
        laws.add(tuple(sorted(merged(atoms))))
    return sum(least, Fraction(0)), laws


def test_the_examples_are_all_mechanisms():
    assert {one.name for one in SMALL} == {one.name for one in FULL}
    assert {one.name for one in SMALL if one.word_bits == 64} >= EXACT - {"hashtogram"}


TWICE = ("genprot-1-11-11-125360018-339", "sampled-attribute-3-32-")
"""Mechanisms of which another instance with as many word bits runs by default."""


@pytest.mark.parametrize(
    "randomizer",
    [pytest.param(one, marks=pytest.mark.slow) if label(one) in TWICE else one for one in SMALL],
    ids=label,
)
@pytest.mark.thinned(22)
def test_no_pair_of_items_is_worse_than_the_pair_laws(randomizer):
    """Over the exact laws, which the batteries compare with the code on every word."""
    mass, laws = true_laws(randomizer)
    assert all(sum(atom.share for atom in law) <= mass for law in randomizer.pair_laws)
    assert all(atom.share > 0 and atom.first > 0 and atom.second > 0 for law in randomizer.pair_laws for atom in law)
    laws = sorted(laws, key=lambda law: -sum(b * (u - v) ** 2 for b, u, v in law))
    for reports, epsilon in ((1, 0.0), (3, 0.2), (400, 0.06)):
        bound = Blanket(randomizer.pair_laws, reports).delta(epsilon)
        some = laws if reports == 1 else [*laws[:6], *laws[6::29]]
        worst = max(Blanket((law,), reports).delta(epsilon) for law in some)
        assert worst <= bound * (1 + 1e-7) + 1e-13
        if randomizer.name in EXACT and randomizer.word_bits == 64:
            assert worst == pytest.approx(bound, rel=1e-7)


@pytest.mark.parametrize("randomizer", [one for one in ENUMERABLE if words_of_all_items(one) <= 1 << 14], ids=label)
def test_the_pair_laws_against_the_code_on_every_word(randomizer):
    """The local hockey stick of every pair, from the reports that the code makes, is that of a batch of one."""
    laws = [enumerate_law(randomizer, index) for index in range(randomizer.size)]
    for share in (0.0, 0.3, 0.9):
        epsilon = share * randomizer.realised_epsilon
        lost = max(
            sum(max(0.0, float(p) - math.exp(epsilon) * float(other.get(y, 0))) for y, p in law.items())
            for law, other in itertools.permutations(laws, 2)
        )
        assert lost <= Blanket(randomizer.pair_laws, 1).delta(epsilon) + 1e-12


def brute_force(slow: bool) -> list[tuple[Randomizer, int]]:
    """For every small instance the largest n up to 6 that can be paid for, from 2 on."""
    limit = 20_000_000 if slow else 150_000
    found = []
    for one in (*FULL, *ENUMERABLE):
        if one.size > 1000:
            continue
        for reports in range(6, 1, -1):
            sets, people = math.comb(one.bound + reports - 1, reports), math.comb(one.size + reports - 2, reports - 1)
            if sets * people * one.size**2 <= (limit if reports > 2 else max(limit, 10_000_000)):
                found.append((one, reports))
                break
    return found


@pytest.mark.long
def test_all_datasets_of_the_others_are_within_the_bound(request):
    cases = brute_force(request.config.getoption("--slow"))
    assert {one.name for one, _ in cases} == {one.name for one in FULL}
    for randomizer, reports in cases:
        bound = Blanket(randomizer.pair_laws, reports)
        epsilons = [share * randomizer.realised_epsilon for share in (0.0, 0.1, 0.3, 0.6, 0.9)]
        for epsilon, delta in zip(epsilons, worst_delta(law_table(randomizer), reports, epsilons), strict=True):
            assert delta <= bound.delta(epsilon) + 1e-12, (label(randomizer), reports, epsilon)


@pytest.mark.parametrize(
    ("epsilon", "categories", "reports", "shares"),
    [
        ("1", 3, 2, (0.0, 0.2, 0.5, 0.8, 0.9)),
        ("1", 3, 6, (0.0, 0.1, 0.3)),
        ("3", 5, 5, (0.0, 0.1, 0.3, 0.6, 0.9)),
        ("0.5", 4, 6, (0.0, 0.1, 0.2)),
    ],
)
def test_the_bound_is_nearly_reached_where_it_can_be(epsilon, categories, reports, shares):
    """k-ary response with k >= 3, the others hold a third category: only blanket reports can be x0 or x1."""
    mechanism = RandomizedResponse(Epsilon(epsilon), categories)
    bound, values = Blanket(mechanism.pair_laws, reports), [share * float(epsilon) for share in shares]
    for value, delta in zip(values, worst_delta(law_table(mechanism), reports, values), strict=True):
        assert delta <= bound.delta(value) <= 1.03 * delta


TERNARY = RandomizedResponse(Epsilon("1"), 3)
SUBSETS = [one for one in FULL if isinstance(one, SubsetSelection)]


@pytest.mark.parametrize("randomizer", [FULL[2], FULL[4], SUBSETS[1]], ids=label)
def test_the_contour_against_the_list(randomizer, monkeypatch):
    """The contour is an upper bound of the list, and the smoothing costs it little."""
    atoms = randomizer.pair_laws[0]
    nothing = float(1 - sum(atom.share for atom in atoms))
    for reports in (6, 12, 20):
        for share in (0.0, 0.2, 0.5, 0.8):
            grown = math.exp(share * float(randomizer.epsilon))
            steps = [(float(b), float(u) - grown * float(v)) for b, u, v in atoms]
            spread = Spread(steps, nothing, reports)
            listed = spread._listed()
            monkeypatch.setattr(blanket, "_LISTED", 0)
            contour = spread.positive_part()
            monkeypatch.undo()
            assert listed <= contour <= 1.03 * listed + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 7.1])
def test_shares_and_values_are_rounded_up(epsilon):
    """Against sixty digits, for fractions that no float is equal to."""
    law = tuple(Atom(Fraction(1, 7 + n), Fraction(10**n + n, 3), Fraction(10 ** (4 - n) + n, 7)) for n in range(5))
    spread = Blanket((law,), 10)._spread(0, epsilon)
    assert Fraction(spread.nothing) >= 1 - sum(atom.share for atom in law)
    for (share, value), atom in zip(spread.steps, law, strict=True):
        exact = dec(atom.first) - dec(epsilon).exp() * dec(atom.second)
        assert Fraction(share) >= atom.share
        assert exact < dec(value) < exact + dec(1e-13) * (dec(atom.first) + dec(epsilon).exp() * dec(atom.second))


def test_what_rounding_may_cost_is_added_to_every_term(monkeypatch):
    """With an error of 0.01/n in each phi, phi^n is off by 2%, and the sum by 2% of the sizes of its terms."""
    spread = Blanket(FULL[4].pair_laws, 5000)._spread(0, 0.1)
    before = spread.positive_part()
    monkeypatch.setattr(Spread, "_rounding", lambda *_: (0.01 / 5000, 0.0))
    assert spread.positive_part() > before * math.exp(0.02) * 1.02
    monkeypatch.setattr(Spread, "_rounding", lambda *_: (0.0, 1e-6))
    assert spread.positive_part() > before * 1.001


def test_the_terms_that_are_left_out_are_added(monkeypatch):
    """With a sum that is cut much too early, what it gives is still above the list."""
    atoms = RandomizedResponse(Epsilon("3"), 5).pair_laws
    for reports, epsilon, reach in itertools.product((6, 9, 12), (0.0, 0.5, 1.5), (0.01, 0.02, 0.05, 0.1)):
        spread = Blanket(atoms, reports)._spread(0, epsilon)
        monkeypatch.setattr(blanket, "_REACH", reach)
        assert spread._contour(spread._saddle()) >= spread._listed()


def test_where_rounding_may_cost_too_much_a_bound_without_the_sum_is_given(monkeypatch):
    """E[S_+] <= E[e^(t S)]/(e t), at the tilt of the sum: above the list, and no more than some times."""
    for reports, epsilon in itertools.product((3, 6, 12), (0.0, 0.4, 1.5)):
        spread = Blanket(RandomizedResponse(Epsilon("3"), 5).pair_laws, reports)._spread(0, epsilon)
        listed, tilt = spread._listed(), spread._saddle()
        monkeypatch.setattr(Spread, "_rounding", lambda *_: (1e-2, 1.0))
        assert listed < spread._contour(tilt) < 20 * listed
        monkeypatch.undo()


def test_an_error_of_phi_is_within_what_is_added():
    """phi with longer floats, along the contour: what is stated is not exceeded, and is not idle."""
    atoms = FULL[4].pair_laws[0]
    steps = [(float(b), float(u) - 1.02 * float(v)) for b, u, v in atoms]
    spread = Spread(steps, float(1 - sum(atom.share for atom in atoms)), 10**6)
    tilt = spread._saddle()
    total = spread._moments(tilt)[0]
    fixed, slope = spread._rounding(tilt, total)
    worst = 0.0
    for k in range(1, 400):
        point = complex(tilt, 0.1 * k)
        mine = spread.nothing + sum([p * cmath.exp(point * z) for p, z in steps])
        long = [np.longdouble(p) * np.exp(np.clongdouble(point) * np.longdouble(z)) for p, z in steps]
        off = abs(np.clongdouble(mine) - (np.longdouble(spread.nothing) + sum(long))) / total
        worst = max(worst, float(off) / (fixed + slope * point.imag))
    assert 1e-4 < worst <= 1


def test_the_worst_of_several_pair_laws_decides():
    """One pair differs often and little, the other seldom and much: which is worse depends on delta."""
    often = uniform(Fraction(1, 3), Fraction(2), 1, 0)
    seldom = uniform(Fraction(1, 500), Fraction(8), 1, 400)
    for laws in ((often, seldom), (seldom, often)):
        both = Blanket(laws, 1)
        assert both.delta(1.5) == Blanket((seldom,), 1).delta(1.5) > Blanket((often,), 1).delta(1.5) == 0.0
        assert both.delta(0.1) == Blanket((often,), 1).delta(0.1) > Blanket((seldom,), 1).delta(0.1)
        assert both.epsilon(1e-6, 3.0) > 2 > 0.7 > Blanket((often,), 1).epsilon(1e-6, 3.0)
        assert both.epsilon(0.2, 3.0) == Blanket((often,), 1).epsilon(0.2, 3.0) > 0


def test_the_helpers_of_pair_laws():
    half, one, two = Fraction(1, 2), Fraction(1), Fraction(2)
    law = uniform(Fraction(1, 4), two, 1, 1)
    assert sorted(law) == sorted([Atom(Fraction(1, 4), *values) for values in ((two, one), (one, two), (one, one))])
    assert sum(share * first for share, first, _ in law) == 1
    assert merged((Atom(half, one, one), Atom(half, one, one), Atom(Fraction(0), two, one))) == (Atom(one, one, one),)
    assert sorted(mixed(((half, law), (half, law)))) == sorted(law)
    assert sum(atom.share for atom in together(law, law)) == Fraction(9, 16)
    assert sum(share * first for share, first, _ in together(law, law)) == 1
    assert sum(share * second for share, _, second in together(law, law)) == 1
    assert sum(share * first for share, first, _ in clones(Fraction(3))) == 1
    assert sum(atom.share for atom in clones(Fraction(3))) == Fraction(1, 3)


def law_of_sum(spread: Spread) -> dict[float, float]:
    """The values of Z_1 + ... + Z_n and their probabilities, one Z after the other."""
    law = {0.0: 1.0}
    for _ in range(spread.reports):
        longer: dict[float, float] = {}
        for reached, weight in law.items():
            for chance, value in (*spread.steps, (spread.nothing, 0.0)):
                found = round(reached + value, 12)
                longer[found] = longer.get(found, 0.0) + weight * chance
        law = longer
    return law


def smoothed(law: dict[float, float], shift: float, tau: float) -> float:
    """E[(S + shift + Y)_+] for a normal Y of this deviation, in closed form."""
    total = 0.0
    for value, weight in law.items():
        at = (value + shift) / tau
        density = math.exp(-at * at / 2) / math.sqrt(2 * math.pi)
        total += weight * tau * (at * math.erfc(-at / math.sqrt(2)) / 2 + density)
    return total


@pytest.mark.parametrize("smooth", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("reports", "epsilon"), [(4, 0.0), (7, 0.4), (12, 0.9)])
def test_the_contour_is_the_sum_of_poissons_formula(reports, epsilon, smooth, monkeypatch):
    """Its left side, worked out term by term: sum over j of E[(S + Y + j P)_+] e^(-lambda j P)."""
    monkeypatch.setattr(blanket, "_SMOOTH", smooth)
    spread = Blanket(RandomizedResponse(Epsilon("1"), 4).pair_laws, reports)._spread(0, epsilon)
    tilt = spread._saddle()
    deviation = math.sqrt(reports * spread._moments(tilt)[2])
    period = 8 * deviation + 16 / tilt
    tau = max(smooth * deviation, 7.0 / (20_000 * 2 * math.pi / period))
    law = law_of_sum(spread)
    parts = [smoothed(law, j * period, tau) * math.exp(-tilt * j * period) for j in range(-4, 12)]
    assert spread._contour(tilt) == pytest.approx(math.fsum(parts), rel=1e-7)
    assert spread._contour(tilt) >= math.fsum(parts) * (1 - 1e-12)


def test_the_moments_of_a_tilted_law():
    """Against the law written down: e^(tilt z) times the probability of z, divided by its sum."""
    spread = Spread([(0.2, 3.0), (0.1, -1.5)], 0.7, 9)
    for tilt in (0.0, 0.4, 1.7):
        weights = {z: p * math.exp(tilt * z) for z, p in ((3.0, 0.2), (-1.5, 0.1), (0.0, 0.7))}
        whole = sum(weights.values())
        mean = sum(z * w for z, w in weights.items()) / whole
        variance = sum((z - mean) ** 2 * w for z, w in weights.items()) / whole
        assert spread._moments(tilt) == pytest.approx((whole, mean, variance), rel=1e-12)


def test_at_the_saddle_the_tilted_sum_is_two_over_the_tilt():
    for reports, epsilon in ((30, 0.0), (1000, 0.2), (10**6, 0.01)):
        spread = Blanket(TERNARY.pair_laws, reports)._spread(0, epsilon)
        tilt = spread._saddle()
        assert reports * spread._moments(tilt)[1] * tilt == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_where_the_errors_of_rounding_grow_no_sum_is_made(share, monkeypatch):
    """2 n e_k is a bound of |phi^n - phi'^n| while it is below a tenth. Beyond, the bound without a sum is returned."""
    spread = Blanket(TERNARY.pair_laws, 5000)._spread(0, 0.05)
    tilt = spread._saddle()
    monkeypatch.setattr(Spread, "_rounding", lambda *_: (share / 2 / 5000, 0.0))
    total = spread._moments(tilt)[0]
    without = math.exp(5000 * math.log(total) + share) / (math.e * tilt)
    if share > 0.1:
        assert spread._contour(tilt) == pytest.approx(without, rel=1e-12)
    else:
        assert spread._contour(tilt) < 0.5 * without


def test_what_is_cut_is_at_most_what_is_added_and_not_much_less(monkeypatch):
    """The sum cut at its first terms, beside the sum of all: the bound of the rest holds, and is not loose."""
    spread = Blanket(RandomizedResponse(Epsilon("3"), 5).pair_laws, 9)._spread(0, 0.5)
    tilt = spread._saddle()
    monkeypatch.setattr(blanket, "_SMOOTH", 0.5)
    whole = spread._contour(tilt)
    for reach, most in ((2.0, 1.5), (3.0, 1.02), (4.0, 1.001)):
        monkeypatch.setattr(blanket, "_REACH", reach)
        assert whole * (1 - 1e-9) <= spread._contour(tilt) <= most * whole


def test_small_batches_are_listed_and_larger_ones_are_not(monkeypatch):
    """Listed up to _LISTED combinations: the two ways differ by the smoothing, far less than privacy needs."""
    ways = []
    monkeypatch.setattr(Spread, "_listed", lambda self: ways.append(("list", self.reports)) or 1.0)
    monkeypatch.setattr(Spread, "_contour", lambda self, tilt: ways.append(("contour", self.reports)) or 1.0)
    kinds = len(TERNARY.pair_laws[0])
    largest = max(n for n in range(1, 500) if math.comb(n + kinds, kinds) <= 4000)
    for reports in (largest, largest + 1):
        Blanket(TERNARY.pair_laws, reports)._spread(0, 0.1).positive_part()
    assert ways == [("list", largest), ("contour", largest + 1)]
