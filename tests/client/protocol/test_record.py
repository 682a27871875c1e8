"""Records: one number for each content and back, mappings and dataclasses, and errors that show nothing of an item."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, WrongFields, WrongType
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Attributes, Categories, Field, FieldItems, Integers, Record, Strings, YesNo
from ldp_client.protocol.v1 import spec_pb2

COLOR = Field("color", Categories(("red", "green")))
PERSON = Record((COLOR, Field("age", Integers(5, 3)), Field("member", YesNo()), Field("dark", YesNo(none_is_no=True))))
PARAMETERS = parameters_of([(1, 1, 0, 0), (15, 2, 3, 3)])


def made(domain, mechanism="sampled-table", parameters=PARAMETERS):
    return Collection.create("Who?", domain, mechanism, "1", opens=0, closes=9, parameters=parameters)


@dataclass
class Person:
    color: str | None
    age: int | None
    member: bool | None = None
    dark: bool | None = field(default=True)


def test_every_content_has_a_number():
    assert PERSON.size == 3 * 4 * 3 * 2
    items = [PERSON.item(index) for index in range(PERSON.size)]
    assert items[0] is None
    assert len(set(items)) == PERSON.size
    assert [PERSON.index(item) for item in items] == list(range(PERSON.size))
    assert items[-1] == {"color": "green", "age": 7, "member": True, "dark": True}
    assert PERSON.index({"color": "red", "age": None, "member": None, "dark": None}) == 1
    assert PERSON.index({"color": None, "age": 5, "member": None, "dark": False}) == 3


def test_a_dataclass_is_an_item_and_what_lies_outside_a_field_is_its_none():
    assert PERSON.index(Person("red", 7, False)) == PERSON.index(
        {"color": "red", "age": 7, "member": False, "dark": True}
    )
    assert PERSON.index(Person("blue", 99)) == PERSON.index(Person(None, None))


@pytest.mark.parametrize(
    ("item", "error", "text"),
    [
        ({"color": "SECRET", "age": 5, "member": True}, WrongFields, "lacks the field 'dark'"),
        ({}, WrongFields, "lacks the field 'color'"),
        ({**vars(Person("red", 5)), "SECRET": "SECRET"}, WrongFields, "has a name that is no field"),
        ({**vars(Person("red", 5)), "age": "SECRET"}, WrongType, "field 'age': .* is an int or None, not str"),
        ({**vars(Person("red", 5)), "member": 1}, WrongType, "field 'member': .* is a bool or None, not int"),
        ("SECRET", WrongType, "is a mapping or a dataclass or None, not str"),
        (Person, WrongType, "not type"),
        (frozenset(["SECRET"]), WrongType, "not frozenset"),
    ],
)
def test_wrong_records_are_told_without_their_contents(item, error, text):
    with pytest.raises(error, match=text) as raised:
        PERSON.index(item)
    assert "SECRET" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_listed_record_does_not_show_itself():
    one = PERSON.item(PERSON.index(Person("green", 6)))
    assert isinstance(one, FieldItems)
    assert "green" not in repr(one)
    assert one != "green"
    assert dict(one) == {"color": "green", "age": 6, "member": None, "dark": True}


def test_parts_are_records_in_the_order_asked_for():
    part = PERSON.part(("member", "color"))
    assert part.names == ("member", "color")
    assert part.size == 9
    with pytest.raises(InvalidSpec, match="its fields are color, age, member, dark"):
        PERSON.part(("member", "SECRET"))


def test_the_file_and_the_bytes_say_the_same():
    collection = made(PERSON)
    for again in (Collection.from_toml(collection.to_toml()), Collection.from_json(collection.to_json())):
        assert (again, again.domain) == (collection, PERSON)
    text = collection.to_toml().replace("none_is_no = false\n", "").split("\n", 1)[1]  # may be left out, without the id
    assert Collection.from_toml(text) == collection


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ((), "1 to 32 names"),
        ((COLOR, COLOR), "twice"),
        ((Field("", Integers(0, 1)),), "not empty"),
        ((Field("x", Strings(1)),), "is one of categories, integers, yes_no"),
        ((Field("x", Attributes(("a",))),), "is one of categories"),
        ((Field("x", Record((COLOR,))),), "is one of categories"),
        (tuple(Field(str(i), YesNo()) for i in range(33)), "1 to 32 names"),
        ((Field("x", Integers(0, (1 << 62) - 1)), COLOR), "2\\^62"),
    ],
)
def test_impossible_records_are_refused(fields, text):
    with pytest.raises(InvalidSpec, match=text):
        Record(fields)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (('kind = "yes_no"\nnone_is_no = true', 'kind = "strings"\nmax_bytes = 3'), "a name and a kind"),
        (("none_is_no = true", "none_is_no = 1"), "type bool"),
        (("none_is_no = true", "lowest = 1"), "takes name, none_is_no"),
        (('name = "dark"\n', ""), "takes name, none_is_no"),
        (("lowest = 5", "lowest = true"), "type int"),
        (("numbers = [0, 3]", "numbers = [0, 3.5]"), "whole numbers"),
        (("numbers = [0, 3]", "numbers = [0, true]"), "whole numbers"),
        (("numbers = [0, 3]", "numbers = [0]"), "a weight, a response and a number"),
        (("numbers = [0, 3]", "numbers = [0, -3]"), "out of range"),
        (("numbers = [0, 3]", "numbers = 3"), "wrong type"),
    ],
)
def test_files_that_make_no_sense_are_refused(change, text):
    whole = made(PERSON).to_toml().split("\n", 1)[1]
    assert change[0] in whole
    with pytest.raises(InvalidSpec, match=text):
        Collection.from_toml(whole.replace(*change))


def test_a_yes_no_question_is_no_domain_of_its_own():
    with pytest.raises(InvalidSpec, match="the domain is one of"):
        made(YesNo(), "randomized-response", {})


def test_bytes_with_a_field_of_no_kind_are_refused():
    collection = made(PERSON)
    outer = spec_pb2.Collection.FromString(collection.spec_bytes)
    question = spec_pb2.Question.FromString(outer.question)
    question.domain.record.fields[3].ClearField("yes_no")
    outer.question = question.SerializeToString(deterministic=True)
    with pytest.raises(InvalidSpec, match="a field of a kind"):
        Collection.from_bytes(outer.SerializeToString(deterministic=True))
