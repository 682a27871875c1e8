"""Items of Hashtogram beside a popular one: intervals and verdicts survive collisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Verdict
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle
from tests.server.oracles.cases import filled

COUNT, USERS = 5000, 20_000
PARAMETERS = {"rows": 8, "q": 31, "t": 2}


def question(nonce):
    return Collection.create(
        "?", Integers(0, COUNT), "hashtogram", "4", opens=0, closes=1, parameters=PARAMETERS, nonce=nonce
    )


def crowd_with_a_popular_item():
    """Half of the users hold one item, the others one of 4,000."""
    users = np.random.default_rng(1).integers(2, 4002, USERS).astype(np.uint64)
    users[: USERS // 2] = 1
    return users


@pytest.mark.long
def test_collisions_with_a_popular_item_are_no_normal_errors(request):
    """All of the top 20 hold; so do 1,000 fixed items; nobody's items are called frequent. The old ends all miss."""
    users, runs = crowd_with_a_popular_item(), 40 if request.config.getoption("--slow") else 10
    truth = np.bincount(users.astype(np.intp), minlength=COUNT + 1)
    picked = fixed = rest = old = 0
    for run in range(runs):
        collection = question(run)
        oracle = filled(collection.randomizer, users, run)
        best = estimates.top(collection, oracle, 20, threshold=USERS / 100)
        held = truth[[e.item + 1 for e in best.rows]]
        picked += not all(e.low <= h <= e.high for e, h in zip(best.rows, held, strict=True))
        others = best.everything_else
        rest += not others.low <= USERS - held.sum() <= others.high
        assert all(h >= USERS / 100 for e, h in zip(best.rows, held, strict=True) if e.verdict is Verdict.YES)
        assert best.rows[0].item == 0
        assert best.rows[0].verdict is Verdict.YES
        old += _old_misses(oracle, truth)
        asked = estimates.given_items(collection, oracle, range(1, 1001), coverage=Coverage.TOGETHER)
        fixed += not all(e.low <= h <= e.high for e, h in zip(asked.rows, truth[2:1002], strict=True))
    assert stats.binom.sf(picked - 1, runs, 0.05) > 1e-4
    assert stats.binom.sf(fixed - 1, runs, 0.05) > 1e-4
    assert stats.binom.sf(rest - 1, runs, 0.05) > 1e-4
    assert old > runs / 2


def _old_misses(oracle, truth):
    """Whether an item with one of the 20 largest sums over all teams lies below its interval by the normal law."""
    indexes = np.arange(1, COUNT + 1, dtype=np.uint64)
    sums = TeamSketchOracle.estimate(oracle, indexes)
    top = np.argsort(-sums)[:20]
    errors = np.sqrt(TeamSketchOracle.variance(oracle, sums[top]))
    return bool((sums[top] - 4.8 * errors > truth[top + 1]).any())


@pytest.mark.long
def test_single_intervals_are_neither_too_wide_nor_too_narrow():
    users = crowd_with_a_popular_item()
    truth = np.bincount(users.astype(np.intp), minlength=COUNT + 1)[2:2002]
    rates = []
    for run in range(10):
        collection = question(100 + run)
        oracle = filled(collection.randomizer, users, run)
        rows = estimates.given_items(collection, oracle, range(1, 2001)).rows.columns
        rates.append(((rows["low"] <= truth) & (truth <= rows["high"])).mean())
    assert 0.94 < np.mean(rates) < 0.975
