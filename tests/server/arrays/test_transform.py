"""The fast transform against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays import transform
from simulator.crowd.linear_hash import points, products

FIELDS = [
    *((2, 1), (2, 2), (2, 9), (3, 1), (3, 5), (4, 1), (4, 2), (4, 5), (5, 3), (7, 2), (8, 1), (8, 2), (8, 4)),
    *((11, 2), (13, 1), (31, 2), (37, 2), (53, 1), (257, 1)),
]


def slow_support(mechanism, counts):
    vectors = points(mechanism, np.arange(mechanism.points, dtype=np.uint64))
    cells = np.arange(mechanism.q**mechanism.t, dtype=np.uint64)
    table = counts.reshape(-1, mechanism.q).astype(np.int64)
    total = np.zeros(len(cells), np.int64)
    for j, vector in enumerate(vectors):
        total += table[j, products(mechanism, np.full_like(cells, vector), cells).astype(np.intp)]
    return total


@pytest.mark.parametrize(("q", "t"), FIELDS)
def test_support_is_the_sum_it_stands_for(q, t):
    mechanism = LinearHash(Epsilon("1"), max(2, q**t), q, t)
    counts = np.random.default_rng(q * 100 + t).integers(0, 1000, mechanism.bound).astype(np.uint32)
    assert np.allclose(transform.support(counts, q, t), slow_support(mechanism, counts), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("q", "t"), [(2, 17), (3, 11), (4, 9), (5, 8), (8, 7)])
def test_single_precision_is_far_below_the_noise(q, t, monkeypatch):
    mechanism = LinearHash(Epsilon("1"), 1000, q, t)
    reports = 3_000_000
    counts = np.random.default_rng(5).poisson(reports / mechanism.bound, mechanism.bound).astype(np.uint32)
    fast = transform.support(counts, q, t)
    monkeypatch.setattr(transform, "_SINGLE", 1 << 30)
    exact = transform.support(counts, q, t)
    assert fast.dtype == np.float32
    assert exact.dtype == np.float64
    assert np.abs(fast - exact).max() < 0.01 * np.sqrt(reports / q)


def test_many_reports_are_summed_in_double_precision():
    counts = np.full(LinearHash(Epsilon("1"), 1000, 2, 17).bound, 1 << 12, np.uint32)
    assert transform.support(counts, 2, 17).dtype == np.float64
