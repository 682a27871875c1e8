"""Tables of records: the populations are what they say, and errors are those that answers state."""

from __future__ import annotations

import csv
import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Integers, YesNo
from simulator.cli import main
from simulator.experiments.records.plots import draw_errors, draw_together
from simulator.experiments.records.run import go_together, run
from simulator.population.records import correlated, read_records
from simulator.shapes import RecordsRun, TableError


def written(tmp_path, header, rows):
    file = tmp_path / "people.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])
    return file


def test_a_file_becomes_fields_of_every_kind(tmp_path):
    rows = [
        [("free", "paid", "")[i % 3], i % 4, ("yes", "No", "")[i % 3], i * i % 977, "abcdefghijklmnopqrst"[i * i % 20]]
        for i in range(600)
    ]
    found = read_records(written(tmp_path, ["plan", "kids", "member", "income", "city"], rows), most=5)
    plan, kids, member, income, city = (field.domain for field in found.record.fields)
    assert plan == Categories(("free", "paid"))
    assert kids == Integers(0, 4)
    assert member == YesNo()
    assert isinstance(income, Categories)
    assert len(income.names) == 5
    assert isinstance(city, Categories)
    assert city.names[-1] == "(all others)"
    assert found.users == 600
    assert np.bincount(found.values[0]).tolist() == [200, 200, 200]
    assert found.record.item(int(found.indexes[1])) == {
        "plan": "paid",
        "kids": 1,
        "member": False,
        "income": income.names[0],
        "city": "b",
    }
    parts = np.bincount(found.values[3])[1:]
    assert parts.min() > 80  # ranges of about as many users each
    first, last = (int(part) for part in income.names[2].split(" to "))
    inside = sum(first <= row[3] <= last for row in rows)
    assert inside == parts[2]
    assert found.table((0, 1)).sum() == 600


def test_columns_are_chosen_and_bad_files_are_said(tmp_path):
    file = written(tmp_path, ["a", "b", "id"], [[i % 2, i % 3, f"user {i}"] for i in range(90)])
    assert read_records(file, ["b", "a"]).record.names == ("b", "a")
    for columns, text in (((), "nearly every line"), (["a"], "2 to 32 columns"), (["a", "z"], "no column 'z'")):
        with pytest.raises(InvalidSpec, match=text):
            read_records(file, columns)
    with pytest.raises(InvalidSpec, match="cannot read"):
        read_records(tmp_path / "missing.csv")
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(InvalidSpec, match="line 2 has 1 cells, the header has 2"):
        read_records(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("a,b\n")
    with pytest.raises(InvalidSpec, match="no lines"):
        read_records(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("a,b\n1,\n2,\n")
    with pytest.raises(InvalidSpec, match=r"'b' .*is empty"):
        read_records(tmp_path / "bad.csv")


def test_fields_of_a_copula_correlate_as_asked_and_have_their_shares():
    weak, strong = (correlated((3, 4), 20_000, r, 1) for r in (0.0, 0.8))
    assert go_together(weak.table((0, 1))) < 0.03
    assert go_together(strong.table((0, 1))) > 0.4
    assert go_together(correlated((3, 3), 5000, 1.0, 1).table((0, 1))) == pytest.approx(1)
    shares = np.bincount(strong.values[0], minlength=4) / 20_000
    assert shares == pytest.approx([0, 6 / 11, 3 / 11, 2 / 11], abs=1e-3)
    with pytest.raises(InvalidSpec, match="2 to 32 fields"):
        correlated((3,), 10, 0.1, 1)


@pytest.mark.long
def test_measured_errors_are_the_stated_ones_and_intervals_hold():
    """Five crowds: a root mean square over 74 cells that share their fields is within a quarter of what is stated."""
    measured, stated, covered = [], [], []
    for seed in range(5):
        found = run(correlated((3, 4, 5), 6000, 0.5, seed), "1", seed=seed)
        assert set(found.shape) == set(RecordsRun.__annotations__)
        assert set(found.tables[0]) == set(TableError.__annotations__)
        measured.append(found.shape["error"])
        stated.append(math.sqrt(np.mean([row["stated_error"] ** 2 for row in found.tables])))
        covered.append(found.shape["covered"])
        assert found.shape["possible_error"] < found.shape["error"]
        assert found.shape["planned_error"] == pytest.approx(stated[-1], rel=0.15)
    assert np.sqrt(np.mean(np.square(measured))) == pytest.approx(np.mean(stated), rel=0.25)
    assert np.mean(covered) > 0.9


@pytest.mark.long
def test_each_field_at_its_own_epsilon_has_the_stated_errors(capsys):
    measured, stated, covered = [], [], []
    each = {"field 1": "1", "field 2": "2.5", "field 3": "1.5"}
    for seed in range(5):
        found = run(correlated((3, 4, 5), 6000, 0.5, seed), "9", field_epsilons=each, seed=seed)
        assert set(found.shape) == set(RecordsRun.__annotations__)
        assert (found.shape["epsilon"], found.shape["form"]) == ("5", "every field")
        measured.append(found.shape["error"])
        stated.append(math.sqrt(np.mean([row["stated_error"] ** 2 for row in found.tables])))
        covered.append(found.shape["covered"])
        assert found.shape["planned_error"] == pytest.approx(stated[-1], rel=0.15)
    assert np.sqrt(np.mean(np.square(measured))) == pytest.approx(np.mean(stated), rel=0.25)
    assert np.mean(covered) > 0.9
    options = [part for name, text in each.items() for part in ("--field-epsilon", f"{name}: {text}")]
    assert main(["records", "--users", "2000", "--sizes", "3,4,5", *options]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Each device answers every field, at an epsilon of its own. A report has 7 bits." in said
    assert "epsilon = 5" in said and "Asked as one table drawn, at 1, it would be" in said
    assert main(["records", "--users", "2000", "--sizes", "3,4,5", *options[:2]]) == 2
    assert "'field 2' has none" in capsys.readouterr().err


@pytest.mark.long
def test_what_goes_together_is_found_and_drawn():
    found = run(correlated((3, 3, 3), 60_000, 0.7, 3), "3")
    pairs = np.triu_indices(3, 1)
    assert found.estimated[pairs] == pytest.approx(found.together[pairs], abs=0.05)
    nothing = [run(correlated((2, 2), 50, 0.5, seed), "0.1", seed=seed).estimated[0, 1] for seed in range(10)]
    assert nothing.count(0) >= 5  # no signal: nothing is made up; in one of ten noise is taken for one
    for text in (draw_errors(found.tables), draw_together(found.fields, found.together, found.estimated)):
        assert ET.fromstring(text).tag.endswith("svg")
        assert "field 1" in text


@pytest.mark.long
def test_the_command(tmp_path, capsys):
    rows = [[("free", "paid")[i % 3 == 0], i % 5, ("yes", "no")[i % 2]] for i in range(2000)]
    file = written(tmp_path, ["plan", "age", "dark"], rows)
    assert main(["records", "--data", str(file), "--epsilon", "2", "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert (shape["users"], shape["fields"], len(shape["tables"])) == (2000, 3, 3)
    assert main(["records", "--data", str(file), "--users", "500", "--table", "plan,age", "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert (shape["users"], len(shape["tables"])) == (500, 1)
    assert main(["records", "--users", "3000", "--sizes", "2,3", "--report", str(tmp_path / "out")]) == 0
    assert "of the 95% intervals contain the truth" in capsys.readouterr().out
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg") == 2
    assert (tmp_path / "out" / "together.csv").exists()
    for arguments in (["--sizes", "2,x"], ["--columns", "plan"], ["--data", str(file), "--columns", "plan,cat"]):
        assert main(["records", *arguments]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
