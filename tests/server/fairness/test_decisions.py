"""Fair decision maps and the earth mover's distance: known values, both sides of the duality, the device's proof."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from ldp_client.decisions import DecisionMap
from ldp_client.errors import InvalidSpec
from ldp_server.fairness.bias import checked_distances, earth_mover, transport_interval
from ldp_server.fairness.decisions import affirmative_map, fair_map, total_variation, whole_map
from ldp_server.fairness.programmes import ProgrammeRows, solved

RNG = np.random.default_rng(7)
POINTS = RNG.uniform(size=(12, 2))
FAR = np.minimum(1.0, np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2))
LOSS = np.stack([POINTS[:, 0], 1 - POINTS[:, 0]], axis=1)
NAMES = tuple(f"type {i}" for i in range(12)), ("yes", "no")
FIRST = np.r_[np.ones(6), np.zeros(6)]


def test_the_distance_on_a_line_is_that_of_the_sums():
    line = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) / 5
    s, t = RNG.dirichlet(np.ones(6), 2)
    known = np.abs(np.cumsum(s - t)).sum() / 5
    found = earth_mover(s, t, line)
    assert found.distance == pytest.approx(known)
    assert found.moved.sum(axis=1) == pytest.approx(s)
    assert found.moved.sum(axis=0) == pytest.approx(t)


def worst_map(s, t, d):
    """Return the chances of one decision, for each type, that are Lipschitz and differ most between the groups."""
    rows = ProgrammeRows(len(d), upper=1.0)
    for pair in permutations(range(len(d)), 2):
        if d[pair] < 1:
            rows.at_most(np.array(pair), np.array([1.0, -1.0]), float(d[pair]))
    return solved(t - s, rows)


def test_the_worst_lipschitz_map_reaches_the_distance():
    s, t = RNG.dirichlet(np.ones(12), 2)
    chances = worst_map(s, t, FAR)
    assert abs(float((s - t) @ chances)) == pytest.approx(earth_mover(s, t, FAR).distance, abs=1e-9)
    assert (np.abs(np.subtract.outer(chances, chances)) <= FAR + 1e-9).all()
    assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()


def test_groups_that_are_the_same_have_no_bias_and_groups_far_apart_have_all():
    same = RNG.dirichlet(np.ones(12))
    assert earth_mover(same, same, FAR).distance == pytest.approx(0, abs=1e-9)
    apart = np.ones((4, 4)) - np.eye(4)
    assert earth_mover([1, 1, 0, 0], [0, 0, 1, 1], apart).distance == pytest.approx(1)


def test_the_range_of_a_distance_holds_every_pair_of_groups_in_the_intervals():
    s, t = RNG.dirichlet(np.ones(12), 2)
    ends = tuple((np.maximum(group - 0.02, 0), group + 0.02) for group in (s, t))
    low, high = transport_interval(ends, earth_mover(s, t, FAR), FAR)
    found = []
    for _ in range(40):
        other = [np.clip(group + RNG.uniform(-0.01, 0.01, 12), 0, None) for group in (s, t)]
        other = [group / group.sum() for group in other]
        if all(((box[0] <= group) & (group <= box[1])).all() for group, box in zip(other, ends, strict=True)):
            found.append(earth_mover(*other, FAR).distance)
    assert len(found) > 20
    assert low <= min(found) <= max(found) <= high
    assert high - low < 1
    with pytest.raises(InvalidSpec, match="the intervals do not go together"):
        transport_interval(((s + 1, s + 2), ends[1]), earth_mover(s, t, FAR), FAR)


def test_no_distance_gives_one_map_and_large_ones_each_its_own():
    every = np.ones(12)
    alike = fair_map(every, LOSS, np.zeros((12, 12)))
    assert alike.loss == pytest.approx(alike.alike)
    assert np.ptp(alike.chances, axis=0) == pytest.approx([0, 0], abs=1e-9)
    free = fair_map(every, LOSS, 1 - np.eye(12))
    assert free.loss == pytest.approx(free.free)
    assert (free.chances.argmax(axis=1) == LOSS.argmin(axis=1)).all()


def test_a_fair_map_is_lipschitz_and_no_small_change_of_it_is_better():
    found = fair_map(np.arange(1, 13), LOSS, FAR)
    assert (total_variation(found.chances) <= FAR + 1e-9).all()
    assert found.free <= found.loss <= found.alike
    pi = np.arange(1, 13) / 78
    for _ in range(50):  # mixtures with other Lipschitz maps are Lipschitz: none may be better
        other = worst_map(*RNG.dirichlet(np.ones(12), 2), FAR)
        rival = np.stack([other, 1 - other], axis=1)
        assert float((pi[:, None] * LOSS * rival).sum()) >= found.loss - 1e-9


@pytest.mark.parametrize("parity", [0.0, 0.1])
def test_affirmative_maps_have_parity_and_are_lipschitz_inside_the_groups(parity):
    shares = RNG.dirichlet(np.ones(12))
    found = affirmative_map((shares * FIRST, shares * (1 - FIRST)), LOSS, FAR, parity)
    means = [group / group.sum() @ found.chances for group in (shares * FIRST, shares * (1 - FIRST))]
    assert np.abs(means[0] - means[1]).sum() / 2 <= parity + 1e-9
    apart = total_variation(found.chances)
    for part in (slice(0, 6), slice(6, 12)):
        assert (apart[part, part] <= FAR[part, part] + 1e-9).all()
    assert found.moved >= 0


def test_more_parity_never_costs_less():
    groups = FIRST, 1 - FIRST
    losses = [affirmative_map(groups, LOSS, FAR, parity).moved for parity in (0.0, 0.2, 0.5)]
    assert losses == sorted(losses, reverse=True)


def test_a_device_proves_the_map_and_draws_from_it():
    found = fair_map(np.ones(12), LOSS, FAR)
    made = whole_map(NAMES, found, FAR)
    assert DecisionMap.from_json(made.to_json()) == made
    chances = np.array(made.weights, dtype=object) / 2**64
    assert chances.astype(float) == pytest.approx(found.chances, abs=1e-6)
    words = RNG.integers(0, 2**64, 4000, np.uint64).tolist()
    seen = [made.decide("type 3", word) for word in words]
    told = np.array([seen.count("yes"), seen.count("no")])
    share = float(Fraction(made.weights[3][0], 2**64))
    if 0 < share < 1:
        assert chisquare(told, 4000 * np.array([share, 1 - share])).pvalue > 1e-4
    whole_map(NAMES, affirmative_map((FIRST, 1 - FIRST), LOSS, FAR))
    whole_map(NAMES, fair_map(np.ones(12), LOSS, np.zeros((12, 12))), np.zeros((12, 12)))


TWO = DecisionMap(("a", "b"), ("yes", "no"), ((1 << 63, 1 << 63), (1 << 62, 3 << 62)), ((0, 1), (1, 0)), 4)


def test_the_proof_is_exact():
    """a and b are 1/4 apart, exactly. One part in 2^64 more, and the device refuses."""
    assert TWO.decide("a", (1 << 63) - 1) == "yes"
    assert TWO.decide("a", 1 << 63) == "no"
    assert TWO.decide("b", (1 << 62) - 1) == "yes"
    assert TWO.decide("b", 2**64 - 1) == "no"
    with pytest.raises(InvalidSpec, match="does not treat two similar types alike"):
        replace(TWO, weights=((2**63 + 1, 2**63 - 1), TWO.weights[1]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"types": ("a",)}, "2 to 256 types"),
        ({"types": ("a", "a")}, "different names"),
        ({"decisions": ("yes", 3)}, "each with a name"),
        ({"weights": ((1, 2), (3, 4))}, "add up to 2"),
        ({"weights": ((2**64, 0),)}, "2 lines of 2"),
        ({"weights": ((2**64, 0), (2**64 + 1, -1))}, "whole numbers of at least 0"),
        ({"distances": ((0, 1), (2, 0))}, "the same both ways"),
        ({"distances": ((0, 1.0), (1, 0))}, "whole numbers"),
        ({"unit": 0}, "unit"),
        ({"unit": True}, "unit"),
    ],
)
def test_malformed_maps_are_refused(change, message):
    with pytest.raises(InvalidSpec, match=message):
        replace(TWO, **change)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 5000, TWO.to_json().replace('"unit"', '"units"'), TWO.to_json().replace('"9', '"-9')]
)
def test_malformed_files_are_refused(text):
    with pytest.raises(InvalidSpec):
        DecisionMap.from_json(text)


def test_bad_words_and_types_are_refused():
    with pytest.raises(InvalidSpec, match="not one of the map's"):
        TWO.decide("c", 0)
    with pytest.raises(InvalidSpec, match="below 2"):
        TWO.decide("a", 2**64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: earth_mover([1, 1], [1, 1], [[0, 1, 2]]), "a line and a column"),
        (lambda: earth_mover([1, 1], [1, 1], [[0, 1], [2, 0]]), "the same both ways"),
        (lambda: earth_mover([1] * 3, [1] * 3, [[0, 1, 9], [1, 0, 1], [9, 1, 0]]), "a detour over a third type"),
        (
            lambda: checked_distances([[0, 0.5, 0.9], [0.5, 0, 0.3], [0.9, 0.3, 0]], ("n", "m\n", "s")),
            r"n and s are 0.9 apart, and 0.8 by way of m\\n; make the direct one as short",
        ),
        (
            lambda: checked_distances([[0, 9, 1], [9, 0, 1], [1, 1, 0]]),
            "type 1 and type 2 are 9 apart, and 2 by way of",
        ),
        (lambda: checked_distances([[0, 1, 1], [1, 0, 1], [1, 2, 0]], "abc"), "look at b and c"),
        (lambda: checked_distances([[0, 1], [1, 0.5]]), "look at type 2 and type 2"),
        (lambda: checked_distances([[0, -1], [-1, 0]], "ab"), "look at a and b"),
        (lambda: checked_distances([[0, float("nan")], [1, 0]], "ab"), "look at a and b"),
        (lambda: earth_mover([1, -1], [1, 1], [[0, 1], [1, 0]]), "a group is a number"),
        (lambda: fair_map([0, 0], [[0, 1], [1, 0]], [[0, 1], [1, 0]]), "not all 0"),
        (lambda: fair_map([1, 1], [[0], [1]], [[0, 1], [1, 0]]), "losses are a line"),
        (lambda: affirmative_map(([1, 1], [1, 1]), LOSS[:2], [[0, 1], [1, 0]]), "exactly one of the groups"),
        (lambda: affirmative_map(([1, 0], [0, 1]), LOSS[:2], [[0, 1], [1, 0]], 2), "parity is a difference"),
    ],
)
def test_bad_programmes_say_what_is_wrong(call, message):
    with pytest.raises(InvalidSpec, match=message):
        call()
