"""What liars know of linear hash: one report that supports as many cells as the vectors have digits."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.hitters.poison import _common
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.protocol.epsilon import Epsilon


@pytest.mark.parametrize(("q", "t"), [(2, 10), (3, 6), (4, 5), (7, 4), (8, 4)])
def test_one_report_supports_t_cells(q, t):
    inner, rng = LinearHash(Epsilon("1"), q**t, q, t), np.random.default_rng(q)
    for _ in range(20):
        cells = [int(cell) for cell in rng.choice(q**t, t, replace=False)]
        number, answer = _common(inner, cells, rng)
        assert 0 <= number < inner.points
        assert [inner.product(inner.point(number), cell) for cell in cells] == [answer] * t
