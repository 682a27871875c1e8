"""The law of a count of supports: tails against exact convolutions, intervals against exact coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.transform import support, weights_of_reports
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.laws.normal import skewed_ends
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile
from tests.server.oracles.cases import filled

LAWS = [
    (200, 0.5, 0.25),
    (1000, 0.2, 1 / 53),
    (1000, 0.89, 0.0022),
    (1000, math.exp(10) / (math.exp(10) + 49), 1 / (math.exp(10) + 49)),
]


def exact(law, holders):
    """P(S = k) for every k, by convolution."""
    held = stats.binom.pmf(np.arange(holders + 1), holders, law.p)
    rest = law.reports - holders
    return np.convolve(held, stats.binom.pmf(np.arange(rest + 1), rest, law.s))


@pytest.mark.parametrize(("n", "p", "s"), LAWS)
def test_tails_are_those_of_the_convolution(n, p, s):
    """Within 12% wherever an interval of one item may end, within 30% far out, where the steps are coarse."""
    law, counts = SupportLaw(n, p, s), np.arange(n + 1.0)
    for holders in (0, 1, 3, n // 20, n // 2, n - 1, n):
        mass = exact(law, holders)
        z = law.score(np.full(n + 1, float(holders)), counts)
        above, below = np.cumsum(mass[::-1])[::-1], np.concatenate(([0.0], np.cumsum(mass)[:-1]))
        for tail, found in ((above, stats.norm.sf(z)), (below, stats.norm.cdf(z))):
            near, far = (tail > 0.01) & (tail < 0.04), (tail > 1e-9) & (tail < 0.01)
            assert np.abs(np.log(found[near] / tail[near])).max(initial=0) < 0.12
            assert np.abs(np.log(found[far] / tail[far])).max(initial=0) < 0.3


@pytest.mark.parametrize("tail", [0.025, 0.025 / 50, 0.025 / 65_536])
@pytest.mark.parametrize(("n", "p", "s"), LAWS)
def test_each_end_errs_as_seldom_as_stated(n, p, s, tail):
    """The exact probability that an end misses, summed over every count: not above the stated one, nor far below."""
    law, counts = SupportLaw(n, p, s), np.arange(n + 1.0)
    low, high = law.intervals((counts - n * s) / (p - s), tail)
    assert (low <= high).all()
    assert low.min() >= 0
    assert high.max() <= n
    for holders in (1, 3, n // 20, n // 2, n - 1):
        mass = exact(law, holders)
        assert mass[low > holders].sum() <= 1.3 * tail
        assert mass[high < holders].sum() <= 1.3 * tail
    smooth = n * s * (1 - s) > 9
    assert not smooth or exact(law, n // 20)[low > n // 20].sum() > tail / 3  # and no wider than it has to be


def test_the_normal_law_with_skewness_would_not_do():
    """The old ends, at epsilon 10: moved by the skewness of an item nobody holds, they miss a held item too often."""
    n, p, s = LAWS[-1]
    holders, tail = 20, 0.025 / 50
    z, law = normal_quantile(tail), SupportLaw(n, p, s)
    counts = np.arange(n + 1.0)
    estimates = (counts - n * s) / (p - s)
    f = np.clip(estimates, 0, n)
    error = np.sqrt(f * p * (1 - p) + (n - f) * s * (1 - s)) / (p - s)
    shift = (z * z - 1) / 6 * (1 - 2 * s) / math.sqrt(n * s * (1 - s))
    high = estimates + error * max(0.0, z - shift)
    assert exact(law, holders)[high < holders].sum() > 10 * tail
    assert exact(law, holders)[law.intervals(estimates, tail)[1] < holders].sum() <= tail


def test_no_reports_say_nothing():
    low, high = SupportLaw(0, 0.5, 0.2).intervals(np.zeros(3), 0.025)
    assert low.tolist() == high.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (5, 2), (7, 1), (37, 2)])
def test_the_weights_of_reports_are_the_transpose(q, t):
    reports = (q**t - 1) // (q - 1) * q
    weights = np.random.default_rng(q).integers(0, 3, q**t)
    found = weights_of_reports(weights, q, t)
    for report in range(0, reports, 7):
        one = np.zeros(reports, np.uint32)
        one[report] = 1
        assert found[report] == pytest.approx(float(support(one, q, t) @ weights), abs=1e-3)


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


@pytest.mark.parametrize("popular", [0, 500])
def test_sums_hold_where_few_reports_support_a_whole_line(popular):
    """30 neighbours, 1,000 users, q = 53. With normal ends from the counts alone, 85% and 90% of the runs held."""
    randomizer, some, runs = LinearHash(Epsilon("4"), 1000, 53, 2), np.arange(1, 31, dtype=np.uint64), 200
    users = np.concatenate([np.ones(popular, np.uint64), np.arange(1, 1001 - popular, dtype=np.uint64)])
    held, kept = int((users <= 30).sum()), 0
    for run in range(runs):
        oracle = filled(randomizer, users, run)
        low, high = oracle.sum_interval(some, oracle.estimate(some), 0.025)
        kept += low <= held <= high
    assert stats.binom.sf(runs - kept - 1, runs, 0.05) > 0.01


def test_ends_of_skewed_errors():
    """The same as normal ends without skewness; a mirrored error has mirrored ends; and the exact law of a count."""
    assert skewed_ends(0.0, 1.96) == (1.96, 1.96)
    below, above = skewed_ends(0.2, 1.96)
    assert above > 1.96 > below > 0
    assert skewed_ends(-0.2, 1.96) == (above, below)
    assert skewed_ends(9.0, 1.96) == skewed_ends(0.4, 1.96)
    # A Poisson count of 40 as its own variance: skewness 1/sqrt(40). Normal ends miss on one side more than the other.
    counts = np.arange(1, 200)
    ends = [skewed_ends(1 / np.sqrt(count), 1.959964) for count in counts]
    for side, sign in ((0, -1), (1, 1)):
        bounds = np.array([count + sign * end[side] * np.sqrt(count) for count, end in zip(counts, ends, strict=True)])
        missed = counts[(bounds > 40) if side == 0 else (bounds < 40)]
        assert stats.poisson.pmf(missed, 40).sum() < 0.033
