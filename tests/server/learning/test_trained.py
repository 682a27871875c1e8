"""Models of rows and of tables: accuracy on rows that were not seen, intervals that hold, and the commands."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers import estimates
from ldp_server.answers.estimates import Coverage
from ldp_server.answers.records import RecordTable
from ldp_server.learning.accuracy import advantage
from ldp_server.learning.labels import RandomizedLabels
from ldp_server.learning.saved import read_model
from ldp_server.learning.tabled import learn_table
from ldp_server.learning.trained import LearnGoal, ModelKind, learn
from tests.server.analyst.conftest import deliver
from tests.server.commands import run_here
from tests.server.helpers import ServerProcess
from tests.server.learning.populations import asked, counted, reports
from tests.server.test_every_door import shell

TWO = Categories(("yes",))
AGE, CITY, LEFT = Field("age", Integers(0, 4)), Field("city", Categories(("x", "y"))), Field("left", YesNo(True))


def people(users, seed):
    """Rows, and who has the label: age over 3, or city b, up to a tenth who are otherwise."""
    rng = np.random.default_rng(seed)
    age, city = rng.normal(size=users), rng.choice(["a", "b"], users)
    return {"age": age.tolist(), "city": city.tolist()}, (age + (city == "b") > 0.5) != (rng.random(users) < 0.1)


@pytest.mark.parametrize("kind", ModelKind)
def test_a_model_is_measured_on_rows_that_it_has_not_seen(kind):
    columns, held = people(6000, 1)
    collection = asked(TWO, epsilon="3")
    found = learn(
        collection,
        {**columns, "r": reports(collection, held, 1).tolist()},
        "r",
        LearnGoal(kind, "no", confidence=0.999),
    )
    assert (found.learned_from, found.tested_on, found.features) == (4200, 1800, ("age", "city"))
    fresh, true = people(4000, 2)
    right = np.mean(np.array(found.model.predict(fresh)) == np.where(true, "yes", "no"))
    assert right > 0.8
    assert found.accuracy.low <= right <= found.accuracy.high
    most = max(held.mean(), 1 - held.mean())
    assert found.constant == ("yes" if held.mean() > 0.5 else "no")
    assert found.constant_accuracy.low <= most <= found.constant_accuracy.high
    assert found.gain.estimate == pytest.approx(found.accuracy.estimate - found.constant_accuracy.estimate, abs=1e-12)
    assert found.gain.low <= right - most <= found.gain.high
    assert found.verdict.value == "yes" and found.settled


def test_the_rows_to_measure_with_are_drawn_before_a_report_is_looked_at():
    """The same seed and other reports: the same mean of the features, which comes from the rows to learn from."""
    columns, held = people(500, 3)
    collection = asked(TWO)
    goal = LearnGoal(none="no", test=0.4)
    means = set()
    for seed in (1, 2):
        rows = {**columns, "r": reports(collection, held, seed).tolist()}
        found = learn(collection, rows, "r", goal)
        means.add(found.model.encoding.columns[0].mean)
        assert (found.learned_from, found.tested_on) == (300, 200)
    assert len(means) == 1
    other = learn(collection, rows, "r", replace(goal, seed=5)).model.encoding.columns[0].mean
    assert {other} != means


@pytest.mark.thinned(1)
@pytest.mark.parametrize(("epsilon", "rows"), [("1", 60), ("8", 6), ("8", 40)])
def test_the_gain_over_a_constant_has_an_interval_that_holds(epsilon, rows, request):
    """A classifier that is right about 0.7 beside a constant with 0.5, also for a handful of rows: 80% intervals."""
    collection, crowds = asked(TWO, epsilon=epsilon), 150 if request.config.getoption("--long") else 60
    held, wide = 0, 0
    for seed in range(crowds):
        rng = np.random.default_rng(1000 + seed)
        true = rng.integers(0, 2, rows)
        says = np.where(rng.random(rows) < 0.7, true, 1 - true)
        labels = RandomizedLabels.of(collection, reports(collection, true, seed), "no")
        one = advantage(np.array(["no", "yes"])[says], ["no"] * rows, labels, 0.8)
        held += one.low <= 0.2 <= one.high
        wide += one.high - one.low < 2
        assert -1 <= one.low <= one.high <= 1
    assert held >= binom.ppf(1e-5, crowds, 0.8)
    assert rows < 40 or epsilon == "1" or wide > crowds / 2


def test_two_that_say_the_same_do_not_differ():
    labels = RandomizedLabels.of(asked(TWO), np.arange(200) % 2, "no")
    same = advantage(["no"] * 200, ["no"] * 200, labels)
    assert same.estimate == 0
    assert same.low < 0 < same.high
    turned = advantage(["yes"] * 200, ["no"] * 200, labels), advantage(["no"] * 200, ["yes"] * 200, labels)
    assert turned[0].high == pytest.approx(-turned[1].low, abs=1e-9)


def test_rows_that_cannot_be_learned_from_say_what_to_do():
    collection = asked(TWO)
    columns, held = people(40, 4)
    rows = {**columns, "r": held.astype(int).tolist()}
    for changed, goal, message in (
        (rows, LearnGoal(), "one label, 'yes': say which class those have who send none"),
        (rows, LearnGoal(none="yes"), "name another"),
        (columns, LearnGoal(none="no"), "a column 'r' with reports"),
        ({"r": rows["r"]}, LearnGoal(none="no"), "at least one other column"),
        (rows, LearnGoal(none="no", test=0.01), "40 rows are too few"),
        (rows, LearnGoal(none="no", test=0.99), "40 rows are too few"),
        (rows, LearnGoal(none="no", test=1.0), "between 0 and 1"),
        (rows, LearnGoal(none="no", confidence=1.0), "confidence lies strictly"),
        ({**rows, "name": [str(i) + "x" for i in range(40)]}, LearnGoal(none="no", most=20), "'name' has 28 different"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            learn(collection, changed, "r", goal)


def test_people_without_a_label_count_in_no_class():
    collection = asked(Categories(("low", "high")), epsilon="4")
    rng = np.random.default_rng(5)
    x = rng.normal(size=4000)
    held = np.where(rng.random(4000) < 0.3, 0, 1 + (x > 0))
    found = learn(collection, {"x": x.tolist(), "report": reports(collection, held, 5).tolist()}, "report")
    assert found.classes == ("low", "high")
    assert found.model.predict({"x": [-1, 1]}) == ["low", "high"]
    assert found.accuracy.low > 0.85


@pytest.fixture
def files(tmp_path):
    columns, held = people(600, 6)
    collection = asked(TWO, epsilon="4")
    question, rows = tmp_path / "liked.ldp", tmp_path / "rows.csv"
    question.write_text(collection.to_toml())
    with rows.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["age", "city", "report"])
        writer.writerows(zip(columns["age"], columns["city"], reports(collection, held, 6).tolist(), strict=True))
    return question, rows


def test_the_command_from_rows_to_a_model_that_is_applied(files, tmp_path, monkeypatch, capsys):
    question, rows = files
    out = tmp_path / "model.json"
    code, text, err = local(monkeypatch, capsys, "rows", question, rows, "--none", "no", "--out", out, "--json")
    assert (code, err) == (0, "")
    said = json.loads(text)
    assert (said["tested_on"], said["verdict"], said["file"]) == (180, "yes", str(out))
    assert out.stat().st_mode & 0o777 == 0o600
    assert json.loads(out.read_text())["accuracy"] == said["accuracy"]
    code, text, err = local(monkeypatch, capsys, "rows", question, rows, "--none", "no", "--features", "age")
    assert code == 0 and "learned from 420 rows and measured on 180 others" in text and "always " in text
    assert local(monkeypatch, capsys, "rows", question, rows, "--none", "no", "--out", out) == (
        2, "", f"ldp-server: {out} exists already: give the name of a new file\n",
    )  # fmt: skip
    fresh = tmp_path / "fresh.csv"
    fresh.write_text("city,age\nb,2\na,-2\n")
    assert local(monkeypatch, capsys, "apply", out, fresh)[1].splitlines()[0] == "class,probability"
    told = [json.loads(line) for line in local(monkeypatch, capsys, "apply", out, fresh, "--json")[1].splitlines()]
    assert [one["class"] for one in told] == ["yes", "no"] == read_model(out).predict({"age": [2, -2], "city": "ba"})
    assert all(one["probability"] > 0.5 for one in told)
    written = tmp_path / "told.csv"
    assert local(monkeypatch, capsys, "apply", out, fresh, "--out", written)[1] == f"{written}: 2 rows\n"
    assert [line.split(",")[0] for line in written.read_text().splitlines()] == ["class", "yes", "no"]
    assert written.stat().st_mode & 0o777 == 0o600


def local(monkeypatch, capsys, *arguments):
    """A command that calls no server."""
    return run_here(monkeypatch, capsys, "learn", *arguments)


def test_the_command_refuses_in_one_line(files, tmp_path, monkeypatch, capsys):
    question, rows = files
    for arguments, words in (
        ((question, rows), "has one label"),
        ((question, rows, "--none", "no", "--features", "age,shoe"), "no column 'shoe'; they have age, city, report"),
        ((question, rows, "--none", "no", "--report", "age"), "no report of this question in the column 'age'"),
        ((question, tmp_path / "gone.csv", "--none", "no"), "cannot read"),
        ((tmp_path / "gone.ldp", rows), "gone.ldp"),
        ((question, rows, "--none", "no", "--test", "2"), "a share between 0 and 1"),
    ):
        code, out, err = local(monkeypatch, capsys, "rows", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), (arguments, err)
        assert words in err


def table_of(collection, oracle, fields, coverage=Coverage.TOGETHER):
    table = RecordTable(collection, fields)
    return table.named(estimates.every_item(table.collection, table.oracle(oracle), coverage=coverage))


PERSON = Record((AGE, CITY, LEFT))


def crowd_of(users):
    """How many hold each record; those of 2 and 3 left, but for a fifth."""
    return [
        ({"age": age, "city": city, "left": left}, round(users / 8 * (0.8 if left == (age >= 2) else 0.2)))
        for age, city, left in product(range(4), "xy", (True, False))
    ]


@pytest.mark.parametrize("kind", ModelKind)
def test_a_model_of_a_table_has_an_interval_for_every_model(kind):
    collection = asked(PERSON, epsilon="4")
    found = learn_table(
        table_of(collection, counted(collection, crowd_of(8000), 1), ("age", "city", "left")), "left", kind
    )
    assert found.classes == ("no", "yes")
    assert found.model.predict({"age": [0, 1, 2, 3], "city": ["x"] * 4}) == ["no", "no", "yes", "yes"]
    assert found.accuracy.low < 0.8 < found.accuracy.high
    assert found.gain.low < 0.3 < found.gain.high
    assert found.verdict.value == ("yes" if found.gain.low > 0 else "cannot tell")
    assert found.counted == pytest.approx(8000, rel=0.1)
    few = learn_table(table_of(collection, counted(collection, crowd_of(400), 1), ("age", "left")), "left", kind)
    assert few.accuracy.high - few.accuracy.low > found.accuracy.high - found.accuracy.low


def test_the_picked_model_is_covered(request):
    """Labels that no feature tells: the model that looks best is right for one half, which the interval holds."""
    collection = asked(Record((Field("age", Integers(0, 9)), LEFT)), epsilon="2")
    halves = [({"age": age, "left": left}, 40) for age in range(9) for left in (True, False)]
    crowds = 40 if request.config.getoption("--long") else 4
    found = [
        learn_table(table_of(collection, counted(collection, halves, seed), ("age", "left")), "left", ModelKind.TREE)
        for seed in range(crowds)
    ]
    assert np.mean([one.accuracy.estimate for one in found]) > 0.51  # it was picked
    assert all(one.accuracy.low <= 0.5 <= one.accuracy.high for one in found)
    assert all(one.gain.low <= 0 and one.verdict.value == "cannot tell" for one in found)


def test_tables_that_cannot_be_learned_from():
    collection = asked(PERSON, epsilon="4")
    oracle = counted(collection, crowd_of(400), 1)
    with pytest.raises(InvalidSpec, match="hold for all cells together"):
        learn_table(table_of(collection, oracle, ("age", "left"), Coverage.EACH), "left")
    with pytest.raises(InvalidSpec, match="one field of the answer as the label"):
        learn_table(table_of(collection, oracle, ("age", "city")), "left")
    sure = asked(PERSON, epsilon="16")
    alike = counted(sure, [({"age": 1, "city": "x", "left": True}, 300)], 1)
    with pytest.raises(InvalidSpec, match="fewer than two labels"):
        learn_table(table_of(sure, alike, ("age", "left")), "left")


@pytest.mark.long
def test_the_command_for_a_live_collection(tmp_path, monkeypatch, capsys):
    collection = Collection.create("Who left?", PERSON, "randomized-response", "4", opens=0, closes=1 << 33)
    users = np.repeat([PERSON.index(item) for item, _ in crowd_of(4000)], [count for _, count in crowd_of(4000)])
    with ServerProcess(tmp_path / "d") as server:
        server.create(collection)
        oracle = deliver(server, collection, users)
        out = tmp_path / "model.json"
        options = ("learn", "table", collection.id.hex(), "--fields", "age,city", "--label", "left")
        code, text, err = shell(monkeypatch, capsys, server.data, *options, "--json", "--out", str(out))
        assert (code, err) == (0, "")
        said = json.loads(text)
        ours = learn_table(table_of(collection, oracle, ("age", "city", "left")), "left")
        assert said["accuracy"] == {
            "estimate": ours.accuracy.estimate,
            "low": ours.accuracy.low,
            "high": ours.accuracy.high,
        }
        assert read_model(out).predict({"age": [0, 3], "city": ["x", "y"]}) == ["no", "yes"]
        code, text, err = shell(monkeypatch, capsys, server.data, *options)
        assert code == 0 and "right for every model at once" in text
        code, out, err = shell(monkeypatch, capsys, server.data, *options[:-1], "shoe")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "no such field; its fields are age, city, left" in err
