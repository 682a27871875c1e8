"""Statistical queries: each method against the truth, the limits, and the command."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.learning.queries import users_for_queries
from ldp_server.learning.release import proved_cut
from simulator.cli import main
from simulator.experiments.queries.command import limits_in_words
from simulator.experiments.queries.limits import tolerance_of
from simulator.experiments.queries.plots import draw_methods
from simulator.experiments.queries.run import QueriesGoal, run
from simulator.population.habits import habits, held_fields
from simulator.population.records import correlated
from simulator.shapes import QueriesRun, QueryLimits, QueryMethod


@pytest.fixture(scope="module")
def people():
    return held_fields(habits(5, 40_000, 3))[1]


@pytest.fixture(scope="module", params=[False, True])
def found(people, request):
    goal = QueriesGoal(width=2, every=request.param, epsilon="4", asked=8, queries=60, seed=1)
    return run(people, goal)


def test_asking_comes_near_the_truth_and_the_constant_does_not(found):
    """Tables and each set asked: within six standard deviations of an answer; conjunctions as well as disjunctions."""
    rows = {row["method"]: row for row in found["methods"]}
    assert list(rows) == ["the best constant", "tables of the fields", "each set asked", "thresholds", "decomposition"]
    p = math.exp(4) / (math.exp(4) + 1)
    bit = math.sqrt(0.25 + p * (1 - p) / (2 * p - 1) ** 2)  # the largest deviation of one bit
    assert rows["each set asked"]["largest_error"] < 6 * bit / math.sqrt(4000)
    assert rows["tables of the fields"]["largest_error"] < 6 * bit / math.sqrt(4000)
    assert rows["the best constant"]["error"] > 3 * rows["each set asked"]["error"]
    assert rows["thresholds"]["error"] < 0.15 and rows["decomposition"]["error"] < 0.15
    assert [rows[name]["queries"] for name in rows][:4] == [0, 1, 10, 8]
    assert [rows[name]["users_each"] for name in rows] == [0, 40_000, 4000, 5000, 666]
    assert [rows[name]["rounds"] for name in rows] == [0, 1, 1, 1, 6]
    assert all(row["error"] <= row["largest_error"] for row in found["methods"])


def test_the_shapes_are_those_that_are_written_down(found):
    assert set(found) == set(QueriesRun.__annotations__)
    assert set(found["limits"]) == set(QueryLimits.__annotations__)
    assert all(set(row) == set(QueryMethod.__annotations__) for row in found["methods"])
    assert (found["users"], found["fields"], found["width"], found["sets"]) == (40_000, 5, 2, 10)


def test_whom_a_query_goes_to_is_drawn():
    """A file that is sorted by what is asked: half of its lines hold everything, and the first ones nothing."""
    held = np.zeros((4000, 3), bool)
    held[2000:] = True
    found = run(held, QueriesGoal(width=1, epsilon="8", asked=3, queries=20, seed=1))
    (each,) = [row for row in found["methods"] if row["method"] == "each set asked"]
    assert each["largest_error"] < 0.1  # six standard deviations of 1,333 users


def test_users_that_are_used_up_are_said(people):
    found = run(people, QueriesGoal(width=2, asked=5, queries=7, cut=0.01, seed=1))
    row = found["methods"][-1]
    assert (row["error"], row["largest_error"], row["queries"]) == (None, None, 7)
    assert limits_in_words(found)[0] == "The decomposition asked 7 queries, and its users were used up."


def test_the_limits_are_those_of_the_theorems(found):
    limits = found["limits"]
    assert limits["tolerance"] == tolerance_of(10, 40_000, "4")
    assert users_for_queries(10, limits["tolerance"] * 1.0001, "4") <= 40_000
    assert users_for_queries(10, limits["tolerance"] * 0.999, "4") > 40_000
    assert limits["users_for_wanted"] == users_for_queries(10, 0.01, "4")
    assert limits["decomposition_cut"] == proved_cut(0.1, 0.1)
    assert 10 ** (limits["decomposition_log10_parts"] * limits["decomposition_cut"]) == pytest.approx(5)
    assert limits["threshold_step"] == pytest.approx(0.1)
    assert tolerance_of(10, 9, "1") == tolerance_of(10, 20, "1") == 1.0
    words = " ".join(limits_in_words(found))
    assert f"takes {limits['users_for_wanted']:,} users" in words and "1,257 digits" in words


def test_no_answer_to_a_field_does_not_hold_it():
    names, held = held_fields(habits(3, 500, 1))
    assert names == ("f1", "f2", "f3") and held.shape == (500, 3) and 0 < held.mean() < 1
    with pytest.raises(InvalidSpec, match="'field 1' is not of yes and no"):
        held_fields(correlated([2, 2], 10, 0.0, 1))


def test_what_cannot_be_asked(people):
    for goal, message in (
        (QueriesGoal(width=6), "1 to 5 of the 5 fields"),
        (QueriesGoal(queries=40_001), "40,001 queries to users who were asked nothing before"),
        (QueriesGoal(cut=1.0), "between 0 and 1"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            run(people, goal)
    with pytest.raises(InvalidSpec, match="2 to 16 fields"):
        run(np.zeros((10, 17), bool), QueriesGoal())
    with pytest.raises(InvalidSpec, match="1,820 sets of 4, more than 1,000"):
        run(np.zeros((10, 16), bool), QueriesGoal(width=4))


def test_the_plot_has_a_line_for_each_method(found):
    drawn = draw_methods(found["methods"])
    ET.fromstring(drawn)
    assert all(f"-- {row['method']}" in drawn for row in found["methods"])


def test_the_command(capsys, tmp_path):
    file = tmp_path / "people.csv"
    lines = ["smokes,drives,name", *("yes,no,a" if i % 3 else ",yes,b" for i in range(900))]
    file.write_text("\n".join(lines))
    chosen = ("queries", "--data", str(file), "--columns", "smokes,drives", "--epsilon", "4", "--queries", "9")
    assert main([*chosen, "--json", "--width", "1"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["users"], said["fields"], said["kind"], said["sets"]) == (900, 2, "any", 2)
    assert main([*chosen, "--all", "--users", "500", "--report", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "500 users, all of 2 of 2 fields (1 sets)" in out and "Each set asked: all answers are right" in out
    assert "each set asked" in (tmp_path / "out" / "index.html").read_text()
    for arguments, message in (
        (("queries", "--data", str(file)), "the column 'name' is not of yes and no: leave it out (--columns)"),
        (("queries", "--columns", "a"), "--columns goes with --data"),
        (("queries", "--users", "100"), "600 queries to users"),
        (("queries", "--cut", "2"), "--cut"),
    ):
        assert main([*arguments]) == 2
        err = capsys.readouterr().err
        assert message in err and "Traceback" not in err
