"""The small laws under every interval, each against exact sums or another program's tables."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ldp_server.oracles.base import two_sided
from ldp_server.oracles.laws.binomial import binomial_tail_log, largest_likely, least_likely
from ldp_server.oracles.laws.crowded_cells import CrowdedCells, popular_bar
from ldp_server.oracles.laws.normal import NormalErrors, normal_tail, skewed_ends
from ldp_server.oracles.laws.projection import below_simplex, norm_sub
from ldp_server.oracles.laws.skewed import skewed_intervals
from ldp_server.oracles.laws.support import SupportLaw, normal_quantile
from ldp_server.oracles.laws.table_errors import TableErrors

# -- binomial tails


def tail_of(n, p, k):
    """P(Binomial(n, p) >= k), as a fraction; p is near enough to the float."""
    p = Fraction(p).limit_denominator(1000)
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(max(0, k), n + 1))


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.1), (40, 0.3), (60, 0.02)])
def test_binomial_tails_are_sums_of_their_terms(n, p):
    for k in range(math.floor(n * p) + 1, n + 1):
        exact = tail_of(n, p, k)
        if k <= n * p:
            assert binomial_tail_log(n, p, k) == 0.0
        else:
            assert binomial_tail_log(n, p, k) == pytest.approx(math.log(exact), abs=1e-9)
            assert binomial_tail_log(n, p, k - 0.5) == binomial_tail_log(n, p, k)
    assert binomial_tail_log(n, p, n + 1) == binomial_tail_log(n, p, n + 0.01) == -math.inf
    assert binomial_tail_log(n, p, math.floor(n * p)) == binomial_tail_log(n, p, -3) == 0.0


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.1), (40, 0.3), (60, 0.02), (60, 0.9)])
@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-40])
def test_likely_counts_are_the_outermost_ones(n, p, tail):
    """The largest count whose tail is above the limit, and not one more; the least in the same way."""
    most, least = largest_likely(n, p, math.log(tail)), least_likely(n, p, math.log(tail))
    assert most == n or tail_of(n, p, most + 1) <= tail
    assert most == math.floor(n * p) or tail_of(n, p, most) > tail
    assert least == 0 or 1 - tail_of(n, p, least) <= tail
    assert 0 <= least <= math.ceil(n * p) and math.floor(n * p) <= most <= n
    assert least == n - largest_likely(n, 1 - p, math.log(tail))


def test_certain_and_impossible_events():
    assert (largest_likely(9, 0.0, -5.0), largest_likely(9, 1.0, -5.0)) == (0, 9)
    assert (largest_likely(9, -0.1, -5.0), largest_likely(9, 1.5, -5.0)) == (0, 9)
    assert (least_likely(9, 0.0, -5.0), least_likely(9, 1.0, -5.0)) == (0, 9)
    assert largest_likely(10**4, 0.5, math.log(1e-6)) == stats.binom.isf(1e-6, 10**4, 0.5)


# -- the normal law


@pytest.mark.parametrize("z", [-50.0, -3.0, -1e-9, 0.0, 0.5, 1.6448536269514722, 8.0, 30.0])
def test_normal_tails(z):
    assert normal_tail(np.array(z)) == pytest.approx(stats.norm.sf(z), rel=1e-12)


def test_normal_tails_have_the_shape_of_what_is_asked():
    z = np.array([[-1.0, 0.0, 60.0], [1.0, -60.0, 2.0]])
    found = normal_tail(z)
    assert found.shape == (2, 3)
    assert np.allclose(found, stats.norm.sf(z), atol=1e-15)
    assert found[0, 2] > 0  # no tail is taken for impossible


@pytest.mark.parametrize("tail", [0.5, 0.4, 0.025, 1e-12, 1e-300])
def test_quantiles_are_the_inverse_of_tails(tail):
    assert normal_quantile(tail) == pytest.approx(stats.norm.isf(tail), abs=1e-8)
    assert normal_quantile(0.0) == normal_quantile(1e-300)


def test_two_sided_quantiles():
    assert two_sided(0.95) == pytest.approx(1.959963984540054)
    assert two_sided(0.5) == pytest.approx(stats.norm.isf(0.25))


def test_normal_errors_have_their_variance():
    law = NormalErrors(1000, lambda f: np.asarray(f, float) + 9.0)
    assert law.unit == 0.0 and law.reports == 1000
    assert law.spread([0.0, 7.0, 16.0]).tolist() == [3.0, 4.0, 5.0]
    found = law.tails(np.array([0.0, 16.0]), np.array([3.0, 16.0, 21.0]))
    wanted = stats.norm.sf([[1.0, 16 / 3, 7.0], [-13 / 5, 0.0, 1.0]])
    assert found == pytest.approx(wanted, rel=1e-9)


# -- skewed errors


@pytest.mark.parametrize("skewness", [-0.4, -0.1, 1e-5, 0.05, 0.4])
@pytest.mark.parametrize("reach", [1.0, 1.96, 4.0])
def test_skewed_ends_are_the_roots_of_hall_s_transformation(skewness, reach):
    below, above = skewed_ends(skewness, reach)

    def hall(t):
        return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6

    assert hall(below) == pytest.approx(reach, rel=1e-6)
    assert hall(-above) == pytest.approx(-reach, rel=1e-6)
    mirrored = skewed_ends(-skewness, reach)
    assert mirrored == pytest.approx((above, below))
    assert (above > below) == (skewness > 0)


def test_skewness_has_a_bound_and_none_is_normal():
    assert skewed_ends(0.0, 1.96) == (1.96, 1.96)
    assert skewed_ends(9e-7, 1.96) == (1.96, 1.96)
    assert skewed_ends(1.1e-6, 1.96) != (1.96, 1.96)
    assert skewed_ends(7.0, 1.96) == skewed_ends(0.4, 1.96)
    assert skewed_ends(-7.0, 1.96) == skewed_ends(-0.4, 1.96)


def test_intervals_of_skewed_errors_with_a_constant_variance():
    raw = np.array([50.0, 2.0, 99.0])

    def moments(x):
        return np.full(len(x), 16.0), np.full(len(x), 0.2 * 64.0)

    low, high = skewed_intervals(raw, moments, 100.0, 0.025)
    below, above = skewed_ends(0.2, normal_quantile(0.025))
    assert low == pytest.approx([50 - 4 * below, 0.0, 99 - 4 * below])
    assert high == pytest.approx([50 + 4 * above, 2 + 4 * above, 100.0])


def test_a_variance_that_grows_moves_the_upper_end():
    """The end f solves f - raw = z sqrt(v + g (f - raw)), for a variance that grows by g with each user."""
    raw, grown, z = np.array([40.0]), 3.0, normal_quantile(0.01)

    def moments(x):
        return 9.0 + grown * (x - 40.0), np.zeros(len(x))

    low, high = skewed_intervals(raw, moments, 1000.0, 0.01)
    more = float(high[0]) - 40.0
    assert more == pytest.approx(z * math.sqrt(9.0 + grown * more))
    assert low[0] == pytest.approx(40.0 - 3 * z)

    def shrinking(x):
        return 9.0 - 0.5 * (x - 40.0), np.zeros(len(x))

    assert skewed_intervals(raw, shrinking, 1000.0, 0.01)[1][0] == pytest.approx(40.0 + 3 * z)


def test_no_variance_is_no_interval():
    low, high = skewed_intervals(np.array([7.0, -2.0]), lambda x: (0 * x, 0 * x), 5.0, 0.025)
    assert (low.tolist(), high.tolist()) == ([5.0, 0.0], [5.0, 0.0])


# -- projections


@pytest.mark.parametrize("total", [0.0, 1.0, 6.0, 50.0])
def test_the_nearest_possible_numbers(total):
    """Against all candidates of the form (raw - shift)+, with the shift found by halving."""
    raw = np.array([3.0, -1.0, 0.25, 2.5, -7.0])
    low, high = -100.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(raw - middle, 0).sum() > total else (low, middle)
    assert norm_sub(raw, total) == pytest.approx(np.maximum(raw - high, 0.0), abs=1e-9)
    assert norm_sub(raw, total).sum() == pytest.approx(total)


def test_what_is_below_the_bound_is_only_clipped():
    raw = np.array([3.0, -1.0, 2.0])
    assert below_simplex(raw, 5.0).tolist() == [3.0, 0.0, 2.0]
    assert below_simplex(raw, 5.5).tolist() == [3.0, 0.0, 2.0]
    assert below_simplex(raw, 4.0).tolist() == norm_sub(raw, 4.0).tolist() == [2.5, 0.0, 1.5]
    assert raw.tolist() == [3.0, -1.0, 2.0]
    empty = np.zeros(0)
    assert norm_sub(empty, 3.0).tolist() == [] and norm_sub(empty, 3.0) is not empty
    assert norm_sub(np.array([-3.0]), 0.0).tolist() == [0.0]


# -- crowded cells


@pytest.mark.parametrize(("teams", "bar"), [(1, 8.0), (15, 8.0), (16, 8.0), (18, 9.0), (40, 20.0)])
def test_the_bar_of_popular_items(teams, bar):
    assert popular_bar(teams, 1.0) == bar
    assert popular_bar(teams, 2.5) == 2.5 * bar


def crowded(size=64):
    found = np.array([10, 20, 30, 40, 50], np.uint64)
    cells = np.array([[1, 2, 2, 4, 5], [7, 7, 8, 9, 10]])
    return CrowdedCells.of(found, np.array([5.0, 9.0, 7.0, 1.0, 9.0]), cells, size)


def test_the_most_popular_are_kept_up_to_a_sixteenth_of_the_cells():
    some = crowded()
    assert some.popular.tolist() == [20, 50, 30, 10]  # equal ones in their order, and not a fifth one
    assert crowded(32).popular.tolist() == [20, 50]
    assert crowded(15).popular.tolist() == []
    assert crowded(80).popular.tolist() == [20, 50, 30, 10, 40]
    assert some.holders.shape == (2, 64)
    assert {cell: int(count) for cell, count in enumerate(some.holders[0]) if count} == {1: 1, 2: 2, 5: 1}
    assert {cell: int(count) for cell, count in enumerate(some.holders[1]) if count} == {7: 2, 8: 1, 10: 1}
    assert np.flatnonzero(~some.empty(0)).tolist() == [1, 2, 5]


def test_a_team_tells_an_item_that_no_other_popular_one_shares():
    some = crowded()
    indexes = np.array([20, 50, 99, 98, 97], np.uint64)
    cells = np.array([[2, 5, 2, 0, 1], [7, 10, 8, 0, 3]])
    # 20 shares a cell with 30 in one team and with 10 in the other: where no team tells, all do. 50 has its own.
    assert some.tells(indexes, cells).tolist() == [[True, True, True, True, False], [True, True, True, True, True]]


# -- the law of a sum over tables


def test_a_sum_of_tables_is_their_convolution():
    """Against all sums of one entry of each table, for an item that nobody holds and one that some hold."""
    tables = [np.array([-3.0, 0.0, 0.0, 3.0]), np.array([-2.0, 1.0, 1.0])]
    law = TableErrors(100, tables, lambda f: np.asarray(f, float) * 0.0 + 6.5)
    sums = np.array([a + b for a in tables[0] for b in tables[1]])
    limits = np.array([-5.4, -4.6, -1.5, 0.5, 1.5, 3.5, 4.5])
    found = law.tails(np.array([0.0, 10.0]), np.concatenate((limits, limits + 10.0)))
    wanted = [(sums >= limit).mean() for limit in limits]
    assert found[0, :7] == pytest.approx(wanted, abs=1e-6)
    assert found[1, 7:] == pytest.approx(wanted, abs=1e-6)
    assert law.unit == 0.0 and float(law.spread(3.0)) == math.sqrt(6.5)


def test_holders_add_noise_that_is_normal():
    """Sixteen fair coins of +-1, and normal noise of variance 4 for 400 holders."""
    law = TableErrors(1000, [np.array([-1.0, 1.0])] * 16, lambda f: 16.0 + np.asarray(f, float) / 100)
    limits = np.array([390.0, 395.0, 400.0, 403.0, 409.0])
    found = law.tails(np.array([400.0]), limits)[0]
    sums = 2 * np.arange(17.0) - 16
    wanted = stats.norm.sf((limits[:, None] - 400.0 - sums) / 2.0) @ stats.binom.pmf(np.arange(17), 16, 0.5)
    assert found == pytest.approx(wanted, abs=1e-3)


# -- the law of supports, at its edges


def test_the_edges_of_the_law_of_supports():
    law = SupportLaw(50, 0.75, 0.25)
    assert law.unit == 2.0
    assert law.supports([1.0, 11.0, -100.0, 500.0, 1.9]).tolist() == [13.0, 18.0, 0.0, 50.0, 13.0]
    assert law.spread([0.0, 50.0, 99.0, -5.0]) == pytest.approx([2 * math.sqrt(50 * 3 / 16)] * 4)
    none, every = np.array([0.0, 20.0, 50.0]), np.full(3, 50.0)
    assert law.score(none, np.zeros(3)).tolist() == [-math.inf] * 3
    assert law.score(none, np.full(3, 51.0)).tolist() == [math.inf] * 3
    logs = none * math.log(0.75) + (50 - none) * math.log(0.25)
    assert stats.norm.logsf(law.score(none, every)) == pytest.approx(logs, rel=1e-6)
    first = law.score(none, np.ones(3))
    assert stats.norm.cdf(first) == pytest.approx(np.exp(none * math.log(0.25) + (50 - none) * math.log(0.75)))


def test_the_largest_noise_is_the_last_estimate_whose_interval_begins_at_0():
    law = SupportLaw(400, 0.6, 0.2)
    counts = np.arange(401.0)
    estimates = (counts - 400 * law.s) * law.unit
    for z in (1.0, 1.96, 5.0):
        low = law.intervals_at(estimates, z)[0]
        assert law.noise(z) == pytest.approx(float(estimates[low == 0].max()))


@pytest.mark.parametrize("holders", [0, 2, 5])
def test_exact_tails_of_few_holders(holders):
    law = SupportLaw(300, 0.9, 0.004)
    held = stats.binom.pmf(np.arange(holders + 1), holders, law.p)
    mass = np.convolve(held, stats.binom.pmf(np.arange(301 - holders), 300 - holders, law.s))
    estimates = (np.arange(12.0) - 300 * law.s) * law.unit
    found = law.tails(np.array([float(holders)]), estimates)[0]
    assert found == pytest.approx([mass[k:].sum() for k in range(12)], abs=1e-9)
