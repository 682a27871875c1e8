"""Shares and their differences: covariances as they are, intervals that hold with much noise and with little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Categories, Field, Record, YesNo
from ldp_server.fairness.gaps import gaps_answer
from ldp_server.learning.shares import CellTotals, difference
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from tests.server.learning.populations import asked, counted

PEOPLE = Record((Field("group", Categories(("a", "b"))), Field("hired", YesNo())))
DRAWN = Record((Field("group", Categories(("a", "b"))), Field("hired", YesNo()), Field("age", YesNo())))


def members(group, users, share):
    yes = round(users * share)
    return [({"group": group, "hired": True}, yes), ({"group": group, "hired": False}, users - yes)]


def view_of(collection, people, seed):
    return table_view(counted(collection, people, seed), collection.domain, AskedTable(collection.domain, (0, 1)))


@pytest.mark.parametrize("mechanism", ["randomized-response", "subset-selection"])
@pytest.mark.thinned(1)
def test_covariances_are_those_of_the_estimates(mechanism):
    """Estimated from one crowd, and seen over 120: within the chance error of a covariance."""
    collection = asked(PEOPLE, mechanism, "1", {"d": 3} if mechanism == "subset-selection" else None)
    people = members("a", 900, 0.3) + members("b", 600, 0.5)
    one, other, overlapping = frozenset({7, 4}), frozenset({8, 5}), frozenset({7, 8, 1})
    sums = [CellTotals(view_of(collection, people, seed)) for seed in range(120)]
    seen = np.array([[found.estimate(cells) for cells in (one, other, overlapping)] for found in sums])
    spread = np.cov(seen.T)
    for i, j, cells in ((0, 1, (one, other)), (0, 2, (one, overlapping)), (0, 0, (one, one))):
        told = np.mean([found.covariance(*cells) for found in sums[:20]])
        chance = math.sqrt((spread[i, i] * spread[j, j] + spread[i, j] ** 2) / 120)
        assert abs(told - spread[i, j]) < 4 * chance, (i, j)


CASES = {
    "much noise": ("1", (3000, 2000), (0.3, 0.5)),
    "few reports make the noise, shares at the ends": ("6", (60, 30), (0.0, 1.0)),
    "a group near the noise": ("3", (300, 40), (0.02, 0.5)),
    "shares near the end": ("4", (200, 150), (0.02, 1.0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.thinned(1)
def test_intervals_of_shares_and_gaps_hold(case, request):
    """80% intervals: with 80% kept, fewer right ones have a probability of 1 in 400. `--long`: 150 crowds."""
    crowds = 150 if request.config.getoption("--long") else 10
    least = int(binom.ppf(1 / 400, crowds, 0.8))
    epsilon, users, shares = CASES[case]
    collection = asked(PEOPLE, epsilon=epsilon)
    people = members("a", users[0], shares[0]) + members("b", users[1], shares[1])
    truth = [round(n * share) / n for n, share in zip(users, shares, strict=True)]
    right = np.zeros(3, int)
    for seed in range(crowds):
        found = gaps_answer(collection, counted(collection, people, seed), ("group", "hired"), confidence=0.8)
        rows = [(row.low, row.high) for row in found.rows] + [(found.gaps[0].low, found.gaps[0].high)]
        for place, true in enumerate([*truth, truth[0] - truth[1]]):
            right[place] += rows[place][0] - 1e-9 <= true <= rows[place][1] + 1e-9
    assert (right >= least).all(), right


def test_half_of_the_error_would_be_seen():
    """The same check refuses intervals of half the width: the test above can fail."""
    collection = asked(PEOPLE)
    people = members("a", 3000, 0.3) + members("b", 2000, 0.5)
    right = 0
    for seed in range(60):
        row = gaps_answer(collection, counted(collection, people, seed), ("group", "hired"), confidence=0.6).rows[0]
        middle, half = (row.low + row.high) / 2, (row.high - row.low) / 4
        right += middle - half <= 0.3 <= middle + half
    assert right < binom.ppf(1 / 400, 60, 0.8)


def test_a_group_below_the_noise_is_not_known():
    collection = asked(PEOPLE)
    sums = CellTotals(view_of(collection, members("a", 5000, 0.5) + members("b", 3, 1.0), 1))
    small, large = sums.share({8}, {5, 8}, 0.025), sums.share({7}, {4, 7}, 0.025)
    assert (small.low, small.high, small.known) == (0.0, 1.0, False)
    assert math.isinf(small.standard_error)
    assert 0 <= small.estimate <= 1
    gap, low, high = difference(large, small, 0.0)
    assert low == large.low - 1
    assert high == large.high
    assert math.isfinite(gap)


@pytest.mark.long
def test_shares_out_of_a_drawn_table_allow_for_the_draw():
    """Two thirds of the users were asked about something else; the intervals are wider, and hold."""
    tables = parameters_of([(0b011, 1, 0, 0), (0b101, 2, 0, 0)])
    collection = asked(DRAWN, "sampled-table", "2", tables)
    people = [({**item, "age": None}, count) for item, count in members("a", 4000, 0.25) + members("b", 2000, 0.75)]
    right = 0
    for seed in range(30):
        found = gaps_answer(collection, counted(collection, people, seed), ("group", "hired"), confidence=0.8)
        right += found.gaps[0].low <= -0.5 <= found.gaps[0].high
    assert right >= binom.ppf(1 / 400, 30, 0.8)


def test_a_share_is_one_of_its_base():
    sums = CellTotals(view_of(asked(PEOPLE), members("a", 100, 0.5), 1))
    for counted_cells, base in (({1, 2}, {1}), (set(), set())):
        with pytest.raises(InvalidSpec, match="a share is one of cells among at least as many"):
            sums.share(counted_cells, base, 0.025)
