"""Trends, comparisons and changes of reports of which 18% are copies: as wide as other answers, and right."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms.hierarchy import design
from ldp_client.protocol.domain import Integers
from ldp_server.answers import estimates, numbers
from ldp_server.answers.over_time.change import always_valid, change, log_ratio
from ldp_server.answers.over_time.compare import compare
from ldp_server.answers.over_time.copies import worst_of
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.result import INDEPENDENT, Independence, NotIndependent
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


def blind(oracle):
    """The same counts, as if nobody had looked for copies."""
    oracle.judgement = (oracle, INDEPENDENT)
    return oracle


def test_intervals_hold_with_copies_and_would_not_without_the_correction(request):
    """Items that nobody holds: at 90% the lower end may lie above 0 in 5% of the cases."""
    asked, runs = TrendQuestion(items=tuple(range(5, 105))), 60 if request.config.getoption("--slow") else 24
    missed = narrow = 0
    for run in range(runs):
        oracle = counted(HASH, np.arange(6000) % 4 + 1, [7, run])
        found = trend(HASH, [((0, 0, 1), oracle)], asked, count=1, confidence=0.9)
        missed += sum(line.points[0].low > 0 for line in found.lines)
        found = trend(HASH, [((0, 0, 1), blind(oracle))], asked, count=1, confidence=0.9)
        narrow += sum(line.points[0].low > 0 for line in found.lines)
    expected, spread = 5 * runs, math.sqrt(0.05 * 0.95 * 100 * runs)
    assert missed < expected + 3.7 * spread < narrow


def test_a_difference_is_as_wide_as_its_sides_are():
    """Each side's interval at half of the error is the one that other answers give."""
    sides = [counted(HASH, np.arange(9000) % 4 + 1, [3, side], share) for side, share in ((0, 0.0), (1, 0.18))]
    found = compare((HASH, sides[0]), (HASH, sides[1]), TrendQuestion(items=(2,)), confidence=0.9)
    one, two = (estimates.given_items(HASH, oracle, [2], confidence=0.95).rows[0] for oracle in sides)
    (row,) = found.rows
    assert (row.low, row.high) == pytest.approx(((two.low - one.high) / 9000, (two.high - one.low) / 9000))
    assert row.standard_error == pytest.approx(math.hypot(one.standard_error, two.standard_error) / 9000)
    (warning,) = found.independence.warnings
    assert warning.startswith("the second side: The reports are not independent")
    plain = compare((HASH, blind(sides[0])), (HASH, blind(sides[1])), TrendQuestion(items=(2,)), confidence=0.9)
    assert plain.rows[0].high - plain.rows[0].low < 0.95 * (row.high - row.low)


def expected_ratio(q, times, singles, doubles):
    """The expectation of the averaged likelihood ratio at the true q, exactly; some reports come twice."""
    once, twice = ([math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)] for n in (singles, doubles))
    reports = singles + 2 * doubles
    chances = np.zeros(reports + 1)
    for k, chance in enumerate(twice):
        chances[2 * k : 2 * k + singles + 1] += chance * np.array(once)
    return sum(
        chance * math.exp(min(600.0, log_ratio(reports / times, supports / times, q)))
        for supports, chance in enumerate(chances.tolist())
    )


@pytest.mark.parametrize("q", [0.02, 0.2, 1 / 3, 0.5, 0.9])
def test_the_error_rate_of_a_change_holds_with_copies(q):
    """By Ville's inequality the rate is at most alpha times the expectation. 18 of 100 reports are copies."""
    assert expected_ratio(q, 2.0, 64, 18) <= 1
    assert expected_ratio(q, 1.0, 64, 18) > 1000
    assert expected_ratio(q, 1.0, 100, 0) == pytest.approx(1)


def test_a_change_counts_a_copied_report_as_half_of_one():
    weeks = [
        ((week, week, week + 1), counted(HASH, np.arange(9000) % 4 + 1, [5, week], 0.18 * (week == 1)))
        for week in range(3)
    ]
    found = change(HASH, weeks, TrendQuestion(items=(2, 3)))
    assert [text[:9] for text in found.independence.warnings] == ["period 1:"]
    assert [(look.reports, look.reports_before) for look in found.lines[0].looks] == [(9000, 9000), (9000, 18_000)]
    plain = change(HASH, [(where, blind(oracle)) for where, oracle in weeks], TrendQuestion(items=(2, 3)))
    for line, narrow in zip(found.lines, plain.lines, strict=True):
        assert not line.changed
        for look, other in zip(line.looks, narrow.looks, strict=True):
            assert look.share == pytest.approx(other.share)
            assert look.low < other.low and look.high > other.high
    law = weeks[1][1].law
    supports = law.supports(weeks[1][1].estimate(np.array([2], np.uint64)))[0]
    low, _ = always_valid(9000 / 2, supports / 2, 0.05 / 2 / 2 / 2)
    _, high = always_valid(9000, law.supports(weeks[0][1].estimate(np.array([2], np.uint64)))[0], 0.05 / 2 / 2 / 2)
    assert found.lines[0].looks[0].low == pytest.approx((low - high) / (law.p - law.s))


def test_the_worst_of_several_sets_names_them():
    bad = Independence(9.0, 1.4, 1.6, 0.1, 3, ("Copies.",))
    assert worst_of([]) == INDEPENDENT
    assert worst_of([("a", bad), ("b", Independence(z=-1.0, visible_from=0.2))]) == replace(
        bad, visible_from=0.2, warnings=("a: Copies.",)
    )
    assert worst_of([("a", bad), ("b", INDEPENDENT)]).visible_from is None
    many = worst_of([(f"period {n}", bad) for n in range(9)])
    assert (many.cut, len(many.warnings), many.warnings[-1][:14]) == (27, 6, "4 more periods")


def test_too_many_copies_of_one_period_are_refused_with_its_name():
    weeks = [
        ((week, week, week + 1), counted(HASH, np.arange(9000) % 4 + 1, 1, share))
        for week, share in ((7, 0.0), (8, 0.5))
    ]
    weeks[1][1].merge(counted(HASH, np.arange(9000) % 4 + 1, 1, 0.5))
    for ask in (change, lambda *given: trend(*given, count=2)):
        with pytest.raises(NotIndependent, match="period 8: these reports are not independent"):
            ask(HASH, weeks, TrendQuestion(items=(2,)))
    with pytest.raises(NotIndependent, match="the second side: these"):
        compare((HASH, weeks[0][1]), (HASH, weeks[1][1]), TrendQuestion(items=(2,)))
