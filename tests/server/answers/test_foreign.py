"""Randomized answers from elsewhere, from counts and from CSV files."""

import json
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories
from ldp_server.answers.estimates import Coverage, every_item
from ldp_server.answers.foreign import Randomization, debias, read_counts
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from simulator.crowd import simulate
from tests.server.commands import run_here


def randomized_response(epsilon="1", users=5000):
    """Our own randomized response with its counts: `none` and three names, four answers."""
    asked = Collection.create("Q?", Categories(("a", "b", "c")), "randomized-response", epsilon, opens=0, closes=1)
    oracle = oracle_for(asked)
    for reports in simulate(asked.randomizer, np.arange(users, dtype=np.uint64) ** 2 % 4, seed=1):
        oracle.accumulate(pack(reports, asked.randomizer.report_bytes))
    return asked, oracle


@pytest.mark.parametrize("every_look", [False, True])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "5"])
def test_it_answers_as_our_own_randomized_response_does(epsilon, every_look):
    asked, oracle = randomized_response(epsilon)
    own = every_item(asked, oracle, every_look=every_look)
    counts = {str(item): int(count) for item, count in zip(["none", "a", "b", "c"], oracle.counts.values, strict=True)}
    found = {row.item: row for row in debias(counts, Randomization(epsilon=float(epsilon)), every_look=every_look).rows}
    for row in own.rows:
        foreign = found[str(row.item or "none")]
        assert foreign.estimate == pytest.approx(row.estimate, abs=1e-6)
        assert (foreign.low, foreign.high) == (row.low, row.high)
        assert foreign.standard_error == pytest.approx(row.standard_error)
        assert foreign.consistent == pytest.approx(row.consistent, abs=1e-6)


def test_the_three_ways_agree():
    counts = {"high": 700, "low": 200, "unknown": 100}
    epsilon = 1.5
    q = 1 / (math.exp(epsilon) + 2)
    ways = [Randomization(epsilon=epsilon), Randomization(flip=2 * q), Randomization(randomized=3 * q)]
    one, two, three = (debias(counts, way) for way in ways)
    for other in (two, three):
        assert other.epsilon == pytest.approx(epsilon)
        assert [row.estimate for row in other.rows] == pytest.approx([row.estimate for row in one.rows])
        assert [(row.low, row.high) for row in other.rows] == [(row.low, row.high) for row in one.rows]
    assert sum(row.estimate for row in one.rows) == pytest.approx(1000)
    together = debias(counts, ways[0], coverage=Coverage.TOGETHER)
    assert together.rows[0].low < one.rows[0].low


@pytest.mark.long
def test_a_browsers_confidence_bit():
    """As the specification describes it: with the trigger rate, "high" or "low" is drawn evenly."""
    rate, users, high = 0.25, 4000, 1000
    missed = 0
    for run_number in range(200):
        coins = np.random.default_rng([2, run_number])
        truth = np.arange(users) < high
        drawn = coins.random(users) < rate
        said = np.where(drawn, coins.random(users) < 0.5, truth)
        counts = {"high": int(said.sum()), "low": int((~said).sum())}
        found = debias(counts, Randomization(randomized=rate))
        row = next(row for row in found.rows if row.item == "high")
        missed += not row.low <= high <= row.high
        # The formula of the specification's debiasing: the sum of (R - p/2)/(1 - p).
        assert row.estimate == pytest.approx((counts["high"] - users * rate / 2) / (1 - rate))
        assert not found.warnings
    assert missed <= 22  # of 200 at 5%; more has a probability below 1e-3
    assert missed >= 1


def test_counts_that_cannot_be_are_said():
    assert debias({"yes": 1000, "no": 10}, Randomization(flip=0.3)).warnings
    assert not debias({"yes": 700, "no": 310}, Randomization(flip=0.3)).warnings
    assert any("more often" in text for text in debias({"yes": 10_000, "no": 1}, Randomization(flip=0.4)).warnings)


@pytest.mark.parametrize(
    ("counts", "how", "words"),
    [
        ({"yes": 1}, {"flip": 0.1}, "2 to 65,536 possible answers"),
        ({"yes": 0, "no": 0}, {"flip": 0.1}, "no answers"),
        ({"yes": -1, "no": 5}, {"flip": 0.1}, "whole number"),
        ({"yes": 1.5, "no": 5}, {"flip": 0.1}, "whole number"),
        ({"yes": 1, "no": 5}, {}, "one of epsilon, flip and randomized"),
        ({"yes": 1, "no": 5}, {"flip": 0.1, "epsilon": 1.0}, "one of epsilon, flip and randomized"),
        ({"yes": 1, "no": 5}, {"flip": 0.5}, "tell nothing"),
        ({"yes": 1, "no": 5}, {"randomized": 1.0}, "tell nothing"),
        ({"yes": 1, "no": 5}, {"flip": 0.0}, "above 0"),
        ({"yes": 1, "no": 5}, {"epsilon": math.nan}, "above 0"),
        ({"yes": 1, "no": 5}, {"epsilon": 5000.0}, "not randomized"),
    ],
)
def test_what_makes_no_sense_is_refused(counts, how, words):
    with pytest.raises(InvalidSpec, match=words):
        debias(counts, Randomization(**how))


FILES = {
    "answers": "value\nhigh\nlow\nhigh\n\nhigh\n",
    "counts": "value,count\nhigh,3\nlow,1\n",
    "other columns": 'page,n,value\n"a,b",2,high\nx,1,low\n"q ""q""",1,high\n',
    "mark": "\ufeffvalue,count\nhigh,2\nhigh,1\nlow,1\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read(name, tmp_path):
    file = tmp_path / "f.csv"
    file.write_text(FILES[name], encoding="utf-8")
    column, count = ("value", "n") if name == "other columns" else (None, None)
    assert read_counts(file, column, count) == {"high": 3, "low": 1}
    listed = read_counts(file, column, count, ("low", "high", "none at all"))
    assert listed == {"low": 1, "high": 3, "none at all": 0}


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "empty"),
        ("value\nhigh\n", {"column": "nothing"}, "one column 'nothing'"),
        ("value,value\nhigh,low\n", {"column": "value"}, "one column 'value'"),
        ("value,count\nhigh,many\n", {}, "line 2: a count is a whole number"),
        ("value,count\nhigh,-3\n", {}, "line 2: a count is a whole number"),
        ("value,count\nhigh\n", {}, "line 2 has 1 fields, the header has 2"),
        ("value\nSECRET\n", {"answers": ("high", "low")}, "line 2 of .* not among those listed"),
        ('value\n"open\n', {}, "cannot read"),
        ("value\n\udcff\n", {}, "cannot read"),
    ],
)
def test_wrong_files_are_refused_without_repeating_an_answer(text, options, words, tmp_path):
    file = tmp_path / "f.csv"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidSpec, match=words) as refused:
        read_counts(file, **options)
    assert "SECRET" not in str(refused.value)
    with pytest.raises(InvalidSpec, match="cannot read"):
        read_counts(tmp_path / "missing.csv")


def test_the_command(tmp_path, monkeypatch, capsys):
    file = tmp_path / "f.csv"
    file.write_text("value,count\nhigh,3000\nlow,1000\n")
    code, out, err = run_here(monkeypatch, capsys, "foreign", file, "--randomized", 0.25, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["reports"] == 4000
    assert found["rows"][0]["item"] == {"text": "high"}
    assert found["rows"][0]["estimate"] == pytest.approx((3000 - 500) / 0.75)
    assert found["epsilon"] == pytest.approx(math.log(0.875 / 0.125))
    code, out, err = run_here(monkeypatch, capsys, "foreign", file, "--flip", 0.1, "--together", "--every-look")
    assert (code, err) == (0, "")
    assert "4,000 answers, randomized with epsilon = 2.197" in out
    assert "right at every look" in out
    file.write_text("value,count\nhigh,3000\nlow,1\n")
    code, out, _ = run_here(monkeypatch, capsys, "foreign", file, "--flip", 0.1)
    assert "Warning: 1 of 2 answers" in out
    for wrong in ([], ["--flip", 0.5], ["--flip", 0.1, "--column", "x"]):
        code, out, err = run_here(monkeypatch, capsys, "foreign", file, *wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)
