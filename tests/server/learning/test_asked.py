"""Queries about a live collection: conjunctions and disjunctions with their intervals, and the command."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers import estimates
from ldp_server.answers.records import RecordTable
from ldp_server.learning.asked import asked_share, checked, sets_of, told_confidence
from ldp_server.learning.queries import AnyOf, TableQueries
from ldp_server.oracles.base import Unsupported
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ServerProcess
from tests.server.learning.populations import asked, counted
from tests.server.test_every_door import shell

PERSON = Record((Field("a", YesNo()), Field("b", YesNo(none_is_no=True)), Field("plan", Categories(("x", "y")))))
PEOPLE = [
    ({"a": a, "b": b, "plan": None}, count)
    for (a, b), count in zip(product((True, False, None), (True, None)), (100, 200, 300, 400, 500, 600), strict=True)
]
SHARES = {("a", "b"): {True: 100 / 2100, False: (100 + 200 + 300 + 500) / 2100}, ("a",): {True: 1 / 7, False: 1 / 7}}


def answer(collection, oracle, query, confidence=0.95):
    table = RecordTable(collection, (), query.counted)
    found = estimates.given_items(table.collection, table.oracle(oracle), table.counted, confidence=confidence)
    return asked_share(query, found)


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("fields", SHARES)
def test_who_gave_no_answer_does_not_hold_the_field(fields, every):
    """500 + 600 of 2,100 said nothing about a: neither any nor all of the fields hold for them by that."""
    collection = asked(PERSON, epsilon="12")
    oracle = counted(collection, PEOPLE, 1)
    query = AnyOf(frozenset(fields), every)
    found, truth = answer(collection, oracle, query, 0.9999), SHARES[fields][every]
    assert found.low <= truth <= found.high
    assert abs(found.estimate - truth) < 0.01
    assert found.query == f"{'all' if every else 'any'} of {', '.join(fields)}"
    told = TableQueries(collection, oracle).ask(query)
    assert (told.estimate, told.standard_error) == pytest.approx((found.estimate, found.standard_error))


def test_a_disjunction_has_the_interval_of_all_others():
    collection = asked(PERSON)
    oracle = counted(collection, PEOPLE, 2)
    any_of = answer(collection, oracle, AnyOf(frozenset("ab")))
    table = RecordTable(collection, (), {"a": [False, None], "b": [False, None]})
    (none,) = estimates.given_items(table.collection, table.oracle(oracle), table.counted).rows
    assert any_of.estimate == pytest.approx(1 - none.estimate / 2100)
    assert (any_of.low, any_of.high) == pytest.approx((max(0, 1 - none.high / 2100), min(1, 1 - none.low / 2100)))
    assert any_of.standard_error == pytest.approx(none.standard_error / 2100)
    assert 0 <= any_of.low <= any_of.high <= 1


def test_no_is_a_value_of_a_field_in_which_none_is_no():
    """As a line of a file, and as it comes over gRPC: the text no."""
    collection = asked(PERSON, epsilon="12")
    oracle = counted(collection, PEOPLE, 3)
    found = []
    for held in ("no", False, None):
        table = RecordTable(collection, (), {"b": [held]})
        (row,) = estimates.given_items(table.collection, table.oracle(oracle), table.counted).rows
        found.append(row.estimate)
    assert len(set(found)) == 1
    assert abs(found[0] - 1200) < 30
    with pytest.raises(InvalidSpec, match="a value of 'b' that counts"):
        RecordTable(collection, (), {"b": ["maybe"]})


def test_sets_of_fields_that_can_be_asked():
    yes = Record(tuple(Field(name, YesNo(none_is_no=True)) for name in "abcd"))
    assert [one.fields for one in sets_of(yes, 2, True)] == [frozenset(one) for one in combinations("abcd", 2)]
    assert [one.fields for one in sets_of(PERSON, 2, False)] == [frozenset("ab")]
    assert sets_of(yes, 1, False, ("d", "a")) == [AnyOf(frozenset("d")), AnyOf(frozenset("a"))]
    for domain, width, fields, message in (
        (PERSON, 3, (), "1 to 2 of the 2 yes/no fields"),
        (PERSON, 1, ("a", "plan"), "'plan' is no field of yes and no"),
        (PERSON, 1, ("shoe",), "no such field; its fields are a, b, plan"),
        (Integers(0, 4), 1, (), "this collection has none"),
    ):
        with pytest.raises((InvalidSpec, Unsupported), match=message):
            sets_of(domain, width, True, fields)
    wide = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(14)))
    with pytest.raises(InvalidSpec, match="1,001 queries, more than 500"):
        sets_of(wide, 4, True)
    widest = Record(tuple(Field(f"f{i}", YesNo(none_is_no=True)) for i in range(32)))
    with pytest.raises(InvalidSpec, match="601,080,390 queries, more than 500"):  # not listed before
        sets_of(widest, 16, True)
    with pytest.raises(InvalidSpec, match="ask something"):
        checked([], yes)
    with pytest.raises(InvalidSpec, match="'plan' is no field of yes and no"):
        checked([AnyOf(frozenset({"plan"}))], PERSON)
    assert len(checked([AnyOf(frozenset("a")), AnyOf(frozenset("a"), True), AnyOf(frozenset("a"))], PERSON)) == 2


def test_all_intervals_together_are_wider():
    assert told_confidence(0.9, 10, False) == 0.9
    assert told_confidence(0.9, 10, True) == pytest.approx(0.99)
    assert told_confidence(0.9, 1, True) == pytest.approx(0.9)


@pytest.mark.long
def test_the_command(tmp_path, monkeypatch, capsys):
    collection = Collection.create("Habits?", PERSON, "randomized-response", "3", opens=0, closes=1 << 33)
    users = np.repeat([PERSON.index(item) for item, _ in PEOPLE], [count for _, count in PEOPLE])
    with ServerProcess(tmp_path / "d") as server:
        server.create(collection)
        oracle = deliver(server, collection, users)

        def ask(*options):
            return shell(monkeypatch, capsys, server.data, "ask", collection.id.hex(), *options)

        code, text, err = ask("--any", "a,b", "--all", "b, a", "--width", "1", "--together", "--json")
        assert (code, err) == (0, "")
        found = json.loads(text)
        queries = [AnyOf(frozenset("ab")), AnyOf(frozenset("ab"), True)]
        queries += [AnyOf(frozenset(name), every) for every in (False, True) for name in "ab"]
        ours = [answer(collection, oracle, one, told_confidence(0.95, 6, True)) for one in queries]
        assert [(one["query"], one["estimate"], one["low"]) for one in found["rows"]] == [
            (one.query, one.estimate, one.low) for one in ours
        ]
        assert (found["coverage"], found["confidence"]) == ("together", 0.95)
        code, text, err = ask("--any", "a,b")
        assert code == 0 and "any of a, b" in text and "2,100 reports" in text
        for options, words in (
            ((), "ask something"),
            (("--any", "shoe"), "no such field"),
            (("--all", "plan"), "'plan' is no field of yes and no"),
            (("--any", "a", "--fields", "a"), "--fields goes with --width"),
        ):
            code, text, err = ask(*options)
            assert (code, text, err.count("\n")) == (2, "", 1) and words in err
