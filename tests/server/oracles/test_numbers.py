"""Averages and quantiles from real packed reports: unbiased, covered by their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, hierarchy
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.protocol.domain import Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers import estimates, numbers
from ldp_server.oracles import as_frequency, oracle_for, restore
from ldp_server.oracles.base import Share
from ldp_server.oracles.laws.agreement import Agreement
from simulator import crowd
from tests.server.oracles.cases import filled

ALPHA = 1e-6
COUNT = 500


def ages(users, seed, absent=0.0):
    rng = np.random.default_rng(seed)
    values = np.clip(rng.gamma(4, 30, users), 0, COUNT - 1).astype(np.uint64) + np.uint64(1)
    return np.where(rng.random(users) < absent, np.uint64(0), values)


def number(epsilon, presence=0):
    return BoundedNumber(Epsilon(epsilon), COUNT + 1, **bounded_number.design(epsilon, presence=presence))


def tree(epsilon, count=COUNT):
    return Hierarchy(Epsilon(epsilon), count + 1, **hierarchy.design(epsilon, count))


CASES = [number("1"), number("3"), number("2", 64), tree("1"), tree("3"), Hierarchy(Epsilon("1"), 8, 7, 2)]


@pytest.mark.parametrize("randomizer", CASES, ids=lambda r: f"{r.name}-{r.epsilon}-{r.size}")
def test_scalar_and_vectorised_are_one(randomizer):
    users = np.minimum(ages(2000, 1, 0.1), np.uint64(randomizer.size - 1))
    words = crowd.draw_words(5, 0, 2000, randomizer.words)
    words[:4] = [[0, 0, 0], [2**64 - 1] * 3, [0, 2**64 - 1, 0], [2**63, 2**63, 2**63]]
    reports = crowd.randomize(randomizer, users, words)
    for i in range(2000):
        assert reports[i] == randomizer.randomize(int(users[i]), [int(word) for word in words[i]])


@pytest.mark.parametrize(("randomizer", "absent"), [(CASES[0], 0.0), (CASES[1], 0.0), (CASES[2], 0.3)], ids=str)
@pytest.mark.thinned(1)
def test_averages_are_unbiased_and_covered(randomizer, absent):
    users = ages(6000, 2, absent)
    held = users[users > 0].astype(float) - 1
    scores, covered, runs = [], 0, 400
    for run in range(runs):
        found = filled(randomizer, users, 100 + run).average()
        scores.append((found.estimate - held.mean()) / found.standard_error)
        covered += found.low <= held.mean() <= found.high
    scores = np.array(scores)
    assert abs(scores.mean()) * math.sqrt(runs) < stats.norm.isf(ALPHA / 2) + 0.5 * (absent > 0)
    low, high = stats.binom.ppf([ALPHA, 1 - ALPHA], runs, 0.95)
    assert low <= covered <= high
    assert not low <= covered - 0.15 * runs <= high  # the test would notice a coverage of 80%
    assert found.holders == pytest.approx(len(held), rel=0.2)


@pytest.mark.parametrize("randomizer", [tree("1"), tree("3")], ids=str)
@pytest.mark.thinned(1)
def test_quantiles_are_covered_and_close(randomizer):
    users = ages(20_000, 3, 0.2)
    held = np.sort(users[users > 0].astype(int) - 1)
    runs, errors = 60, []
    oracles = [filled(randomizer, users, 100 + run) for run in range(runs)]
    for share in (0.1, 0.5, 0.9):
        truth, covered = int(held[math.ceil(share * len(held)) - 1]), 0
        for oracle in oracles:
            found = oracle.quantile(share)
            covered += found.low <= truth <= found.high
            errors.append(abs(np.searchsorted(held, found.estimate, "right") / len(held) - share))
        # The standard errors are upper bounds: at least the stated coverage.
        assert covered >= stats.binom.ppf(ALPHA, runs, 0.95)
    assert np.mean(errors) < (0.06 if float(randomizer.epsilon) == 1 else 0.02)


def test_agreement_adds_up_and_helps():
    randomizer = tree("1")
    users = ages(20_000, 4)
    table = np.bincount(users.astype(np.intp), minlength=COUNT + 1)[1:]
    raw_error = agreed_error = 0.0
    for run in range(30):
        oracle = filled(randomizer, users, 300 + run)
        agreed = oracle.tree().leaves
        assert agreed.sum() == pytest.approx(oracle.tree().holders)
        finest = oracle._raw(len(randomizer.levels) - 1, float(oracle.level_totals()[-1]))[1:]
        for first, last in ((0, 99), (37, 188), (250, 499)):
            truth = table[first : last + 1].sum()
            raw_error += (finest[first : last + 1].sum() - truth) ** 2
            found = oracle.between(first, last)
            agreed_error += (found.count - truth) ** 2
            assert abs(found.count - truth) < 6 * found.error
    assert agreed_error < 0.15 * raw_error


@pytest.mark.long
def test_estimates_of_single_integers_are_unbiased():
    randomizer = Hierarchy(Epsilon("2"), 28, 3, 7)
    users = np.minimum(ages(4000, 5), np.uint64(27))
    table = np.bincount(users.astype(np.intp), minlength=28)
    found = np.array([filled(randomizer, users, 100 + run).estimate_all() for run in range(200)])
    scores = (found.mean(axis=0) - table) / (found.std(axis=0, ddof=1) / math.sqrt(200))
    assert np.abs(scores).max() < stats.t.isf(ALPHA / 2 / 28, 199)
    stated = filled(randomizer, users, 1).variance(table)
    assert (found.var(axis=0, ddof=1) < stated * 1.5).all()


def test_in_the_units_of_the_domain():
    users = ages(20_000, 6)
    for name, parameters in (
        ("bounded-number", bounded_number.design("2")),
        ("hierarchy", hierarchy.design("2", COUNT)),
    ):
        collection = Collection.create(
            "How old?", Integers(-100, COUNT), name, "2", opens=1, closes=2, parameters=parameters
        )
        oracle = filled(collection.randomizer, users, 7)
        if name == "hierarchy":
            middle = numbers.quantile(collection, oracle, 0.5)
            assert middle.low <= middle.estimate <= middle.high
            assert abs(middle.estimate - (np.median(users) - 101)) < 15
            some = numbers.count_between(collection, oracle, -100, -1)
            assert some.estimate == pytest.approx((users <= 100).sum(), abs=5 * some.standard_error)
            with pytest.raises(InvalidSpec):
                numbers.average(collection, oracle)
        else:
            found = numbers.average(collection, oracle)
            assert found.estimate == pytest.approx(users.mean() - 101, abs=5 * found.standard_error)
            with pytest.raises(InvalidSpec):
                numbers.quantile(collection, oracle, 0.5)
            with pytest.raises(InvalidSpec):
                numbers.count_between(collection, oracle, 0, 1)


@pytest.mark.parametrize("randomizer", CASES, ids=lambda r: f"{r.name}-{r.epsilon}-{r.size}")
def test_state(randomizer):
    users = np.minimum(ages(3000, 1), np.uint64(randomizer.size - 1))
    whole = filled(randomizer, users, 9)
    again = restore(randomizer, whole.to_bytes())
    assert again.to_bytes() == whole.to_bytes()
    whole.merge(again)
    assert whole.reports == 6000
    assert math.isfinite(whole.holders())


def test_what_cannot_be_asked():
    average = filled(CASES[0], ages(100, 1), 1)
    with pytest.raises(InvalidSpec, match="average"):
        as_frequency(average)
    for call in (
        lambda: average.average(1.0),
        lambda: oracle_for(CASES[3]).tree(),
        lambda: filled(CASES[3], ages(5000, 1), 1).quantile(1.0),
        lambda: filled(CASES[3], ages(5000, 1), 1).between(5, 4),
        lambda: filled(CASES[3], ages(5000, 1), 1).between(0, COUNT),
    ):
        with pytest.raises(InvalidSpec):
            call()


def test_too_few_reports_give_the_whole_range():
    for randomizer in (CASES[0], CASES[2]):
        found = oracle_for(randomizer).average()
        assert (found.low, found.high) == (0.0, COUNT - 1)
    nobody = filled(CASES[2], np.zeros(400, np.uint64), 1).average()
    assert (nobody.low, nobody.high) == (0.0, COUNT - 1)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 1 - 1e-16, 1 - 1e-13, math.nan, -1.0, 2.0])
def test_a_confidence_that_no_interval_has_is_refused(confidence):
    average, median = filled(number("2"), np.ones(50, np.uint64), 1), filled(tree("2"), np.ones(5000, np.uint64), 1)
    for ask in (
        lambda: average.average(confidence),
        lambda: median.quantile(0.5, confidence),
        lambda: Share((1,), 1.0, 1.0).interval(confidence),
    ):
        with pytest.raises(InvalidSpec, match="confidence lies strictly between 0 and 1"):
            ask()
    assert Share((1,), 0.0, 1.0).interval(1 - 1e-12)[1] == pytest.approx(7.13, abs=0.01)


@pytest.mark.parametrize("epsilon", ["1", "3", "5"])
@pytest.mark.thinned(1)
def test_the_error_of_an_average_is_that_of_the_noise(epsilon):
    """Half of the users at each end: how much they differ is no error. 250 runs tell 0.8 and 1.25 from 1."""
    randomizer, users = number(epsilon), np.where(np.arange(4000) % 2, np.uint64(COUNT), np.uint64(1))
    found = [filled(randomizer, users, 900 + run).average() for run in range(250)]
    errors = np.array([(one.estimate - (COUNT - 1) / 2) / one.standard_error for one in found])
    assert 0.8**2 * 250 < np.square(errors).sum() < stats.chi2.isf(1e-4, 250)


@pytest.mark.parametrize("epsilon", ["1", "3"])
@pytest.mark.thinned(1)
def test_the_error_of_a_range_is_not_the_sum_of_two(epsilon):
    collection = Collection.create(
        "?", Integers(0, COUNT), "hierarchy", epsilon, opens=0, closes=1, parameters=hierarchy.design(epsilon, COUNT)
    )
    users, scores = ages(8000, 5), []
    truth = ((users > 100) & (users <= 151)).sum()
    for run in range(100):
        found = numbers.count_between(collection, filled(collection.randomizer, users, 400 + run), 100, 150)
        scores.append((found.estimate - truth) / found.standard_error)
    assert 0.7**2 * 100 < np.square(scores).sum() < stats.chi2.isf(1e-4, 100)


def some_agreement(rng):
    """Cells of 3 levels of a tree with 4 children each, the last family not whole, and what the levels say."""
    sizes = (2, 7, 25)
    agreement = Agreement(4, [rng.uniform(1, 9, size) for size in sizes], 2.5)
    return agreement, [rng.normal(size=size) for size in sizes], float(rng.normal())


def test_coefficients_are_those_of_the_agreed_leaves():
    rng = np.random.default_rng(1)
    agreement, raw, root = some_agreement(rng)
    weights = rng.normal(size=25)
    cells, of_root = agreement.coefficients(weights)
    sums = sum(float(one @ level) for one, level in zip(cells, raw, strict=True)) + of_root * root
    assert sums == pytest.approx(float(weights @ agreement.leaves(raw, root)))


def test_coefficients_on_the_way_to_a_leaf_add_up_to_its_weight():
    rng = np.random.default_rng(2)
    agreement, _, _ = some_agreement(rng)
    weights = rng.normal(size=25)
    cells, of_root = agreement.coefficients(weights)
    leaves = np.arange(25)
    assert cells[0][leaves // 16] + cells[1][leaves // 4] + cells[2] == pytest.approx(weights - of_root)


def both_ends(users):
    """Half hold the lowest number and half the highest."""
    return np.where(np.arange(users) % 2, np.uint64(COUNT), np.uint64(1))


def nearly_nobody(users):
    """Five users hold 300, all others 0."""
    return np.where(np.arange(users) < 5, np.uint64(301), np.uint64(1))


@pytest.mark.parametrize(
    ("crowd_of", "users", "epsilon", "between", "narrow"),
    [
        (both_ends, 8000, "3", (0, 249), True),
        (both_ends, 1000, "10", (0, 249), True),
        (nearly_nobody, 1000, "10", (290, 310), False),
        (nearly_nobody, 1000, "10", (0, 250), False),
    ],
)
@pytest.mark.thinned(1)
def test_intervals_of_ranges_where_users_are_alike(crowd_of, users, epsilon, between, narrow):
    """Which users drew which level does no harm where all levels say the same; rare numbers do not look certain."""
    collection = Collection.create(
        "?", Integers(0, COUNT), "hierarchy", epsilon, opens=0, closes=1, parameters=hierarchy.design(epsilon, COUNT)
    )
    held, runs, right, scores = crowd_of(users), 80, 0, []
    truth = int(((held > between[0]) & (held <= between[1] + 1)).sum())
    for run in range(runs):
        found = numbers.count_between(collection, filled(collection.randomizer, held, 5000 + run), *between)
        right += found.low <= truth <= found.high
        scores.append((found.estimate - truth) / found.standard_error)
    assert stats.binom.cdf(right, runs, 0.95) > 1e-4
    if narrow:  # a standard error that is twice too large fails
        assert np.square(scores).sum() > 0.75**2 * runs


def test_rare_integers_do_not_look_certain():
    """Lies are rare at a large epsilon: an estimate of 0 says little where few reports of a level support anything."""
    held = np.clip(np.random.default_rng(3).normal(200, 60, 1000), 0, COUNT - 1).astype(np.uint64) + np.uint64(1)
    collection = Collection.create(
        "?", Integers(0, COUNT), "hierarchy", "10", opens=0, closes=1, parameters=hierarchy.design("10", COUNT)
    )
    asked, runs, right = list(range(0, COUNT, 10)), 20, 0
    truth = np.bincount(held.astype(np.intp) - 1, minlength=COUNT)[asked]
    for run in range(runs):
        found = estimates.given_items(collection, filled(collection.randomizer, held, 6000 + run), asked)
        low, high = (np.asarray(found.rows.columns[end], float) for end in ("low", "high"))
        right += int(((low <= truth) & (truth <= high)).sum())
    assert right >= 0.93 * runs * len(asked)
