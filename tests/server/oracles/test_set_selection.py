"""The oracle of set selection: unbiased by the exact law, sums at their worst crowd, intervals at skewed crowds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.set_selection import SetSelection, design
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import subset
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.set_selection import SetItems, SetSelectionOracle
from simulator.crowd.set_selection import held_elements, randomize
from tests.server.oracles.cases import filled


def made(k, most, d=None, epsilon="1"):
    return SetSelection(Epsilon(epsilon), 1 << k, most, d or design(epsilon, k, most)["d"])


@pytest.mark.parametrize(("k", "most", "d"), [(2, 2, 1), (3, 2, 2), (4, 3, 3)])
def test_unbiased_by_the_exact_law(k, most, d):
    """The expected estimate of every element, over all reports and starts, is how much of it the user holds."""
    maker = made(k, most, d)
    oracle = oracle_for(maker)
    payload = np.arange(maker.bound, dtype=np.uint64)
    estimates = []
    for report in payload:
        one = oracle_for(maker)
        one.accumulate(pack(np.array([report]), maker.report_bytes))
        estimates.append(one.elements(np.arange(maker.elements)))
    for index in range(maker.size):
        chances = np.array([float(maker.probability(index, int(report))) for report in payload])
        held = index.bit_count()
        starts = range(held) if held > most else range(1)
        wanted = np.mean([[maker.members(index, s) >> y & 1 for y in range(maker.elements)] for s in starts], axis=0)
        assert chances @ np.array(estimates) == pytest.approx(wanted, abs=1e-9)
    assert isinstance(oracle, SetSelectionOracle)


def test_the_items_of_the_oracle():
    """Index i is the i-th item, and 0 is who holds none of them: the last filler."""
    maker = made(4, 2, 2)
    oracle = filled(maker, np.array([0b0000] * 700 + [0b0010] * 200 + [0b1111] * 100, np.uint64), 3)
    view, raw = oracle.items(), oracle.elements(np.arange(maker.elements))
    assert isinstance(view, SetItems)
    assert view.estimate_all().tolist() == [raw[5], raw[0], raw[1], raw[2], raw[3]]
    assert view.estimate(np.array([2, 0], np.uint64)).tolist() == [raw[1], raw[5]]
    assert (view.listed, view.can_list, view.exclusive, view.reports) == (5, True, False, 1000)
    assert raw.sum() == pytest.approx(2 * 1000)  # every user has two elements
    assert view.possible(np.array([-3.0, 5.0, 1e9])).tolist() == [0.0, 5.0, 1000.0]
    assert view.variance(np.array([10.0])) == pytest.approx(oracle.variance(10.0))


def exact_sum_variance(maker, places, index):
    law = [(float(maker.probability(index, r)), subset(maker.elements, maker.d, r)) for r in range(maker.bound)]
    values = [(chance, sum(sent >> y & 1 for y in places)) for chance, sent in law]
    mean = sum(chance * z for chance, z in values)
    p, q = (float(x) for x in maker.support)
    return sum(chance * (z - mean) ** 2 for chance, z in values) / (p - q) ** 2


@pytest.mark.parametrize(
    ("k", "most", "d", "epsilon"), [(4, 3, 2, "1"), (5, 2, 3, "0.5"), (4, 4, 1, "3"), (5, 3, 4, "4")]
)
def test_the_variance_of_a_sum_is_that_of_the_worst_crowd(k, most, d, epsilon):
    """It is reached by a crowd, and passed by none: against the exact law of every user's report."""
    maker = made(k, most, d, epsilon)
    oracle = oracle_for(maker)
    oracle.accumulate(bytes(maker.report_bytes * 12))
    for size in range(1, k + 1):
        chosen = range(size)
        each = {j: exact_sum_variance(maker, chosen, (1 << j) - 1) for j in range(min(size, most) + 1)}
        for crowd in itertools.combinations_with_replacement(each, 3):
            truth, wanted = sum(crowd) * 4, sum(each[j] for j in crowd) * 4
            assert oracle.sum_variance(size, truth) >= wanted * (1 - 1e-9)
        for j, variance in each.items():  # all users hold as many
            assert oracle.sum_variance(size, 12 * j) == pytest.approx(12 * variance)
        assert oracle.sum_variance(size, -5) == oracle.sum_variance(size, 0)
        assert oracle.sum_variance(size, 1e9) == oracle.sum_variance(size, 12 * max(each))


def test_without_reports_a_sum_has_no_variance():
    assert oracle_for(made(4, 2)).sum_variance(2, 0.0) == 0.0


CROWDS = {
    "nobody holds anything": lambda k: [0],
    "all hold the same": lambda k: [0b111],
    "one holds all, the others nothing": lambda k: [(1 << k) - 1, *[0] * 99],
    "all are cut": lambda k: [(1 << k) - 1],
    "every item alike": lambda k: [0b111 << i for i in range(k - 2)],
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
@pytest.mark.thinned(4)
def test_intervals_hold_for_skewed_crowds(crowd, epsilon):
    """Of 200 runs of 400 users, each end of a 95% interval misses as seldom as it says: 1 in 10^6 by chance.

    For every element (those kept after the cut are counted), and for the sum of all items.
    """
    maker = made(9, 3, epsilon=epsilon)
    sets = CROWDS[crowd](9)
    indexes = np.array([sets[i % len(sets)] for i in range(400)], np.uint64)
    missed, sums = np.zeros((2, maker.elements), int), np.zeros(2, int)
    for run in range(200):
        words = np.random.default_rng([run, 8]).integers(0, 1 << 64, (400, 4), np.uint64)
        oracle = oracle_for(maker)
        oracle.accumulate(pack(randomize(maker, indexes, words), maker.report_bytes))
        truth = held_elements(maker, indexes, words[:, 3]).sum(axis=1)
        raw = oracle.elements(np.arange(maker.elements))
        low, high = oracle.law.intervals(raw, 0.025)
        missed += [truth < low, truth > high]
        view, every = oracle.items(), np.arange(1, 10, dtype=np.uint64)
        least, most = view.sum_interval(every, view.estimate(every), 0.025)
        sums += [truth[:9].sum() < least, truth[:9].sum() > most]
    bar = stats.binom.isf(1e-6 / (2 * maker.elements + 2), 200, 0.025)
    assert missed.max() <= bar
    assert sums.max() <= bar


def test_a_sum_stays_within_what_can_be_held():
    maker = made(5, 2)
    oracle = filled(maker, np.array([0b11, 0], np.uint64), 1)
    view, every = oracle.items(), np.arange(1, 6, dtype=np.uint64)
    assert view.sum_interval(every, np.full(5, 0.4), 0.025) == (0.0, 4.0)  # two users, two items each
    assert view.sum_interval(every[:1], np.array([1.0]), 0.025)[1] <= 2.0
    low, high = view.sum_interval(every, np.full(5, 1e6), 0.025)
    assert low <= high == 4.0


def test_counts_with_another_limit_are_not_mixed():
    """`most` is no parameter of the mechanism; it gives the elements their places."""
    two, three = oracle_for(made(6, 2, 2)), oracle_for(made(6, 3, 2))
    with pytest.raises(InvalidSpec, match="different mechanisms"):
        two.merge(three)
    with pytest.raises(ServerRefused, match="another mechanism"):
        restore(made(6, 3, 2), two.to_bytes())


@pytest.mark.parametrize(("k", "most"), [(33, 2), (64, 3), (65, 4), (150, 3)])
def test_long_lists_have_indexes_of_several_words(k, most):
    """Sets over more items than a word has bits: the crowd finds the elements that the device has."""
    maker, rng = made(k, most, 2), np.random.default_rng(k)
    sets = [sum(1 << int(i) for i in rng.choice(k, rng.integers(0, 2 * most), replace=False)) for _ in range(60)]
    sets += [0, 1 << k - 1, (1 << k) - 1]
    words = rng.integers(0, 1 << 64, (len(sets), 4), np.uint64)
    found = held_elements(maker, from_ints(sets, k), words[:, 3])
    reports = randomize(maker, from_ints(sets, k), words)
    for i, index in enumerate(sets):
        line = [int(word) for word in words[i]]
        members = maker.members(index, line[3] * index.bit_count() >> 64)
        assert sum(int(one) << place for place, one in enumerate(found[:, i])) == members
        assert int(reports[i]) == maker.randomize(index, line)
    assert len(randomize(maker, from_ints([], k), words[:0])) == 0
