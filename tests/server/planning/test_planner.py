"""What a plan predicts is what answers to real reports print, and what their errors are."""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import given_items
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.planning import Goal, QuestionKind, solve
from ldp_server.planning.outlook import shares_of
from simulator.crowd import simulate

K = QuestionKind
CATEGORIES = Categories(tuple(f"answer {i}" for i in range(19)))
HABITS = Attributes(("smoke", "drive", "vote", "read"))
MINUTES = Integers(0, 200)
RUNS, USERS = 80, 4000
SLOW = ("hashtogram", "sampled attribute", "subset selection")
SKEWED = tuple(float(i % 7 == 1) * (201 - i) for i in range(201))
"""A sample of numbers: every seventh one, the small ones more often."""


def spread_over(shares, users):
    """The index of each user: exactly as many of each as the shares say, but for rounding."""
    ends = np.rint(np.cumsum(shares) * users).astype(int)
    return np.repeat(np.arange(len(shares), dtype=np.uint64), np.diff(np.concatenate(([0], ends))))


def counted(plan, people, run):
    """An oracle with the packed reports of these people."""
    collection = Collection.create(
        "Planned?",
        plan.goal.domain,
        plan.mechanism,
        plan.epsilon,
        parameters=plan.parameters,
        opens=0,
        closes=1,
        nonce=run,
    )
    oracle = oracle_for(collection)
    for reports in simulate(collection.randomizer, people, seed=1000 + run):
        oracle.accumulate(pack(reports, collection.randomizer.report_bytes))
    return collection, oracle


def holders_of_one(goal, share=0.1):
    """The indexes of users of whom a tenth hold item 1, and the others hold the rest alike."""
    size = min(goal.domain.size, 500)
    shares = np.full(size, (1 - share) / (size - 2))
    shares[:2] = 0, share
    return shares


def frequency(collection, oracle):
    (row,) = given_items(collection, oracle, [collection.domain.item(1)]).rows
    return row.estimate, row.standard_error, row.low, row.high, oracle.reports


def average(collection, oracle):
    row = numbers.average_answer(collection, oracle).average
    return row.estimate, row.standard_error, row.low, row.high, 1


def lower_half(collection, oracle):
    row = numbers.count_between(collection, oracle, 0, 99)
    return row.estimate, row.standard_error, row.low, row.high, oracle.reports


def attribute(collection, oracle):
    row = attributes_answer(collection, oracle).rows[0]
    return row.estimate, row.standard_error, row.low, row.high, oracle.reports


def pair(collection, oracle):
    row = attributes_answer(collection, oracle, pairs=True).rows[0]
    return row.estimate, row.standard_error, row.low, row.high, oracle.reports


CASES = {
    "randomized response": (Goal(K.FREQUENCIES, Categories(("yes", "no")), USERS, "1"), frequency),
    "linear hash": (Goal(K.FREQUENCIES, CATEGORIES, USERS, "1"), frequency),
    "subset selection": (Goal(K.FREQUENCIES, Categories(("a", "b", "c", "d")), USERS, "1"), frequency),
    "hashtogram": (Goal(K.FREQUENCIES, Strings(4), USERS, "2"), frequency),
    "average": (Goal(K.AVERAGE, MINUTES, USERS, "1", sample=SKEWED), average),
    "average, some have none": (
        Goal(K.AVERAGE, MINUTES, USERS, "2", sample=(60.0, *SKEWED[1:]), missing=True),
        average,
    ),
    "ranges": (Goal(K.RANGES, MINUTES, USERS, "2"), lower_half),
    "sampled attribute": (Goal(K.ATTRIBUTES, HABITS, USERS, "1", share=0.3), attribute),
    "composed response": (Goal(K.ATTRIBUTES, Attributes(tuple("abcdefgh")), USERS, "5"), attribute),
    "pairs": (Goal(K.PAIRS, HABITS, USERS, "2", share=0.4), pair),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(1)
def test_the_predicted_error_is_the_printed_one_and_the_real_one(name):
    goal, answer = CASES[name]
    if answer is frequency:
        shares = holders_of_one(goal)
        sample = np.zeros(goal.domain.size) if goal.domain.size < 1 << 20 else None
        if sample is not None:
            sample[: len(shares)] = shares
            goal = replace(goal, sample=tuple(sample))
    else:
        shares = shares_of(goal)
    plan = solve(goal)
    if name == "hashtogram":
        # The planner assumes F2 = 0.05 n^2; these users have a tenth in one item.
        assert plan.mechanism == "hashtogram"
    people = spread_over(shares, USERS)
    runs = 20 if name in SLOW else RUNS
    found = [answer(*counted(plan, people, run)) for run in range(runs)]
    estimates = [estimate / unit for estimate, _, _, _, unit in found]
    printed = statistics.mean(error / unit for _, error, _, _, unit in found)
    width = statistics.mean((high - low) / unit for _, _, low, high, unit in found)
    near = 0.05 if name == "hashtogram" else 0.02
    assert plan.standard_error == pytest.approx(printed, rel=near)
    assert plan.high - plan.low == pytest.approx(width, rel=2 * near)
    least, most = bounds(runs)
    ratio = statistics.variance(estimates) / plan.standard_error**2
    upper_bound = name in ("average", "average, some have none")
    assert (0.2 if upper_bound else least) < ratio < most
    assert abs(statistics.mean(estimates) - plan.truth) < 4.5 * plan.standard_error / math.sqrt(runs) + 1e-3 * width


def bounds(runs):
    """Between these, each with probability 0.99995, lies the variance of so many estimates over the true one."""
    degrees = runs - 1  # chi-square, by the formula of Wilson and Hilferty
    return tuple((1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3 for z in (-3.9, 3.9))


@pytest.mark.long
def test_the_quantile_is_as_far_off_as_planned():
    goal = Goal(K.QUANTILES, MINUTES, USERS, "2", sample=(0.0, *([1.0] * 200)))
    plan = solve(goal)
    people = spread_over(shares_of(goal), USERS)
    found = [numbers.quantile(*counted(plan, people, run), 0.5) for run in range(RUNS)]
    ranks = [(row.estimate + 0.5) / 200 for row in found]
    ratio = statistics.mean((rank - 0.5) ** 2 for rank in ranks) / plan.standard_error**2
    assert bounds(RUNS)[0] / 1.3 < ratio < bounds(RUNS)[1] * 1.3  # the plan itself comes from 32 random trees
    width = statistics.mean((row.high - row.low) / 200 for row in found)
    assert plan.high - plan.low == pytest.approx(width, rel=0.12)


def test_a_prediction_that_is_half_off_would_be_noticed():
    least, most = bounds(RUNS)
    for wrong in (1.6, 1 / 1.6):  # measured variance over predicted, on average
        assert not least < 1 / wrong**2 < most


def test_without_a_sample_an_average_is_never_worse_than_planned():
    plan = solve(Goal(K.AVERAGE, MINUTES, USERS, "1"))
    for place in (1, 60, 101, 200):
        people = np.full(USERS, place, np.uint64)
        _, error, *_ = average(*counted(plan, people, place))
        assert error <= 1.01 * plan.standard_error
    assert solve(CASES["average"][0]).standard_error <= plan.standard_error


@pytest.mark.parametrize("name", [*CASES, "quantiles", "heavy hitters"])
@pytest.mark.thinned(5)
def test_each_of_the_three_is_found_from_the_other_two(name):
    if name == "heavy hitters":
        goal = Goal(K.HEAVY_HITTERS, Strings(8), 300_000, "2")
    elif name == "quantiles":
        goal = Goal(K.QUANTILES, MINUTES, USERS, "2")
    else:
        goal = CASES[name][0]
    plan = solve(goal)
    assert plan.solved == "error"
    wanted = plan.within * 1.0001
    users = solve(replace(goal, users=None, within=wanted))
    assert users.solved == "users"
    assert users.within <= wanted * (1 + 1e-6)
    assert users.users == pytest.approx(plan.users, rel=0.06)
    epsilon = solve(replace(goal, epsilon=None, within=wanted))
    assert epsilon.solved == "epsilon"
    assert epsilon.within <= wanted
    assert float(epsilon.epsilon) <= float(plan.epsilon) + 1e-9
    less = solve(replace(goal, epsilon=f"{float(epsilon.epsilon) - 0.01:.2f}"))
    assert less.within > wanted


def test_half_the_error_takes_four_times_the_users():
    goal = Goal(K.FREQUENCIES, CATEGORIES, 100_000, "1", per_day=500.0)
    plan = solve(goal)
    assert plan.users_for_half == pytest.approx(400_000, rel=0.02)
    assert plan.days == 200
    assert solve(replace(goal, users=plan.users_for_half)).within <= plan.within / 2 * (1 + 1e-6)


def test_a_change_has_the_error_of_two_periods():
    goal = Goal(K.FREQUENCIES, CATEGORIES, 50_000, "1")
    assert solve(replace(goal, change=True)).standard_error == pytest.approx(math.sqrt(2) * solve(goal).standard_error)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"users": 100}, "two of users, epsilon and the error"),
        ({"users": 0, "epsilon": "1"}, "from 1 to"),
        ({"users": 100, "epsilon": "zero"}, "epsilon"),
        ({"users": 100, "within": -1.0}, "above 0"),
        ({"users": 100, "within": math.nan}, "above 0"),
        ({"users": 100, "epsilon": "1", "confidence": 1.0}, "confidence"),
        ({"users": 100, "epsilon": "1", "share": 1.5}, "share"),
        ({"users": 100, "epsilon": "1", "per_day": 0.0}, "a day"),
        ({"users": 100, "epsilon": "1", "sample": (1.0,)}, "sample"),
        ({"users": 100, "epsilon": "1", "missing": True}, "average"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(fields, words):
    with pytest.raises(InvalidSpec, match=words):
        Goal(K.FREQUENCIES, CATEGORIES, **fields)


def test_a_goal_that_cannot_be_reached_says_what_it_takes():
    with pytest.raises(InvalidSpec, match=r"too few.*epsilon 1 it takes [0-9,]+ users"):
        solve(Goal(K.FREQUENCIES, CATEGORIES, 100_000, within=1e-5))
    with pytest.raises(InvalidSpec, match="more than 1,000,000,000,000 users"):
        solve(Goal(K.FREQUENCIES, CATEGORIES, epsilon="0.01", within=1e-6))
    with pytest.raises(InvalidSpec, match="too few to list any item"):
        solve(Goal(K.HEAVY_HITTERS, Integers(1, 1 << 16), 100, "0.5"))
    with pytest.raises(InvalidSpec, match="asked of integers, not of categories"):
        Goal(K.AVERAGE, CATEGORIES, 100, "1")
    with pytest.raises(InvalidSpec, match="change between two periods"):
        Goal(K.QUANTILES, MINUTES, 100, "1", change=True)
