from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.privacy import yardsticks
from ldp_client.privacy.yardsticks import (
    d_opt,
    lower_bound_shape,
    normal_tail_quantile,
    optimal_scan_error,
    sigma_opt,
    v_opt,
)


@given(st.floats(0.01, 20))
def test_v_opt_is_the_formula(epsilon):
    e = math.exp(epsilon)
    assert v_opt(epsilon) == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-9)


def test_reference_values():
    assert sigma_opt(10**6, 1) == pytest.approx(1919, abs=1)
    assert d_opt(10**6, 1, 2**64) == pytest.approx(18_805, rel=0.002)
    assert d_opt(10**6, 1, 2**64) / sigma_opt(10**6, 1) == pytest.approx(9.80, abs=0.005)


@pytest.mark.parametrize("items", [1, 1024, 2**64, 2**256, 2**4096])
def test_the_exhaustive_scan_is_just_below_d_opt(items):
    scan, bound = optimal_scan_error(10**5, 2, items), d_opt(10**5, 2, items)
    assert 0.7 * bound < scan < bound


def test_the_exhaustive_scan_of_few_items_is_the_quantile_of_the_largest_error():
    t = optimal_scan_error(10**5, 2, 1000, 0.05) / sigma_opt(10**5, 2)
    assert (1 - 2 * (1 - NormalDist().cdf(t))) ** 1000 == pytest.approx(0.95, rel=1e-9)


@given(st.floats(0.7, 5000))
def test_quantile_inverts_the_tail(log_tail):
    t = normal_tail_quantile(-log_tail)
    if t < 30:
        assert math.log(math.erfc(t / math.sqrt(2)) / 2) == pytest.approx(-log_tail, rel=1e-9)
    # Mills' bounds on either side, at any depth.
    upper = -t * t / 2 - math.log(t * math.sqrt(2 * math.pi))
    if t > 5:
        assert upper + math.log(1 - 1 / t**2) < -log_tail < upper


def test_the_shape_scales_as_the_lower_bound():
    base = lower_bound_shape(10**4, "0.5", 2**20, 0.01)
    assert lower_bound_shape(4 * 10**4, "0.5", 2**20, 0.01) == pytest.approx(2 * base)
    assert lower_bound_shape(10**4, "0.25", 2**20, 0.01) == pytest.approx(2 * base)
    assert base == pytest.approx(2 * math.sqrt(10**4 * math.log(2**20 / 0.01)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: v_opt(0),
        lambda: sigma_opt(0, 1),
        lambda: d_opt(10, 1, 0),
        lambda: d_opt(10, 1, 5, 1.0),
        lambda: optimal_scan_error(10, 1, 0),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()


@pytest.mark.parametrize("users", [0, -1, math.inf, math.nan])
def test_a_number_of_users_that_cannot_be_is_refused(users):
    with pytest.raises(InvalidSpec, match="the number of users must be above 0"):
        yardsticks._users(users)
    assert yardsticks._users(0.5) == 0.5
