"""Estimates that a person can use: intervals that cover, a consistent version, verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Integers, Strings
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage, Verdict
from ldp_server.oracles import oracle_for
from tests.server.oracles.cases import filled, population

WINDOW = {"opens": 1_790_000_000, "closes": 1_800_000_000}


def linear(size=1025, epsilon="1", q=3, t=7):
    return Collection.create("?", Integers(0, size - 1), "linear-hash", epsilon, parameters={"q": q, "t": t}, **WINDOW)


def covered(found, truth):
    return np.array([e.low <= truth[0 if e.item is None else e.item + 1] <= e.high for e in found.rows])


def truth_of(users, size):
    return np.bincount(users.astype(np.intp), minlength=size)


@pytest.mark.parametrize("runs", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_cover_in_every_decile_of_frequency(runs):
    """95% intervals cover 95% of the time for rare and for frequent items alike; not only on average."""
    collection, users = linear(), population(1025, 50_000, 3, distinct=1000)
    truth = truth_of(users, 1025)
    hits = np.array(
        [
            covered(estimates.every_item(collection, filled(collection.randomizer, users, run)), truth)
            for run in range(runs)
        ]
    )
    order = np.argsort(truth[1:]) + 1
    for decile in np.array_split(order, 10):
        rate = hits[:, decile].mean()
        slack = 4.5 * math.sqrt(0.05 * 0.95 / hits[:, decile].size)
        assert 0.95 - slack < rate < 0.95 + slack
        assert slack < 0.02  # and the test would notice 93%


@pytest.mark.long
def test_intervals_cover_after_selection():
    """The top 20 are picked for having been overestimated; all their intervals together still hold."""
    collection, users = linear(), population(1025, 50_000, 3, distinct=1000)
    truth = truth_of(users, 1025)
    failures = naive = 0
    for run in range(60):
        oracle = filled(collection.randomizer, users, 100 + run)
        best = estimates.top(collection, oracle, 20)
        failures += not covered(best, truth).all()
        plain = estimates.given_items(collection, oracle, [e.item for e in best.rows])
        naive += not covered(plain, truth).all()
    assert stats.binom.sf(failures - 1, 60, 0.05) > 1e-4
    assert naive > 20  # intervals that ignore the selection would not do


@pytest.mark.long
def test_simultaneous_intervals_of_a_fixed_set():
    collection, users = linear(), population(1025, 20_000, 3)
    truth = truth_of(users, 1025)
    failures = 0
    for run in range(60):
        oracle = filled(collection.randomizer, users, 300 + run)
        found = estimates.given_items(collection, oracle, range(100), coverage=Coverage.TOGETHER)
        failures += not covered(found, truth).all()
    assert stats.binom.sf(failures - 1, 60, 0.05) > 1e-4


def rest_misses(collection, users, count, runs):
    """How often the interval of everything else, after picking, does not hold the truth; and in units of its error."""
    truth, misses, naive = truth_of(users, collection.domain.size), 0, 0
    for run in range(runs):
        best = estimates.top(collection, filled(collection.randomizer, users, run), count)
        others = best.everything_else
        held = len(users) - sum(truth[e.item + 1] for e in best.rows)
        misses += not others.low <= held <= others.high
        assert 0 <= others.low <= others.high <= len(users)
        subtracted = len(users) - sum(e.estimate for e in best.rows)
        naive += abs(subtracted - held) > 1.96 * others.standard_error
    return misses, naive


@pytest.mark.parametrize(
    ("size", "users", "epsilon", "parameters", "count"),
    [(51, 20_000, "0.3", (3, 4), 20), (1001, 20_000, "1", (3, 7), 20), (1001, 20_000, "1", (3, 7), 50)],
)
@pytest.mark.thinned(1)
def test_everything_else_after_picking_is_covered(size, users, epsilon, parameters, count):
    """The picked estimates are too large together: to subtract them misses, the interval over all choices does not."""
    collection = linear(size, epsilon, *parameters)
    misses, naive = rest_misses(collection, population(size, users, 3, distinct=size - 1), count, 40)
    assert stats.binom.sf(misses - 1, 40, 0.05) > 1e-4
    assert naive > 20  # the old interval would not do


@pytest.mark.parametrize(
    ("size", "users", "epsilon", "parameters"), [(51, 5000, "0.3", (3, 4)), (1001, 20_000, "1", (3, 7))]
)
@pytest.mark.thinned(1)
def test_everything_else_after_picking_is_not_biased_and_not_too_wide(size, users, epsilon, parameters):
    """The point value is right on average; the interval at most twice as wide as that of as many fixed items."""
    collection, held = linear(size, epsilon, *parameters), population(size, users, 3, distinct=size - 1)
    truth, errors, widths, fixed = truth_of(held, size), [], [], []
    for run in range(60):
        oracle = filled(collection.randomizer, held, 700 + run)
        best = estimates.top(collection, oracle, 20)
        picked, others = truth[[e.item + 1 for e in best.rows]], best.everything_else
        errors.append(others.estimate - (users - picked.sum()))
        widths.append(others.high - others.low)
        fixed.append(3.92 * math.sqrt(oracle.variance(picked).sum()))
    assert abs(np.mean(errors)) < (0.2 + 3.5 / math.sqrt(60)) * np.std(errors)
    assert np.mean(widths) < 2 * np.mean(fixed)


@pytest.mark.long
def test_all_of_the_top_hold_at_a_large_epsilon():
    """Counts are small there, and the law of a held item's count is skewed the other way."""
    collection = Collection.create("?", Integers(0, 50), "randomized-response", "8", **WINDOW)
    users = population(51, 5000, 3, distinct=50)
    truth = truth_of(users, 51)
    failures = sum(
        not covered(estimates.top(collection, filled(collection.randomizer, users, run), 20), truth).all()
        for run in range(100)
    )
    assert stats.binom.sf(failures - 1, 100, 0.05) > 1e-4


def test_items_categories_and_none():
    collection = Collection.create("?", Categories(("cat", "dog", "owl")), "randomized-response", "2", **WINDOW)
    users = np.array([1] * 6000 + [2] * 3000 + [0] * 1000, np.uint64)
    oracle = filled(collection.randomizer, users, 1)
    table = estimates.every_item(collection, oracle)
    assert [e.item for e in table.rows] == [None, "cat", "dog", "owl"]
    assert sum(e.consistent for e in table.rows) == pytest.approx(10_000)
    found = {e.item: e for e in estimates.given_items(collection, oracle, ["dog", None, "cat"], threshold=2000).rows}
    assert found["cat"].verdict is found["dog"].verdict is Verdict.YES
    assert found[None].verdict is Verdict.NO
    near = estimates.given_items(collection, oracle, ["dog"], threshold=found["dog"].estimate).rows[0]
    assert near.verdict is Verdict.CANNOT_TELL
    assert [e.item for e in estimates.top(collection, oracle, 99).rows] == ["cat", "dog", "owl"]  # none is not listed
    with pytest.raises(InvalidSpec):
        estimates.given_items(collection, oracle, ["horse"])
    with pytest.raises(InvalidSpec):
        estimates.top(collection, oracle, 0)
    with pytest.raises(InvalidSpec):
        estimates.every_item(collection, oracle, confidence=1.0)


def test_strings_of_any_length():
    collection = Collection.create(
        "?", Strings(100), "hashtogram", "3", parameters={"rows": 4, "q": 19, "t": 2}, **WINDOW
    )
    oracle = oracle_for(collection)
    words = np.random.default_rng(1).integers(0, 1 << 64, (4000, 3), np.uint64)
    texts = ["x" * 100, "", "ä", None]
    for i, line in enumerate(words):
        oracle.accumulate(collection.randomize(texts[i % 4], [int(w) for w in line]))
    for e in estimates.given_items(collection, oracle, texts, coverage=Coverage.SELECTED).rows:
        assert e.low < 1000 < e.high
    with pytest.raises(InvalidSpec, match="cannot be listed"):
        estimates.every_item(collection, oracle)


@pytest.mark.long
def test_the_rest_makes_the_table_add_up():
    collection, users = linear(), population(1025, 50_000, 3, distinct=1000)
    truth = truth_of(users, 1025)
    misses = 0
    for run in range(60):
        oracle = filled(collection.randomizer, users, 500 + run)
        listed = estimates.given_items(collection, oracle, range(30))
        others = listed.everything_else
        assert others.estimate + sum(e.estimate for e in listed.rows) == pytest.approx(50_000)
        misses += not others.low <= 50_000 - truth[1:31].sum() <= others.high
    assert stats.binom.cdf(misses, 60, 0.05) > 1e-4
    assert stats.binom.sf(misses - 1, 60, 0.05) > 1e-4
    assert estimates.every_item(collection, oracle).everything_else is None


@pytest.mark.long
def test_the_rest_of_answers_that_exclude_each_other():
    """For randomized response the covariances are not negligible: all answers but one are one binomial count."""
    collection = Collection.create("?", Integers(0, 5), "randomized-response", "1", **WINDOW)
    users = np.repeat(np.arange(1, 6, dtype=np.uint64), 400)
    errors, stated = [], []
    for run in range(800):
        oracle = filled(collection.randomizer, users, run)
        others = estimates.given_items(collection, oracle, range(4)).everything_else
        errors.append(others.estimate - 400)
        stated.append(others.standard_error)
    assert np.std(errors) / np.mean(stated) == pytest.approx(1, abs=0.12)
    naive = math.sqrt(sum(float(oracle.variance(400)) for _ in range(4)))
    assert abs(naive / np.std(errors) - 1) > 0.2


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)), st.floats(0, 1e6))
def test_norm_sub_is_the_projection(raw, total):
    result = estimates.norm_sub(raw, total)
    assert (result >= 0).all()
    if total > 0:
        assert result.sum() == pytest.approx(total, rel=1e-6, abs=1e-3)
    # Order is kept, and what stays positive was moved by one and the same number.
    assert (np.diff(result[np.argsort(raw, kind="stable")]) >= -1e-6).all()
    moved = (raw - result)[result > 1e-3]
    assert len(moved) == 0 or np.ptp(moved) < 1e-3


def test_norm_sub_of_nothing():
    assert estimates.norm_sub(np.zeros(0), 5).tolist() == []
    assert estimates.norm_sub(np.array([-3.0, -5.0]), 0).tolist() == [0, 0]


def test_norm_sub_has_much_less_error():
    collection, users = linear(), population(1025, 100_000, 3, distinct=1024)
    truth = truth_of(users, 1025)
    oracle = filled(collection.randomizer, users, 1)
    raw = oracle.estimate_all()
    better = estimates.norm_sub(raw, oracle.reports)
    assert ((better - truth) ** 2).mean() < 0.2 * ((raw - truth) ** 2).mean()


def test_no_limit_is_a_negative_zero():
    """A file or a page would show it as "-0"."""
    collection, users = linear(q=4, t=6), population(1025, 20_000, 3, distinct=20)
    lows = [row.low for row in estimates.every_item(collection, filled(collection.randomizer, users, 1)).rows]
    assert lows.count(0.0) > 100
    assert {math.copysign(1, low) for low in lows} == {1.0}
