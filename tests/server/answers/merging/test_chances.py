"""The tails of merged errors: against a numerical integral, and what a normal interval would get wrong."""

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest

from ldp_server.answers.merging.chances import beyond, reach

NORMAL = NormalDist()


def integrated(z, heavy):
    """P(|X| > z): the normal tail, averaged over the Laplace part on a fine grid of its quantiles."""
    levels = (np.arange(200_000) + 0.5) / 200_000
    noise = -np.log(levels) * math.sqrt(heavy / 2)  # one side of it; the other one is alike
    s = math.sqrt(max(1 - heavy, 1e-18))
    upper, lower = (z - noise) / s, (z + noise) / s
    tail = np.vectorize(lambda x: math.erfc(x / math.sqrt(2)) / 2)
    return float((tail(upper[25::50]) + tail(lower[25::50])).mean())


@pytest.mark.parametrize("heavy", [0.05, 0.3, 0.7, 0.95])
def test_the_tail_is_the_integral(heavy):
    for z in (1.8, 2.5, 3.5):
        assert beyond(z, heavy) == pytest.approx(integrated(z, heavy), rel=1.5e-2)
    assert beyond(-2.5, heavy) == beyond(2.5, heavy)


def test_the_two_ends_are_the_normal_and_the_laplace_law():
    for z in (0.5, 1.96, 4.0):
        assert beyond(z) == pytest.approx(2 * NORMAL.cdf(-z))
        assert beyond(z, 0.002) == beyond(z)  # so small a part changes nothing
    assert beyond(3.0, 1.0) == pytest.approx(math.exp(-3 * math.sqrt(2)))
    assert beyond(3.0, 0.99999) == pytest.approx(beyond(3.0, 1.0), rel=1e-3)
    assert beyond(1.0, 1.0) == pytest.approx(2 * NORMAL.cdf(-1.0))  # there the normal law is the larger one
    assert beyond(0.0, 0.5) == pytest.approx(1.0)


def test_a_reach_leaves_the_chance_and_grows_with_the_part():
    for chance in (0.2, 0.05, 0.01, 1e-4, 1e-9):
        reaches = [reach(chance, heavy) for heavy in (0.0, 0.01, 0.1, 0.5, 0.9, 1.0)]
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(reaches))
        for heavy, found in zip((0.01, 0.1, 0.5, 0.9, 1.0), reaches[1:], strict=True):
            assert beyond(found, heavy) == pytest.approx(chance, rel=1e-6)
    assert reach(0.05) == pytest.approx(1.959964, abs=1e-6)
    assert reach(0.01, 1.0) == pytest.approx(math.log(100) / math.sqrt(2))
    assert reach(0.05, 0.101) == reach(0.05, 0.11) > reach(0.05, 0.10)  # a part is rounded up


def test_far_out_it_is_a_small_number_and_no_error():
    """Where the parts of the formula would be too large or too small for a float."""
    for heavy in (0.003, 0.01, 0.2, 0.999):
        far = [beyond(z, heavy) for z in (5.0, 12.0, 30.0, 60.0)]
        assert far == sorted(far, reverse=True)
        assert 0 <= far[-1] < 1e-30
        assert all(beyond(z, heavy) >= beyond(z) for z in (5.0, 12.0, 30.0))


def test_a_sum_of_laplace_draws_is_inside_the_reach_of_one():
    """The claim that lets every Laplace draw count as part of one: for sums of equal and of unequal draws."""
    rng = np.random.default_rng(5)
    for weights in ([1.0, 1.0], [1.0] * 6, [3.0, 1.0], [1.0, 0.1]):
        scales = np.array(weights) / math.sqrt(2 * sum(weight**2 for weight in weights))
        found = np.abs(rng.laplace(scale=1.0, size=(200_000, len(weights))) @ scales)
        for chance in (0.09, 0.05, 0.01, 0.001):
            allowed = chance + 4 * math.sqrt(chance / 200_000)
            assert (found > reach(chance, 1.0)).mean() <= allowed
