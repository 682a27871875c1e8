"""Shifted channels: what is refused, the short proof against all comparisons, the laws of lines and rings."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import product

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shared.axis import Axis, geometric
from ldp_client.mechanisms.shifted_channel import (
    MAX_PLACES,
    MAX_STEP,
    NotPrivate,
    ShiftedChannel,
    axis_counts,
    design,
    parameters_of,
)
from ldp_client.protocol.domain import Attributes, Categories, Field, Integers, Record, Strings, YesNo
from ldp_client.protocol.epsilon import Epsilon, floor_exp

N = 1 << 64
TOWN = Record((Field("x", Integers(0, 5)), Field("hour", Integers(0, 6)), Field("in", YesNo(none_is_no=True))))


def built(epsilon, domain, parameters):
    return ShiftedChannel.build(Epsilon(epsilon), domain, b"", parameters)


def rows_of(axis, total):
    """The table of an axis from its description: each move from each place, one after the other."""
    c = axis.places
    rows = [[axis.absent[0] * total, *((total - axis.absent[0]) * u for u in axis.empties)]]
    for v in range(c):
        row = [0] * c
        for at, weight in enumerate(axis.moves):
            moved = v + at if axis.ring else v + at - (c - 1)
            row[moved % c if axis.ring else min(max(moved, 0), c - 1)] += weight
        rows.append([axis.absent[1] * total, *((total - axis.absent[1]) * weight for weight in row)])
    return rows


def apart(axis, one, other):
    if one == other:
        return 0
    if 0 in (one, other):
        return axis.reach
    off = abs(one - other)
    return axis.step * (min(off, axis.places - off) if axis.ring else off)


def all_pairs_are_private(epsilon, axes, total, slack=Fraction(1)):
    """Every two elements of every axis, for everything said."""
    furthest = sum(axis.reach for axis in axes)
    for axis in axes:
        rows = rows_of(axis, total)
        for one, other in product(range(len(rows)), repeat=2):
            most = Fraction(floor_exp(Fraction(epsilon) * apart(axis, one, other) / furthest, 200), 1 << 200) * slack
            if any(Fraction(a, b) > most for a, b in zip(rows[one], rows[other], strict=True)):
                return False
    return True


@pytest.mark.parametrize("epsilon", ["0.01", "1", "8", "20"])
@pytest.mark.parametrize(
    ("domain", "rings", "steps"),
    [
        (Integers(3, 1), (), ()),
        (Integers(0, 2), (1,), ()),
        (Categories(tuple("abcdefg")), (1,), (7,)),
        (Integers(-4, 9), (), ()),
        (TOWN, (0, 1, 0), (3, 1, 2)),
    ],
)
def test_the_designed_tables_keep_every_bound(epsilon, domain, rings, steps):
    made = built(epsilon, domain, design(epsilon, domain, rings, steps))
    assert all_pairs_are_private(epsilon, made.axes, N)
    assert made.ratio <= Epsilon(epsilon).e_low
    assert math.log(made.ratio) >= float(epsilon) * (1 - 1e-6)
    rows = [rows_of(axis, N) for axis in made.axes]
    for x in range(0, made.size, 5):
        for y in range(0, made.size, 3):
            held, said, known = x, y, Fraction(1)
            for table in rows:
                known *= Fraction(table[held % len(table)][said % len(table)], N * N)
                held, said = held // len(table), said // len(table)
            assert made.probability(x, y) == known


def random_axis(rng, epsilon):
    """A random axis near the limit: moves whose logarithms wander, around the largest steps that are allowed."""
    ring, c, step = rng.random() < 0.5, rng.randint(1, 6), rng.randint(1, 3)
    count = c if ring else 2 * c - 1
    stretch = rng.choice([0.3, 0.8, 1.3]) * epsilon / max(1, c - 1)
    logs = [0.0]
    while len(logs) < count:
        logs.append(logs[-1] + rng.uniform(-stretch, stretch))
    weights = [[math.exp(one) for one in logs], [math.exp(rng.uniform(0, stretch)) for _ in range(c)]]
    lists = []
    for one in weights:
        whole = [max(1, int(weight / sum(one) * N)) for weight in one]
        whole[0] += N - sum(whole)
        lists.append(tuple(whole))
    none = rng.uniform(0.3, 0.6)
    absent = (int(none * N), int(none * math.exp(-rng.uniform(0, epsilon)) * N))
    return Axis(ring, step, absent, lists[0], lists[1])


@pytest.mark.parametrize("seed", range(60))
def test_the_short_proof_proves_all_pairs(seed):
    """Tables on both sides of the limit; a table that is clearly private is not refused."""
    rng = random.Random(seed)
    epsilon = rng.choice(["0.5", "2", "6"])
    axes = tuple(random_axis(rng, float(epsilon)) for _ in range(rng.choice([1, 1, 2])))
    try:
        ShiftedChannel(Epsilon(epsilon), tuple("ab"[: len(axes)]), axes)
    except NotPrivate:
        # On a line, a move that only ends at an end need not have a private weight of its own.
        assert not all_pairs_are_private(epsilon, axes, N, 1 - Fraction(1, 1 << 50)) or any(a.places > 2 for a in axes)
    else:
        assert all_pairs_are_private(epsilon, axes, N)


def test_the_random_tables_are_on_both_sides():
    verdicts = []
    for seed in range(60):
        rng = random.Random(seed)
        epsilon = rng.choice(["0.5", "2", "6"])
        axes = tuple(random_axis(rng, float(epsilon)) for _ in range(rng.choice([1, 1, 2])))
        try:
            ShiftedChannel(Epsilon(epsilon), tuple("ab"[: len(axes)]), axes)
            verdicts.append(True)
        except NotPrivate:
            verdicts.append(False)
    assert 5 < sum(verdicts) < 55


def tight(c, ring):
    """The largest w with w <= e(s) of its neighbour: an axis where each step is at its limit."""
    return geometric(Fraction(1), [(c, ring, 1)])[0]


@pytest.mark.parametrize("ring", [False, True])
def test_one_part_in_2_to_64_is_seen(ring):
    """Two places: who stays is N - s of the words, and s is as small as the bound lets it be, or one less."""
    near, half = floor_exp(Fraction(1), 64), N // 2
    least = -(-N * N // (near + N))
    for s in (least, least - 1):
        axis = Axis(ring, 1, (half, half), (N - s, s) if ring else (s, N - 2 * s, s), (half, half))
        if s == least:
            made = ShiftedChannel(Epsilon("1"), ("",), (axis,))
            assert made.ratio == Fraction(N - s, s) <= Epsilon("1").e_low
        else:
            with pytest.raises(NotPrivate, match="as likely for a value as for the one beside it"):
                ShiftedChannel(Epsilon("1"), ("",), (axis,))


@pytest.mark.parametrize("which", ["none more", "none less", "empty more", "empty less"])
def test_none_is_proved_too(which):
    """One part in 2^64 beyond the bound, in what is said by who has none; just inside it, the table is taken."""
    e = floor_exp(Fraction(1), 64)
    half = N // 2
    moves = (half, half)  # a ring of two places: everything is as likely
    for beyond in (0, 1):
        absent, empties = (half, half), (half, half)
        if which == "none more":
            absent = ((e * 1000) // N + beyond, 1000)
        elif which == "none less":
            absent = (1000, (e * 1000) // N + beyond)
        elif which == "empty more":
            absent = (half, 3 * N // 4)
            most = e * half // (2 * N) + beyond
            empties = (most, N - most)
        else:
            least = -(-half * N // e) - beyond
            empties = (least, N - least)
        axis = Axis(True, 1, absent, moves, empties)
        if beyond:
            with pytest.raises(NotPrivate, match="for one element as for another"):
                ShiftedChannel(Epsilon("1"), ("",), (axis,))
        else:
            ShiftedChannel(Epsilon("1"), ("",), (axis,))


LINE = parameters_of([tight(3, 0)])


@pytest.mark.parametrize(
    ("domain", "change", "text"),
    [
        (Strings(4), {}, "takes integers, categories, or a record"),
        (Attributes(("a", "b")), {}, "takes integers, categories, or a record"),
        (Integers(0, 4), {}, "7 weights of moves and 4 of who has none for these axes, not 5 and 3"),
        (Integers(0, 3), {"rings": (1,)}, "3 weights of moves and 3"),
        (Integers(0, 3), {"rings": (2,)}, "has for each of 1 axes"),
        (Integers(0, 3), {"rings": (0, 0)}, "has for each of 1 axes"),
        (Integers(0, 3), {"absent": (5,)}, "two weights of saying none"),
        (Integers(0, 3), {"steps": ()}, "has for each of 1 axes"),
        (Integers(0, 3), {"steps": (0,)}, f"a step is a whole number of 1 to {MAX_STEP}"),
        (Integers(0, 3), {"steps": (MAX_STEP + 1,)}, "a step is a whole number"),
        (Integers(0, 3), {"absent": (N - 1, 0)}, "at least 1"),
        (Integers(0, 3), {"absent": (N, 5)}, "at least 1"),
        (Integers(0, 3), {"moves": (0, *LINE["moves"][1:])}, "at least 1"),
        (Integers(0, 3), {"moves": (*LINE["moves"][:-1], LINE["moves"][-1] + 1)}, "add up to"),
        (Integers(0, 3), {"empties": (*LINE["empties"][:-1], LINE["empties"][-1] - 1)}, "add up to"),
        (Integers(0, 3), {"empties": (1, N // 2, N - N // 2 - 1)}, "is not private: a report"),
        (Integers(0, 3), {"moves": (1, 1, N - 4, 1, 1)}, r"e\^\(1 \* 1/2\) times as likely for a value"),
        (TOWN, {}, "has for each of 3 axes"),
    ],
)
def test_what_is_refused(domain, change, text):
    with pytest.raises(InvalidSpec, match=text):
        built("1", domain, {**LINE, **change})


def test_a_refusal_names_the_field():
    good = design("2", TOWN)
    at = 2 * 5 - 1  # the first weight of the second field's moves
    moves = list(good["moves"])
    moves[at + 5], moves[at + 4] = moves[at + 5] + moves[at + 4] - 1, 1
    with pytest.raises(NotPrivate, match="field 'hour'"):
        built("2", TOWN, {**good, "moves": tuple(moves)})


def test_sizes():
    assert axis_counts(TOWN) == (5, 6, 1)
    with pytest.raises(InvalidSpec, match=f"at most {MAX_PLACES} items in a field"):
        design("1", Integers(0, MAX_PLACES + 1))
    large = Record(tuple(Field(name, Integers(0, 1100)) for name in "ab"))
    with pytest.raises(InvalidSpec, match="1048576 elements in all"):
        design("1", large)


@pytest.mark.parametrize("ring", [0, 1])
@pytest.mark.thinned(1)
def test_4096_places_are_proved_within_a_bounded_number_of_steps(ring):
    """The cost is that of the places, not of their pairs: 16 times as many places take about 16 times as long."""
    spent = []
    for places in (256, 4096):
        parameters = design("4", Integers(0, places), (ring,))
        began = time.process_time()
        made = built("4", Integers(0, places), parameters)
        spent.append(time.process_time() - began)
        assert 1 - 1e-8 < math.log(made.ratio) / 4 <= 1
    assert spent[1] < 150 * max(spent[0], 1e-3)  # pairs would take 256 times as long


def test_bisection_takes_as_many_steps_for_every_word():
    """The limits are filled up to 2^j - 1 entries, which no word reaches, all with as many digits."""
    made = built("4", TOWN, design("4", TOWN, (0, 1, 0)))
    for axis, (moves, empties) in zip(made.axes, made.limits, strict=True):
        for limits, weights in ((moves, axis.moves), (empties, axis.empties)):
            assert (len(limits) + 1) & len(limits) == 0
            assert len(limits) >= len(weights) - 1
            assert {limit.bit_length() for limit in limits} <= {65, 66}
            assert all(limit > 2 * N - 1 for limit in limits[len(weights) - 1 :])


def test_as_many_words_as_it_says():
    made = built("4", TOWN, design("4", TOWN))
    assert made.words == 6
    for count in (5, 7):
        with pytest.raises(IndexError, match="as many words"):
            made.randomize(0, [0] * count)
