"""The unique-list-recoverable code against Definition 3.5, with an adversary filling the lists."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape
from ldp_server.heavy_hitters.paper.expansion import second_eigenvalue
from ldp_server.heavy_hitters.paper.list_code import MAX_LIST, UniqueListRecoverableCode
from ldp_server.heavy_hitters.paper.spectral_clusters import best_cut, components

SEED = bytes(range(32))


def make(bits, chunk, teams, y, d):
    for attempt in range(4000):
        try:
            return ExpanderCode(SEED, bits, ExpanderShape(teams, chunk, y, d, attempt))
        except InvalidSpec:
            continue
    raise AssertionError("no graph")


@cache
def expanding(bits, chunk, teams, y, d):
    """The code of 20 attempts whose graph expands best."""
    found = []
    for attempt in range(4000):
        with suppress(InvalidSpec):
            found.append(ExpanderCode(SEED, bits, ExpanderShape(teams, chunk, y, d, attempt)))
        if len(found) == 20:
            break
    return min(found, key=lambda code: second_eigenvalue(code.expander))


SHAPES = {  # code, and the alpha that test_recall_within_alpha holds it to (docs/heavy-hitters.md has the curve)
    "M=12 k=8 d=3": (make(64, 8, 12, 4, 3), 2 / 12),
    "M=16 k=8 d=4": (make(64, 8, 16, 6, 4), 4 / 16),
    "M=24 k=8 d=5": (make(64, 8, 24, 8, 5), 8 / 24),
    "M=14 k=8 d=4": (make(32, 4, 14, 6, 4), 3 / 14),
}


def adversarial(code, recover, items, bad, junk, mode, rng):
    """Lists in which each item misses `bad` coordinates: dropped, overwritten at random, or by another item's parts."""
    lists = [{} for _ in range(code.teams)]
    other = rng.getrandbits(code.bits)
    for x in items:
        dead = set(rng.sample(range(code.teams), bad))
        for m, (y, z) in enumerate(recover.encode(x)):
            if m not in dead:
                lists[m].setdefault(y, z)
            elif mode == "poisoned":
                lists[m].setdefault(y, rng.getrandbits(code.chunk_bits + code.degree * code.hash_bits))
            elif mode == "lookalike":  # right pointers, wrong symbol: the edges stay, the word is corrupted
                lists[m].setdefault(y, z ^ rng.randrange(1, 1 << code.chunk_bits))
            elif mode == "chimera":
                lists[m].setdefault(y, recover.encode(other)[m][1])
    for held in lists:
        for _ in range(junk):
            held.setdefault(
                rng.randrange(1 << code.hash_bits), rng.getrandbits(code.chunk_bits + code.degree * code.hash_bits)
            )
    shuffled = [list(held.items()) for held in lists]
    for pairs in shuffled:
        rng.shuffle(pairs)
    return shuffled


def agreeing(recover, lists, x):
    return sum((y, z) in pairs for (y, z), pairs in zip(recover.encode(x), lists, strict=True))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("mode", ["missing", "poisoned", "lookalike", "chimera"])
@pytest.mark.thinned(1)
def test_recall_within_alpha(name, mode):
    """Definition 3.5: whatever agrees with (1 - alpha) M lists comes out, and the output stays O(list size)."""
    code, alpha = SHAPES[name]
    recover = UniqueListRecoverableCode(code, alpha)
    bad = round(alpha * code.teams)
    if mode == "lookalike":
        bad = (code.teams - code.data) // 2  # errors cost a Reed-Solomon code twice
    rng = random.Random(name + mode)
    wanted = found = 0
    for _ in range(25):
        items = [rng.getrandbits(code.bits) for _ in range(rng.randint(1, 4))]
        lists = adversarial(code, recover, items, bad, rng.choice([0, 2, 4]), mode, rng)
        out = recover.decode(lists)
        assert len(out) <= 2 * max(map(len, lists))
        assert len(out) == len(set(out))
        assert all(agreeing(recover, lists, x) >= recover.agreement for x in out)
        sure = [x for x in items if agreeing(recover, lists, x) >= code.teams - bad]
        wanted += len(sure)
        found += sum(x in out for x in sure)
    assert wanted > 20
    assert found >= 0.97 * wanted


def radius_recall(degree, mode, runs=40):
    """The part of two items found on 24 coordinates, 14 of them data, with (24 - 14)/2 = 5 bad ones for each item."""
    code = expanding(112, 8, 24, 6, degree)
    bad = (code.teams - code.data) // 2
    recover = UniqueListRecoverableCode(code, bad / code.teams)
    rng = random.Random(mode)
    found = []
    for _ in range(runs):
        items = [rng.getrandbits(code.bits) for _ in range(2)]
        lists = adversarial(code, recover, items, bad, 4, mode, rng)
        out = recover.decode(lists)
        found += [x in out for x in items if agreeing(recover, lists, x) >= code.teams - bad]
    return sum(found) / len(found)


@pytest.mark.parametrize("mode", ["missing", "poisoned", "lookalike", "chimera"])
@pytest.mark.parametrize("degree", [3, 4])
@pytest.mark.thinned(3)
def test_an_expander_is_perfect_to_the_reed_solomon_radius(degree, mode):
    assert radius_recall(degree, mode) == 1.0


@pytest.mark.parametrize("mode", ["missing", "poisoned", "chimera"])
@pytest.mark.thinned(1)
def test_a_cycle_is_not(mode):
    """A cycle falls apart where two coordinates are bad: the test above can fail."""
    assert radius_recall(2, mode) < 0.98


def test_too_many_bad_coordinates_lose_the_item():
    """The power of the test above: beyond the radius nothing comes out, so it can fail."""
    code, _ = SHAPES["M=16 k=8 d=4"]
    recover = UniqueListRecoverableCode(code, 0.45)
    rng = random.Random(3)
    lost = 0
    for _ in range(20):
        x = rng.getrandbits(64)
        lists = adversarial(code, recover, [x], 9, 0, "missing", rng)
        lost += x not in recover.decode(lists)
    assert lost == 20


def test_the_whole_list_of_many_items_at_once():
    code = make(64, 8, 16, 8, 4)
    recover = UniqueListRecoverableCode(code, 0.25)
    rng = random.Random(5)
    items = [rng.getrandbits(64) for _ in range(12)]
    lists = adversarial(code, recover, items, 1, 6, "poisoned", rng)
    sure = [x for x in items if agreeing(recover, lists, x) >= recover.agreement]
    assert len(sure) >= 11
    assert set(sure) <= set(recover.decode(lists))


@settings(max_examples=40, deadline=None)
@given(st.data())
@pytest.mark.long
def test_hostile_lists_never_crash_and_never_overflow_the_output(data):
    code, alpha = SHAPES["M=12 k=8 d=3"]
    recover = UniqueListRecoverableCode(code, alpha)
    pair = st.tuples(st.integers(0, 15), st.integers(0, (1 << 20) - 1))
    lists = [data.draw(st.lists(pair, max_size=30)) for _ in range(code.teams)]
    out = recover.decode(lists)
    assert all(agreeing(recover, lists, x) >= recover.agreement for x in out)


@pytest.mark.long
def test_a_crowd_of_lookalike_pointers_is_bounded():
    """Every entry points to every other: one giant component, still decided, with a bounded output."""
    code = make(64, 8, 16, 6, 4)
    recover = UniqueListRecoverableCode(code, 0.25)
    rng = random.Random(1)
    lists = [[(y, (y | y << 6 | y << 12 | y << 18) << 8 | rng.getrandbits(8)) for y in range(64)] for _ in range(16)]
    assert len(recover.decode(lists)) <= 128
    assert MAX_LIST >= 1 << 14


def test_lists_for_every_coordinate_are_asked_for():
    code, alpha = SHAPES["M=12 k=8 d=3"]
    with pytest.raises(ValueError, match="every coordinate"):
        UniqueListRecoverableCode(code, alpha).decode([[]])
    with pytest.raises(ValueError, match="alpha"):
        UniqueListRecoverableCode(code, 0.5)


def test_best_cut_finds_two_cliques_joined_by_an_edge():
    clique = [(i, j) for i in range(6) for j in range(i)]
    edges = np.array([*clique, *[(a + 6, b + 6) for a, b in clique], (0, 6)])
    side, sparsity = best_cut(12, edges)
    assert {frozenset(np.flatnonzero(side)), frozenset(np.flatnonzero(~side))} == {
        frozenset(range(6)),
        frozenset(range(6, 12)),
    }
    assert sparsity < 0.1
    _, dense = best_cut(6, np.array(clique))
    assert dense > 0.8


def test_components():
    parts = components(7, np.array([(0, 1), (1, 2), (4, 5)]))
    assert sorted(map(sorted, parts)) == [[0, 1, 2], [4, 5]]
