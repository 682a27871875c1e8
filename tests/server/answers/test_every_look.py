"""Intervals that hold at every look: looked at after every report, from the first on, they are hardly ever wrong.

Each test simulates runs of real reports and looks at many numbers of reports, at every one while they are few. A run
fails if any of its looks fails. At most 5% of the runs may; the tests allow what chance adds with probability 1e-4.
"""

import math
from itertools import accumulate

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms import bounded_number, composed_response, hierarchy
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_server.answers import numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.estimates import Coverage, every_item, given_items, top
from ldp_server.answers.every_look import attribute_ends, average_ends, frequency_ends, range_ends
from ldp_server.answers.more import more_for_half
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.laws.every_look import support_ends
from ldp_server.oracles.laws.support import SupportLaw
from ldp_server.planning.expected import expected_oracle
from simulator.crowd import simulate

LOOKS = [*range(1, 21), *(int(20 * 1.4**k) for k in range(1, 15))]
FEW = [10, pytest.param(200, marks=pytest.mark.slow)]
"""Runs: the long form looks at 200 of each kind."""
ONE = np.array([1], np.uint64)
TAIL = 0.025
USERS = LOOKS[-1]


def collection(domain, mechanism, epsilon, nonce=0, **parameters):
    return Collection.create("Q?", domain, mechanism, epsilon, opens=0, closes=1, parameters=parameters, nonce=nonce)


def most(runs, chance=0.05):
    """So many failures or more have a probability below 1e-4 if each run fails with this chance."""
    law = [math.comb(runs, k) * chance**k * (1 - chance) ** (runs - k) for k in range(runs + 1)]
    return next(k for k, above in enumerate(accumulate(law)) if 1 - above < 1e-4)


def failing(asked, indexes, answer, truth, runs):
    """How many runs have a look at which the truth is outside the interval."""
    bad = 0
    width = asked.randomizer.report_bytes
    for run in range(runs):
        order = np.random.default_rng([7, run]).permutation(np.asarray(indexes, np.uint64))
        reports = np.concatenate(list(simulate(asked.randomizer, order, seed=100 + run)))
        oracle, seen = oracle_for(asked), 0
        for look in LOOKS:
            oracle.accumulate(pack(reports[seen:look], width))
            seen = look
            low, high = answer(oracle)
            if not low - 1e-9 <= truth(order[:look]) <= high + 1e-9:
                bad += 1
                break
    return bad


def binary(epsilon, share):
    asked = collection(Categories(("yes", "no")), "randomized-response", epsilon)
    indexes = np.where(np.arange(USERS) < share * USERS, 1, 2)

    def answer(oracle):
        low, high = frequency_ends(oracle, ONE, oracle.estimate(ONE), TAIL)
        return low[0], high[0]

    return asked, indexes, answer, lambda users: np.count_nonzero(users == 1)


@pytest.mark.parametrize("runs", FEW)
@pytest.mark.parametrize(("epsilon", "share"), [("0.1", 0.5), ("1", 0.003), ("1", 0.95), ("6", 0.003), ("6", 0.95)])
@pytest.mark.thinned(4)
def test_frequencies_hold_at_every_look(epsilon, share, runs):
    asked, indexes, answer, truth = binary(epsilon, share)
    assert failing(asked, indexes, answer, truth, runs) <= most(runs)


def test_a_fixed_interval_does_not_hold_at_every_look():
    """What the other tests guard against: they would notice."""
    asked, indexes, _, _ = binary("1", 0.5)
    law, runs, bad = oracle_for(asked).law, 100, np.zeros(100, bool)
    orders = np.stack([np.random.default_rng([7, run]).permutation(indexes) for run in range(runs)])
    reports = np.concatenate(list(simulate(asked.randomizer, orders.ravel().astype(np.uint64), seed=5)))
    supported = np.cumsum(reports.reshape(runs, -1) == 1, axis=1)
    held = np.cumsum(orders == 1, axis=1)
    for look in LOOKS:
        at = SupportLaw(look, law.p, law.s)
        low, high = at.intervals((supported[:, look - 1] - look * law.s) / (law.p - law.s), TAIL)
        bad |= (held[:, look - 1] < low) | (held[:, look - 1] > high)
    assert bad.sum() > most(runs)


@pytest.mark.parametrize("runs", [6, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", ["0.5", "5"])
def test_the_largest_items_hold_at_every_look(epsilon, runs):
    """Whichever item is picked at whichever look."""
    names = tuple("abcdefgh")
    asked = collection(Categories(names), "linear-hash", epsilon, q=3, t=2)
    indexes = np.minimum(np.random.default_rng(3).geometric(0.5, USERS), 8)

    def worst(oracle):
        found = top(asked, oracle, 2, every_look=True)
        held = np.bincount(indexes_seen[: oracle.reports].astype(int), minlength=9)
        inside = all(row.low <= held[names.index(row.item) + 1] <= row.high for row in found.rows)
        listed = sum(held[names.index(row.item) + 1] for row in found.rows)
        rest = found.everything_else
        return inside and rest.low <= oracle.reports - listed <= rest.high

    bad = 0
    for run in range(runs):
        indexes_seen = np.random.default_rng([7, run]).permutation(indexes.astype(np.uint64))
        reports = np.concatenate(list(simulate(asked.randomizer, indexes_seen, seed=run)))
        oracle, seen, fine = oracle_for(asked), 0, True
        for look in LOOKS[1::6]:
            oracle.accumulate(pack(reports[seen:look], asked.randomizer.report_bytes))
            seen, fine = look, fine and worst(oracle)
        bad += not fine
    assert bad <= most(runs)


@pytest.mark.parametrize("runs", FEW)
@pytest.mark.parametrize(
    ("epsilon", "presence", "ends"),
    [("0.5", 0, False), ("1", 0, True), ("4", 0, False), ("4", 0, True), ("2", 64, True)],
)
@pytest.mark.thinned(1)
def test_averages_hold_at_every_look(epsilon, presence, ends, runs):
    domain = Integers(10, 101)
    asked = collection(domain, "bounded-number", epsilon, **bounded_number.design(epsilon, presence=presence))
    values = np.random.default_rng(5).integers(0, 2, USERS) * 100 if ends else np.full(USERS, 31)
    indexes = values + 1
    if presence:
        indexes = np.where(np.arange(USERS) % 4 == 0, 0, indexes)

    def answer(oracle):
        low, high = average_ends(oracle, TAIL)
        return 10 + low, 10 + high

    def truth(users):
        held = users[users > 0].astype(float)
        return 9 + held.mean() if len(held) else 60.0  # nobody has a number: any average will do

    assert failing(asked, indexes, answer, truth, runs) <= most(runs)


@pytest.mark.parametrize("runs", FEW)
@pytest.mark.parametrize("epsilon", ["1", "5"])
@pytest.mark.thinned(2)
def test_ranges_hold_at_every_look(epsilon, runs):
    domain = Integers(0, 30)
    asked = collection(domain, "hierarchy", epsilon, **hierarchy.design(epsilon, 30))
    indexes = 1 + np.random.default_rng(6).integers(0, 30, USERS) ** 2 // 30

    def answer(oracle):
        return range_ends(oracle, 0, 6, TAIL)

    assert failing(asked, indexes, answer, lambda users: np.count_nonzero((users >= 1) & (users <= 7)), runs) <= most(
        runs
    )


@pytest.mark.parametrize("runs", FEW)
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "pairs"),
    [
        ("sampled-attribute", "0.5", False),
        ("sampled-attribute", "4", False),
        ("composed-response", "1", False),
        ("composed-response", "2", True),
        ("randomized-response", "3", True),
    ],
)
@pytest.mark.thinned(1)
def test_attributes_hold_at_every_look(mechanism, epsilon, pairs, runs):
    domain = Attributes(("a", "b", "c"))
    parameters = composed_response.design(epsilon, 3) if mechanism == "composed-response" else {}
    asked = collection(domain, mechanism, epsilon, **parameters)
    coins = np.random.default_rng(8).random((USERS, 3)) < (0.95, 0.7, 0.01)
    indexes = coins @ np.array([1, 2, 4])
    mask = 3 if pairs else 1

    def answer(oracle):
        return attribute_ends(oracle, [(0, 1)] if pairs else [(0,)], TAIL)[0]

    truth = lambda users: np.count_nonzero((users & np.uint64(mask)) == mask)  # noqa: E731
    assert failing(asked, indexes, answer, truth, runs) <= most(runs)


@pytest.mark.parametrize(("p", "s"), [(0.5764, 1 / 3), (0.5, 0.018), (0.73, 0.27), (0.98, 1e-4)])
def test_they_are_at_most_about_twice_as_wide(p, s):
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8):
        for share in (0.0, 0.1, 0.5):
            law = SupportLaw(n, p, s)
            supports = law.supports(np.array([share * n]))
            low, high = support_ends(supports, n, p, s, 0.025)
            fixed_low, fixed_high = law.intervals(np.array([share * n]), 0.025)
            assert low[0] <= fixed_low[0] + 1
            assert high[0] >= fixed_high[0] - 1
            assert high[0] - low[0] <= 2.1 * (fixed_high[0] - fixed_low[0]) + 3


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize("users", [3000, 10**5, 10**7])
def test_averages_ranges_and_attributes_are_at_most_a_few_times_as_wide(epsilon, users):
    domain, shares = Integers(0, 60), np.append(0, np.full(60, 1 / 60))
    asked = collection(domain, "bounded-number", epsilon, **bounded_number.design(epsilon))
    oracle = expected_oracle(asked, shares, users)
    row = numbers.average_answer(asked, oracle).average
    low, high = average_ends(oracle, TAIL)
    assert 1.4 * (row.high - row.low) < high - low < 3.2 * (row.high - row.low) or (row.low, row.high) == (0, 59)
    tree = collection(domain, "hierarchy", epsilon, **hierarchy.design(epsilon, 60))
    oracle = expected_oracle(tree, shares, users)
    row = numbers.count_between(tree, oracle, 0, 29)
    low, high = range_ends(oracle, 0, 29, TAIL)
    assert high - low < 3.8 * (row.high - row.low)
    habits = collection(Attributes(("a", "b", "c")), "sampled-attribute", epsilon)
    oracle = expected_oracle(habits, np.full(8, 1 / 8), users)
    row = attributes_answer(habits, oracle).rows[0]
    low, high = attribute_ends(oracle, [(0,)], TAIL)[0]
    assert 1.4 * (row.high - row.low) < high - low < 2.3 * (row.high - row.low)


def test_the_ends_are_the_zeros_of_the_average():
    """Against a slow search over all numbers of holders, with the factors written out."""
    from ldp_server.oracles.laws.every_look import tilts

    n, p, s, tail = 60, 0.7, 0.2, 0.01
    for supports in (0, 7, 30, 60):
        allowed = {}
        for sign in (1.0, -1.0):
            found, weights = tilts(math.sqrt(s * (1 - s)), 1.0, sign=sign)
            allowed[sign] = [
                f
                for f in range(n + 1)
                if sum(
                    math.exp(
                        w
                        + t * supports
                        - f * math.log(1 - p + p * math.exp(t))
                        - (n - f) * math.log(1 - s + s * math.exp(t))
                    )
                    for t, w in zip(found, weights, strict=True)
                )
                <= 1 / tail
            ]
        low, high = support_ends(np.array([float(supports)]), n, p, s, tail)
        assert low[0] == min(allowed[1.0], default=n)  # beyond what any number of holders explains
        assert high[0] == max(max(allowed[-1.0], default=0), low[0])


def test_one_report_says_little_and_none_says_nothing():
    asked, _, answer, _ = binary("1", 0.5)
    oracle = oracle_for(asked)
    assert answer(oracle) == (0, 0)  # of nobody, nobody
    oracle.accumulate(pack(np.array([1], np.uint64), asked.randomizer.report_bytes))
    assert answer(oracle) == (0, 1)


def test_together_is_wider_and_repeated_items_count_once():
    asked, indexes, _, _ = binary("1", 0.3)
    oracle = oracle_for(asked)
    for reports in simulate(asked.randomizer, indexes.astype(np.uint64), seed=1):
        oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    each = given_items(asked, oracle, ["yes", "no", "yes"], every_look=True)
    together = given_items(asked, oracle, ["yes", "no", "yes"], every_look=True, coverage=Coverage.TOGETHER)
    assert together.rows[0].low < each.rows[0].low
    assert each.everything_else.low == 0
    assert each.everything_else.high < USERS
    assert each.every_look
    whole = every_item(asked, oracle, every_look=True)
    assert whole.rows[1].low == each.rows[0].low


@pytest.mark.parametrize(
    ("domain", "mechanism", "parameters"),
    [(Strings(4), "hashtogram", {"rows": 4, "q": 3, "t": 5}), (Integers(0, 30), "hierarchy", {"branching": 4, "q": 3})],
)
def test_what_has_none_says_so(domain, mechanism, parameters):
    asked = collection(domain, mechanism, "1", **parameters)
    oracle = oracle_for(asked)
    for reports in simulate(asked.randomizer, np.arange(500, dtype=np.uint64) % 20, seed=1):
        oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    with pytest.raises(InvalidSpec, match="no intervals of frequencies for every look"):
        given_items(asked, oracle, [domain.item(1)], every_look=True)


def test_answers_have_these_ends():
    people = np.arange(2000, dtype=np.uint64)

    def counted(asked):
        oracle = oracle_for(asked)
        for reports in simulate(asked.randomizer, people % np.uint64(asked.domain.size), seed=1):
            oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
        return oracle

    habits = collection(Attributes(("a", "b", "c")), "sampled-attribute", "1")
    oracle = counted(habits)
    answer = attributes_answer(habits, oracle, every_look=True)
    assert [(row.low, row.high) for row in answer.rows] == attribute_ends(oracle, [(0,), (1,), (2,)], TAIL)
    together = attributes_answer(habits, oracle, every_look=True, together=True)
    assert (together.rows[0].low, together.rows[0].high) == attribute_ends(oracle, [(0,)], TAIL / 3)[0]
    minutes = collection(Integers(-5, 60), "bounded-number", "2", **bounded_number.design("2"))
    oracle = counted(minutes)
    found = numbers.average_answer(minutes, oracle, every_look=True)
    assert (found.average.low + 5, found.average.high + 5) == pytest.approx(average_ends(oracle, TAIL))
    assert found.every_look
    ages = collection(Integers(10, 60), "hierarchy", "2", **hierarchy.design("2", 60))
    oracle = counted(ages)
    found = numbers.bins_answer(ages, oracle, 4, every_look=True)
    assert [(row.low, row.high) for row in found.ranges] == [
        range_ends(oracle, row.first - 10, row.last - 10, TAIL) for row in found.ranges
    ]


def test_how_many_more_reports_half_the_error_takes():
    asked, indexes, _, _ = binary("1", 0.3)
    oracle = oracle_for(asked)
    assert more_for_half(oracle) is None
    for reports in simulate(asked.randomizer, indexes.astype(np.uint64), seed=1):
        oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    answer = given_items(asked, oracle, ["yes"])
    assert answer.more_for_half == 3 * USERS
    after = oracle_for(asked)
    for seed in range(4):
        for reports in simulate(asked.randomizer, indexes.astype(np.uint64), seed=seed):
            after.accumulate(pack(reports, asked.randomizer.report_bytes))
    half = given_items(asked, after, ["yes"]).rows[0].standard_error / after.reports
    assert half == pytest.approx(answer.rows[0].standard_error / oracle.reports / 2, rel=0.01)


def test_shared_cells_are_not_taken_away_by_reports():
    few = collection(Strings(4), "hashtogram", "4", rows=2, q=3, t=4)
    oracle = oracle_for(few)
    for reports in simulate(few.randomizer, np.arange(20_000, dtype=np.uint64) % 3, seed=1):
        oracle.accumulate(pack(reports, few.randomizer.report_bytes))
    assert more_for_half(oracle) is None
    wide = collection(Strings(4), "hashtogram", "1", rows=8, q=3, t=9)
    oracle = oracle_for(wide)
    for reports in simulate(wide.randomizer, np.arange(20_000, dtype=np.uint64), seed=1):
        oracle.accumulate(pack(reports, wide.randomizer.report_bytes))
    assert 3 * 20_000 <= more_for_half(oracle) < 4 * 20_000
