"""Trends, comparisons and changes of reports of which 18% are copies: as wide as other answers, and right."""

from dataclasses import replace

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms.hierarchy import design
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates, numbers
from ldp_server.answers.over_time.compare import compare
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.result import INDEPENDENT
from simulator.crowd import simulate

_WINDOW = {"opens": 0, "closes": 1 << 33}
DOMAIN = Integers(1, 1999)
HASH = Collection.create("Copied?", DOMAIN, "linear-hash", "2", parameters={"q": 3, "t": 7}, **_WINDOW)
SKETCH = Collection.create("Copied?", DOMAIN, "hashtogram", "2", parameters={"rows": 4, "q": 3, "t": 7}, **_WINDOW)
TREE = Collection.create("Copied?", Integers(0, 3999), "hierarchy", "2", parameters=design("2", 4000), **_WINDOW)


def counted(collection, users, seed, copies=0.18):
    """The counts of reports through real packing; this share of them are copies of the others."""
    oracle = oracle_for(collection)
    made = np.concatenate(list(simulate(collection.randomizer, np.asarray(users, np.uint64), seed=seed)))
    many = round(len(made) * copies)
    oracle.accumulate(pack(np.concatenate([made[: len(made) - many], made[:many]]), collection.randomizer.report_bytes))
    return oracle


@pytest.mark.parametrize("collection", [HASH, SKETCH, TREE], ids=["linear-hash", "hashtogram", "hierarchy"])
def test_each_point_is_the_answer_about_its_period_alone(collection):
    """Also where only one of the periods has copies; the answer says which one."""
    parts = [counted(collection, np.arange(20_000) % 4 + 1, seed, share) for seed, share in ((1, 0.0), (2, 0.18))]
    periods = [((week, week, week + 1), oracle) for week, oracle in enumerate(parts)]
    found = trend(collection, periods, TrendQuestion(items=(1, 4)), count=2)
    for week, oracle in enumerate(parts):
        alone = estimates.given_items(collection, oracle, [1, 4])
        points = [line.points[week] for line in found.lines]
        for name in ("estimate", "standard_error", "low", "high"):
            assert [getattr(point, name) for point in points] == [getattr(row, name) for row in alone.rows]
    assert found.independence == replace(
        alone.independence,
        z=max(alone.independence.z, found.independence.z),
        visible_from=found.independence.visible_from,
        warnings=tuple(f"period 1: {text}" for text in alone.independence.warnings),
    )
    assert found.independence.widened > 1.3
    if collection is TREE:
        asked = TrendQuestion(ranges=((1, 2),))
        points = trend(collection, periods, asked, count=2).lines[0].points
        ends = [numbers.ranges_answer(collection, oracle, [(1, 2)]).ranges[0] for oracle in parts]
        assert [(point.low, point.high) for point in points] == [(one.low, one.high) for one in ends]


def test_the_interval_of_a_difference_holds_with_copies(request):
    """Nobody's share differs. Without the correction, the narrower intervals miss too often."""
    asked, runs = TrendQuestion(items=tuple(range(5, 105))), 20 if request.config.getoption("--slow") else 4
    missed = narrow = 0
    for run in range(runs):
        sides = [counted(HASH, np.arange(6000) % 4 + 1, [run, side]) for side in (0, 1)]
        found = compare((HASH, sides[0]), (HASH, sides[1]), asked, confidence=0.5)
        assert found.independence.widened > 1.1
        assert {text.partition(":")[0] for text in found.independence.warnings} == {"the first side", "the second side"}
        missed += sum(not row.low <= 0 <= row.high for row in found.rows)
        for oracle in sides:
            oracle.judgement = (oracle, INDEPENDENT)
        blind = compare((HASH, sides[0]), (HASH, sides[1]), asked, confidence=0.5)
        narrow += sum(not row.low <= 0 <= row.high for row in blind.rows)
    assert missed < narrow <= 0.5 * 100 * runs
