"""How a tree's search loses items to their own near-copies: the law against draws, and against real lists."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol.domain import Strings
from ldp_server.heavy_hitters import dips
from ldp_server.heavy_hitters.dips import Dips
from tests.server.heavy_hitters.test_planner import hits

LONG = (20, *[13] * 20)


@pytest.mark.parametrize("widths", [LONG, (9, *[13] * 30), (18, *[15] * 8, 3), (12,)])
@pytest.mark.parametrize(("mean", "sd"), [(4.8, 1.0), (5.3, 1.1)])
def test_the_law_is_that_of_drawn_walks(widths, mean, sd):
    made, draws = Dips(widths, 40_000, 0.2), 20_000
    behind = np.full(draws, made._begins)
    lost = np.zeros(draws, bool)
    for values in np.random.default_rng(3).normal(mean, sd, (len(widths), draws)):
        behind = np.maximum(0.0, behind + made._c - values)
        lost |= behind > made._most
    assert made.lost(mean, sd) == pytest.approx(lost.mean(), abs=0.02)


def test_the_rivals_are_those_of_the_binomial_law():
    """The number of paths that are better than an item which stays so far behind: exact tails, and the formula's."""
    users, s, bits = 2_000, 0.02, 13
    h, c, most = dips._rivals(bits, users, s)
    unit = math.sqrt(users * s * (1 - s))
    for levels in (3, 5, 9):
        total = levels * users * s + unit * (levels * c - most)  # the item's count in these levels
        log_paths = levels * bits * math.log(2) + stats.binom.logsf(math.ceil(total) - 1, levels * users, s)
        assert log_paths == pytest.approx(math.log(dips._PREFIXES), abs=1.0)
    assert 3 < h < 5


def test_more_is_lost_of_rarer_and_longer_items_and_where_levels_have_few_users():
    lost = [Dips(LONG, 50_000, 0.2).lost(mean, 1.0) for mean in np.linspace(3, 8, 40)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(lost))
    assert lost[0] > 0.99
    assert lost[-1] < 1e-8
    assert Dips((*LONG, *[13] * 20), 50_000, 0.2).lost(5.0, 1.0) > 1.5 * Dips(LONG, 50_000, 0.2).lost(5.0, 1.0)
    assert Dips(LONG, 1_000, 0.02).lost(5.0, 1.0) > 1.5 * Dips(LONG, 100_000, 0.02).lost(5.0, 1.0)


@pytest.mark.long
def test_the_promise_is_kept_for_long_items_of_few_users():
    """Of 16 items fewer than 12 have 0.1% probability at 95%. Before the law knew of dips, half of them were lost."""
    listed, false = hits(Strings(66), 100_000, "4", "tree-sketch", (1.0,), 4, range(40, 44), memory=1 << 30)
    assert sum(listed[1.0]) >= 12
    assert false <= 1
