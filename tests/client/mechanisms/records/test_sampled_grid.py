"""Places on a map: which cells they lie in, which grid is drawn, the limits, and broken copies."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_grid import MAX_LINES, MAX_TILES, SampledGrid, design
from ldp_client.protocol.domain import Categories, Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms import broken
from tests.client.mechanisms.battery import check_declared, check_law

ONE = Epsilon("1")
SMALL = Record((Field("x", Integers(0, 4)), Field("y", Integers(-1, 2))))
ODD = Record((Field("x", Integers(-5, 7)), Field("y", Integers(3, 10))))


def made(record=ODD, numbers=(6, 4, 3, 2, 1, 2, 0, 0), epsilon=ONE, word_bits=64, kind=SampledGrid):
    return kind(epsilon, record, *numbers, word_bits)


def test_a_place_lies_in_one_cell_of_each_grid_and_tiles_are_whole_columns_and_rows():
    grid, seen = made(), [set(), set(), set()]
    for index in range(ODD.size):
        item = ODD.item(index)
        cells = grid.elements(index)
        if item is None or None in item.values():
            assert cells == (0, 0, 0)
            continue
        column, row, tile = (cell - 1 for cell in cells)
        assert tile == column // 2 + 3 * (row // 2)
        for place, cell in enumerate(cells):
            seen[place].add(cell)
        x, y = item["x"] + 5, item["y"] - 3
        assert column <= Fraction(x * 6, 7) < column + 1
        assert row <= Fraction(y * 4, 10) < row + 1
    assert seen == [set(range(1, 7)), set(range(1, 5)), set(range(1, 7))]


def test_grids_are_drawn_as_often_as_their_weights_say_whatever_the_place_is():
    grid = made(SMALL, (2, 2, 1, 2, 3, 2, 0, 0), word_bits=6)
    assert [grid.chance(j) for j in range(3)] == [Fraction(24, 64), Fraction(24, 64), Fraction(16, 64)]
    for index in range(SMALL.size):
        drawn = [sum(grid.randomize(index, (word, 0)) >= start for start in grid.starts[1:3]) for word in range(64)]
        assert [drawn.count(j) for j in range(3)] == [24, 24, 16]


def test_tiles_alone_are_a_grid_of_their_own():
    grid = made(ODD, (1, 1, 7, 5, 0, 1, 0, 3))
    assert [grid.chance(j) for j in range(3)] == [0, 0, 1]
    words = [(word << 60, 7 << 50, 5 << 61) for word in range(16)]
    assert {grid.randomize(30, line) >= grid.starts[2] for line in words} == {True}
    for wrong in (2, 4):
        with pytest.raises(IndexError):
            grid.randomize(1, [0] * wrong)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "2", "5.5", "20"])
def test_declared_epsilon_of_large_maps(epsilon):
    wide = Record((Field("x", Integers(0, 1 << 30)), Field("y", Integers(0, 1 << 30))))
    check_declared(made(wide, (1024, 512, 64, 64, 1, 2, 3, 8), Epsilon(epsilon)))
    check_declared(made(wide, (64, 64, 16, 16, 9, 1, 0, 0), Epsilon(epsilon)))


@pytest.mark.parametrize("kind", [broken.GridByPlace, broken.GridByTheAnswersWord, broken.NowhereIsTheFirstTile])
@pytest.mark.thinned(1)
def test_broken_copies_are_caught(kind):
    numbers = (2, 2, 1, 2, 1, 2, 0, 0)
    check_law(made(SMALL, numbers, word_bits=6))
    with pytest.raises(AssertionError):
        check_law(made(SMALL, numbers, word_bits=6, kind=kind))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((6, 4, 4, 2, 1, 2, 0, 0), "whole columns and rows"),
        ((6, 4, 3, 3, 1, 2, 0, 0), "whole columns and rows"),
        ((8, 4, 2, 2, 1, 2, 0, 0), "no more of them than there are integers"),
        ((6, 4, 0, 2, 1, 2, 0, 0), "64 tiles"),
        ((6, 0, 3, 1, 1, 2, 0, 0), "64 tiles"),
        ((6, 4, 3, 2, 1, 0, 0, 0), "that of tiles 1 to"),
        ((6, 4, 3, 2, 65537, 1, 0, 0), "that of tiles 1 to"),
        ((6, 4, 3, 2, 0, 1, 0, 0), "without a weight of lines"),
        ((1, 1, 3, 2, 0, 1, 3, 0), "without a weight of lines"),
        ((6, 4, 3, 2, 1, 2, 1, 0), "prime q"),
        ((6, 4, 3, 2, 1, 2, 0, 6), "prime q"),
    ],
)
def test_impossible_grids_are_refused(numbers, text):
    names = ("columns", "rows", "across", "down", "lines", "tiles", "lines_q", "tiles_q")
    parameters = dict(zip(names, numbers, strict=True))
    with pytest.raises(InvalidSpec, match=text):
        Collection.create("?", ODD, "sampled-grid", "1", opens=0, closes=9, parameters=parameters)


@pytest.mark.parametrize(
    "domain", [Record(ODD.fields[:1]), Record((*ODD.fields, Field("z", Integers(0, 9)))), Integers(0, 9),
               Record((ODD.fields[0], Field("y", Categories(("a", "b")))))],
)  # fmt: skip
def test_other_domains_are_refused(domain):
    parameters = made().parameters()
    with pytest.raises(InvalidSpec, match="takes a record"):
        Collection.create("?", domain, "sampled-grid", "1", opens=0, closes=9, parameters=parameters)


def test_the_sizes_follow_from_users_and_epsilon():
    """For 10^5 users and epsilon 1, the formulas give 20.7 and 3.4; the numbers of hybrid grids are powers of two."""
    wide = Record((Field("x", Integers(0, 256)), Field("y", Integers(0, 100))))
    found = design("1", wide, 100_000)
    assert (found["columns"], found["rows"], found["across"], found["down"]) == (16, 16, 4, 4)
    previous = (0, 0)
    for users in (10, 10**3, 10**5, 10**7, 10**12):
        for epsilon in ("0.1", "1", "3", "10"):
            grids = design(epsilon, wide, users)
            made(wide, tuple(grids.values()), Epsilon(epsilon))
            assert grids["columns"] <= MAX_LINES and grids["across"] <= MAX_TILES and grids["rows"] <= 64
        now = (design("1", wide, users)["columns"], design("1", wide, users)["across"])
        assert now >= previous
        previous = now
    tiny = design("1", SMALL, 10**9)
    assert (tiny["columns"], tiny["rows"], tiny["across"], tiny["down"]) == (4, 2, 4, 2)
    with pytest.raises(InvalidSpec, match="two fields"):
        design("1", Record(ODD.fields[:1]), 5)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4", "8"])
def test_a_design_has_the_responses_with_the_least_variance(epsilon):
    """By the mechanisms' own probabilities: over all fields, and randomized response."""
    budget, chosen = Epsilon(epsilon), set()
    for side in (4, 16, 64, 1024):
        record = Record((Field("x", Integers(0, side)), Field("y", Integers(0, side))))
        grids = design(epsilon, record, 10**12)
        lines = max(grids["columns"], grids["rows"]), grids["lines_q"]
        for cells, q in (lines, (grids["across"] * grids["down"], grids["tiles_q"])):
            found = {one: _variance(budget, cells + 1, one) for one in (0, 2, 3, 4, 5, 7, 8, 11, 13, 17, 19, 23)}
            if q not in found:
                found[q] = _variance(budget, cells + 1, q)
            assert found[q] <= min(found.values()) * (1 + 1e-9)
            chosen.add(q)
    assert len(chosen) > 1


def _variance(budget, elements, q):
    """Of the estimate of an element that nobody has, for each user."""
    if not q:
        response = RandomizedResponse(budget, elements).response
        p, s = float(response.p), float(response.q)
    else:
        t = next(t for t in range(1, 40) if q**t >= elements)
        p, s = (float(one) for one in LinearHash(budget, elements, q, t).support)
    return s * (1 - s) / (p - s) ** 2


def test_the_sides_of_a_design_by_the_formulas():
    wide = Record((Field("x", Integers(0, 1 << 30)), Field("y", Integers(0, 1 << 30))))
    for users in (10**power for power in range(2, 13)):
        for epsilon in ("0.5", "1", "3"):
            e = math.exp(float(epsilon))
            lines = (0.49 * (2 * users / 3) * (e - 1) ** 2 / (4 * e)) ** (1 / 3)
            tiles = (0.06 * (e - 1) * (users / 3 / e) ** 0.5) ** 0.5
            found = design(epsilon, wide, users)
            for name, wanted, most in (("columns", max(lines, tiles), MAX_LINES), ("across", tiles, MAX_TILES)):
                power = min(max(1, round(math.log2(max(1.0, wanted)))), most.bit_length() - 1)
                assert found[name] == 1 << power, (users, epsilon, name)
            assert (found["rows"], found["down"]) == (found["columns"], found["across"])
            assert (found["lines"], found["tiles"]) == (1, 2)


@pytest.mark.parametrize(
    "record",
    [
        Record((*ODD.fields, Field("z", Categories(("a", "b"))))), Record((*ODD.fields, Field("z", Integers(0, 9)))),
        Record((ODD.fields[0], Field("y", Categories(("a", "b"))))), Record(ODD.fields[:1]),
    ],
)  # fmt: skip
def test_a_design_is_for_two_fields_of_integers(record):
    with pytest.raises(InvalidSpec, match=r"^a map takes a record of two fields, both of integers$"):
        design("1", record, 1000)
    assert design(ONE, ODD, 1000) == design("1", ODD, 1000)
