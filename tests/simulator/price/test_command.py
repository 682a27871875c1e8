"""`ldp-simulate price`: its output, its page, and what it refuses."""

import json

import pytest

from ldp_server.curator.kinds import KINDS
from ldp_server.curator.workloads.kinds import WORKLOAD_KINDS
from simulator.cli import main
from simulator.price.command import page, show
from simulator.price.every_release import QUESTIONS
from simulator.price.measure import PriceOptions, worth_row

ASKED = ["price", "--users", "2000", "--runs", "1", "--kind", "histogram", "--kind", "average"]


def test_a_row_for_each_kind_and_the_errors_behind_them(capsys):
    assert main([*ASKED, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows, points = found[:2], found[2:]
    assert [row["kind"] for row in rows] == ["histogram", "average"]
    for row in rows:
        assert row["users"] == 2000
        assert row["price"] == row["reports"] / row["release"] > 1
        assert row["worth"] == row["users"] / row["volunteers"] > 1
    assert {(one["kind"], one["source"]) for one in points} == {
        (kind, source) for kind in ("histogram", "average") for source in ("reports", "release")
    }


def _rows():
    options = PriceOptions(2000, "1", ("histogram", "mode"), 1, 1)
    reports, told = [(2000, 0.2), (500, 0.4)], [(2000, 0.01), (500, 0.1), (125, 0.3)]
    rows = [worth_row(one, kinds[0], options, reports, told) for one, kinds in options.questions]
    points = [
        {"kind": row["kind"], "source": source, "people": people, "error": error}
        for row in rows
        for source, line in (("reports", reports), ("release", told))
        for people, error in line
    ]
    return rows, points


def test_a_table_of_figures_and_one_of_words(capsys):
    rows, _ = _rows()
    show(rows)
    told = capsys.readouterr().out
    assert "The price of the local model" in told
    assert "a frequency oracle over the list" in told
    assert told.count("histogram") == told.count("mode ") == 2


@pytest.mark.long
def test_its_page(tmp_path):
    rows, points = _rows()
    page(rows, points).write(tmp_path / "out")
    told = (tmp_path / "out" / "index.html").read_text()
    assert "What a volunteer is worth" in told and "histogram: the share of each of 64 items" in told
    assert (tmp_path / "out" / "worth.csv").read_text().startswith("kind,asked,reported,paid,users,reports")
    assert (tmp_path / "out" / "errors.csv").read_text().count("release") == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--users", "10"], "--users: at least 64"),
        (["--epsilon", "much"], "epsilon"),
        (["--kind", "nothing"], "histogram"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    assert main(["price", *arguments]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err


def test_its_kinds_are_those_of_the_curator():
    assert {kind for one in QUESTIONS for kind in one.releases} == {*KINDS, *WORKLOAD_KINDS}
