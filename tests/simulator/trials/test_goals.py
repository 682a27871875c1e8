"""`ldp-simulate plan --kind` with volunteers: one promise, the same figures as JSON, and what is refused."""

import json

import pytest

from ldp_client.protocol.domain import Categories
from ldp_server.planning import Goal, QuestionKind
from ldp_server.planning.planner import solve
from ldp_server.planning.volunteers import outlook_of_plan
from simulator.cli import main

ASKED = ["plan", "--kind", "frequencies", "--domain", "8", "--users", "50000", "--epsilon", "1"]


def _row(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_what_volunteers_are_worth_stands_beside_the_plan(capsys):
    plain = _row(capsys, *ASKED)
    row = _row(capsys, *ASKED, "--volunteers", "0.01,0.1", "--volunteer-epsilon", "2")
    plan = solve(Goal(QuestionKind.FREQUENCIES, Categories(tuple("abcdefg")), 50_000, "1"))
    known = outlook_of_plan(plan, [0.01, 0.1], "2")
    assert "volunteers" not in plain
    assert {name: row[name] for name in plain if name != "promise"} | {"promise": plain["promise"]} == plain
    assert [(one["volunteers"], one["epsilon"]) for one in row["volunteers"]] == [(500, "2"), (5000, "2")]
    for one, outlook in zip(row["volunteers"], known, strict=True):
        assert one["within"] == pytest.approx(outlook.within)
        assert one["worth"] == pytest.approx(outlook.worth)
    told = row["promise"][len(plain["promise"]) :]
    assert len(told) == 3
    assert "1.0% of them (500)" in told[0] and "epsilon = 2" in told[0]
    assert "holds if volunteers are like everybody else" in told[2]


def test_a_release_costs_what_a_report_does_unless_it_is_said(capsys):
    (one,) = _row(capsys, *ASKED, "--volunteers", "0.05")["volunteers"]
    (same,) = _row(capsys, *ASKED, "--volunteers", "0.05", "--volunteer-epsilon", "1")["volunteers"]
    assert one == same


def test_the_epsilon_that_was_worked_out_is_the_price(capsys):
    asked = ["plan", "--kind", "average", "--integers", "0:100", "--users", "50000", "--within", "2"]
    row = _row(capsys, *asked, "--volunteers", "0.05")
    assert row["solved"] == "epsilon"
    assert row["volunteers"][0]["epsilon"] == row["epsilon"]
    assert row["volunteers"][0]["alone"] >= row["within"], "with the chance of drawing the users"


def test_the_table_and_the_page(tmp_path, capsys):
    assert main([*ASKED, "--volunteers", "0.05", "--report", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "A volunteer is worth" in told and "With volunteers" in told
    assert (tmp_path / "out" / "volunteers.csv").read_text().startswith("share,volunteers,epsilon,alone")
    assert "volunteers" not in (tmp_path / "out" / "plan.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*ASKED, "--volunteers", "2"], "between 0 and 1"),
        ([*ASKED, "--volunteer-epsilon", "2"], "goes with --volunteers"),
        ([*ASKED, "--volunteers", "0.1", "--volunteer-epsilon", "x"], "epsilon"),
        ([*ASKED, "--volunteers", "0.0001"], "fewer than 10 volunteers"),
        (["plan", "--volunteers", "0.1"], "go with --kind"),
        (["plan", "--kind", "quantiles", "--integers", "0:9", "--volunteers", "0.1"], "not with quantiles"),
    ],
)
def test_what_is_refused(arguments, said, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err
