"""Sums of linear-hash estimates: the weights of reports, the law of their sum, and intervals from real reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.transform import support, support_of_few, weights_of_reports
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.laws.report_sums import SumLaw, different, with_mean
from tests.server.oracles.cases import filled


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (5, 2), (7, 1), (8, 2), (37, 2), (67, 1), (67, 2)])
def test_the_weights_of_reports_are_the_transpose(q, t):
    """For q = 67 the elements are looked at one by one."""
    reports = (q**t - 1) // (q - 1) * q
    weights = np.random.default_rng(q).integers(0, 3, q**t) * (np.arange(q**t) % 7 == 1)
    found = weights_of_reports(weights, q, t)
    for report in range(0, reports, 7 if q < 60 else 97):
        one = np.zeros(reports, np.uint32)
        one[report] = 1
        assert found[report] == pytest.approx(float(support(one, q, t) @ weights), abs=1e-3)


def test_the_support_of_few_elements_is_that_of_the_transform():
    q, t = 67, 2
    table = np.random.default_rng(1).integers(0, 9, (q + 1) * q).astype(np.uint32)
    few = np.array([0, 1, 66, 67, 1000, q * q - 1])
    assert support_of_few(table, few, q, t) == pytest.approx(support(table, q, t)[few], abs=1e-3)


@pytest.mark.long
def test_neighbours_are_correlated_where_a_third_item_is_popular():
    """Sums of linear-hash estimates: the stated variance is the measured one, and not the sum of the single ones."""
    randomizer = LinearHash(Epsilon("3"), 169, 13, 2)
    users, some = np.ones(3000, np.uint64), np.arange(2, 12, dtype=np.uint64)
    sums, stated = [], []
    for run in range(400):
        oracle = filled(randomizer, users, run)
        estimates = oracle.estimate(some)
        sums.append(estimates.sum())
        stated.append(oracle.sum_variance(some, estimates))
    ratio = np.square(sums).sum() / np.mean(stated)
    assert 1e-5 < stats.chi2.cdf(ratio, 400) < 1 - 1e-5
    assert np.mean(stated) > 2 * frequency_oracle(randomizer).variance(0) + 2 * oracle.variance(np.zeros(10)).sum()


def brute_force(law, holders):
    """P(S = k) for every k, a user at a time; no user's item is one that shares more with A than is known."""
    total = np.ones(1)
    for user in range(law.reports):
        own = np.zeros(int(law.weights[-1]) + 1)
        own[law.weights.astype(int)] = law.inside if user < holders else law.outside
        total = np.convolve(total, own)
    return total


def test_each_end_errs_as_seldom_as_stated():
    """Over every sum that is possible: 15 users, weights 0, 1 and 30."""
    weights, n, tail = np.array([0.0, 1.0, 30.0]), 15, 0.025
    inside, outside = np.array([0.3, 0.6, 0.1]), np.array([0.87, 0.1, 0.03])
    counts = [(n - ones - large, ones, large) for large in range(n + 1) for ones in range(n + 1 - large)]
    laws = [SumLaw(n, weights, np.array(seen, float), inside, outside, outside) for seen in counts]
    ends = {round(law.total): law.interval(tail) for law in laws}
    for holders in (0, 1, 6, 14, 15):
        mass = brute_force(laws[0], holders)
        missed = [sum(mass[at] for at, end in ends.items() if end[0] > holders)]
        missed.append(sum(mass[at] for at, end in ends.items() if end[1] < holders))
        assert max(missed) <= tail + 1e-9
        assert sum(missed) > tail / 4 or holders in (0, n)


def test_a_sum_of_one_item_has_the_interval_of_that_item():
    randomizer = LinearHash(Epsilon("4"), 1000, 53, 2)
    oracle = filled(randomizer, np.arange(300, dtype=np.uint64) % 40 % 9, 3)
    for item in (0, 5, 30):
        one = np.array([item], np.uint64)
        found = oracle.estimate(one)
        for tail in (0.2, 0.025, 1e-6):
            low, high = oracle.intervals(one, found, tail)
            assert oracle.sum_interval(one, found, tail) == (
                pytest.approx(low[0], abs=1),
                pytest.approx(high[0], abs=1),
            )
        assert oracle.sum_variance(one, found) == pytest.approx(float(oracle.variance(found)[0]))


def test_sums_of_nothing_and_of_everything():
    randomizer = LinearHash(Epsilon("1"), 20, 3, 3)
    oracle, every, none = frequency_oracle(randomizer), np.arange(20, dtype=np.uint64), np.zeros(0, np.uint64)
    assert oracle.sum_interval(every[:5], np.zeros(5), 0.025) == (0.0, 0.0)
    oracle = filled(randomizer, every, 1)
    assert oracle.sum_interval(none, np.zeros(0), 0.025) == (0.0, 0.0)
    assert oracle.sum_interval(every, oracle.estimate_all(), 0.025) == (20.0, 20.0)


def test_a_law_gets_its_mean_and_many_weights_are_taken_together():
    law = with_mean(np.array([0.5, 0.25, 0.24]), np.array([0.0, 1.0, 8.0]), 2.3)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law @ np.array([0.0, 1.0, 8.0]) == pytest.approx(2.3, abs=1e-12)
    weights = np.random.default_rng(1).permutation(3 * np.arange(20_000)).astype(np.int32)
    means, group = different(weights)
    assert len(means) == 4096
    assert np.abs(means[group] - weights).max() < 3 * 5
    assert np.mean(means[group]) == pytest.approx(weights.mean())
    few = np.array([4, 9, 4, 5], np.int32)
    assert different(few)[0].tolist() == [4, 5, 9]
    assert different(few)[1].tolist() == [0, 2, 0, 1]


def crowd_of(name, users, size, seed):
    """flat; the share of users who hold item 1; all users among the 53 items of a line; or so beside A."""
    rng = np.random.default_rng(seed)
    held = rng.integers(1, 53 if name == "line" else size, users)
    if name not in ("flat", "line"):
        held[: int(float(name.lstrip("-")) * users)] = 40 if name[0] == "-" else 1
    return held.astype(np.uint64)


def coverage(randomizer, users, some, runs, seed):
    """In how many runs the interval of the sum holds, and its median width in standard deviations of the sum."""
    truth, held, widths, sums = int(np.isin(users, some).sum()), 0, [], []
    for run in range(runs):
        oracle = filled(randomizer, users, 1000 * seed + run)
        found = oracle.estimate(some)
        low, high = oracle.sum_interval(some, found, 0.025)
        held += low <= truth <= high
        widths.append(high - low)
        sums.append(found.sum())
    return held, np.median(widths) / (2 * 1.96 * np.std(sums))


@pytest.mark.parametrize(("users", "crowd"), [(50, "0.95"), (300, "0.5"), (300, "-0.5"), (1000, "0.5")])
@pytest.mark.thinned(1)
def test_sums_hold_where_few_reports_support_a_whole_line(users, crowd):
    """30 neighbours, q = 53. With a variance from the counts 18%, 68%, 68% and 93% of the runs held."""
    randomizer, some, runs = LinearHash(Epsilon("4"), 1001, 53, 2), np.arange(1, 31, dtype=np.uint64), 40
    held, width = coverage(randomizer, crowd_of(crowd, users, 1001, users), some, runs, users)
    assert stats.binom.sf(runs - held - 1, runs, 0.06) > 1e-3
    assert users < 1000 or width < 1.3


FIELDS = [("0.5", 1001, 3, 7), ("1", 1001, 4, 5), ("2", 1001, 8, 4), ("2", 51, 8, 2), ("3", 1001, 23, 3)]
FIELDS += [("4", 1001, 53, 2), ("6", 1001, 401, 2), ("8", 1001, 1009, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("users", [50, 100, 300, 1000])
@pytest.mark.parametrize(("epsilon", "size", "q", "t"), FIELDS)
def test_sums_hold_with_few_reports_in_every_field(epsilon, size, q, t, users):
    randomizer, some, runs = LinearHash(Epsilon(epsilon), size, q, t), np.arange(1, 31, dtype=np.uint64), 200
    for seed, crowd in enumerate(("flat", "0.5", "0.95", "-0.5", "line")):
        held, width = coverage(randomizer, crowd_of(crowd, users, size, seed), some, runs, 10 * users + seed)
        assert stats.binom.sf(runs - held - 1, runs, 0.07) > 1e-4, crowd
        assert users < 1000 or width < 1.4, crowd
