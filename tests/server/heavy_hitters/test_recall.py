"""The law of missed items against the decoder's own tests, run on noise, and against exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters import recall
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.heavy_hitters.promise import MARGINS
from ldp_server.heavy_hitters.recall import MissLaw, miss_law
from ldp_server.heavy_hitters.search.acceptance import Acceptance, Noise, Settings, limits_of
from ldp_server.heavy_hitters.search.tails import log_normal_tails, threshold

CASES = [
    (Integers(0, (1 << 64) - 1), 10**6, "1", "expander-sketch", 1 << 30),
    (Integers(0, (1 << 64) - 1), 10**5, "4", "expander-sketch", 1 << 30),
    (Integers(0, (1 << 40) - 1), 10**5, "4", "expander-sketch", 80 << 20),
    (Strings(16), 10**6, "1", "tree-sketch", 1 << 30),
]
DRAWS = 60_000


@pytest.mark.parametrize(("domain", "users", "epsilon", "mechanism", "memory"), CASES)
@pytest.mark.thinned(2)
def test_the_law_bounds_what_the_tests_refuse(domain, users, epsilon, mechanism, memory):
    """For an item alone: team values from the noise, and the tests as the decoder runs them."""
    found = plan(users, domain, epsilon, mechanism=mechanism, memory=memory)
    sketch = create("?", domain, epsilon, found, opens=0, closes=1).randomizer
    p, s = (float(x) for x in sketch.inner.support)
    noise = Noise(users, s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s)), s)
    bar = threshold(users, s, math.log(domain.size), 0.025) + MARGINS[found.decoder]
    code = bulk_code(sketch)
    weights = np.full(code.teams, 1 / math.sqrt(code.teams))
    tests = Acceptance(code, weights, noise, Settings(bar, **limits_of(code)))
    law, rng = miss_law(sketch, found.decoder, bar, noise), np.random.default_rng(5)
    looseness = []
    for z in found.reliable / math.sqrt(users * noise.variance) * np.array([0.85, 0.92, 1.0, 1.06, 1.12]):
        values = z * weights + math.sqrt(float(noise.team_spread(z))) * rng.standard_normal((DRAWS, code.teams))
        missed = 1 - tests.proved(values, values @ weights).mean()
        assert missed <= law.missed(z) + 4 * math.sqrt(law.missed(z) / DRAWS), z
        looseness.append(law.missed(z) / max(missed, 1 / DRAWS))
    assert min(looseness) < (4 if mechanism == "expander-sketch" else 30)  # a tree's law has its search as well


@pytest.mark.parametrize(("count", "power"), [(6, 2), (6, 1), (11, 2)])
@pytest.mark.parametrize("lack", [0.0, 0.6])
@pytest.mark.thinned(1)
def test_sums_of_lacks_have_their_law(count, power, lack):
    draws = np.random.default_rng(1).standard_normal((400_000, count)) - lack
    sums = (np.clip(draws, 0, None) ** power).sum(axis=1)
    for tail in (0.1, 0.01, 0.001):
        limit = float(np.quantile(sums, 1 - tail))
        bound = recall._sum_exceeds(count, lack, power, limit)
        assert tail * 0.85 <= bound <= tail * 1.3


def test_sums_of_squares_are_a_mixture_of_chi_squares_far_in_the_tail():
    """With lack 0, k of the six are positive with a binomial probability, and their squares are chi-square."""
    for limit in (16.75, 30.0, 45.0):
        exact = sum(math.comb(6, k) / 64 * stats.chi2.sf(limit, k) for k in range(1, 7))
        assert exact <= recall._sum_exceeds(6, 0.0, 2, limit) <= 1.1 * exact


def test_the_normal_law_bounds_the_lower_tail_of_the_support():
    """Support is Binomial(n - f, s) + Binomial(f, p) with s below a half: its lower tail lies below the normal one."""
    for s, p, n, f in ((0.019, 0.5, 10**5, 1500), (0.2, 0.39, 10**5, 4000), (0.02, 0.27, 10**5, 3000)):
        spread = math.sqrt((n - f) * s * (1 - s) + f * p * (1 - p))
        mean = (n - f) * s + f * p
        held = np.arange(f + 1)
        for z in (2.0, 3.0, 4.0, 5.0):
            k = math.floor(mean - z * spread)
            exact = float((stats.binom.pmf(held, f, p) * stats.binom.cdf(k - held, n - f, s)).sum())
            assert exact <= 1.1 * stats.norm.sf(z)


def test_tails_are_bounds_however_far_out_they_are():
    """Very long items have scores of 40 standard errors, and 2^1000 relatives."""
    z = np.concatenate([np.linspace(0, 13.9, 50), np.linspace(14.1, 80, 50)])
    exact, bound = stats.norm.logsf(z), log_normal_tails(z)
    assert (bound >= exact - 1e-4).all()
    assert (bound <= exact + 0.01).all()
    assert log_normal_tails(np.array([-3.0])).tolist() == [0.0]


def test_very_long_items_are_promised_to_no_more_than_their_relatives_allow():
    """A near-copy differs in the last cells alone, so the doubt decides up to a quarter above the bar."""
    found = plan(10**6, Strings(128), "4")
    sketch = create("?", Strings(128), "4", found, opens=0, closes=1).randomizer
    p, s = (float(x) for x in sketch.inner.support)
    noise = Noise(10**6, s * (1 - s) / (p - s) ** 2, p * (1 - p) / (s * (1 - s)), s)
    law = miss_law(sketch, "paths", threshold(10**6, s, math.log(Strings(128).size), 0.025), noise)
    doubted = [law._doubted(law.bar * part, 1.0) for part in (1.15, 1.25, 1.5)]
    assert doubted[0] > doubted[1] > doubted[2]
    assert doubted[0] > 0.2
    assert doubted[2] < 1e-6
    assert law.missed(found.reliable / math.sqrt(10**6 * noise.variance)) < 0.06


@pytest.mark.parametrize("decoder", ["soft", "paths", "levels"])
@pytest.mark.thinned(1)
def test_the_law_falls(decoder):
    mechanism = {"soft": "expander-sketch", "paths": "tree-sketch", "levels": "prefix-tree"}[decoder]
    found = plan(10**6, Strings(8), "2", mechanism=mechanism)
    sketch = create("?", Strings(8), "2", found, opens=0, closes=1).randomizer
    law = miss_law(sketch, decoder, 10.0, Noise(10**6, 3.0, 2.0, 0.2))
    missed = [law.missed(z) / z for z in np.linspace(2, 60, 200)]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(missed))
    assert missed[-1] < 1e-9


@pytest.mark.parametrize(("part", "count", "z"), [(0.5, 3000, 8.0), (1 / 3, 10**6, 9.0)])
@pytest.mark.thinned(1)
def test_the_law_bounds_what_relatives_refuse(part, count, z):
    """Scores of an item, and of relatives given it. Few are near: those above a level are a Poisson number."""
    law = MissLaw(Noise(10**6, 3.0, 1.0, 0.2), 7.0, 6, relatives=((part, math.log(count)),), doubt=0.1)
    rng, refused, draws = np.random.default_rng(2), 0, 1_500
    for x in z + rng.standard_normal(draws):
        if x < 7.0:
            continue
        level = (math.sqrt(max(0.0, x * x - 10)) - part * x) / math.sqrt(1 - part**2)  # R below e^-5: left out
        number = rng.poisson(count * stats.norm.sf(level))
        y = part * x + math.sqrt(1 - part**2) * stats.norm.isf(
            stats.norm.sf(level) * rng.uniform(size=min(number, 10**4))
        )
        refused += np.exp((y**2 - x * x) / 2).sum() > 0.1
    bound = law._doubted(z, 1.0)
    assert refused / draws - 4 * math.sqrt(bound / draws) <= bound <= 4 * refused / draws + 0.01


def test_without_a_limit_relatives_refuse_nothing():
    law = MissLaw(Noise(10**6, 3.0, 1.0, 0.2), 7.0, 6, relatives=((0.5, 20.0),))
    assert law._doubted(8.0, 1.0) == 0.0
    assert MissLaw(Noise(10**6, 3.0, 1.0, 0.2), 7.0, 6, doubt=0.1)._doubted(8.0, 1.0) == 0.0


@pytest.mark.parametrize("lack", [0.0, 0.6, 2.2])
def test_the_moments_of_a_lack_are_its_integrals(lack):
    x = np.linspace(-12, 20, 400_001)
    density = stats.norm.pdf(x)
    for t, log in zip(recall._SLOPES, recall._log_moments(lack), strict=True):
        assert log == pytest.approx(
            math.log(np.trapezoid(density * np.exp(t * np.clip(x - lack, 0, None)), x)), abs=1e-6
        )


def test_the_bound_on_a_sum_is_at_most_one_and_falls():
    bounds = [recall._sum_bound(6, 0.3, limit) for limit in (0.0, 6.0, 9.0, 12.0, 20.0)]
    assert bounds[0] == 1.0
    assert all(low < high for high, low in itertools.pairwise(bounds))
    assert bounds[-1] < 1e-12
