"""Tails and quantiles against scipy's."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from ldp_server.heavy_hitters.results import selected_interval, surest_interval
from ldp_server.heavy_hitters.search.tails import (
    binomial_tail_log,
    chi_square_quantile,
    log_normal_tail,
    normal_quantile,
    threshold,
)


@pytest.mark.parametrize("z", [-5, 0, 1.5, 9, 24.9, 25.1, 35])
def test_normal_tail_and_quantile(z):
    assert log_normal_tail(z) == pytest.approx(stats.norm.logsf(z), rel=1e-6, abs=1e-9)
    assert normal_quantile(stats.norm.logsf(z)) == pytest.approx(z, abs=2e-3)


@pytest.mark.parametrize(
    ("n", "q", "z"), [(10**6, 3, 9.4), (10**6, 47, 9.4), (10**5, 47, 9.6), (1000, 3, 5), (50, 2, 4)]
)
def test_binomial_tail(n, q, z):
    p = 1 / q
    at = math.ceil(n * p + z * math.sqrt(n * p * (1 - p)))
    assert binomial_tail_log(n, p, at) == pytest.approx(stats.binom.logsf(at - 1, n, p), rel=1e-9)


def test_the_normal_law_is_too_optimistic_far_out():
    """Why the binomial's own tail is summed: 15 times more false items at n = 10^5, eps = 4."""
    n, p = 10**5, 1 / 47
    k = n * p + 9.4 * math.sqrt(n * p * (1 - p))
    ratio = math.exp(binomial_tail_log(n, p, k) - stats.norm.logsf(9.4))
    assert 10 < ratio < 20


@pytest.mark.parametrize("q", [2, 3, 47])
@pytest.mark.parametrize("n", [10**4, 10**6])
def test_threshold_keeps_its_word(n, q):
    log_items, false = 64 * math.log(2), 0.05
    z = threshold(n, 1 / q, log_items, false)
    sd = math.sqrt(n / q * (1 - 1 / q))
    at = math.ceil(n / q + z * sd)
    assert stats.binom.logsf(at - 1, n, 1 / q) <= math.log(false) - log_items + 1e-6
    assert stats.binom.logsf(at - 1 - 0.02 * sd, n, 1 / q) > math.log(false) - log_items


def test_too_few_reports_for_any_threshold():
    assert threshold(20, 1 / 2, 64 * math.log(2), 0.05) == math.inf


@pytest.mark.parametrize(("freedom", "tail"), [(1, 0.05), (4, 5e-3), (9, 1e-3), (17, 1e-5)])
def test_chi_square(freedom, tail):
    assert chi_square_quantile(freedom, tail) == pytest.approx(stats.chi2.isf(tail, freedom), rel=1e-6)


def test_nothing_can_disagree_alone():
    assert chi_square_quantile(0, 0.01) == math.inf


@pytest.mark.parametrize("mean", [6.0, 9.0, 9.8, 11.0, 14.0])
def test_selected_interval_covers_given_selection(mean):
    """Exactly 96% of the estimates that pass the cut have an interval with the mean in it."""
    cut = 9.8
    grid = [cut + 0.002 * i for i in range(6000)]
    weight = [stats.norm.pdf(z - mean) for z in grid]
    inside = [w for z, w in zip(grid, weight, strict=True) if _covers(z, cut, mean)]
    assert sum(inside) / sum(weight) == pytest.approx(0.96, abs=0.005)


_CACHE: dict[tuple[float, float], tuple[float, float]] = {}


def _covers(z, cut, mean):
    key = (round(z, 2), cut)
    if key not in _CACHE:
        _CACHE[key] = selected_interval(z, 1.0, cut)
    low, high = _CACHE[key]
    return low <= mean <= high


def test_far_above_the_cut_selection_does_not_matter():
    low, high = selected_interval(1000.0, 10.0, 98.0)
    assert (low, high) == (pytest.approx(1000 - 20.54, abs=0.1), pytest.approx(1000 + 20.54, abs=0.1))


def test_the_surest_interval_is_wider():
    low, high = surest_interval(1000.0, 10.0, 64 * math.log(2))
    assert 1000 - low == pytest.approx(95.1, abs=1)
    assert high - 1000 == pytest.approx(95.1, abs=1)
