"""Drafts with an epsilon for each field: stated is what the oracle says; wrong wishes are said in a line."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import two_sided
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from ldp_server.planning.protected import (
    ProtectedGoal,
    cell_variance,
    draft_protected,
    most_variance,
    person_epsilon,
)
from ldp_server.planning.tables import design_tables
from tests.server.commands import run_here

RECORD = Record(
    (Field("plan", Categories(("free", "paid"))), Field("age", Integers(0, 9)), Field("dark", YesNo(none_is_no=True)))
)
EACH = {"plan": "1", "age": "2.5", "dark": "0.75"}
SHELL = (
    *("collection", "draft", "-", "--kind", "tables", "--question", "Who?"),
    *("--field", "plan: free, paid", "--field", "age: 0..8", "--field", "dark: yes"),
)


def drafted(workload="pairs", epsilons=EACH, **given):
    return draft_protected("Who?", ProtectedGoal(RECORD, workload, epsilons, **given), opens=0, closes=9)


def test_the_stated_errors_are_those_that_the_oracle_states_for_even_users():
    """For users spread evenly the counts are even too, and the stated variance of a table is the oracle's, with that of
    which users there are: 1/k less its square.
    """
    found = drafted(users=60_000)
    made = found.collection.randomizer
    assert isinstance(made, EveryField)
    oracle = oracle_for(made)
    oracle.accumulate(pack(np.repeat(np.arange(made.bound, dtype=np.uint64), 1000), made.report_bytes))
    for places in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        view = table_view(oracle, RECORD, AskedTable(RECORD, places))
        cells = math.prod(RECORD.sizes[place] for place in places)
        at = np.arange(cells, dtype=np.uint64)
        known = view.standard_errors(at, view.estimate_all()) ** 2 / oracle.reports
        drawn = 1 / cells - 1 / cells**2
        assert known + drawn == pytest.approx(np.full(cells, cell_variance(made, places)), rel=1e-6)


@pytest.mark.parametrize("epsilons", [EACH, {"plan": "0.1", "age": "6", "dark": "8"}, dict.fromkeys(EACH, "0.01")])
@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_no_crowd_has_a_larger_variance_than_the_stated_one(epsilons, places):
    """All users in one cell, for every cell: the exact variance of the estimates of all cells, by whole tables."""
    made = drafted(users=60_000, epsilons=epsilons).collection.randomizer
    table = np.ones((1, 1))
    for place in places:
        response, size = made.responses[place], RECORD.sizes[place]
        own = [[float(response.probability(x, y)) for y in range(size)] for x in range(size)]
        table = np.kron(table, np.array(own))
    inverse = np.linalg.inv(table).T
    found = table @ (inverse**2).T - (table @ inverse.T) ** 2
    most = most_variance(made, places)
    assert found.max() <= most * (1 + 1e-6)
    assert most == pytest.approx(max(found.max(), cell_variance(made, places)), rel=1e-6)


def test_where_nearly_everybody_has_one_value_the_half_interval_is_the_larger_one():
    """98 values at epsilon 4: for users spread evenly 0.39%, and 1.9% for the value that all of them have."""
    record = Record((Field("a", Integers(1, 98)), Field("b", Integers(1, 1))))
    found = draft_protected(
        "?", ProtectedGoal(record, "singles", {"a": "4", "b": "1"}, users=20_000), opens=0, closes=9
    )
    field, made = found.fields[0], found.collection.randomizer
    p, q = made.responses[0].p, made.responses[0].q
    exact = two_sided(0.95) * math.sqrt(p * (1 - p) / 20_000) / float(p - q)
    assert field.at_most == pytest.approx(exact) == pytest.approx(0.0189, rel=1e-2)
    assert field.within < 0.22 * field.at_most
    assert "a 4 (+- 0.39%, at most 1.9%)" in "\n".join(found.promise)
    assert "for users who are spread evenly over its cells; to +- 1.9% wherever they are" in found.promise[0]


def test_users_and_error_follow_from_each_other():
    found = drafted(users=60_000)
    made = found.collection.randomizer
    pairs = [cell_variance(made, places) for places in ((0, 1), (0, 2), (1, 2))]
    assert found.within == pytest.approx(two_sided(0.95) * math.sqrt(max(pairs) / 60_000))
    assert found.compared["every field"] == pytest.approx(math.sqrt(np.mean(pairs) / 60_000))
    assert drafted(within=found.within).users == pytest.approx(60_000, abs=2)
    assert drafted(users=240_000).within == pytest.approx(found.within / 2)
    assert drafted(users=60_000, confidence=0.99).within == pytest.approx(found.within * 2.5758 / 1.95996, rel=1e-4)
    assert drafted("singles", users=60_000).within < found.within
    singles = [two_sided(0.95) * math.sqrt(cell_variance(made, (i,)) / 60_000) for i in range(3)]
    assert [one.within for one in found.fields] == pytest.approx(singles)


def test_it_is_compared_with_one_table_at_the_sum_and_at_the_least_of_the_epsilons():
    found = drafted(users=60_000)
    assert found.epsilon == "4.25"
    at_all, at_least = (design_tables(RECORD, text, "pairs")[0].standard_error(60_000) for text in ("4.25", "0.75"))
    assert found.compared == {
        "every field": found.compared["every field"],
        "one table drawn, at 4.25": at_all,
        "one table drawn, at 0.75": at_least,
    }
    said = "\n".join(found.promise)
    assert "Per person: 4.25, the sum. If fields tell each other, only the person's number is a bound." in said
    assert "plan 1 (+- " in said and "age 2.5 (+- " in said and "dark 0.75 (+- " in said
    assert "With one table drawn, at 4.25, the standard error would be" in said
    assert "as much, and each field in it up to all of that" in said
    assert "no field costs more than it does here" in said
    alone = Record(RECORD.fields[:1])
    one = draft_protected("?", ProtectedGoal(alone, "singles", {"plan": "1"}, users=100), opens=0, closes=9)
    assert list(one.compared) == ["every field", "one table drawn, at 1"]


def test_fields_that_are_too_fine_for_their_epsilon_are_named():
    said = "\n".join(drafted(users=60_000).promise)
    assert "tell more than" not in said
    fine = "\n".join(drafted(users=60_000, epsilons={**EACH, "age": "0.5"}).promise)
    assert "age has 10 elements, and at epsilon 0.5 the answers tell more than 6 apart badly" in fine
    assert "Careful: this is too few users" in "\n".join(drafted(users=100).promise)
    assert "Careful" not in said


def test_the_file_is_the_question():
    found = drafted(users=60_000)
    assert Collection.from_toml(found.text) == found.collection
    assert found.collection.domain == RECORD
    assert found.collection.epsilon.text == "4.25"
    assert found.text.startswith("# What will be learned")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "give one of users and the error"),
        ({"users": 5, "within": 0.1}, "give one of users and the error"),
        ({"users": 0}, "whole number from 1"),
        ({"within": 0.0}, "above 0"),
        ({"within": float("inf")}, "above 0"),
        ({"within": 1e-9}, "this error takes [0-9,]{19,} users, 4.25 being the sum"),
        ({"users": 10, "epsilons": {"plan": "1", "age": "1"}}, "'dark' has none"),
        ({"users": 10, "epsilons": {**EACH, "age": "19"}}, "add up to 20.75, and a report costs at most 20"),
        ({"users": 10, "workload": [("plan", "town")]}, "no such field"),
    ],
)
def test_impossible_goals_say_why(given, text):
    with pytest.raises(InvalidSpec, match=text):
        drafted(**given)


def test_the_sum_may_be_as_large_as_an_epsilon():
    assert person_epsilon(RECORD, {**EACH, "age": "18.25"}).text == "20"
    sums = [float(person_epsilon(RECORD, {**EACH, "age": text})) for text in ("0.01", "0.010000001", "0.1")]
    assert all(one < other for one, other in pairwise(sums))


EPSILONS = ("--field-epsilon", "plan: 1", "--field-epsilon", "age:2.50", "--field-epsilon", " dark : 0.75")


def test_the_command_writes_the_same(monkeypatch, capsys):
    code, out, err = run_here(
        monkeypatch, capsys, *SHELL, *EPSILONS, "--users", "60000", "--table", "plan,age", "--json"
    )
    assert (code, err) == (0, "")
    found, here = json.loads(out), drafted([("plan", "age")], users=60_000)
    assert found["within"] == pytest.approx(here.within)
    assert found["epsilon"] == "4.25"
    assert [one["epsilon"] for one in found["fields"]] == ["1", "2.5", "0.75"]
    assert Collection.from_toml(found["text"]).randomizer == here.collection.randomizer
    code, out, err = run_here(
        monkeypatch, capsys, *SHELL, *EPSILONS, "--within", "0.02", "--epsilon", "4.25", "--table", "plan"
    )
    assert (code, err) == (0, "")
    assert Collection.from_toml(out).randomizer == here.collection.randomizer


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((*EPSILONS, "--users", "9", "--epsilon", "4"), "add up to 4.25, and --epsilon says 4"),
        ((*EPSILONS, "--field-epsilon", "age: 1", "--users", "9"), "'age' has two epsilons"),
        ((*EPSILONS[:2], "--users", "9"), "'age' has none"),
        (("--field-epsilon", "age", "--users", "9"), "is written"),
        (("--field-epsilon", "age: much", "--users", "9"), "decimal number"),
        (EPSILONS, "give one of users and the error"),
        ((*EPSILONS, "--users", "9", "--volunteers", "0.01"), "without --volunteers"),
        ((*EPSILONS, "--users", "9", "--kind", "averages"), "goes with --kind tables"),
    ],
)
def test_wrong_options_are_one_line(monkeypatch, capsys, more, text):
    code, out, err = run_here(monkeypatch, capsys, *SHELL, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert text in err
