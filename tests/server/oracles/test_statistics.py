"""Unbiased, with the stated variance: tests with a fixed error rate, and with the power to notice 30%.

Each oracle is run on the same users with many independent sets of words. The z-scores of its errors are compared with
the standard normal law: their mean must be 0 and their mean square 1. With a few thousand of them, a mean square
that is off by 30% is beyond ten standard deviations, and both tests reject with probability 1e-6 where all is well.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import oracle_for
from tests.examples import SEED, label
from tests.server.oracles.cases import CASES, filled, indexes_of, population

ALPHA = 1e-6
RUNS, USERS = 40, 4000
FEWER = 20
"""Runs by default where items are many. 30% are still beyond eight standard deviations: 2,560 degrees of freedom."""
HASHED = TeamSketch
BOUNDED = CompiledChannel | ComposedResponse | EveryField | Hierarchy | ShiftedChannel
"""Their oracles state an upper bound of the variance."""


def errors(randomizer, runs=RUNS, users=USERS):
    """Errors of `runs` simulations over the items, and their stated variances."""
    held = population(randomizer.size, users, 7)
    items = np.unique(np.concatenate([held, np.arange(min(randomizer.size, 100), dtype=np.uint64)]))
    truth = np.bincount(held.astype(np.intp), minlength=int(items.max()) + 1)[items.astype(np.intp)]
    probe, users_held = (indexes_of(randomizer, numbers.tolist()) for numbers in (items, held))
    found, variances = [], []
    for run in range(runs):
        oracle = filled(randomizer, users_held, 1000 + run)
        found.append(oracle.estimate(probe) - truth)
        variances.append(oracle.variance(truth))
    return np.array(found), np.array(variances)


def noise_only(randomizer, found, variances):
    """Hashes are fixed, so their collisions are a bias of each item: compare runs with their own mean."""
    if not isinstance(randomizer, HASHED):
        return found, variances
    centred = (found - found.mean(axis=0)) * np.sqrt(len(found) / (len(found) - 1))
    return centred, variances


def mean_square_is_one(scores, factor=1.0):
    """A chi-square test of the mean square, two-sided, widened by `factor`; degrees of freedom as for items apart."""
    total = float((scores**2).sum()) / factor
    freedom = scores.size * 0.5  # estimates of one run are a little correlated: count half of them
    total *= freedom / scores.size
    tail = stats.chi2.cdf(total, freedom)
    return ALPHA / 2 < tail < 1 - ALPHA / 2


@pytest.mark.parametrize("randomizer", CASES, ids=label)
@pytest.mark.thinned(24)
def test_unbiased_with_the_stated_variance(request, randomizer):
    long = request.config.getoption("--slow")
    few = 1200 if long else min(1200, max(200, 3600 // randomizer.size))
    small = randomizer.size <= 50
    runs = FEWER if randomizer.size >= 256 and not long else RUNS
    found, variances = errors(randomizer, few, 500) if small else errors(randomizer, runs)
    scores, spread = noise_only(randomizer, found, variances)
    scores = scores / np.sqrt(spread)
    square = float((scores**2).mean())
    if isinstance(randomizer, HASHED):
        # The stated variance holds collisions too. Here only its noise is looked at, so it may be a little too large;
        # with a handful of cells it is mostly collisions.
        assert (0.75 if randomizer.size > 100 else 0.1) < square < 1.05
    elif isinstance(randomizer, BOUNDED):
        assert 0.1 < square < 1.05
    else:
        assert mean_square_is_one(scores)
        assert not mean_square_is_one(scores, 1.3)
        assert not mean_square_is_one(scores, 1 / 1.3)
    # Each item's mean over the runs, and the mean over the items: no bias beyond chance.
    if not isinstance(randomizer, HASHED):
        means = (found / np.sqrt(variances)).mean(axis=0) * np.sqrt(len(found))
        assert np.abs(means).max() < stats.norm.isf(ALPHA / 2 / len(means))


def test_hashtogram_is_unbiased_over_the_choice_of_the_hash():
    """Over independent seeds the mean error is 0 and its mean square is the stated one, collisions included."""
    held = population(1 << 40, USERS, 7)
    items = np.arange(1, 200, dtype=np.uint64)
    truth = np.bincount(held.astype(np.intp), minlength=200)[1:200]
    scores = []
    for run in range(60):
        oracle = filled(Hashtogram(Epsilon("2"), 1 << 40, bytes([run]) * 32, 4, 7, 2), held, 500 + run)
        scores.append((oracle.estimate(items) - truth) / np.sqrt(oracle.variance(truth)))
    scores = np.array(scores)
    assert np.abs(scores.mean(axis=0) * np.sqrt(60)).max() < stats.norm.isf(ALPHA / 2 / len(items)) * 1.3
    # Items of one run share their collisions; the runs' own means are independent.
    squares = (scores**2).mean(axis=1)
    assert abs(squares.mean() - 1) < 5 * squares.std() / np.sqrt(60)
    assert squares.std() / np.sqrt(60) < 0.05  # enough power to notice 30%


@pytest.mark.parametrize(("q", "t", "epsilon"), [(2, 6, "2"), (7, 2, "2")])
def test_predicted_collisions(q, t, epsilon):
    """With as few cells as here collisions are a good part of the error, and it is predicted within 10%."""
    users = population(1 << 40, 20_000, 3, distinct=5000)
    items = np.arange(5001, 9001, dtype=np.uint64)  # held by nobody
    measured, predicted = [], []
    for run in range(16):
        randomizer = Hashtogram(Epsilon(epsilon), 1 << 40, bytes([run + 1]) * 32, 8, q, t)
        oracle = filled(randomizer, users, run)
        measured.append(float((oracle.estimate(items) ** 2).mean()))
        predicted.append(float(oracle.variance(0)))
    assert np.mean(measured) / np.mean(predicted) == pytest.approx(1, abs=0.1)
    noise = float(oracle.by_team.cell_variance(0, 0.0)) * 8
    assert np.mean(predicted) / noise > 1.2  # the test would notice if collisions were left out


def test_the_median_resists_a_popular_neighbour():
    """An item that shares one row's cell with a very popular one: the sum is misled, the median is not."""
    randomizer = Hashtogram(Epsilon("4"), 1 << 40, SEED, 9, 53, 2)
    popular = 1
    hashes = [randomizer.hash(row) for row in range(9)]
    twin = next(x for x in range(2, 1 << 20) if sum(h(x) == h(popular) for h in hashes) == 1)
    oracle = filled(randomizer, np.full(50_000, popular, np.uint64), 1)
    probe = np.array([twin], np.uint64)
    assert oracle.estimate(probe)[0] > 4500
    assert abs(oracle.estimate_median(probe)[0]) < 1500
    assert oracle.estimate_median(np.array([popular], np.uint64))[0] == pytest.approx(50_000, rel=0.05)


@pytest.mark.parametrize("randomizer", CASES, ids=label)
def test_no_reports_and_one_report(randomizer):
    oracle = oracle_for(randomizer)
    probe = indexes_of(randomizer, [0])
    if isinstance(randomizer, Hierarchy):
        with pytest.raises(InvalidSpec, match="no reports yet"):
            oracle.estimate(probe)
        return
    assert oracle.estimate(probe)[0] == 0
    assert oracle.variance(0) == 0
    assert oracle.skewness == 0
    one = oracle_for(randomizer)
    one.accumulate(bytes(randomizer.report_bytes))
    assert np.isfinite(one.estimate(probe)).all()
    assert np.isfinite(one.skewness)


def test_marginal_of_every_coordinate_of_the_bytes():
    """Each bit of the packed reports of a uniform population has the frequency that the exact law gives it."""
    randomizer = LinearHash(Epsilon("1"), 100, 5, 3)
    users = np.full(40_000, 17, np.uint64)
    counts = filled(randomizer, users, 3).counts.values
    law = np.array([float(randomizer.probability(17, report)) for report in range(randomizer.bound)])
    statistic = float(((counts - len(users) * law) ** 2 / (len(users) * law)).sum())
    assert ALPHA / 2 < stats.chi2.sf(statistic, randomizer.bound - 1) < 1 - ALPHA / 2
    other = np.array([float(randomizer.probability(18, report)) for report in range(randomizer.bound)])
    wrong = float(((counts - len(users) * other) ** 2 / (len(users) * other)).sum())
    assert stats.chi2.sf(wrong, randomizer.bound - 1) < ALPHA  # the test can tell one item's law from another's
