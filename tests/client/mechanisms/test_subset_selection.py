"""Subset selection: what the battery does not know of it. Its rank, its optimum, its limits, its extremes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import MAX_CATEGORIES, SubsetSelection, design, largest_subset
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.domain import Categories, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import rank_of, subset
from tests.client.mechanisms.battery import check_declared, check_law, check_marginals, enumerate_law

N = 1 << 64
EPSILONS = ["0.01", "0.5", "1", "3", "10", "20"]


@pytest.mark.parametrize(("n", "chosen"), [(1, 0), (1, 1), (5, 0), (7, 3), (8, 8), (9, 4)])
def test_every_subset_has_its_rank(n, chosen):
    found = [subset(n, chosen, rank) for rank in range(math.comb(n, chosen))]
    assert [rank_of(n, members) for members in found] == list(range(len(found)))
    wanted = {sum(1 << place for place in some) for some in itertools.combinations(range(n), chosen)}
    assert set(found) == wanted
    assert found == sorted(found)  # by the largest place first


@settings(max_examples=200, deadline=None)
@given(st.integers(2, MAX_CATEGORIES), st.data())
@pytest.mark.long
def test_ranks_of_large_sets(k, data):
    d = data.draw(st.integers(1, largest_subset(k)))
    rank = data.draw(st.integers(0, math.comb(k, d) - 1))
    members = subset(k, d, rank)
    assert members.bit_count() == d
    assert members < 1 << k
    assert rank_of(k, members) == rank


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 4, 8, 33, 64, 66, 67, 128, 256])
def test_declared(epsilon, k):
    """At d = 1, at the largest d and at the best one."""
    for d in {1, 2, largest_subset(k), design(epsilon, k)["d"]}:
        if d <= largest_subset(k):
            check_declared(SubsetSelection(Epsilon(epsilon), k, d))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "10"])
@pytest.mark.parametrize("k", [2, 3, 7, 50])
def test_a_subset_of_one_is_randomized_response(epsilon, k):
    """The same law, up to the rounding of the lies' weight, k - 1 of which add up."""
    ours, theirs = SubsetSelection(Epsilon(epsilon), k, 1), RandomizedResponse(Epsilon(epsilon), k)
    for index, report in itertools.product({0, 1, k - 1}, {0, 1, k - 1}):
        assert abs(ours.probability(index, report) - theirs.probability(index, report)) <= Fraction(k, N)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (5, 2), (7, 3), (6, 1)])
@pytest.mark.parametrize("epsilon", ["0.01", "10"])
def test_extremes_keep_epsilon(k, d, epsilon):
    """At 64 bits, every report for every item: exactly within epsilon, and every set is reachable."""
    randomizer = SubsetSelection(Epsilon(epsilon), k, d)
    check_marginals(randomizer)
    for report in range(randomizer.bound):
        values = [randomizer.probability(index, report) for index in range(k)]
        assert min(values) > 0
        assert max(values) <= randomizer.epsilon.e_low * min(values)
        holders = [index for index in range(k) if subset(k, d, report) >> index & 1]
        assert min(values[i] for i in holders) > max(value for i, value in enumerate(values) if i not in holders)


def test_few_words_still_keep_epsilon_or_are_refused():
    """Where the ranks' remainders are large, the threshold pays for them; where that cannot be, the spec is refused."""
    kept = 0
    for k, d, bits in itertools.product((2, 3, 4, 5, 6), (1, 2, 3), (1, 2, 3)):
        for epsilon in ("0.1", "1", "10"):
            try:
                randomizer = SubsetSelection(Epsilon(epsilon), k, d, bits)
            except InvalidSpec:
                continue
            check_law(randomizer)
            kept += 1
    assert kept > 20


@pytest.mark.parametrize(("k", "d"), [(6, 2), (8, 3)])
def test_pieces_at_64_bits(k, d):
    """At both ends of every rank's words, with the item in and out of the set; every set is made from every item."""
    randomizer = SubsetSelection(Epsilon("1"), k, d)
    for index in range(k):
        made = {True: set(), False: set()}
        for word, count in ((0, randomizer.holding), (randomizer.truth - 1, randomizer.holding)):
            for rank in range(count):
                ends = (-(-(rank << 128) // count), -(-(rank + 1 << 128) // count) - 1)
                reports = {randomizer.randomize(index, (word, v >> 64, v % N)) for v in ends}
                assert len(reports) == 1
                made[True] |= reports
        for word, count in ((randomizer.truth, randomizer.others), (N - 1, randomizer.others)):
            for rank in range(count):
                v = -(-(rank << 128) // count)
                made[False].add(randomizer.randomize(index, (word, v >> 64, v % N)))
        for holds, reports in made.items():
            wanted = {r for r in range(randomizer.bound) if bool(subset(k, d, r) >> index & 1) == holds}
            assert reports == wanted


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3"])
@pytest.mark.parametrize("k", [8, 16, 32, 64])
def test_near_the_optimum_of_the_papers(epsilon, k):
    """d is next to k/(e+1), and the variance is below n 4e/(e-1)^2 for these domains."""
    e = math.exp(float(epsilon))
    d = design(epsilon, k)["d"]
    assert abs(d - k / (e + 1)) < 1
    p, q = (float(x) for x in SubsetSelection(Epsilon(epsilon), k, d).support)
    average = (q * (1 - q) + (p * (1 - p) - q * (1 - q)) / k) / (p - q) ** 2
    assert average < v_opt(float(epsilon))
    for other in (d - 1, d + 1):
        if 1 <= other <= k // 2:
            p, q = (float(x) for x in SubsetSelection(Epsilon(epsilon), k, other).support)
            assert average <= (q * (1 - q) + (p * (1 - p) - q * (1 - q)) / k) / (p - q) ** 2


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "1.5", "2", "3"])
def test_the_best_d_of_small_domains_by_the_errors_of_every_item(epsilon):
    """One user holds one of k items: the mean over the items of the variance of one report's estimate."""
    for k in range(3, 12):
        errors = {}
        for d in range(1, k // 2 + 1):
            p, q = SubsetSelection(Epsilon(epsilon), k, d).support
            errors[d] = (p * (1 - p) + (k - 1) * q * (1 - q)) / (p - q) ** 2 / k
        assert errors[design(epsilon, k)["d"]] == min(errors.values())


def test_support_is_what_the_law_says():
    randomizer = SubsetSelection(Epsilon("1"), 5, 2, 4)
    p, q = randomizer.support
    for index in range(5):
        law = enumerate_law(randomizer, index)
        for y in range(5):
            held = sum(share for report, share in law.items() if subset(5, 2, report) >> y & 1)
            assert held == p if y == index else abs(held - q) < Fraction(5, 1 << 8)


@pytest.mark.parametrize(
    ("k", "d", "text"),
    [(1, 1, "domain"), (257, 1, "domain"), (8, 0, "d of 1 to 4"), (8, 5, "d of 1 to 4"), (256, 12, "d of 1 to 11")],
)
def test_limits(k, d, text):
    with pytest.raises(InvalidSpec, match=text):
        SubsetSelection(Epsilon("1"), k, d)


def test_reports_have_at_most_eight_bytes():
    for k in range(2, MAX_CATEGORIES + 1):
        assert math.comb(k, largest_subset(k)) <= 1 << 63
    assert largest_subset(66) == 33
    assert SubsetSelection(Epsilon("1"), 66, 33).report_bytes == 8


def test_in_a_collection():
    domain = Categories(tuple("abcdef"))
    made = Collection.create(
        "?", domain, "subset-selection", "1", opens=1, closes=2, parameters=design("1", domain.size)
    )
    assert Collection.from_toml(made.to_toml()) == Collection.from_json(made.to_json()) == made
    assert 'name = "subset-selection"\nd = 2\n' in made.to_toml()
    for wrong, parameters in ((Strings(3), {"d": 1}), (domain, {"d": 4}), (domain, {"d": 0}), (domain, {"q": 2})):
        with pytest.raises(InvalidSpec):
            Collection.create("?", wrong, "subset-selection", "1", opens=1, closes=2, parameters=parameters)
