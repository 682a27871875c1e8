"""Set selection: what the battery does not know of it. Its elements, its law against a list of all sets, its limits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.set_selection import MAX_ELEMENTS, SetSelection, design, largest_report
from ldp_client.protocol.domain import Attributes, Sets
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import subset
from tests.client.mechanisms.battery import check_declared

N = 1 << 64
TINY = Fraction(1, 1 << 60)
SMALL = [(2, 2, 1), (3, 2, 2), (4, 3, 3), (4, 4, 2), (4, 2, 3)]


def made(k, most, d, epsilon="1", bits=64):
    return SetSelection(Epsilon(epsilon), 1 << k, most, d, bits)


def places(number):
    return {place for place in range(number.bit_length()) if number >> place & 1}


@pytest.mark.parametrize(
    ("index", "start", "wanted"),
    [
        (0b00000, 0, {5, 6, 7}),  # no item: all fillers
        (0b00100, 0, {2, 5, 6}),
        (0b10100, 0, {2, 4, 5}),
        (0b10101, 0, {0, 2, 4}),  # as many as are reported: no filler
        (0b11101, 0, {0, 2, 8}),  # one more: two stay, and `more`
        (0b11101, 1, {2, 3, 8}),
        (0b11101, 3, {4, 0, 8}),  # the run goes on at the beginning
        (0b11111, 4, {4, 0, 8}),
    ],
)
def test_the_elements_of_a_user(index, start, wanted):
    assert places(made(5, 3, 2).members(index, start)) == wanted


@pytest.mark.parametrize(("k", "most", "d"), SMALL)
def test_every_user_has_as_many_elements(k, most, d):
    """For every set and every start: m elements, the items among them the user's own, `more` where one is missing."""
    maker = made(k, most, d)
    for index in range(1 << k):
        held = index.bit_count()
        for start in range(max(1, held)):
            members = maker.members(index, start)
            assert members.bit_count() == most
            assert members & (1 << k) - 1 & ~index == 0
            kept = (members & index).bit_count()
            assert kept == (held if held <= most else most - 1)
            assert bool(members >> k + most) == (held > most)
            fillers = members >> k & (1 << most) - 1
            assert fillers == (1 << max(0, most - held)) - 1 or held > most
            assert not fillers or held < most


def test_each_item_of_a_cut_set_stays_as_often():
    maker, index = made(7, 3, 2), 0b1011011
    starts = [maker.members(index, start) & 0b1111111 for start in range(5)]
    assert [sum(one >> place & 1 for one in starts) for place in range(7)] == [2, 2, 0, 2, 2, 0, 2]


def test_the_words_draw_the_start_evenly():
    """Of all 16 words of four bits, each of the three starts has five or six."""
    maker = made(3, 2, 1, bits=4)
    chances = [maker.members(0b111, word * 3 >> 4) for word in range(16)]
    assert sorted(chances.count(one) for one in set(chances)) == [5, 5, 6]


@pytest.mark.parametrize(("k", "most", "d"), SMALL)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.thinned(5)
def test_the_law_by_listing_all_sets(k, most, d, epsilon):
    """Every set with an element of the user's has e^epsilon times the probability of one with none."""
    maker, elements = made(k, most, d, epsilon), k + most + 1
    e = maker.epsilon.e_low
    sets = [sum(1 << place for place in some) for some in itertools.combinations(range(elements), d)]
    for index in range(1 << k):
        held = index.bit_count()
        starts = range(held if held > most else 1)
        law = dict.fromkeys(sets, Fraction(0))
        for start in starts:
            members = maker.members(index, start)
            weights = [e if one & members else Fraction(1) for one in sets]
            for one, weight in zip(sets, weights, strict=True):
                law[one] += weight / sum(weights) / len(starts)
        for report in range(maker.bound):
            assert abs(maker.probability(index, report) - law[subset(elements, d, report)]) < TINY


@pytest.mark.parametrize(("k", "most", "d"), SMALL)
def test_support_and_pairs_by_the_exact_law(k, most, d):
    maker, elements = made(k, most, d), k + most + 1
    p, q = maker.support
    own, none = maker.both
    for index in range(1 << k):
        if index.bit_count() > most:
            continue  # a mixture of those below
        members = maker.members(index, 0)
        law = [(maker.probability(index, report), subset(elements, d, report)) for report in range(maker.bound)]
        for y in range(elements):
            found = sum(chance for chance, sent in law if sent >> y & 1)
            assert abs(found - (p if members >> y & 1 else q)) < TINY
        for y, z in itertools.combinations(range(elements), 2):
            found = sum(chance for chance, sent in law if sent >> y & sent >> z & 1)
            assert abs(found - (own if (members >> y | members >> z) & 1 else none)) < TINY


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "10", "20"])
@pytest.mark.parametrize(("k", "most"), [(2, 2), (3, 3), (20, 4), (60, 5), (100, 3), (240, 15), (127, 127)])
@pytest.mark.thinned(11)
def test_declared(epsilon, k, most):
    for d in {1, 2, largest_report(k, most), design(epsilon, k, most)["d"]}:
        if d <= largest_report(k, most):
            # With hits 2^40 times as likely as misses, a step of T is 1e-7 of the ratio.
            check_declared(made(k, most, d, epsilon), 1e-6 if (most, epsilon) == (127, "20") else 1e-9)


@pytest.mark.parametrize(("k", "most"), [(4, 2), (9, 3), (30, 8)])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_a_report_of_one_element_is_drawing_one_of_m_at_a_larger_epsilon(epsilon, k, most):
    """Randomized response at ln(m (e - 1) + 1) about one of the m elements: the same p and q."""
    maker = made(k, most, 1, epsilon)
    e = most * (maker.epsilon.e_low - 1) + 1
    truth = e / (e + k + most)
    p, q = maker.support
    assert abs(q - (1 - truth) / (k + most)) < TINY
    assert abs(p - (truth / most + (most - 1) * q / most)) < TINY


@pytest.mark.parametrize(
    ("k", "most", "epsilon", "d"),
    [
        (8, 2, "0.5", 2), (30, 2, "0.5", 6), (100, 3, "1", 9), (14, 2, "0.8", 3), (16, 5, "0.5", 2), (9, 3, "0.5", 1),
        (15, 3, "1.1", 1),
    ],
)  # fmt: skip
def test_the_design_has_the_least_variance(k, most, epsilon, d):
    """Against the variance by a formula of its own, over every d; the values are those of a search in floats."""
    elements, e = k + most + 1, math.exp(float(Epsilon(epsilon)))

    def variance(size):
        misses = math.comb(elements - most, size)
        total = e * (math.comb(elements, size) - misses) + misses
        p = e * math.comb(elements - 1, size - 1) / total
        q = (size - most * p) / (elements - most)
        return (most * p * (1 - p) + (elements - most) * q * (1 - q)) / (p - q) ** 2

    assert design(epsilon, k, most) == {"d": d}
    assert min(range(1, largest_report(k, most) + 1), key=variance) == d


def test_the_limits():
    assert largest_report(2, 2) == 2  # five elements: half of them
    assert largest_report(3, 3) == 3
    assert largest_report(4, 4) == 4
    assert math.comb(254, largest_report(250, 3)) <= 1 << 63 < math.comb(254, largest_report(250, 3) + 1)
    assert largest_report(MAX_ELEMENTS - 3, 2) >= 10
    for k, most, text in (
        (4, 1, "2 to 4 items, not up to 1"),
        (4, 5, "2 to 4 items, not up to 5"),
        (240, 16, "add up to 255 at the largest, not 256: leave out rare names"),
    ):
        with pytest.raises(InvalidSpec, match=text):
            largest_report(k, most)
    for d in (0, 5):
        with pytest.raises(InvalidSpec, match=f"a d of 1 to 4 for 5 items and sets of up to 2, not {d}"):
            made(5, 2, d)
    with pytest.raises(InvalidSpec, match="2 random bits are too few for sets of 3 of 8"):
        made(5, 2, 3, bits=2)
    with pytest.raises(InvalidSpec, match="takes a domain of sets"):
        SetSelection(Epsilon("1"), 7, 2, 1)


def test_only_a_domain_of_sets_will_do():
    with pytest.raises(InvalidSpec, match="takes a domain of sets"):
        Collection.create(
            "?", Attributes(("a", "b", "c")), "set-selection", "1", opens=0, closes=1, parameters={"d": 1}
        )
    with pytest.raises(InvalidSpec, match="a domain of sets is answered by set-selection"):
        Collection.create("?", Sets(("a", "b", "c"), 2), "randomized-response", "1", opens=0, closes=1)


def test_a_collection_says_how_many_items_are_reported():
    domain = Sets(("a", "b", "c"), 2)
    asked = Collection.create("?", domain, "set-selection", "1", opens=0, closes=1, parameters={"d": 2})
    again = Collection.from_bytes(asked.spec_bytes)
    assert (again.domain, again.randomizer) == (domain, made(3, 2, 2))
    assert Collection.from_toml(asked.to_toml()) == asked
    other = Collection.create(
        "?", Sets(("a", "b", "c"), 3), "set-selection", "1", opens=0, closes=1, parameters={"d": 2}
    )
    assert other.id != asked.id


@pytest.mark.parametrize("word", [0, 1, N - 1, N // 2])
def test_extreme_words_make_reports(word):
    maker = made(60, 5, 3)
    for index in (0, 1, (1 << 60) - 1, 0b11111, 0b111111):
        assert 0 <= maker.randomize(index, (word,) * 4) < maker.bound
