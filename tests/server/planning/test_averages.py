"""Drafts of averages: the third of three is worked out, the promise is what reports give, wrong options are said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.fields.averages import averages_answer
from ldp_server.planning.averages import AveragesGoal, draft_averages
from tests.server.commands import run_here
from tests.server.oracles.cases import filled

RECORD = Record((Field("plan", Categories(("free", "paid"))), Field("minutes", Integers(0, 601)), Field("b", YesNo())))
DRAFT = ("collection", "draft", "--kind", "averages", "--question", "Minutes?", "--users", "10000", "--epsilon", "1")
FIELDS = ("--field", "plan: free, paid", "--field", "minutes: 0..600")


def drafted(record=RECORD, **given):
    return draft_averages("Minutes?", AveragesGoal(record, "minutes", **given), opens=0, closes=9)


def test_the_third_is_worked_out():
    found = drafted(users=100_000, epsilon="1")
    assert found.share == 1 / 4
    assert drafted(epsilon="1", within=found.within).users == pytest.approx(100_000, abs=2)
    least = drafted(users=100_000, within=found.within)
    assert (least.epsilon, least.within) == ("1", found.within)
    assert drafted(users=100_000, within=found.within * 0.999).epsilon == "1.01"
    assert drafted(users=400_000, epsilon="1").within == pytest.approx(found.within / 2)
    assert drafted(users=100_000, epsilon="1", share=0.025).within == pytest.approx(found.within * 10, rel=0.01)
    assert drafted(users=1, epsilon="0.01").within == 600


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.thinned(1)
def test_the_promise_is_that_of_the_interval(epsilon):
    """Half an interval of a cell with the planned share, with everybody at an end or half at each: the worse."""
    record = Record(RECORD.fields[:2])
    plan, widths = drafted(record, users=40_000, epsilon=epsilon, share=0.25), []
    cells = np.where(np.arange(40_000) % 4 == 0, 1, 2)
    for numbers in (np.full(40_000, 600), np.arange(40_000) // 4 % 2 * 600):
        oracle = filled(plan.collection.randomizer, np.asarray(cells + 3 * (numbers + 1), np.uint64), 8)
        row = averages_answer(plan.collection, oracle).averages[1]
        widths.append(max(row.estimate - row.low, row.high - row.estimate))
    assert max(widths) == pytest.approx(plan.within, rel=0.2)


def test_the_file_is_the_question():
    found = drafted(users=10_000, epsilon="1")
    assert Collection.from_toml(found.text) == found.collection
    assert found.collection.randomizer.parameters() == found.parameters == {"number": 1, "q": found.parameters["q"]}
    assert "the average of minutes in a cell with 25% of the users" in found.promise[0]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"users": 5}, "two of users"),
        ({"users": 5, "epsilon": "1", "within": 3.0}, "two of users"),
        ({"users": 0, "epsilon": "1"}, "a whole number"),
        ({"epsilon": "1", "within": math.inf}, "above 0"),
        ({"users": 5, "epsilon": "1", "share": 0.0}, "share"),
        ({"users": 5, "epsilon": "1", "confidence": 1.0}, "confidence"),
        ({"users": 5, "epsilon": "x"}, "epsilon"),
        ({"users": 100, "within": 0.001}, "too few for this error, even at epsilon 10. At epsilon 1 it takes"),
        ({"epsilon": "0.01", "within": 1e-6}, "more than 1,000,000,000,000 users"),
    ],
)
def test_what_makes_no_sense_is_refused(given, text):
    with pytest.raises(InvalidSpec, match=text):
        drafted(**given)


def test_fields_that_are_no_numbers_are_refused():
    for name, text in (("plan", "'plan' is no number"), ("z", "is one of the fields: plan, minutes, b")):
        with pytest.raises(InvalidSpec, match=text):
            AveragesGoal(RECORD, name, 5, "1")


def test_the_command(monkeypatch, capsys, tmp_path):
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *FIELDS, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["users"], found["epsilon"], found["share"]) == (10_000, "1", 0.5)
    assert "collection" not in found
    file = tmp_path / "minutes.ldp"
    code, out, err = run_here(monkeypatch, capsys, DRAFT[0], DRAFT[1], str(file), *DRAFT[2:], *FIELDS, "--share", "0.1")
    assert (code, err) == (0, "")
    assert "a cell with 10% of the users" in out and "Written to" in out
    assert Collection.load(file).randomizer.name == "averaged-table"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((), "needs --field"),
        (("--field", "minutes: 0..600"), "two fields or more"),
        (("--field", "a: 0..9", "--field", "b: 0..9"), "needs --number NAME"),
        (("--field", "a: x, y", "--field", "b: yes/no"), "needs --number NAME"),
        (("--field", "a: 0..9", "--field", "b: 0..9", "--number", "c"), "one of the fields: a, b"),
    ],
)
def test_wrong_options_are_said_in_one_line(monkeypatch, capsys, more, text):
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert text in err
