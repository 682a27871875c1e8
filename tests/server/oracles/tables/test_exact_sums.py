"""Sums over few reports of a table: the exact law, and intervals of every possible crowd of a few users."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import oracle_for
from ldp_server.oracles.laws.tables.exact_sums import ExactSums, few_events
from ldp_server.planning.channels import ChannelGoal, compile_channel, line_distances, named_loss

TABLE = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


def sums_of(values, seen, inside=(1, 0, 0), outside=(0, 0.5, 0.5)):
    return ExactSums(
        TABLE, np.array(values), np.array(seen), np.atleast_2d(inside).astype(float), np.atleast_2d(outside)
    )


def convolved(weights, users):
    """The law of a sum of weights, a user at a time."""
    law = np.ones(1)
    for x, count in enumerate(users):
        one = np.bincount(weights, TABLE[x])
        for _ in range(count):
            law = np.convolve(law, one)
    return law


@pytest.mark.parametrize("values", [(0.0, 1.0, 3.0), (2.5, -0.5, -0.5), (0.1, 0.37, -0.9), (4.0, 4.0, 4.0)])
def test_the_law_is_the_convolution(values):
    sums = sums_of(values, (2, 3, 4))
    law, first = sums.law(sums.inside[0], sums.outside[0], 3)
    known = convolved(sums.weights, (3, 3, 3))
    assert first == 0
    assert law[: len(known)] == pytest.approx(known, abs=1e-12)
    assert law[len(known) :].max(initial=0.0) < 1e-12
    above, below = sums.tails(3)
    assert sums.total == np.array([2, 3, 4]) @ sums.weights
    assert above == pytest.approx(known[sums.total :].sum(), abs=1e-12)
    assert below == pytest.approx(known[: sums.total + 1].sum(), abs=1e-12)


def test_values_on_a_lattice_are_not_rounded_and_others_hardly():
    assert sums_of((2.5, -0.5, -0.5), (1, 1, 1)).weights.tolist() == [1, 0, 0]
    assert sums_of((-1.0, 0.5, 3.5), (1, 1, 1)).weights.tolist() == [0, 1, 3]
    rounded = sums_of((0.0, 1.0, math.pi), (1, 1, 1)).weights
    assert rounded.tolist() == [0, 20, 64]
    assert sums_of((7.0, 7.0, 7.0), (1, 1, 1)).weights.tolist() == [0, 0, 0]


def test_a_window_that_does_not_begin_at_zero():
    """2,000 users: the sums that are likely lie far from the least one, and the window is shorter than all of them."""
    sums = sums_of((0.0, 1.0, 3.0), (500, 900, 600), outside=(0, 0.25, 0.75))
    law, first = sums.law(sums.inside[0], sums.outside[0], 400)
    known = convolved(sums.weights, (400, 400, 1200))
    assert first > 0
    assert len(law) < len(known)
    assert law == pytest.approx(known[first : first + len(law)], abs=1e-12)
    assert law.sum() == pytest.approx(1, abs=1e-10)


def test_the_largest_probability_of_several_crowds_counts():
    alone = [sums_of((1.0, 0.0, 0.0), (4, 3, 3), outside=one).tails(2) for one in ((0, 1, 0), (0, 0, 1))]
    both = sums_of((1.0, 0.0, 0.0), (4, 3, 3), inside=((1, 0, 0), (1, 0, 0)), outside=((0, 1, 0), (0, 0, 1)))
    assert both.tails(2) == tuple(map(max, zip(*alone, strict=True)))
    assert alone[0][0] < alone[1][0]


def test_an_end_is_where_the_tail_crosses():
    sums = sums_of((1.0, 0.0, 0.0), (9, 6, 5))
    for tail in (0.2, 0.025, 1e-6):
        low, high = sums.interval(tail)
        assert sums.tails(int(low))[0] > tail >= (sums.tails(int(low) - 1)[0] if low else 0)
        assert sums.tails(int(high))[1] > tail >= (sums.tails(int(high) + 1)[1] if high < 20 else 0)


def test_which_sums_have_noise_from_few_reports():
    values = np.array([[1.0, 0.0, 0.0]])
    most = 0.7 * 0.3  # the variance of a report of element 0
    assert few_events(TABLE, values, math.floor(4 / most)).all()
    assert not few_events(TABLE, values, math.ceil(4 / most)).any()
    assert few_events(TABLE, 10 * values, math.floor(4 / most)).all()


@lru_cache
def channel_of(loss, k, epsilon, metric):
    distances = line_distances(k) if metric == "line" else ()
    return compile_channel(ChannelGoal(Epsilon(epsilon), named_loss(loss, k), distances)).randomizer


def laws_of(table, users):
    """The law of the counts of all reports, for every crowd of so many users."""
    laws = {(0,) * len(table): {(0,) * table.shape[1]: 1.0}}
    steps = [tuple(int(y == at) for y in range(table.shape[1])) for at in range(table.shape[1])]
    for _ in range(users):
        grown = {}
        for held, law in laws.items():
            for x in range(len(table)):
                crowd = tuple(f + (x == at) for at, f in enumerate(held))
                if crowd not in grown:
                    grown[crowd] = {}
                    for counts, chance in law.items():
                        for step, own in zip(steps, table[x], strict=True):
                            after = tuple(map(int.__add__, counts, step))
                            grown[crowd][after] = grown[crowd].get(after, 0.0) + chance * own
        laws = grown
    return laws


def least_coverage(channel, users):
    """Of the interval of each element, and of elements 1 and 2 together, over all crowds of so many users."""
    table = np.array([[weight / 2**64 for weight in line] for line in channel.lines])
    k, sets = channel.size, [*([x] for x in range(channel.size)), [1, 2]]
    found = {}
    for reports in combinations_with_replacement(range(channel.bound), users):
        oracle = oracle_for(channel)
        oracle.accumulate(bytes(reports))
        raw = oracle.estimate_all()
        ends = [*zip(*oracle.intervals(np.arange(k, dtype=np.uint64), raw, 0.025), strict=True)]
        ends.append(oracle.sum_interval(np.array([1, 2], np.uint64), raw[1:3], 0.025))
        found[tuple(np.bincount(reports, minlength=channel.bound).tolist())] = ends
    return min(
        sum(chance for counts, chance in law.items() if found[counts][at][0] <= truth <= found[counts][at][1])
        for held, law in laws_of(table, users).items()
        for at, members in enumerate(sets)
        for truth in [sum(held[x] for x in members)]
    )


@pytest.mark.parametrize(
    ("loss", "k", "epsilon", "metric", "users"),
    [
        ("truth", 3, "2", "equal", 3),
        ("truth", 4, "8", "line", 1),
        ("truth", 4, "3", "line", 3),
        ("truth", 4, "8", "line", 4),
        ("absolute", 4, "8", "line", 4),
        ("truth", 4, "3", "line", 5),
        ("truth", 3, "1", "equal", 6),
    ],
)
@pytest.mark.thinned(3)
def test_every_crowd_of_a_few_users_is_covered(loss, k, epsilon, metric, users):
    """At 95%. Without the exact law, some crowds were covered with a chance of 0.0003."""
    assert least_coverage(channel_of(loss, k, epsilon, metric), users) > 0.94


@pytest.mark.parametrize("counts", [(6, 0, 0, 0, 0, 0), (0, 0, 6, 0, 0, 0), (1, 1, 1, 1, 1, 1)])
def test_the_variance_of_a_sum_is_one_that_some_crowd_can_have(counts):
    """At epsilon 8 the counts of six users often say a variance of less than nothing."""
    channel = channel_of("truth", 6, "8", "line")
    oracle = oracle_for(channel)
    oracle.accumulate(bytes(np.repeat(np.arange(6), counts).tolist()))
    table = np.array([[weight / 2**64 for weight in line] for line in channel.lines])
    inverse = np.linalg.inv(table.T)
    raw, pair = oracle.estimate_all(), np.array([1, 2], np.uint64)
    row = inverse[[1, 2]].sum(axis=0)
    noise = table @ row**2 - (table @ row) ** 2
    held = min(max(0.0, raw[1] + raw[2]), 6.0)
    others = np.delete(noise, [1, 2])
    found = oracle.sum_variance(pair, raw[1:3])
    least = held * noise[1:3].min() + (6 - held) * others.min()
    most = held * noise[1:3].max() + (6 - held) * others.max()
    assert least * (1 - 1e-9) <= found <= most * (1 + 1e-9)
    assert found > 0
    assert oracle.sum_variance(np.arange(6, dtype=np.uint64), raw) == 0
    assert oracle.sum_variance(np.zeros(0, np.uint64), np.zeros(0)) == 0
    stated = oracle.standard_errors(pair, raw[1:3]) ** 2
    assert [oracle.sum_variance(pair[i : i + 1], raw[i + 1 : i + 2]) for i in (0, 1)] == pytest.approx(stated)


def test_a_table_that_is_not_symmetric_adds_its_covariance():
    """The variance of a sum is that of the single ones and twice the covariance of the table's own law."""
    weights = tuple(w << 58 for w in (30, 20, 14, 14, 34, 16, 18, 16, 30))
    channel = CompiledChannel(Epsilon("1"), 3, weights)
    table = np.array(channel.lines) / 2**64
    counts = (table.sum(axis=0) * 3000).round().astype(int)
    oracle = oracle_for(channel)
    oracle.accumulate(bytes(np.repeat(np.arange(3), counts).tolist()))
    inverse = np.linalg.inv(table.T.astype(float))
    law = sum(3000 * (np.diag(line) - np.outer(line, line)) for line in table.astype(float))
    covariance = inverse @ law @ inverse.T
    both = np.array([0, 2], np.uint64)
    found = oracle.sum_variance(both, oracle.estimate_all()[[0, 2]])
    assert found == pytest.approx(covariance[np.ix_([0, 2], [0, 2])].sum(), rel=2e-3)
    assert abs(covariance[0, 2]) > 0.1 * covariance[0, 0]
