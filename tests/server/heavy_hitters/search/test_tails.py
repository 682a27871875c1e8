"""Tails and quantiles against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ldp_server.heavy_hitters.search.tails import (
    binomial_quantile,
    binomial_tail_log,
    chi_square_quantile,
    log_normal_tail,
    normal_quantile,
    normal_tails,
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


@pytest.mark.parametrize("p", [1 / 2, 1 / 3, 1 / 47, 1 / 1009])
@pytest.mark.parametrize("n", [400, 2_440, 10**5, 10**9])
@pytest.mark.parametrize("log_tail", [-3.0, -8.5, -25.0, -170.0])
def test_binomial_quantile(n, p, log_tail):
    """The exact tails of the whole numbers below and above it lie on the two sides of the wanted one, to 2%."""
    sd = math.sqrt(n * p * (1 - p))
    least = n * p + binomial_quantile(n, p, log_tail) * sd
    assert stats.binom.logsf(math.floor(least) - 1, n, p) >= log_tail - 0.02
    assert stats.binom.logsf(math.ceil(least) - 1, n, p) <= log_tail + 0.02


def test_a_few_users_need_more_than_the_normal_quantile():
    """600 users, a cell in 47: the tail at the normal quantile is 40 times as heavy as it says."""
    n, p, log_tail = 600, 1 / 47, math.log(2e-4) - 10 * math.log(2)
    at = math.ceil(n * p + normal_quantile(log_tail) * math.sqrt(n * p * (1 - p)))
    assert 30 < math.exp(stats.binom.logsf(at - 1, n, p) - log_tail) < 60


def test_tables_of_the_normal_law():
    z = np.linspace(-6, 13.99, 997)
    assert normal_tails(z) == pytest.approx(stats.norm.sf(z), rel=2e-5)
    assert normal_tails(np.array([15.0])).tolist() == [0.0]
