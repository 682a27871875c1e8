"""Trends, comparisons and changes: how often intervals miss and how often a change is seen where there is none.

Reports are real ones, randomized by the crowd and packed, of skewed crowds, few users and large epsilons.
"""

import itertools
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.over_time.change import always_valid, change
from ldp_server.answers.over_time.compare import Direction, compare
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import TooFewReports, Unsupported
from simulator.crowd import simulate

_WINDOW = {"opens": 0, "closes": 1 << 33}
ITEM = TrendQuestion(items=("a",))


def question(epsilon="6", mechanism="randomized-response", **parameters):
    domain = Categories(("a", "b", "c"))
    return Collection.create("Which?", domain, mechanism, epsilon, parameters=parameters, **_WINDOW)


def counted(collection, indexes, seed):
    """The counts of the reports of users with these indexes, through real packing."""
    oracle = oracle_for(collection)
    for reports in simulate(collection.randomizer, np.asarray(indexes, np.uint64), seed=seed):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return oracle


def weeks(collection, crowds, seed):
    return [((week, week, week + 1), counted(collection, crowd, [seed, week])) for week, crowd in enumerate(crowds)]


def crowd(coins, users, share):
    """Users of whom a share holds item 1 (on average); most of the others hold nothing."""
    return np.where(coins.random(users) < share, 1, coins.choice(4, users, p=[0.97, 0, 0.02, 0.01]))


def binomial_above(hits, trials, chance):
    """P(at least so many hits) if each has this chance."""
    return sum(math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))


@pytest.mark.parametrize(("users", "share", "epsilon"), [(15, 0.03, "8"), (15, 0.5, "4"), (60, 0.01, "6")])
@pytest.mark.thinned(1)
def test_over_52_looks_nothing_is_seen_where_nothing_changes(request, users, share, epsilon):
    """At most 20% of the runs may ever say "changed". With --slow, a real rate of a third is found out with 99%."""
    collection, runs = question(epsilon), 300 if request.config.getoption("--slow") else 15
    coins, hits = np.random.default_rng(11), 0
    for run in range(runs):
        crowds = [crowd(coins, users, share) for _ in range(53)]
        (line,) = change(collection, weeks(collection, crowds, run), ITEM, confidence=0.8).lines
        assert len(line.looks) == 52
        hits += line.changed
    assert binomial_above(hits, runs, 0.2) > 1e-4


@pytest.mark.long
def test_looks_without_a_correction_see_changes_where_there_are_none():
    """The same crowds, each week compared with the one before at 80%: the test above can fail."""
    collection, coins, hits = question("8"), np.random.default_rng(11), 0
    for run in range(4):
        found = weeks(collection, [crowd(coins, 60, 0.3) for _ in range(25)], run)
        pairs = itertools.pairwise(found)
        answers = [compare((collection, a), (collection, b), ITEM, confidence=0.8).rows[0] for (_, a), (_, b) in pairs]
        hits += any(row.direction is not Direction.CANNOT_TELL for row in answers)
    assert binomial_above(hits, 4, 0.2) < 2e-3


@pytest.mark.parametrize(("reports", "chance"), [(30, 0.02), (80, 0.5), (120, 0.99)])
@pytest.mark.thinned(1)
def test_the_interval_holds_at_every_number_of_reports(reports, chance):
    """One run looks after each report. At 80% of certainty it may ever miss in 20% of the runs."""
    coins, missed, runs = np.random.default_rng(3), 0, 60
    for _ in range(runs):
        supports = np.cumsum(coins.random(reports) < chance)
        ends = [always_valid(n, int(s), 0.2) for n, s in enumerate(supports, 1)]
        missed += any(not low <= chance <= high for low, high in ends)
    assert binomial_above(missed, runs, 0.2) > 1e-4


def test_the_ends_are_where_the_likelihood_is_as_small_as_allowed():
    for n, s, alpha in ((1, 0, 0.1), (1, 1, 0.1), (50, 3, 0.01), (1000, 999, 1e-6), (10, 5, 0.9)):
        for end, edge in zip(always_valid(n, s, alpha), (0.0, 1.0), strict=True):
            if end != edge:
                chance = math.comb(n, s) * end**s * (1 - end) ** (n - s)
                assert chance == pytest.approx(alpha / (n + 1), rel=1e-6)
    assert always_valid(0, 0, 0.05) == (0.0, 1.0)
    assert always_valid(5, 0, 0.05)[0] == 0.0 and always_valid(5, 5, 0.05)[1] == 1.0


def test_a_real_change_is_seen_and_when():
    collection, coins = question("4"), np.random.default_rng(2)
    crowds = [crowd(coins, 800, 0.2 if week < 6 else 0.45) for week in range(10)]
    (line,) = change(collection, weeks(collection, crowds, 1), ITEM).lines
    assert (line.changed, line.since) == (True, 6)
    look = next(look for look in line.looks if look.period == 6)
    assert look.direction is Direction.ROSE
    assert 0 < look.low < 0.25 < look.high
    attributes = Collection.create("W?", Attributes(("x", "y")), "composed-response", "4",
                                   parameters=composed(), **_WINDOW)  # fmt: skip
    crowds = [coins.choice(4, 800, p=[0.6, 0.2, 0.1, 0.1] if week < 4 else [0.2, 0.6, 0.1, 0.1]) for week in range(6)]
    asked = TrendQuestion(attributes=("x", "y"))
    answer = change(attributes, weeks(attributes, crowds, 1), asked)
    assert [(line.label, line.since) for line in answer.lines] == [("x", 4), ("y", None)]


def composed():
    from tests.examples import EXAMPLES

    return next(one for name, one in EXAMPLES if name == "composed-response" and one.domain.size == 4).parameters


def test_what_has_no_exact_law_is_refused():
    collection = question("2", "hashtogram", rows=4, q=3, t=4)
    found = weeks(collection, [[1, 2, 3]] * 2, 1)
    with pytest.raises(Unsupported, match="no exact law"):
        change(collection, found, ITEM)
    with pytest.raises(InvalidSpec, match="items, attributes, cells and areas"):
        change(collection, found, TrendQuestion(average=True))
    with pytest.raises(TooFewReports, match="two periods"):
        change(question(), weeks(question(), [[1]], 1), ITEM)


@pytest.mark.parametrize(("users", "shares", "epsilon"), [((20, 400), (0.5, 0.5), "8"), ((12, 40), (0.0, 0.1), "3")])
@pytest.mark.thinned(1)
def test_the_interval_of_a_difference_holds(request, users, shares, epsilon):
    """Few reports beside many, and a large epsilon: where a narrower interval failed. Each alone at 90%."""
    collection, runs = question(epsilon), 400 if request.config.getoption("--slow") else 40
    missed = 0
    fixed = [np.arange(n) < round(share * n) for n, share in zip(users, shares, strict=True)]
    truth = fixed[1].mean() - fixed[0].mean()
    for run in range(runs):
        sides = [(collection, counted(collection, held, [run, side])) for side, held in enumerate(fixed)]
        (row,) = compare(*sides, ITEM, confidence=0.9).rows
        missed += not row.low - 1e-9 <= truth <= row.high + 1e-9
        assert row.difference == pytest.approx(row.second - row.first)
    assert binomial_above(missed, runs, 0.1) > 1e-4


@pytest.mark.long
def test_all_intervals_of_a_trend_hold_at_once(request):
    """Two items in eight periods of 25 users, together at 80%; picked items would be another question."""
    collection, runs = question("5"), 200 if request.config.getoption("--slow") else 15
    held = [np.arange(25) % 25 < week for week in range(8)]
    asked, missed = TrendQuestion(items=("a", "b")), 0
    for run in range(runs):
        answer = trend(
            collection, weeks(collection, held, run), asked, count=8, confidence=0.8, coverage=Coverage.TOGETHER
        )
        points = [(point, line.label) for line in answer.lines for point in line.points]
        truth = {(point.period, label): point.period if label == "a" else 0 for point, label in points}
        missed += any(not point.low <= truth[point.period, label] <= point.high for point, label in points)
    assert binomial_above(missed, runs, 0.2) > 1e-4
    alone = trend(collection, weeks(collection, held, 0), asked, count=8, confidence=0.8)
    assert alone.coverage is Coverage.EACH
    widths = [sum(p.high - p.low for line in one.lines for p in line.points) for one in (answer, alone)]
    assert widths[0] > widths[1]


def test_a_question_is_one_kind_of_value():
    for wrong in (
        {},
        {"items": ("a",), "average": True},
        {"fields": ("a",), "areas": (((0, 1), (0, 1)),)},
        {"where": (("a", (True,)),), "averages": True},
        {"cells": ({"a": True},)},
        {"where": (("a", (True,)),), "cells": ({"a": True},)},
    ):
        with pytest.raises(InvalidSpec, match="one of them"):
            TrendQuestion(**wrong)
    with pytest.raises(InvalidSpec, match="at most"):
        TrendQuestion(quantiles=(0.5,) * 101).labels(question())
    assert len(TrendQuestion(quantiles=(0.5,) * 100).labels(question())) == 100
    with pytest.raises(InvalidSpec, match="outside"):
        trend(question(), weeks(question(), [[1, 2]], 1), TrendQuestion(items=("zzz",)), count=1)
    with pytest.raises(Unsupported, match="not about attributes"):
        trend(question(), weeks(question(), [[1, 2]], 1), TrendQuestion(attributes=("a",)), count=1)
    with pytest.raises(InvalidSpec, match="quantiles are not compared"):
        compare(*[(question(), counted(question(), [1], 1))] * 2, TrendQuestion(quantiles=(0.5,)))
