"""Intervals of sums over a table of two answers, one of which tells nearly everything and the other nearly nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.laws.tables.intervals import TableIntervals
from ldp_server.oracles.laws.tables.table_sums import TableSums

HELD = np.array([2, 0, 2, 4, 0, 0, 2, 4, 286])
"""Of 300 users, by (first field) + 3 (second field): nearly all have the last value of both."""
TAIL = 0.025


def product_of(first, second):
    """The table of the probabilities of two answers of three elements, and its inverse."""
    tables = [
        np.array([[float(one.probability(x, y)) for y in range(3)] for x in range(3)])
        for one in (Response(Epsilon(text), 3) for text in (second, first))
    ]
    table = np.kron(*tables)
    return table, np.linalg.inv(table).T


def crowds(table, runs, seed):
    """The counts of the reports of so many crowds."""
    rng = np.random.default_rng(seed)
    return sum(
        rng.multinomial(count, line / line.sum(), runs) for count, line in zip(HELD, table, strict=True) if count
    )


@pytest.mark.parametrize("epsilons", [("10", "0.01"), ("3", "0.1"), ("8", "0.1"), ("0.01", "0.01")])
@pytest.mark.parametrize("coarse", [False, True])
def test_intervals_hold_where_fields_have_very_different_epsilons(epsilons, coarse):
    """Cells of the value that nearly all have: their noise is that of 290 users. With the estimates above 0 for the
    users, 22% of the lower ends of an empty cell were above 0. 1,500 crowds: beyond 4.9 standard errors, 1e-6 an end.
    """
    table, inverse = product_of(*epsilons)
    runs = 1500
    came = crowds(table, runs, 5)
    for cell in (2, 5, 8):
        sets = np.zeros((runs, 9))
        sets[:, cell] = 1
        sums = came @ inverse[cell]
        low, high = TableIntervals(table, inverse, coarse=coarse).intervals(sets, came, sums, TAIL)
        most = runs * TAIL + 4.9 * (runs * TAIL * (1 - TAIL)) ** 0.5
        assert (low > HELD[cell]).sum() <= most
        assert (high < HELD[cell]).sum() <= most


@pytest.mark.parametrize("epsilons", [("10", "0.01"), ("0.01", "0.01"), ("3", "0.1"), ("1", "1")])
def test_an_estimate_that_is_possible_lies_in_its_interval(epsilons):
    """The noise may be hundreds of times as large as the crowd: all numbers of users are near the middle of the law,
    where rounding errors made the end of an interval out of nothing: [5, 300] for an estimate of 4.
    """
    table, inverse = product_of(*epsilons)
    seen = 0
    for came in crowds(table, 150, 6):
        sets = np.array([[1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1]], float)
        sums = sets @ inverse @ came
        low, high = TableIntervals(table, inverse).intervals(sets, came, sums, TAIL)
        possible = (sums >= 0) & (sums <= 300)
        assert (low[possible] <= np.ceil(sums[possible])).all()
        assert (high[possible] >= np.floor(sums[possible])).all()
        seen += possible.sum()
    assert seen > 0


def test_the_score_falls_with_the_users():
    """Where all numbers of users are nearly alike, the score of each is near those of its neighbours all the same."""
    table, inverse = product_of("10", "0.01")
    values = inverse[[0, 1]].sum(axis=0)[None, :]
    inside, outside = np.zeros((1, 9)), np.zeros((1, 9))
    inside[0, :2], outside[0, 2:] = 1 / 2, 1 / 7
    law = TableSums(table, values, inside, outside, 300)
    scores = [float(law.score(np.array([one]), np.array([4.1]))[0]) for one in np.linspace(0, 300, 1201)]
    assert (np.diff(scores) < 1e-3).all()
    assert max(scores) < 0.2 and min(scores) > -0.9
