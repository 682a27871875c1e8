"""collection compile: from a question's file to one with a table of probabilities."""

from __future__ import annotations

import json

import pytest

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Categories, Field, Integers, Record
from tests.server.commands import run_command


@pytest.fixture
def question(tmp_path):
    file = tmp_path / "mood.toml"
    asked = Collection.create("Mood?", Integers(1, 6), "randomized-response", "4", opens=0, closes=1 << 33, nonce=3)
    file.write_text(asked.to_toml())
    return file


def compile_it(*arguments):
    return run_command(("collection", "compile", *map(str, arguments)), {}, "", 120)


def test_a_question_keeps_its_words_and_gets_a_table(question, tmp_path):
    done = compile_it(question, tmp_path / "out.toml", "--metric", "line", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    made, asked = Collection.load(tmp_path / "out.toml"), Collection.load(question)
    assert (made.question, made.domain, made.epsilon, made.nonce) == (asked.question, asked.domain, asked.epsilon, 3)
    assert made.randomizer.name == "compiled-channel"
    assert (said["elements"], said["reports"], said["can_estimate"]) == (7, 7, True)
    assert said["nearest_epsilon"] == pytest.approx(4 / 5)
    assert said["least_loss"] <= said["expected_loss"] <= said["least_loss"] * 1.01
    assert 0 < said["error_of_a_share"] < 1


def test_in_words(question, tmp_path):
    done = compile_it(question, tmp_path / "out.toml", "--metric", "line")
    assert "protects near elements more than far ones" in done.stdout
    assert "a device proves it before it answers" in done.stdout
    assert "the standard error of a rare item's share is at most" in done.stdout
    again = compile_it(question, tmp_path / "out.toml")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "exists already" in again.stderr


def test_a_table_from_files(tmp_path):
    file = tmp_path / "place.toml"
    asked = Collection.create("?", Categories(("a", "b")), "randomized-response", "1", opens=0, closes=9)
    file.write_text(asked.to_toml())
    loss, metric, often = (tmp_path / name for name in ("loss.csv", "metric.csv", "often.csv"))
    loss.write_text("0,1,1,1\n1,0,.5,1\n1,.5,0,1\n")
    metric.write_text("0,4,4\n4,0,1\n4,1,0\n")
    often.write_text(".2,.5,.3\n")
    done = compile_it(file, tmp_path / "out.toml", "--loss", loss, "--metric", metric, "--expected", often, "--json")
    assert done.returncode == 0, done.stderr
    made = Collection.load(tmp_path / "out.toml").randomizer
    assert (made.bound, made.distances, made.furthest) == (4, (4, 4, 1), 4)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--loss", "nonsense"), "cannot read nonsense"),
        (("--metric", "{wrong}"), "7 lines"),
        (("--loss", "{words}"), "lines of numbers"),
        (("--metric", "{broken}"), "further apart than a detour"),
        (("--metric", "{half}"), "whole numbers, the same both ways"),
        (("--expected", "{wrong}"), "expected frequencies are 7 numbers"),
    ],
)
def test_what_does_not_fit_is_one_line(question, tmp_path, options, text):
    far = [[abs(x - z) if {x, z} != {0, 6} else 99 for z in range(7)] for x in range(7)]
    half = [[abs(x - z) / 2 for z in range(7)] for x in range(7)]
    contents = {
        "wrong": "1,2,3\n",
        "words": "a,b\n",
        "broken": "\n".join(",".join(map(str, line)) for line in far),
        "half": "\n".join(",".join(map(str, line)) for line in half),
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    given = [option.format(**{name: str(tmp_path / name) for name in contents}) for option in options]
    done = compile_it(question, tmp_path / "out.toml", *given)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert text in done.stderr
    assert not (tmp_path / "out.toml").exists()


def test_a_question_with_too_many_items(tmp_path):
    file = tmp_path / "many.toml"
    asked = Collection.create("?", Integers(1, 64), "randomized-response", "1", opens=0, closes=9)
    file.write_text(asked.to_toml())
    done = compile_it(file, tmp_path / "out.toml")
    assert done.returncode == 2
    assert "at most 63 items; this one has 64. With --metric line or ring there may be 4,096" in done.stderr


def asked(tmp_path, domain, epsilon="4"):
    file = tmp_path / "asked.toml"
    file.write_text(Collection.create("?", domain, "randomized-response", epsilon, opens=0, closes=9).to_toml())
    return file


PLACE = Record((Field("x", Integers(0, 8)), Field("hour", Integers(0, 24))))


def test_more_items_get_a_table_by_differences(tmp_path):
    done = compile_it(asked(tmp_path, Integers(0, 300)), tmp_path / "out.toml", "--metric", "line", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said, made = json.loads(done.stdout), Collection.load(tmp_path / "out.toml").randomizer
    assert made.name == said["mechanism"] == "shifted-channel"
    assert (said["elements"], said["reports"], said["best"], said["can_estimate"]) == (301, 301, True, True)
    assert said["nearest_epsilon"] == pytest.approx(4 / 299)
    assert said["expected_loss"] == pytest.approx(said["least_loss"], rel=1e-9)
    assert not made.axes[0].ring


def test_a_record_of_a_line_and_a_ring(tmp_path):
    done = compile_it(
        asked(tmp_path, PLACE, "8"),
        tmp_path / "out.toml",
        "--metric",
        "line",
        "--axis",
        "hour: ring 3",
        "--users",
        "5000000",
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = Collection.load(tmp_path / "out.toml").randomizer
    assert [(axis.ring, axis.step) for axis in made.axes] == [(False, 1), (True, 3)]
    assert made.furthest == 7 + 36
    assert "the least of all tables is" in done.stdout
    assert "The nearest differ by a factor e^0.186 at most, the furthest by e^8" in done.stdout
    assert "the standard error of a rare item's share is at most" in done.stdout


def test_a_bound_is_said_where_the_table_is_not_the_best(tmp_path):
    file = asked(tmp_path, Integers(0, 100))
    done = compile_it(file, tmp_path / "out.toml", "--metric", "line", "--loss", "absolute", "--users", "90")
    assert "no table for this metric is below" in done.stdout
    assert "single items cannot be told from each other" in done.stdout
    ring = compile_it(file, tmp_path / "ring.toml", "--metric", "ring", "--loss", "squared", "--json")
    assert json.loads(ring.stdout)["least_loss"] < json.loads(ring.stdout)["expected_loss"]
    assert Collection.load(tmp_path / "ring.toml").randomizer.axes[0].ring


@pytest.mark.parametrize(
    ("domain", "options", "text"),
    [
        (PLACE, (), "records, and more than 63 items, take --metric line or ring"),
        (PLACE, ("--metric", "line", "--axis", "y: ring"), '--axis is "FIELD: line" or "FIELD: ring"'),
        (PLACE, ("--metric", "line", "--axis", "x: round"), '--axis is "FIELD: line"'),
        (PLACE, ("--metric", "line", "--axis", "x: ring 1 2"), '--axis is "FIELD: line"'),
        (PLACE, ("--metric", "line", "--axis", "x: ring -1"), '--axis is "FIELD: line"'),
        (PLACE, ("--metric", "line", "--axis", "x: line 0"), "a step is a whole number"),
        (PLACE, ("--metric", "line", "--loss", "nonsense"), "truth, absolute or squared"),
        (PLACE, ("--metric", "line", "--expected", "e.csv"), "leave out --expected"),
        (Integers(0, 5), ("--metric", "line", "--axis", "x: ring"), "--axis names a field of a record"),
        (Integers(0, 5000), ("--metric", "line"), "at most 4096 items in a field"),
    ],
)
def test_what_cannot_be_a_table_by_differences(tmp_path, domain, options, text):
    done = compile_it(asked(tmp_path, domain), tmp_path / "out.toml", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert text in done.stderr
    assert not (tmp_path / "out.toml").exists()
