"""The linear programme of compiled channels: the known optima, and whole numbers that prove private."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Unsupported
from ldp_server.planning.channels import ChannelGoal, compile_channel, line_distances, named_loss


def table_of(channel):
    return np.array([[weight / 2**64 for weight in line] for line in channel.lines])


@pytest.mark.parametrize(("k", "epsilon"), [(2, "1"), (5, "0.1"), (12, "3"), (30, "2"), (20, "12")])
def test_where_only_the_truth_counts_it_is_randomized_response(k, epsilon):
    found = compile_channel(ChannelGoal(Epsilon(epsilon), named_loss("truth", k)))
    response = Response(Epsilon(epsilon), k)
    known = np.array([[response.weight(x, y) / 2**64 for y in range(k)] for x in range(k)])
    assert np.abs(table_of(found.randomizer) - known).max() < 1e-12
    assert found.randomizer.ratio <= Epsilon(epsilon).e_low
    assert found.expected_loss == pytest.approx(found.least_loss, rel=1e-9)


@pytest.mark.parametrize(("k", "epsilon"), [(3, "1"), (8, "4"), (30, "4")])
def test_on_a_line_it_is_the_truncated_geometric_law(k, epsilon):
    """No item is `none` here: the elements are the points of the line alone."""
    distances = tuple(z - x for x in range(k) for z in range(x + 1, k))
    found = compile_channel(ChannelGoal(Epsilon(epsilon), named_loss("truth", k), distances))
    alpha = np.exp(-float(epsilon) / (k - 1))
    points = np.arange(k)
    known = (1 - alpha) / (1 + alpha) * alpha ** np.abs(points[:, None] - points)
    known[:, [0, -1]] /= 1 - alpha
    assert np.abs(table_of(found.randomizer) - known).max() < 1e-11
    assert found.mixed < 1e-10


@pytest.mark.parametrize("name", ["absolute", "squared"])
def test_a_loss_is_as_small_as_the_programme_allows(name):
    k = 12
    loss = named_loss(name, k)
    found = compile_channel(ChannelGoal(Epsilon("4"), loss, line_distances(k)))
    assert found.least_loss <= found.expected_loss <= found.least_loss * 1.01
    plain = compile_channel(ChannelGoal(Epsilon("4"), named_loss("truth", k), line_distances(k)))
    assert found.expected_loss <= (loss * table_of(plain.randomizer)).sum() / k * (1 + 1e-9)


def test_frequent_elements_are_answered_better():
    k, often = 4, np.array([0.1, 0.7, 0.1, 0.1])
    loss = named_loss("truth", k)
    fair, skewed = (compile_channel(ChannelGoal(Epsilon("1"), loss, (), pi)) for pi in (None, often))
    assert skewed.randomizer.ratio <= Epsilon("1").e_low
    for table in (fair, skewed):
        assert table.expected_loss == pytest.approx(table.least_loss, rel=1e-9)
    assert skewed.expected_loss <= (often[:, None] * loss * table_of(fair.randomizer)).sum() + 1e-12


def test_a_table_that_tells_nothing_apart_gives_no_frequencies():
    found = compile_channel(ChannelGoal(Epsilon("0.1"), named_loss("squared", 8), line_distances(8)))
    with pytest.raises(Unsupported, match="do not tell its elements apart"):
        oracle_for(found.randomizer)


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        (ChannelGoal(Epsilon("1"), np.zeros((1, 5))), "2 to 64 elements"),
        (ChannelGoal(Epsilon("1"), np.zeros((5, 65))), "2 to 64 elements"),
        (ChannelGoal(Epsilon("1"), np.array([[0, np.inf], [1, 0]])), "finite"),
        (ChannelGoal(Epsilon("1"), np.eye(3), (1, 1, 5)), "further apart than a detour"),
        (ChannelGoal(Epsilon("1"), np.eye(3), (), np.array([1.0, -1.0, 1.0])), "expected frequencies"),
        (ChannelGoal(Epsilon("1"), np.eye(3), (), np.ones(2)), "expected frequencies"),
    ],
)
def test_what_cannot_be_compiled(goal, text):
    with pytest.raises(InvalidSpec, match=text):
        compile_channel(goal)


def covered(channel, held, runs, seed):
    """How many of the intervals of every element, and of the sum of two, held the truth."""
    rng, k = np.random.default_rng(seed), channel.size
    truth = np.bincount(held, minlength=k)
    items, pair = np.arange(k, dtype=np.uint64), np.array([1, 2], np.uint64)
    table = table_of(channel)
    table /= table.sum(axis=1, keepdims=True)
    alone = together = 0
    for _ in range(runs):
        counts = sum(rng.multinomial(users, line) for users, line in zip(truth, table, strict=True))
        oracle = oracle_for(channel)
        oracle.accumulate(np.repeat(np.arange(channel.bound), counts).astype(np.uint8).tobytes())
        found = oracle.estimate(items)
        low, high = oracle.intervals(items, found, 0.025)
        alone += int(((low <= truth) & (truth <= high)).sum())
        low, high = oracle.sum_interval(pair, found[1:3], 0.025)
        together += low <= truth[1:3].sum() <= high
    return alone, together


CROWDS = {
    "even": lambda k, n: np.arange(n) % k,
    "one at 95%": lambda k, n: np.where(np.arange(n) < 0.95 * n, 2, 0),
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize(("epsilon", "n"), [("1", 60), ("6", 60), ("3", 2000), ("8", 10), ("8", 2000)])
@pytest.mark.thinned(2)
def test_intervals_cover(request, crowd, epsilon, n):
    """At 95%; a true rate of 93% is the least that passes with an error rate of one in a million."""
    runs = 2000 if request.config.getoption("--slow") else 40
    goal = ChannelGoal(Epsilon(epsilon), named_loss("truth", 6), line_distances(6))
    channel = compile_channel(goal).randomizer
    alone, together = covered(channel, CROWDS[crowd](6, n), runs, 5)
    assert together >= stats.binom.ppf(1e-6, runs, 0.93)
    assert alone >= 6 * runs * 0.93 - 5 * np.sqrt(6 * 6 * runs * 0.93 * 0.07)  # those of one run hang together


def test_a_proof_takes_the_same_table_twice():
    found = compile_channel(ChannelGoal(Epsilon("2"), named_loss("truth", 30), line_distances(30))).randomizer
    assert CompiledChannel(found.epsilon, 30, found.weights, found.distances) == found
