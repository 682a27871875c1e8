"""Domains: every index has its item and every item its index; nothing about an item ever raises but its type."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import (
    MAX_ATTRIBUTES,
    MAX_CATEGORIES,
    MAX_STRING_BYTES,
    Attributes,
    Categories,
    Domain,
    Integers,
    Item,
    Sets,
    Strings,
)

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
@pytest.mark.long
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


@pytest.mark.parametrize(
    "make",
    [
        lambda: Categories(("a" * 256,)),
        lambda: Categories(("é" * 128,)),
        lambda: Strings(1),
        lambda: Strings(1024),
        lambda: Integers(-(1 << 63), 1),
        lambda: Integers((1 << 63) - 1, 1),
        lambda: Integers(0, (1 << 64) - 1),
        lambda: Attributes(("a",)),
        lambda: Attributes(tuple("abcdefghijklmnopqrst")),
        lambda: Attributes(("a" * 256, "é" * 128)),
    ],
)
def test_the_ends_of_the_ranges_are_domains(make: object) -> None:
    assert make().item(1) is not None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attributes(()), "1 to 20 names, not 0"),
        (lambda: Attributes(tuple("abcdefghijklmnopqrstu")), "1 to 20 names, not 21"),
        (lambda: Attributes(("a", "")), "not empty"),
        (lambda: Attributes(("a", 5)), "not empty"),
        (lambda: Attributes(("é" * 129,)), "at most 256 bytes"),
        (lambda: Attributes(("a", "a")), "twice"),
        (lambda: Categories(("a", "a")), "twice"),
        (lambda: Categories(("a" * 257,)), "at most 256 bytes"),
        (lambda: Categories(("a", "")), "not empty"),
    ],
)
def test_a_refusal_says_what_is_wrong(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()


def test_the_limits_are_the_stated_ones() -> None:
    assert (MAX_CATEGORIES, MAX_ATTRIBUTES, MAX_STRING_BYTES) == (2**20 - 1, 20, 1024)


def test_attributes_are_bits_in_their_order() -> None:
    domain = Attributes(("a", "b", "c"))
    assert (domain.size, domain.bits) == (8, 3)
    assert [domain.index(item) for item in (None, set(), {"a"}, {"b"}, {"c"}, {"a", "c"}, {"a", "b", "c"})] == [
        0, 0, 1, 2, 4, 5, 7
    ]  # fmt: skip
    assert domain.index({"a", "d"}) == domain.index({"d"}) == 0
    assert [domain.item(index) for index in range(8)] == [
        None, {"a"}, {"b"}, {"a", "b"}, {"c"}, {"a", "c"}, {"b", "c"}, {"a", "b", "c"}
    ]  # fmt: skip
    for wrong in ("a", ["a"], 1, {1}, {"a", 1}):
        with pytest.raises(TypeError, match="attributes domain is a set of str or None"):
            domain.index(wrong)
    with pytest.raises(ValueError, match=r"outside 0\.\.7"):
        domain.item(8)


def test_domains_describe_themselves() -> None:
    assert Categories(("a", "b")).describe() == {"kind": "categories", "names": ["a", "b"]}
    assert Strings(3).describe() == {"kind": "strings", "max_bytes": 3}
    assert Integers(-2, 5).describe() == {"kind": "integers", "lowest": -2, "highest": 2}
    assert Attributes(("a", "b")).describe() == {"kind": "attributes", "names": ["a", "b"]}


def test_a_type_error_names_the_domain_and_what_it_wants() -> None:
    for domain, text in (
        (Categories(("a",)), "a categories domain is a str or None, not int"),
        (Strings(3), "a strings domain is a str or bytes or None, not int"),
    ):
        with pytest.raises(TypeError, match=text):
            domain.index(5)
    with pytest.raises(TypeError, match="of an integers domain is an int or None, not str"):
        Integers(0, 3).index("5")


def test_the_shortest_string_and_one_of_bytes() -> None:
    domain = Strings(2)
    assert (domain.item(0), domain.item(1), domain.item(2)) == (None, "", "\x00")
    assert domain.item(1 + 256) == b"\xff"
    assert domain.item(1 + 257) == "\x00\x00"
    assert domain.size == 1 + 1 + 256 + 65536


def test_attributes_may_be_given_as_a_list():
    one, two = Attributes(["a", "b"]), Attributes(("a", "b"))  # type: ignore[arg-type]
    assert one == two
    assert hash(one) == hash(two)
    assert one.names == ("a", "b")


def test_sets_are_bits_in_their_order_and_leave_unknown_names_out() -> None:
    domain = Sets(["a", "b", "c"], 2)  # type: ignore[arg-type]
    assert (domain.size, domain.bits, domain.names) == (8, 3, ("a", "b", "c"))
    assert [domain.index(item) for item in (None, set(), {"a"}, {"b"}, {"c", "a"}, {"a", "b", "c"})] == [
        0,
        0,
        1,
        2,
        5,
        7,
    ]
    assert (domain.index({"a", "d"}), domain.index({"d"})) == (1, 0)
    assert [domain.item(index) for index in (0, 1, 5)] == [None, {"a"}, {"a", "c"}]
    assert domain.describe() == {"kind": "sets", "names": ["a", "b", "c"], "most": 2}
    assert Sets.from_readable({"names": ["a", "b", "c"], "most": 2}) == domain
    for wrong in ("a", ["a"], 1, {1}, {"a": 1}):
        with pytest.raises(TypeError, match="sets domain is a set of str or None"):
            domain.index(wrong)
    with pytest.raises(ValueError, match=r"outside 0\.\.7"):
        domain.item(8)


def test_single_items_of_sets_are_counted_and_those_of_other_domains_are_their_own() -> None:
    assert Sets(("a", "b"), 2).counted == Categories(("a", "b"))
    for domain in (Categories(("a",)), Integers(0, 3), Strings(2), Attributes(("a", "b"))):
        assert domain.counted is domain


@pytest.mark.parametrize(
    ("names", "most", "message"),
    [
        (("a", "b"), 1, "from 2 to its 2 names; who holds one item at a time is asked with a domain of categories"),
        (("a", "b"), 3, "from 2 to its 2 names"),
        (("a", "b"), True, "from 2"),
        (("a",), 2, "from 2 to its 1 names"),
        (("a", "a"), 2, "twice"),
        ((), 2, "1 to 240 names, not 0"),
        (tuple(map(str, range(241))), 2, "1 to 240 names, not 241"),
    ],
)
def test_sets_that_make_no_sense_are_refused(names: object, most: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        Sets(names, most)  # type: ignore[arg-type]
