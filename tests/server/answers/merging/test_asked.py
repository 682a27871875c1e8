"""Which conditions a release and a collection have in common: values that stand for others, and what is lost."""

import itertools

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, FieldItems, Integers, Record, YesNo
from ldp_server.answers.fields.conditions import condition_of_text, read_condition, text_indexes
from ldp_server.answers.merging.asked import (
    NotTheSame,
    asked_conditions,
    asked_ranges,
    held_by,
    row_name,
    same_values,
)
from ldp_server.answers.merging.cohorts import CohortCount
from ldp_server.answers.merging.released import of_conditions, of_table
from ldp_server.answers.merging.sources import LocalFrequencies, merged_frequencies, of_release

PLAN, AGE = Field("plan", Categories(("free", "paid"))), Field("age", Integers(1, 6))
DARK = Field("dark", YesNo(none_is_no=True))
RECORD = Record((PLAN, AGE, DARK))


def content(kind, items, record=RECORD, **more):
    rows = [{"item": item, "count": 3 * number, "low": 0} for number, item in enumerate(items)]
    parameters = {"fields": record.describe()["fields"], "width": 2}
    found = {"kind": kind, "people": 50, "rows": rows, "variance": None, "parameters": parameters, "statement": []}
    return found | {"price": {"epsilon": "1", "rho": None}, "details": {"standard_errors": [2.0] * len(rows)}} | more


def text(*names):
    return [{"text": name} for name in names]


def test_a_condition_of_the_release_is_one_of_the_collection():
    """Of every user of the collection the condition says the same as of the volunteer who would be that user."""
    plans = Categories(("x", "paid", "free"))
    more = Record((Field("dark", YesNo()), Field("age", Integers(0, 9)), Field("plan", plans)))
    lines = ("age: 2..4; dark: yes", "plan: none", "plan: paid, none; dark: no", "age: none, 1")
    found = asked_conditions(content("linear", text(*lines)), more)
    assert [one.name for one in found] == list(lines)
    for one, line in zip(found, lines, strict=True):
        _, held = read_condition(RECORD, line)
        for index in range(more.size):
            user = more.item(index) or dict.fromkeys(more.names)
            told = {name: user[name] for name in RECORD.names}
            volunteer = [field.domain.index(told[field.name]) for field in RECORD.fields]
            released = all(volunteer[place] in indexes for place, indexes in held.items())
            assert released is all(user[name] in values for name, values in one.where.items())


def test_a_cell_is_a_condition_and_has_its_fields_in_their_order():
    item = {"record": {"dark": False, "plan": None}}
    assert row_name(RECORD, item) == "plan=none, dark=no"
    assert held_by(RECORD, item) == {0: frozenset((0,)), 2: frozenset((0,))}
    (one,) = asked_conditions(content("linear", [item]), Record((PLAN, Field("dark", YesNo()))))
    assert {name: list(values) for name, values in one.where.items()} == {"plan": [None], "dark": [None, False]}
    assert not one.otherwise


def test_what_the_reports_do_not_tell_apart():
    """A value that the collection does not list is its none: a release that lists it asks something else."""
    for field, asked, said in (
        (PLAN, Categories(("free",)), "the release tells plan=paid apart"),
        (Field("dark", YesNo()), YesNo(none_is_no=True), "tells dark=none apart"),
        (AGE, Integers(1, 5), "tells age=6 apart"),
        (AGE, Categories(("1",)), "holds something else"),
        (AGE, Integers(1, 1 << 17), "too many values"),
    ):
        with pytest.raises(NotTheSame, match=said):
            same_values(field, asked)
    assert same_values(AGE, Integers(-1, 9)) == [0, 0, 0, 1, 2, 3, 4, 5, 6, 0]
    assert same_values(DARK, YesNo()) == [0, 0, 1]
    assert same_values(PLAN, Categories(("paid", "gold", "free"))) == [0, 2, 0, 1]
    with pytest.raises(NotTheSame, match="no field 'age'"):
        asked_conditions(content("linear", text("age: 3")), Record((PLAN,)))
    with pytest.raises(NotTheSame, match="the collection has none"):
        asked_conditions(content("linear", text("age: 3")), Integers(1, 6))


def test_some_conditions_of_a_release():
    found = content("linear", text("age: 1..3", "age: 2"))
    assert [one.name for one in asked_conditions(found, RECORD, ["age:1..3 "])] == ["age: 1..3"]
    with pytest.raises(InvalidSpec, match="does not answer all"):
        asked_conditions(found, RECORD, ["age: 2", "age: 3"])
    many = content("linear", text(*("age: 2; plan: " + ", ".join(["free"] * k) for k in range(1, 1002))))
    with pytest.raises(InvalidSpec, match="1,001 conditions, and at most 1,000"):
        asked_conditions(many, RECORD)
    assert len(asked_conditions(many, RECORD, ["age: 2; plan: free"])) == 1


def test_sets_are_everybody_but_those_who_hold_none():
    flags = Record(tuple(Field(name, YesNo(none_is_no=True)) for name in ("a", "b", "c")))
    sets = [one for size in (1, 2) for one in itertools.combinations("abc", size)]
    found = content("any-of", text(*(" or ".join(one) for one in sets)), flags)
    asked = Record((Field("c", YesNo()), Field("b", YesNo(none_is_no=True)), Field("a", YesNo())))
    conditions = asked_conditions(found, asked)
    assert [one.name for one in conditions] == ["a", "b", "c", "a or b", "a or c", "b or c"]
    for one, names in zip(conditions, sets, strict=True):
        assert one.otherwise
        assert set(one.where) == set(names)
        assert all(list(values) == ([False] if name == "b" else [None, False]) for name, values in one.where.items())
    assert [one.name for one in asked_conditions(found, asked, ["a or c"])] == ["a or c"]
    for wrong in (content("any-of", text("a", "b"), flags), content("any-of", text("b", "a", "c"), flags)):
        with pytest.raises(InvalidSpec, match="another form"):
            asked_conditions(wrong, asked)
    for width in (10**30, 10**400):  # whoever signed it
        found["parameters"]["width"] = width
        with pytest.raises(InvalidSpec, match="another form"):
            asked_conditions(found, asked)


def test_ranges_of_one_field_of_whole_numbers():
    alone = Record((AGE,))
    found = content("linear", [*text("age: 2..5", "age: none", "age: 1, 3", "age: 6"), {"record": {"age": 4}}], alone)
    assert asked_ranges(found, Integers(1, 6)) == {(2, 5): "age: 2..5", (6, 6): "age: 6", (4, 4): "age=4"}
    for wrong, domain in (
        (found, Integers(0, 6)),
        (found, Integers(1, 7)),
        (found, Categories(("1",))),
        (content("linear", text("age: 2")), Integers(1, 6)),
        (content("linear", text("age: none"), alone), Integers(1, 6)),
        (content("tables", [], alone), Integers(1, 6)),
    ):
        with pytest.raises(NotTheSame):
            asked_ranges(wrong, domain)


# -- what a release says of its errors


def test_the_errors_of_conditions():
    linear = of_conditions(content("linear", text("age: 2", "age: 3")))
    assert linear["age: 3"] == CohortCount(3.0, 4 + 1 / 12, laplace=True, alone=False)
    rho = content("linear", text("age: 2"), price={"epsilon": None, "rho": "1"})
    assert not of_conditions(rho)["age: 2"].laplace
    assert of_conditions(content("any-of", text("dark"), variance=7.0))["dark"] == CohortCount(0.0, 7.0, laplace=True)
    bounds = [{"chance": 0.05, "most": 4}, {"chance": 0.01, "most": 9}]
    (one,) = of_conditions(content("any-of", text("dark"), details={"bounds": bounds})).values()
    assert [(bound.chance, bound.most) for bound in one.bounds] == [(0.05, 4.0), (0.01, 9.0)]
    assert (one.variance, one.laplace) == (0.0, False)
    with pytest.raises(InvalidSpec, match="another form"):
        merged_frequencies(content("any-of", text("dark"), details={"bounds": []}), LocalFrequencies({}, 5))
    local = LocalFrequencies({"dark": CohortCount(1.0, 1.0)}, 5)
    for count, variance in ((float("inf"), 7.0), (float("nan"), 7.0), (3, float("inf")), (3, -1.0), (10**400, 7.0)):
        wrong = content("any-of", text("dark"), variance=variance)
        wrong["rows"][0]["count"] = count
        with pytest.raises(InvalidSpec, match=r"another form|is no number, or its variance is none"):
            merged_frequencies(wrong, local)


def test_an_online_table_leaves_out_what_came_after_the_last_update():
    cells = [{"record": {"dark": value, "plan": plan}} for plan in (None, "free", "paid") for value in (False, True)]
    details = {"updated": [0, 1, 0, 1, 0, 0], "variance": 5.0, "bounds": [{"chance": 0.01, "most": 9}]}
    found = content("online", cells, details=details)
    for row in found["rows"][4:]:
        del row["low"]
    names, counts = of_table(found, ("dark", "plan"))
    assert names == ("dark", "plan")
    assert list(counts) == [FieldItems(one["record"]) for one in cells[:4]]
    assert [one.variance for one in counts.values()] == [0.0, 5.0, 0.0, 5.0]
    assert [len(one.bounds) for one in counts.values()] == [1, 0, 1, 0]
    for row in found["rows"]:
        row.pop("low", None)
    details["updated"] = [0] * 6
    with pytest.raises(NotTheSame, match="out of updates"):
        of_table(found, ("plan", "dark"))
    with pytest.raises(InvalidSpec, match="it has plan, dark"):
        of_table(found, ("plan",))


def test_a_table_of_a_linear_release_is_whole():
    cells = [{"record": {"plan": plan}} for plan in (None, "free", "paid")]
    _, counts = of_table(content("linear", [*text("age: 2"), *cells]), ("plan",))
    assert [one.count for one in counts.values()] == [3.0, 6.0, 9.0]
    with pytest.raises(InvalidSpec, match="no table"):
        of_table(content("linear", cells[:2]), ("plan",))
    with pytest.raises(InvalidSpec, match="ask without --fields"):
        of_table(content("linear", text("age: 2")), ("plan",))
    with pytest.raises(NotTheSame, match="same sets"):
        of_release(content("any-of", text("dark")), ("dark",))


def test_a_table_whose_fields_hold_other_values_is_another_question():
    """Else the `none` of the one would be merged with the `none` of the other, which is about other people."""
    cells = [{"record": {"plan": plan}} for plan in (None, "free", "paid")]
    details = {"tables": [{"fields": ["plan"], "variance": 1.0}]}
    release = content("tables", cells, Record((PLAN,)), details=details)

    def local(*plans):
        return LocalFrequencies({FieldItems({"plan": one}): CohortCount(9.0, 4.0) for one in plans}, 30, ("plan",))

    assert len(merged_frequencies(release, local(None, "free", "paid")).rows) == 3
    for plans in ((None, "free", "paid", "gold"), (None, "free")):
        with pytest.raises(NotTheSame, match="'plan' has other values"):
            merged_frequencies(release, local(*plans))
    flags = content("tables", [{"record": {"dark": one}} for one in (False, True)], Record((DARK,)), details={
        "tables": [{"fields": ["dark"], "variance": 1.0}]
    })  # fmt: skip
    rows = {FieldItems({"dark": one}): CohortCount(9.0, 4.0) for one in (None, False, True)}
    with pytest.raises(NotTheSame, match="no answer from no"):
        merged_frequencies(flags, LocalFrequencies(rows, 30, ("dark",)))
    del rows[FieldItems({"dark": None})]
    assert len(merged_frequencies(flags, LocalFrequencies(rows, 30, ("dark",))).rows) == 2


def test_texts_of_values():
    assert text_indexes(YesNo()) == {"yes": 2, "true": 2, "1": 2, "no": 1, "false": 1, "0": 1}
    assert text_indexes(Integers(7, 2)) == {"7": 1, 7: 1, "8": 2, 8: 2}
    assert condition_of_text(RECORD, " age : 5..6 ; dark : no").where == {"age": [5, 6], "dark": [False]}
    assert condition_of_text(RECORD, "age: none, 3").where == {"age": [None, 3]}
    wrongs = ("age", "town: rome", "age: 1; age: 2", "age: 6..5", "age: 9", "plan: 1..2", "age: 0..3", "")
    for wrong in (*wrongs, "age: 02", "age: +2"):
        with pytest.raises(InvalidSpec):
            condition_of_text(RECORD, wrong)
    large = Record((Field("age", Integers(-(1 << 40), 1 << 41)),))
    assert condition_of_text(large, "age: -7, 1099511627775").where == {"age": [-7, 1099511627775]}
    assert len(condition_of_text(large, "age: 0..65535").where["age"]) == 1 << 16
    with pytest.raises(InvalidSpec, match=r"such as 2\.\.5"):
        condition_of_text(large, "age: 0..65536")
    assert condition_of_text(RECORD, "age:2").name == "age: 2"
