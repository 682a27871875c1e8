"""Domains: every index has its item and every item its index; nothing about an item ever raises but its type."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Domain, Integers, Item, Strings

SMALL: list[Domain] = [
    Categories(("a",)),
    Categories(("yes", "no")),
    Categories(tuple(map(str, range(1000)))),
    Strings(1),
    Strings(2),
    Integers(0, 1),
    Integers(-3, 7),
    Integers((1 << 63) - 1, 500),
]


@pytest.mark.parametrize("domain", SMALL, ids=str)
def test_index_and_item_are_inverse_on_the_whole_domain(domain: Domain) -> None:
    items = [domain.item(index) for index in range(domain.size)]
    assert items[0] is None
    assert None not in items[1:]
    assert len(set(items)) == domain.size
    assert [domain.index(item) for item in items] == list(range(domain.size))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 1024), st.data())
def test_strings_are_numbered_by_length_and_then_in_order(max_bytes: int, data: st.DataObject) -> None:
    domain = Strings(max_bytes)
    index = data.draw(st.integers(1, domain.size - 1))
    item = domain.item(index)
    assert domain.index(item) == index
    raw = item.encode() if isinstance(item, str) else item
    assert raw is not None
    other = data.draw(st.binary(max_size=max_bytes))
    assert (domain.index(other) < index) == ((len(other), other) < (len(raw), raw))


@pytest.mark.parametrize("max_bytes", [1, 2, 3, 7, 8, 32, 1024])
def test_strings_fill_their_range(max_bytes: int) -> None:
    domain = Strings(max_bytes)
    assert domain.index(b"") == 1
    assert domain.index(b"\xff" * max_bytes) == domain.size - 1
    assert domain.bits == 8 * max_bytes + 1


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, (1 << 64) - 1), st.data())
def test_integers_are_counted_from_the_lowest(lowest: int, count: int, data: st.DataObject) -> None:
    domain = Integers(lowest, count)
    item = data.draw(st.integers(lowest, lowest + count - 1))
    assert domain.item(domain.index(item)) == item
    assert 1 <= domain.index(item) < domain.size
    assert domain.index(lowest) == 1
    assert domain.index(domain.highest) == count


@pytest.mark.parametrize(
    ("domain", "outside"),
    [
        (Categories(("a", "é")), ["", "b", "A", "e\u0301", "a ", "\ud800"]),
        (Strings(3), ["abcd", b"abcd", "日本", "x" * 100_000]),
        (Integers(5, 10), [4, 15, 0, -1, 1 << 200, -(1 << 200)]),
    ],
    ids=["categories", "strings", "integers"],
)
def test_what_lies_outside_is_none(domain: Domain, outside: list[Item]) -> None:
    assert domain.index(None) == 0
    assert [domain.index(item) for item in outside] == [0] * len(outside)


def test_text_that_is_not_unicode_is_told_by_its_bytes() -> None:
    assert Strings(3).index("\ud800") == Strings(3).index(b"\xed\xa0\x80")


class Telling:
    """An item of a wrong type that would tell everything if it were asked."""

    def __repr__(self) -> str:
        return "SECRET"

    __str__ = __repr__


@pytest.mark.parametrize(
    ("domain", "wrong"),
    [
        (Categories(("SECRET",)), [b"SECRET", 5, 5.5, True, ["SECRET"], ("SECRET",), Telling()]),
        (Strings(9), [5, 5.5, True, ["SECRET"], {"SECRET": 1}, bytearray(b"SECRET"), memoryview(b"SECRET"), Telling()]),
        (Integers(0, 9), ["SECRET", b"SECRET", 5.0, True, ["SECRET"], 3 + 4j, Telling()]),
    ],
    ids=["categories", "strings", "integers"],
)
def test_a_wrong_type_is_named_and_the_item_is_not(domain: Domain, wrong: list[object]) -> None:
    for item in wrong:
        with pytest.raises(TypeError) as error:
            domain.index(item)
        assert type(item).__name__ in str(error.value)
        assert "SECRET" not in str(error.value)
        assert not any(character in str(error.value) for character in "0123456789[(")
        assert error.value.__cause__ is None
        assert error.value.__context__ is None


@pytest.mark.parametrize("domain", SMALL, ids=str)
def test_there_is_no_item_beyond_the_range(domain: Domain) -> None:
    for index in (-1, domain.size, 1 << 300):
        with pytest.raises(ValueError, match="index outside"):
            domain.item(index)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Categories(()),
        lambda: Categories(("a", "a")),
        lambda: Categories(("a", "")),
        lambda: Categories(("é" * 129,)),
        lambda: Categories((5,)),
        lambda: Categories(tuple(map(str, range(1 << 20)))),
        lambda: Strings(0),
        lambda: Strings(1025),
        lambda: Strings("3"),
        lambda: Integers(0, 0),
        lambda: Integers(0, 1 << 64),
        lambda: Integers(1 << 63, 1),
        lambda: Integers(-(1 << 63) - 1, 1),
        lambda: Integers(0.5, 2),
    ],
)
def test_impossible_domains_are_refused(make: object) -> None:
    with pytest.raises(InvalidSpec):
        make()


def test_sizes_and_bits() -> None:
    assert [(domain.size, domain.bits) for domain in (Categories(("a",)), Integers(0, 7), Integers(0, 8))] == [
        (2, 1),
        (8, 3),
        (9, 4),
    ]
    assert (Integers(0, (1 << 64) - 1).size, Integers(0, (1 << 64) - 1).bits) == (1 << 64, 64)
