"""Expected counts against the mechanisms' exact laws, and what plans assume of their users."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from ldp_client.collection import Collection
from ldp_client.mechanisms import bounded_number, composed_response
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.domain import Attributes, Categories, Integers
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles.independence.result import INDEPENDENT
from ldp_server.planning import expected
from ldp_server.planning.expected import Expected, expected_oracle, frequency_error, widening
from ldp_server.planning.goals import Goal, QuestionKind
from ldp_server.planning.outlook import assumption, item_of, list_outlook, outlook, range_of, shares_of, smallest_share

K = QuestionKind
FEW = Categories(("a", "b", "c", "d"))
HABITS = Attributes(("smoke", "drive", "vote"))


def asked(domain, mechanism, parameters=None, epsilon="1.5"):
    return Collection.create("?", domain, mechanism, epsilon, opens=0, closes=1, parameters=parameters)


COLLECTIONS = {
    "randomized response": asked(FEW, "randomized-response"),
    "composed response": asked(HABITS, "composed-response", composed_response.design("1.5", 3)),
    "sampled attribute": asked(HABITS, "sampled-attribute"),
    "bounded number": asked(Integers(3, 6), "bounded-number", {"answers": 5, "window": 2, "presence": 0}),
    "bounded number, presence": asked(Integers(-9, 8), "bounded-number", bounded_number.design("1.5", presence=32)),
}


def shares(size, seed=3):
    drawn = np.random.default_rng(seed).random(size)
    return drawn / drawn.sum()


@pytest.mark.parametrize("name", COLLECTIONS)
def test_expected_counts_are_those_of_the_exact_law(name):
    """The sum over all users of the probabilities that the mechanism itself states, as fractions."""
    collection = COLLECTIONS[name]
    randomizer, held = collection.randomizer, shares(collection.domain.size)
    oracle = expected_oracle(collection, held, 700)
    assert oracle.counts.total == 700 and oracle.judgement == (oracle, INDEPENDENT)
    law = [
        sum(part * float(randomizer.probability(index, report)) for index, part in enumerate(held))
        for report in range(randomizer.bound)
    ]
    assert oracle.counts.values == pytest.approx([700 * chance for chance in law], rel=1e-9)


def test_a_tree_s_expected_estimates_are_the_truth():
    collection = asked(Integers(-4, 30), "hierarchy", {"branching": 3, "q": 5}, "2")
    held = shares(collection.domain.size)
    oracle = expected_oracle(collection, held, 900)
    assert isinstance(collection.randomizer, Hierarchy)
    assert float(oracle.counts.values.sum()) == pytest.approx(900)
    sums = np.cumsum(held[1:])
    assert oracle.level_totals().tolist() == [900 / len(oracle.level_totals())] * len(oracle.level_totals())
    quantile = oracle.quantile(0.5, 0.95)
    assert quantile.estimate == int(np.searchsorted(sums, 0.5 * sums[-1]))


# -- errors of frequencies


def test_the_error_of_a_frequency_is_that_of_the_law_of_supports():
    randomizer = RandomizedResponse(Epsilon("1"), 5)
    p, q = float(randomizer.response.p), float(randomizer.response.q)
    found = frequency_error(randomizer, 10_000, 0.2, 0.0, 0.95)
    assert found.truth == 2000
    wanted = math.sqrt(2000 * p * (1 - p) + 8000 * q * (1 - q)) / (p - q)
    assert found.standard_error == pytest.approx(wanted)
    assert (found.low, found.high) == pytest.approx((2000 - 1.96 * wanted, 2000 + 1.96 * wanted), abs=0.05 * wanted)
    wider = frequency_error(randomizer, 10_000, 0.2, 0.0, 0.999)
    assert wider.low < found.low and wider.high > found.high


@pytest.mark.parametrize("randomizer", [SubsetSelection(Epsilon("2"), 9, 2), LinearHash(Epsilon("2"), 9, 3, 3)])
def test_other_mechanisms_have_a_support_of_their_own(randomizer):
    p, q = (float(one) for one in randomizer.support)
    found = frequency_error(randomizer, 5000, 0.5, 0.0, 0.95)
    assert found.standard_error == pytest.approx(math.sqrt(2500 * (p * (1 - p) + q * (1 - q))) / (p - q))


def test_collisions_add_to_the_error_of_a_hashtogram():
    """R (F2/R^2 + n (1 - 1/R)/R)/(T - 1), from the formula in the module, beside the noise of both supports."""
    randomizer = Hashtogram(Epsilon("2"), 1000, bytes(32), 4, 3, 2)
    p, s = (float(one) for one in randomizer.inner.support)
    users, cells, teams = 6000, 9, 4
    for held, skew in ((0.0, 0.0), (0.1, 0.05), (0.9, 0.81), (0.9, 0.5)):
        noise = users * held * p * (1 - p) + users * (1 - held) * s * (1 - s)
        noise *= (cells / (cells - 1)) ** 2 / (p - s) ** 2
        shared = skew * users**2 / teams + users * (1 - 1 / teams) - (held * users) ** 2 / teams
        found = frequency_error(randomizer, users, held, skew, 0.9)
        error = math.sqrt(noise + max(0.0, shared) / (cells - 1))
        assert found.standard_error == pytest.approx(error)
        reach = 1.6448536269514722 * error
        assert found.low == pytest.approx(max(0.0, held * users - reach))
        assert found.high == pytest.approx(min(users, held * users + reach))


def test_a_mechanism_without_supports_is_refused():
    with pytest.raises(TypeError, match="composed-response has no law of supports"):
        frequency_error(ComposedResponse(Epsilon("1"), 4, **composed_response.design("1", 2)), 10, 0.5, 0.1, 0.95)
    with pytest.raises(TypeError, match="only a tree has quantiles"):
        widening(COLLECTIONS["randomized response"], shares(5), 100, 0.5, 0.95)


def test_an_expected_answer():
    one = Expected(5.0, 2.0, 1.0, 12.0)
    assert one.reach == 7.0 and Expected(5.0, 2.0, -4.0, 6.0).reach == 9.0
    assert one.scaled(0.5) == Expected(2.5, 1.0, 0.5, 6.0)
    changed = one.changed(0.95)
    error = 2 * math.sqrt(2)
    assert changed.truth == 0.0 and changed.standard_error == error
    assert (changed.low, changed.high) == pytest.approx((-stats.norm.isf(0.025) * error, stats.norm.isf(0.025) * error))


def test_widening_is_at_least_nothing(monkeypatch):
    monkeypatch.setattr(expected, "_TREES", 4)
    collection = asked(Integers(0, 40), "hierarchy", {"branching": 4, "q": 5}, "2")
    larger, wider = widening(collection, shares(41), 20_000, 0.5, 0.95)
    assert 1.0 <= larger < 3.0 and 1.0 <= wider < 3.0
    assert widening(collection, shares(41), 20_000, 0.5, 0.95) == (larger, wider)  # no chance is in it


# -- what is assumed


def test_users_are_spread_evenly_and_attributes_are_independent():
    even = shares_of(Goal(K.RANGES, Integers(1, 4), 10, "1"))
    assert even.tolist() == [0.0, 0.25, 0.25, 0.25, 0.25]
    sets = shares_of(Goal(K.ATTRIBUTES, HABITS, 10, "1", share=0.25))
    wanted = [0.25 ** place.bit_count() * 0.75 ** (3 - place.bit_count()) for place in range(8)]
    assert sets == pytest.approx(wanted)
    assert shares_of(Goal(K.PAIRS, HABITS, 10, "1")) == pytest.approx([1 / 8] * 8)
    sample = shares_of(Goal(K.RANGES, Integers(1, 2), 10, "1", sample=(1.0, 2.0, 5.0)))
    assert sample.tolist() == [0.125, 0.25, 0.625]


def test_the_item_that_is_planned_for():
    assert item_of(Goal(K.FREQUENCIES, FEW, 10, "1")) == (1, 0.1)
    assert item_of(Goal(K.FREQUENCIES, FEW, 10, "1", share=0.02)) == (1, 0.02)
    sample = (90.0, 1.0, 4.0, 3.0, 2.0)
    assert item_of(Goal(K.FREQUENCIES, FEW, 10, "1", sample=sample, share=0.031)) == (3, 0.03)
    assert item_of(Goal(K.FREQUENCIES, FEW, 10, "1", sample=sample)) == (2, 0.04)  # `none` is no item


@pytest.mark.parametrize(
    ("share", "wanted"), [(None, (5, 9)), (0.1, (5, 5)), (0.11, (5, 6)), (0.999, (5, 14)), (0.25, (5, 7))]
)
def test_the_range_that_is_planned_for(share, wanted):
    assert range_of(Goal(K.RANGES, Integers(5, 10), 10, "1", share=share)) == wanted


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (Goal(K.FREQUENCIES, FEW, 9, "1"), "for an item that 10% of the users hold; rarer items have smaller"),
        (Goal(K.FREQUENCIES, FEW, 9, "1", share=0.25), "for an item that 25% of the users hold"),
        (Goal(K.FREQUENCIES, FEW, 9, "1", sample=(1.0, 3.0, 4.0, 4.0, 8.0)), "for an item that 15% of the"),
        (Goal(K.HEAVY_HITTERS, Integers(0, 99), 9, "1"), "whatever else the users hold"),
        (Goal(K.AVERAGE, Integers(0, 9), 9, "1"), "for the numbers with the largest error"),
        (Goal(K.AVERAGE, Integers(0, 1), 9, "1", sample=(1.0, 1.0)), "for numbers spread as in the sample"),
        (Goal(K.QUANTILES, Integers(0, 9), 9, "1"), "for numbers spread evenly; .* below the quantile 0.5"),
        (Goal(K.RANGES, Integers(0, 9), 9, "1", share=0.2), "for numbers spread evenly, .* holds about 20% of them"),
        (Goal(K.RANGES, Integers(0, 1), 9, "1", sample=(1.0, 1.0)), "for numbers spread as in the sample, and"),
        (Goal(K.ATTRIBUTES, HABITS, 9, "1"), "for attributes that 50% of the users hold, independently of each other"),
        (
            Goal(K.PAIRS, HABITS, 9, "1", sample=(1.0,) * 8),
            "for the one with the largest error, if sets are",
        ),
    ],
)
def test_the_assumption_in_words(goal, words):
    assert re.match(words, assumption(goal))


# -- outlooks


def test_an_average_has_the_error_of_its_worst_numbers():
    goal = Goal(K.AVERAGE, Integers(0, 101), 10_000, "1")
    error = outlook(goal, 10_000, "1").error.standard_error
    assert outlook(goal, 40_000, "1").error.standard_error == pytest.approx(error / 2, rel=1e-3)
    design = bounded_number.design("1")
    worst = bounded_number.Window(Epsilon("1"), design["answers"], design["window"]).worst_variance
    assert error >= 100 * math.sqrt(worst / 10_000)
    assert error == pytest.approx(100 * math.sqrt(worst / 10_000), rel=0.05)
    sampled = Goal(K.AVERAGE, Integers(0, 101), 10_000, "1", sample=(0.0,) + (1.0,) * 101)
    assert outlook(sampled, 10_000, "1").error.standard_error <= error
    assert outlook(sampled, 10_000, "1").error.truth == pytest.approx(50.0)
    missing = Goal(K.AVERAGE, Integers(0, 101), 10_000, "1", missing=True)
    found = outlook(missing, 10_000, "1")
    assert found.choice.parameters["presence"] == 32
    assert found.error.standard_error > error


def test_a_change_and_the_confidence_are_in_the_error():
    goals = [Goal(K.FREQUENCIES, FEW, 10_000, "1", confidence=one) for one in (0.8, 0.95, 0.99)]
    found = [outlook(goal, 10_000, "1") for goal in goals]
    assert len({one.error.standard_error for one in found}) == 1
    assert all(one.within < other.within for one, other in pairwise(found))
    assert all(one.within == one.error.reach for one in found)
    changed = outlook(Goal(K.FREQUENCIES, FEW, 10_000, "1", change=True), 10_000, "1")
    assert changed.within == pytest.approx(1.959964 * math.sqrt(2) * found[0].error.standard_error, rel=1e-6)


def test_the_smallest_share_is_above_the_noise_of_the_whole_domain():
    goal = Goal(K.FREQUENCIES, FEW, 10_000, "1")
    found = outlook(goal, 10_000, "1")
    randomizer = RandomizedResponse(Epsilon("1"), 5)
    nobody = frequency_error(randomizer, 10_000, 0.0, 0.0, 0.95).standard_error / 10_000
    assert found.choice.mechanism == "randomized-response"
    z = stats.norm.isf(0.025 / 5) + stats.norm.isf(0.05)
    assert smallest_share(goal, found) == pytest.approx(z * nobody, rel=1e-6)
    few = outlook(goal, 3, "1")
    assert smallest_share(goal, few) is None


def test_a_list_s_error_is_that_of_an_item_that_nobody_holds():
    goal = Goal(K.HEAVY_HITTERS, Integers(0, 1 << 20), 200_000, "2")
    found = list_outlook(goal, 200_000, "2")
    assert found.within == found.error.truth == found.choice.reliable / 200_000
    assert found.error.high - found.error.truth == pytest.approx(1.959964 * found.error.standard_error, rel=1e-6)
    assert found.error.truth - found.error.low == pytest.approx(1.959964 * found.error.standard_error, rel=1e-6)
    assert list_outlook(goal, 20, "0.1").within == math.inf
