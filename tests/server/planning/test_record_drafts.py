"""Drafts of tables: the third of three is worked out, the file is read back, and wrong fields are said in a line."""

from __future__ import annotations

import json
import math

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Integers, Record, YesNo
from ldp_server.planning.record_drafts import TablesGoal, draft_tables
from tests.server.commands import run_here

RECORD = Record((Field("a", YesNo(none_is_no=True)), Field("b", YesNo(none_is_no=True)), Field("c", Integers(0, 3))))
DRAFT = ("collection", "draft", "--kind", "tables", "--question", "Who?", "--users", "10000", "--epsilon", "1")


def drafted(**given):
    return draft_tables("Who?", TablesGoal(RECORD, "pairs", **given), opens=0, closes=9)


@pytest.mark.long
def test_the_third_is_worked_out():
    found = drafted(users=10_000, epsilon="1")
    assert drafted(epsilon="1", within=found.within).users == pytest.approx(10_000, abs=2)
    least = drafted(users=10_000, within=found.within)
    assert (least.epsilon, least.within) == ("1", found.within)
    assert drafted(users=10_000, within=found.within * 0.999).epsilon == "1.01"
    half = drafted(users=40_000, epsilon="1")
    assert half.within == pytest.approx(found.within / 2)
    assert found.form == "tables"
    assert math.isclose(min(found.compared.values()), found.compared["tables"])


def test_the_file_is_the_question():
    found = drafted(users=10_000, epsilon="1")
    assert Collection.from_toml(found.text) == found.collection
    assert found.collection.domain == RECORD
    assert any("How often each field: a 6" in line for line in found.promise)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"users": 5}, "two of users"),
        ({"users": 0, "epsilon": "1"}, "whole number"),
        ({"epsilon": "1", "within": float("nan")}, "above 0"),
        ({"users": 10, "within": 0.001}, "10 users are too few for these tables, even at epsilon 10"),
        ({"epsilon": "1", "within": 1e-9}, "more than 1,000,000,000,000 users"),
        ({"users": 10, "epsilon": "1"}, "10 users are too few for these tables at epsilon 1: a cell that half of them"),
    ],
)
def test_impossible_goals_say_the_number_it_would_take(given, text):
    with pytest.raises(InvalidSpec, match=text):
        drafted(**given)


def test_a_workload_that_cannot_be_seen_is_refused_with_the_users_that_it_takes():
    """The number is the least one that is not refused; and that of the warning is the least one without it."""
    with pytest.raises(InvalidSpec, match=r"It takes [0-9,]+ users; fewer tables") as refused:
        drafted(users=10, epsilon="1")
    least = int(str(refused.value).split("It takes ")[1].split(" users")[0].replace(",", ""))
    with pytest.raises(InvalidSpec, match=f"It takes {least:,} users"):
        drafted(users=least - 1, epsilon="1")
    found = drafted(users=least, epsilon="1")
    assert 0.49 < found.within < 0.5
    (careful,) = [line for line in found.promise if line.startswith("Careful")]
    enough = int(careful.split("It takes ")[1].rstrip(".").replace(",", ""))
    assert least < enough < 5 * least
    assert any(line.startswith("Careful") for line in drafted(users=enough - 1, epsilon="1").promise)
    assert not any(line.startswith("Careful") for line in drafted(users=enough, epsilon="1").promise)


def test_the_command_writes_the_file(tmp_path, monkeypatch, capsys):
    file = tmp_path / "who.ldp"
    fields = ("--field", "plan: free, paid", "--field", "age: 0..8", "--field", "dark: yes", "--field", "old: yes/no")
    tables = ("--table", "plan,dark", "--table", "age", str(file))
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *fields, *tables)
    assert (code, err) == (0, "")
    assert f"Written to {file}" in out
    collection = Collection.load(file)
    assert collection.domain.names == ("plan", "age", "dark", "old")
    assert collection.domain.sizes == (3, 10, 2, 3)
    assert collection.randomizer.parameters()["tables"] == (2, 5)
    as_json = json.loads(run_here(monkeypatch, capsys, *DRAFT, *fields, "--json")[1])
    assert as_json["form"] == "tables" and as_json["users"] == 10_000


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((), "needs --field"),
        (("--field", "age"), "a field is written"),
        (("--field", "age: 8..0"), "FIRST:LAST"),
        (("--field", "a: yes", "--table", "b"), "its fields are a"),
    ],
)
def test_wrong_fields_are_one_line(more, text, monkeypatch, capsys):
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert text in err
