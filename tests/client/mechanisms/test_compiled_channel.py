"""Compiled channels: what is refused, and that the short proof proves as much as all comparisons."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import permutations

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.compiled_channel import MAX_DISTANCE, CompiledChannel
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.protocol.epsilon import Epsilon, floor_exp

N = 1 << 64
ONE = Epsilon("1")


def tightest():
    """The largest T with T <= e_low (N - T)."""
    return N - Response(ONE, 2).lie


def test_one_part_in_2_to_64_is_seen():
    most = tightest()
    CompiledChannel(ONE, 2, (most, N - most, N - most, most))
    with pytest.raises(InvalidSpec, match=r"is not private: a report is more than e\^\(1 \* 1/1\) times as likely"):
        CompiledChannel(ONE, 2, (most + 1, N - most - 1, N - most, most))
    with pytest.raises(InvalidSpec, match="not private"):
        CompiledChannel(ONE, 2, (most, N - most, N - most - 1, most + 1))


def test_the_table_of_randomized_response_is_randomized_response():
    plain = RandomizedResponse(ONE, 5)
    table = tuple(plain.response.weight(x, y) for x in range(5) for y in range(5))
    compiled = CompiledChannel(ONE, 5, table)
    assert compiled.ratio == plain.ratio
    assert all(compiled.probability(x, y) == plain.probability(x, y) for x in range(5) for y in range(5))


FAIR = (N // 2, N // 2)
LINE = tuple(w << 58 for w in (40, 12, 6, 6, 20, 22, 11, 11, 11, 11, 22, 20, 6, 6, 12, 40))


@pytest.mark.parametrize(
    ("size", "weights", "distances", "text"),
    [
        (2, (), (), "2 to 64 weights for each of 2 elements"),
        (2, FAIR, (), "2 to 64 weights"),
        (2, (*FAIR, N // 2), (), "2 to 64 weights"),
        (2, (N // 65,) * 130, (), "2 to 64 weights"),
        (1, FAIR, (), "at most 63 items"),
        (65, FAIR * 65, (), "at most 63 items"),
        (2, (N, 0, N, 0), (), "at least 1"),
        (2, (N + 5, -5, *FAIR), (), "at least 1"),
        (2, (*FAIR, N // 2, N // 2 - 1), (), "of element 1 do not add up"),
        (2, (N // 2 + 1, N // 2, *FAIR), (), "of element 0 do not add up"),
        (4, LINE, (1, 2, 3, 1, 2), "4 elements have 6 distances"),
        (4, LINE, (1, 2, 3, 1, 2, 0), "of 1 to"),
        (4, LINE, (1, 2, 3, 1, 2, MAX_DISTANCE + 1), "of 1 to"),
        (4, LINE, (1, 2, 9, 1, 2, 1), "elements 0 and 3 are further apart than a detour"),
        (4, LINE, (1, 1, 3, 1, 2, 2), "not private"),
    ],
)
def test_what_is_refused(size, weights, distances, text):
    with pytest.raises(InvalidSpec, match=text):
        CompiledChannel(Epsilon("2.1"), size, weights, distances)


def lipschitz(rng, k, m, distances, epsilon):
    """A random table in which ln w moves at most as fast as the metric allows, up to a random factor around 1."""
    furthest = max(distances.values())
    stretch = rng.choice([0.4, 0.9, 1.8])
    anchors = [[rng.uniform(-1, 1) for _ in range(2)] for _ in range(m)]
    lines = []
    for x in range(k):
        logs = [stretch * epsilon / 2 * (a * distances[x, 0] + b * distances[x, k - 1]) / furthest for a, b in anchors]
        values = [math.exp(value) for value in logs]
        line = [int(value / sum(values) * N) for value in values]
        line[0] += N - sum(line)
        lines.append(line)
    return lines


@pytest.mark.parametrize("seed", range(40))
def test_neighbours_prove_all_pairs(seed):
    """Random metrics (shortest ways in random graphs) and tables on both sides of the limit."""
    rng = random.Random(seed)
    k, m, epsilon = rng.randint(2, 7), rng.randint(2, 6), rng.choice(["0.5", "2", "8"])
    far = [[0 if x == z else rng.randint(1, 9) for z in range(k)] for x in range(k)]
    far = [[min(far[x][z], far[z][x]) for z in range(k)] for x in range(k)]
    for y in range(k):
        far = [[min(far[x][z], far[x][y] + far[y][z]) for z in range(k)] for x in range(k)]
    distances = {(x, z): far[x][z] for x in range(k) for z in range(k)}
    lines = lipschitz(rng, k, m, distances, float(epsilon))
    flat = tuple(distances[x, z] for x in range(k) for z in range(x + 1, k))

    def private(slack):
        return all(
            Fraction(a, b) <= Fraction(floor_exp(Fraction(epsilon) * far[x][z] / max(flat), 200), 1 << 200) * slack
            for x, z in permutations(range(k), 2)
            for a, b in zip(lines[x], lines[z], strict=True)
        )

    weights = tuple(weight for line in lines for weight in line)
    try:
        channel = CompiledChannel(Epsilon(epsilon), k, weights, flat)
    except InvalidSpec:
        # The bounds of the pieces are rounded down to 2^-64 each; nothing clearly private is refused.
        assert not private(1 - Fraction(1, 1 << 50))
    else:
        assert private(Fraction(1))
        assert all(channel.distance(x, z) == far[x][z] for x in range(k) for z in range(k))


def test_the_random_tables_are_on_both_sides():
    """Otherwise the test above would say nothing."""
    verdicts = set()
    for seed in range(40):
        rng = random.Random(seed)
        line = {(x, z): abs(x - z) for x in range(4) for z in range(4)}
        weights = tuple(w for one in lipschitz(rng, 4, 3, line, 2.0) for w in one)
        try:
            CompiledChannel(Epsilon("2"), 4, weights, (1, 2, 3, 1, 2, 1))
            verdicts.add(True)
        except InvalidSpec:
            verdicts.add(False)
    assert verdicts == {True, False}
