"""Attributes: unbiased, with the stated variance, from real packed reports; who wins is as the planner says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.composed_response import ComposedResponse, design
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.protocol.domain import Attributes
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import as_frequency, oracle_for, restore
from simulator import crowd
from tests.server.oracles.cases import filled

ALPHA = 1e-6
K = 5
SHARES = (0.05, 0.3, 0.5, 0.8, 0.95)
CASES = [
    ComposedResponse(Epsilon("1"), 1 << K, **design("1", K)),
    ComposedResponse(Epsilon("4"), 1 << K, **design("4", K)),
    SampledAttribute(Epsilon("1"), 1 << K),
    SampledAttribute(Epsilon("3"), 1 << K),
]
COMPOSED = [case for case in CASES if isinstance(case, ComposedResponse)]


def people(users, seed):
    """Attributes with different shares, the first two of them held together more than by chance."""
    rng = np.random.default_rng(seed)
    bits = (rng.random((users, K)) < SHARES).astype(np.uint64)
    bits[:, 0] |= bits[:, 1] & (rng.random(users) < 0.5)
    return (bits << np.arange(K, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


@pytest.mark.parametrize("randomizer", CASES, ids=lambda r: f"{r.name}-{r.epsilon}")
def test_scalar_and_vectorised_are_one(randomizer):
    users = people(3000, 1)
    words = crowd.draw_words(5, 0, 3000, randomizer.words)
    edges = [0, (1 << 64) - 1, *(getattr(randomizer, "_starts", [0])[:-1])]
    for i, word in enumerate(edges):
        words[i] = word
    reports = crowd.randomize(randomizer, users, words)
    for i in range(0, 3000, 1 if len(edges) > 3 else 7):
        assert reports[i] == randomizer.randomize(int(users[i]), [int(word) for word in words[i]])


@pytest.mark.parametrize("randomizer", CASES, ids=lambda r: f"{r.name}-{r.epsilon}")
@pytest.mark.thinned(1)
def test_unbiased_with_the_stated_variance(randomizer):
    users = people(3000, 2)
    truth = np.array([(users >> np.uint64(i) & np.uint64(1)).sum() for i in range(K)], float)
    scores = []
    for run in range(300):
        found = filled(randomizer, users, 100 + run).attributes()
        scores.append([(share.estimate - t) / share.standard_error for share, t in zip(found, truth, strict=True)])
    scores = np.array(scores)
    means = scores.mean(axis=0) * math.sqrt(len(scores))
    assert np.abs(means).max() < stats.norm.isf(ALPHA / 2 / K)
    # The attributes of one run are correlated a little: test each column, with power against 100% more variance.
    for column in scores.T:
        total, freedom = float((column**2).sum()), len(column)
        assert ALPHA / 2 < stats.chi2.cdf(total, freedom) < 1 - ALPHA / 2
        assert not ALPHA / 2 < stats.chi2.cdf(total / 2, freedom) < 1 - ALPHA / 2


@pytest.mark.parametrize("randomizer", COMPOSED, ids=lambda r: str(r.epsilon))
@pytest.mark.thinned(1)
def test_pairs_and_the_full_table(randomizer):
    users = people(4000, 3)
    pairs = list(itertools.combinations(range(K), 2))
    truth = np.array(
        [((users >> np.uint64(i)) & (users >> np.uint64(j)) & np.uint64(1)).sum() for i, j in pairs], float
    )
    table = np.bincount(users.astype(np.intp), minlength=1 << K)
    scores, cells = [], []
    for run in range(200):
        oracle = filled(randomizer, users, 500 + run)
        found = [oracle.pair(i, j) for i, j in pairs]
        scores.append([(share.estimate - t) / share.standard_error for share, t in zip(found, truth, strict=True)])
        cells.append((oracle.estimate_all() - table) / np.sqrt(oracle.variance(table)))
    scores, cells = np.array(scores), np.array(cells)
    assert np.abs(scores.mean(axis=0)).max() * math.sqrt(200) < stats.norm.isf(ALPHA / 2 / len(pairs))
    for column in scores.T:
        assert ALPHA / 2 < stats.chi2.cdf(float((column**2).sum()), 200) < 1 - ALPHA / 2
    # The table's variance is an upper bound.
    assert np.abs(cells.mean(axis=0)).max() * math.sqrt(200) < stats.norm.isf(ALPHA / 2 / len(table))
    assert 0.3 < (cells**2).mean() < 1.05
    assert oracle.estimate_all().sum() == pytest.approx(4000)
    assert np.array_equal(oracle.estimate(np.array([3, 0], np.uint64)), oracle.estimate_all()[[3, 0]])


@pytest.mark.parametrize("randomizer", CASES, ids=lambda r: f"{r.name}-{r.epsilon}")
def test_state(randomizer):
    whole = filled(randomizer, people(500, 4), 9)
    again = restore(randomizer, whole.to_bytes())
    assert again.to_bytes() == whole.to_bytes()
    assert again.attributes() == whole.attributes()
    twice = oracle_for(randomizer)
    twice.merge(whole)
    twice.merge(again)
    assert twice.reports == 1000
    assert [s.estimate for s in twice.attributes()] == pytest.approx([2 * s.estimate for s in whole.attributes()])


def test_intervals_cover():
    share = filled(CASES[0], people(500, 4), 9).attributes()[0]
    low, high = share.interval(0.95)
    assert high - low == pytest.approx(2 * 1.96 * share.standard_error, rel=1e-3)
    with pytest.raises(InvalidSpec):
        share.interval(1.0)


def test_what_cannot_be_asked():
    sampled = filled(CASES[2], people(100, 1), 1)
    assert not hasattr(sampled, "estimate")
    with pytest.raises(InvalidSpec, match="ask for its attributes"):
        as_frequency(sampled)
    composed = filled(CASES[0], people(100, 1), 1)
    for pair in ((0, 0), (0, 5), (-1, 2)):
        with pytest.raises(InvalidSpec):
            composed.pair(*pair)
    empty = oracle_for(CASES[2])
    assert all(math.isinf(share.standard_error) for share in empty.attributes())
    assert oracle_for(CASES[0]).skewness == 0.0


def test_the_error_of_a_set_is_read_off_the_reports():
    """At epsilon 4 the worst distance overstates it; the stated error is the measured one within 10%."""
    k, users = 6, np.repeat(np.arange(8, dtype=np.uint64), 300)
    randomizer = ComposedResponse(Epsilon("4"), 1 << k, **design(Epsilon("4"), k))
    truth, indexes = np.bincount(users.astype(np.intp), minlength=1 << k), np.arange(1 << k, dtype=np.uint64)
    errors, stated, bound = [], [], []
    for run in range(100):
        oracle = filled(randomizer, users, run)
        estimates = oracle.estimate_all()
        errors.append(np.square(estimates - truth).mean())
        stated.append(np.square(oracle.standard_errors(indexes, estimates)).mean())
        bound.append(oracle.variance(estimates).mean())
    assert 0.9 < np.mean(stated) / np.mean(errors) < 1.1
    assert np.mean(bound) > 1.5 * np.mean(errors)


@pytest.mark.long
def test_at_a_very_large_epsilon_sets_have_the_exact_law():
    """The shell is the true set alone, so this is randomized response on the sets: few counts, no normal errors."""
    names = Attributes(tuple(f"a{i}" for i in range(6)))
    parameters = design("10", 6)
    collection = Collection.create("?", names, "composed-response", "10", opens=0, closes=1, parameters=parameters)
    held = np.random.default_rng(3).integers(0, 64, 1000).astype(np.uint64)
    truth, rates, naive = np.bincount(held.astype(np.intp), minlength=64), [], []
    for run in range(60):
        oracle = filled(collection.randomizer, held, run)
        assert oracle.law is not None
        found, indexes = oracle.estimate_all(), np.arange(64, dtype=np.uint64)
        low, high = oracle.intervals(indexes, found, 0.025)
        rates.append(((low <= truth) & (truth <= high)).mean())
        naive.append((abs(found - truth) <= 1.96 * oracle.standard_errors(indexes, found)).mean())
    assert np.mean(rates) > 0.95
    assert np.mean(naive) < 0.95
    few = design("1", 6)
    other = Collection.create("?", names, "composed-response", "1", opens=0, closes=1, parameters=few)
    assert oracle_for(other).law is None
