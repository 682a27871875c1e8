"""A number with the cell of a table: where it lies in a record, its rounding, its limits, and broken copies."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.averaged_table import AveragedTable, design, one_estimate
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from tests.client.mechanisms import broken
from tests.client.mechanisms.battery import check_declared, check_law

ONE = Epsilon("1")
SMALL = Record((Field("a", YesNo(none_is_no=True)), Field("y", Integers(0, 4))))
THREE = Record((Field("a", YesNo()), Field("y", Integers(-2, 5)), Field("b", Categories(("red", "green")))))


def test_the_cell_is_the_index_of_the_other_fields():
    for number, record in ((1, THREE), (0, Record((THREE.fields[1], THREE.fields[0], THREE.fields[2])))):
        made = AveragedTable(ONE, record, number, 3)
        for index in range(record.size):
            item = record.item(index) or dict.fromkeys(record.names)
            cell, held = made.place(index)
            assert held == record.fields[number].domain.index(item["y"])
            assert cell == made.cells.index({name: item[name] for name in made.cells.names})


@pytest.mark.parametrize("q", [0, 3])
def test_a_number_is_rounded_to_an_end_without_bias_and_no_number_to_none(q):
    """Exactly, over all words: the response's element is the lowest and the highest with the number as their mean."""
    made = AveragedTable(ONE, THREE, 1, q, word_bits=8)
    other = (0,) * (made.words - 1)
    for index in range(THREE.size):
        cell, held = made.place(index)
        elements = {
            "none": made.inner.randomize(0, other),
            "down": made.inner.randomize(made.base + made.step * cell, other),
            "up": made.inner.randomize(made.base + made.step * cell + 1, other),
        }
        seen = [made.randomize(index, (word, *other)) for word in range(256)]
        if not held:
            assert set(seen) == {elements["none"]}
            continue
        ups = seen.count(elements["up"]) if elements["up"] != elements["down"] else None
        assert set(seen) <= {elements["up"], elements["down"]}
        if ups is not None:
            assert 0 <= Fraction(ups, 256) - Fraction(held - 1, 4) < Fraction(1, 256)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "2", "5.5", "20"])
def test_declared_epsilon_of_large_tables(epsilon):
    wide = Record((Field("town", Integers(0, 3000)), Field("y", Integers(0, 1 << 30))))
    for q in (0, 2, 4, 53):
        check_declared(AveragedTable(Epsilon(epsilon), wide, 1, q))


@pytest.mark.parametrize("kind", [broken.RoundsByTheAnswersWord, broken.NoNumberIsTheLowest, broken.TellsTheEnd])
def test_broken_copies_are_caught(kind):
    check_law(AveragedTable(ONE, SMALL, 1, 0, 6))
    with pytest.raises(AssertionError):
        check_law(kind(ONE, SMALL, 1, 0, 6))


@pytest.mark.parametrize(
    ("record", "parameters", "text"),
    [
        (Record(SMALL.fields[1:]), (0, 0), "at least two fields"),
        (SMALL, (0, 0), "at least two integers"),
        (SMALL, (2, 0), "give its place"),
        (Record((SMALL.fields[0], Field("y", Integers(7, 1)))), (1, 0), "at least two integers"),
        (SMALL, (1, 1), "q = 0, or a field's size q"),
        (SMALL, (1, 6), "prime q"),
        (SMALL, (1, 4099), "at most 16777216, not q = 4099"),
        (Record((Field("a", Integers(0, 1 << 20)), SMALL.fields[1])), (1, 0), "too many for randomized response"),
        (Record((Field("a", Integers(0, 1 << 23)), SMALL.fields[1])), (1, 2), "fewer or coarser fields"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(record, parameters, text):
    asked = dict(zip(("number", "q"), parameters, strict=True))
    with pytest.raises(InvalidSpec, match=text):
        Collection.create("?", record, "averaged-table", "1", opens=0, closes=9, parameters=asked)
    with pytest.raises(InvalidSpec, match="takes a record domain"):
        Collection.create("?", Integers(0, 9), "averaged-table", "1", opens=0, closes=9, parameters=asked)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "5"])
@pytest.mark.parametrize("cells", [1, 3, 40, 2000])
def test_the_design_has_the_least_variance(epsilon, cells):
    record = Record((Field("a", Integers(1, cells)), SMALL.fields[1]))
    best = design(epsilon, record, "y")
    made = AveragedTable(Epsilon(epsilon), record, **best)
    law, size = made.inner, cells + 1
    if isinstance(law, RandomizedResponse):
        p, s = law.response.p, law.response.q
    else:
        assert isinstance(law, LinearHash)
        p, s = law.support
    stated = one_estimate(Epsilon(epsilon), size, best["q"])
    assert stated == pytest.approx(float(s * (1 - s) / (p - s) ** 2), rel=1e-9)
    assert stated <= min(one_estimate(Epsilon(epsilon), size, q) for q in (0, 2, 3, 4, 5, 7, 8, 11, 53, 149))


def test_a_design_says_what_it_cannot_do():
    with pytest.raises(InvalidSpec, match="no field 'z' to average; its fields are a, y"):
        design("1", SMALL, "z")
    with pytest.raises(InvalidSpec, match="cells beside the number are too many"):
        design("1", Record((Field("a", Integers(0, 1 << 24)), SMALL.fields[1])), "y")
