"""Everything else after `top`, with few reports of linear hash."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates
from tests.server.oracles.cases import filled


def held(users, share, runs):
    """How often the interval has the truth, if this share of the users holds item 1. Epsilon 4, q = 53."""
    collection = Collection.create(
        "?", Integers(1, 1000), "linear-hash", "4", parameters={"q": 53, "t": 2}, opens=0, closes=1
    )
    items = np.random.default_rng(users).integers(1, 1001, users).astype(np.uint64)
    items[: int(share * users)] = 1
    counts, found = np.bincount(items.astype(int), minlength=1001), 0
    for run in range(runs):
        best = estimates.top(collection, filled(collection.randomizer, items, 1000 * users + run), 20)
        rest, truth = best.everything_else, users - counts[[row.item for row in best.rows]].sum()
        found += rest.low <= truth <= rest.high
    return found


@pytest.mark.long
def test_everything_else_holds_after_picking_from_few_reports():
    """300 users, one item at 95%. With the variance of a set fixed beforehand, 88% of the runs held."""
    assert stats.binom.sf(60 - held(300, 0.95, 60) - 1, 60, 0.05) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("users", [50, 300, 1000, 3000])
def test_everything_else_holds_after_picking(users, share):
    assert stats.binom.sf(300 - held(users, share, 300) - 1, 300, 0.06) > 1e-3
