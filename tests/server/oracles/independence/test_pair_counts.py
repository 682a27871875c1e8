"""The limit of equal pairs: against the exact law, by convolution, and at the sizes that collections have."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from ldp_server.oracles.laws.binomial import binomial_tail_log, largest_likely, least_likely
from ldp_server.oracles.laws.pair_counts import Pairs, PairsLaw


@cache
def exact_tails(draws, values, most):
    """P(T >= t) for t up to `most`, of multinomial counts: the coefficient of x^draws in a power of a polynomial."""

    def product(one, two):
        out = np.zeros((draws + 1, most + 2))
        for i, row in enumerate(one):
            for j in range(draws + 1 - i):
                if row.any() and two[j].any():
                    both = np.convolve(row, two[j])
                    out[i + j, : most + 1] += both[: most + 1]
                    out[i + j, most + 1] += both[most + 1 :].sum()
        return out

    base, mean = np.zeros((draws + 1, most + 2)), draws / values
    for k in range(draws + 1):
        base[k, min(k * (k - 1) // 2, most + 1)] += math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))
    power, found = base, None
    for bit in bin(values)[:1:-1]:
        if bit == "1":
            found = power if found is None else product(found, power)
        power = product(power, power)
    return np.cumsum((found[draws] / found[draws].sum())[::-1])[::-1]


@pytest.mark.parametrize(("draws", "values"), [(20, 100), (60, 64), (10, 100_000), (25, 4096)])
@pytest.mark.parametrize("failure", [1e-4, 7e-7, 1e-9])
@pytest.mark.thinned(1)
def test_the_limit_is_that_of_the_exact_law(draws, values, failure):
    """It may be one pair too many, or too few by so little that the failure probability grows by a third."""
    law = PairsLaw([(draws, values)])
    tails = exact_tails(draws, values, int(law.mean + 16 * law.spread + 12))
    limit = int(law.limit(failure))
    assert tails[limit] <= 1.34 * failure
    assert tails[max(0, limit - 2)] > failure


@pytest.mark.parametrize(("draws", "values"), [(1000, 14_348_904), (10**6, 14_348_904), (10**6, 636_000), (5000, 364)])
def test_the_normal_law_would_warn_too_often(draws, values):
    """At one in a million the limit lies beyond the normal law's 4.82 deviations, and far beyond for rare pairs."""
    law = PairsLaw([(draws, values)])
    beyond = (law.limit(7e-7) - law.mean) / law.spread
    assert 4.85 < beyond < 25
    assert (beyond > 15) == (draws == 1000)


@pytest.mark.long
def test_honest_draws_stay_below_their_limits():
    """At limits of 1 in 50 and 1 in 1,000, about so many of 20,000 honest runs are above, and no more."""
    rng, law = np.random.default_rng(3), PairsLaw([(200, 500)])
    totals = np.empty(20_000)
    for run in range(len(totals)):
        often = np.bincount(rng.integers(0, 500, 200), minlength=500)
        totals[run] = often @ (often - 1) // 2
    for failure, least in ((0.02, 200), (1e-3, 4)):
        above = int((totals >= law.limit(failure)).sum())
        assert least <= above <= 20_000 * failure + 4 * math.sqrt(20_000 * failure)
    factors = 1 + 2 * (totals - law.mean) / law.gain
    assert factors.mean() == pytest.approx(1, abs=4 * law.uncertainty / math.sqrt(20_000))
    assert factors.std() == pytest.approx(law.uncertainty, rel=0.03)


def test_copies_are_caught_from_the_stated_part_on():
    """At the part that is caught with 95%, 95% of 1,500 runs are; at half of it, few."""
    rng, (draws, values) = np.random.default_rng(4), (3000, 6000)
    law = PairsLaw([(draws, values)])
    part, limit = law.caught_from(7e-7), law.limit(7e-7)
    for share, low, high in ((part, 0.925, 0.98), (part / 2, 0.0, 0.12)):
        again, caught = round(share * draws), 0
        for _ in range(1500):
            points = rng.integers(0, values, draws - again)
            counts = np.bincount(np.concatenate([points, points[:again]]), minlength=values)
            caught += Pairs.of([counts]).pairs >= limit
        assert low <= caught / 1500 <= high


@pytest.mark.long
def test_several_draws_are_weighed_by_what_they_tell():
    """A coarse draw beside a fine one neither hides copies nor adds alarms."""
    rng = np.random.default_rng(5)
    law, fine = PairsLaw([(2000, 80), (2000, 4000)]), PairsLaw([(2000, 4000)])
    assert law.uncertainty < fine.uncertainty * 1.001
    totals = []
    for _ in range(3000):
        pairs = [Pairs.of([np.bincount(rng.integers(0, b, 2000), minlength=b)]) for b in (80, 4000)]
        totals.append(law.total(pairs))
    assert np.mean(totals) == pytest.approx(law.mean, abs=4 * law.spread / math.sqrt(3000))
    assert np.std(totals) == pytest.approx(law.spread, rel=0.04)
    assert 12 <= (np.array(totals) >= law.limit(0.01)).sum() <= 52


def test_too_few_draws_or_values_show_nothing():
    for draws in ([], [(1, 10_000)], [(10**6, 5)]):
        law = PairsLaw(draws)
        assert law.limit(1e-6) == math.inf
        assert law.caught_from(1e-6) is None
        assert law.factor(0.0) == 1.0


def test_the_ends_of_a_binomial():
    for n, p in ((1000, 0.2), (50, 0.001), (10**6, 0.03), (7, 1.0), (7, 0.0)):
        low, high = least_likely(n, p, math.log(1e-7)), largest_likely(n, p, math.log(1e-7))
        assert 0 <= low <= n * p <= high <= n
        if 0 < p < 1:
            assert high == n or binomial_tail_log(n, p, high + 1) <= math.log(1e-7)
            assert high == math.floor(n * p) or binomial_tail_log(n, p, high) > math.log(1e-7)
