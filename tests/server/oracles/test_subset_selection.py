"""Sums of subset selection's estimates: the stated covariance against the exact law, and against many runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import ServerRefused
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.subsets import subset
from ldp_server.arrays.packing import pack
from ldp_server.arrays.subsets import ranks_of, subsets
from ldp_server.oracles import frequency_oracle, restore
from tests.server.oracles.cases import filled

WHICH = np.arange(0, dtype=np.uint64)
"""The variance is the same for all categories."""


@pytest.mark.parametrize(("k", "d", "epsilon"), [(2, 1, "1"), (5, 2, "0.5"), (6, 3, "1"), (7, 1, "2"), (7, 2, "3")])
@pytest.mark.thinned(1)
def test_the_variance_of_a_sum_by_the_exact_law(k, d, epsilon):
    randomizer = SubsetSelection(Epsilon(epsilon), k, d)
    held = np.array([0, 0, 0, 1, 1, *range(k)])
    oracle = frequency_oracle(randomizer)
    oracle.accumulate(bytes(randomizer.report_bytes * len(held)))  # the variance asks only how many there were
    p, q = randomizer.support
    for size in {1, 2, k - 1, k}:
        for some in itertools.combinations(range(k), size):
            wanted = 0.0
            for item in held:
                law = [randomizer.probability(int(item), report) for report in range(randomizer.bound)]
                sums = [sum(subset(k, d, report) >> y & 1 for y in some) for report in range(randomizer.bound)]
                mean = sum(share * value for share, value in zip(law, sums, strict=True))
                square = sum(share * value**2 for share, value in zip(law, sums, strict=True))
                wanted += float((square - mean**2) / (p - q) ** 2)
            frequencies = [int((held == y).sum()) for y in some]
            assert oracle.sum_variance(WHICH, frequencies) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_the_whole_domain_adds_up():
    randomizer = SubsetSelection(Epsilon("1"), 12, 3)
    users = np.arange(1000, dtype=np.uint64) % np.uint64(12)
    oracle = filled(randomizer, users, 5)
    assert oracle.estimate_all().sum() == pytest.approx(1000)
    assert oracle.sum_variance(WHICH, np.full(12, 1000 / 12)) == pytest.approx(0, abs=1e-6)


@pytest.mark.long
def test_sums_of_real_reports():
    """300 runs: the mean square error of a sum of five estimates is the stated variance, and not 30% off."""
    randomizer = SubsetSelection(Epsilon("1"), 16, 4)
    users = np.arange(600, dtype=np.uint64) % np.uint64(8)
    errors = []
    for run in range(300):
        oracle = filled(randomizer, users, run)
        errors.append(oracle.estimate(np.arange(5, dtype=np.uint64)).sum() - 375)
    stated = oracle.sum_variance(WHICH, np.full(5, 75.0))
    total = float((np.array(errors) ** 2).sum() / stated)
    assert 1e-6 < stats.chi2.cdf(total, 300) < 1 - 1e-6
    assert stated / oracle.variance(np.full(5, 75.0)).sum() < 0.8  # the covariance is worth stating


def test_the_state_is_as_small_as_the_domain():
    """There are 2^61 reports, and 65 numbers of state; a report beyond the last set is refused and changes nothing."""
    randomizer = SubsetSelection(Epsilon("0.5"), 65, 32)
    assert randomizer.bound > 1 << 61
    oracle = filled(randomizer, np.arange(500, dtype=np.uint64) % np.uint64(65), 1)
    assert len(oracle.counts.values) == 65
    assert oracle.counts.values.sum() == 500 * 32
    saved = oracle.to_bytes()
    with pytest.raises(ServerRefused, match="REPORT_OUT_OF_RANGE"):
        oracle.accumulate(pack(np.array([0, randomizer.bound], np.uint64), randomizer.report_bytes))
    assert oracle.to_bytes() == saved == restore(randomizer, saved).to_bytes()


@pytest.mark.parametrize(("n", "chosen"), [(1, 1), (9, 4), (65, 32), (256, 11)])
def test_subsets_over_arrays(n, chosen):
    ranks = np.random.default_rng(1).integers(0, 1 << 63, 300, np.uint64) % np.uint64(
        SubsetSelection(Epsilon("1"), n, chosen).bound if n > 1 else 1
    )
    found = subsets(n, np.full(300, chosen, np.intp), ranks)
    assert np.array_equal(ranks_of(found, chosen), ranks)
    for i in range(0, 300, 29):
        assert sum(int(member) << place for place, member in enumerate(found[:, i])) == subset(n, chosen, int(ranks[i]))
