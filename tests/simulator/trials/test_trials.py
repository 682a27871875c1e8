"""`ldp-simulate plan --kind`: plans that are run, with assumed users and with a sample of one's own."""

import json
from dataclasses import replace

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_server.planning import Goal, QuestionKind, solve
from simulator.cli import main
from simulator.trials.samples import read_sample
from simulator.trials.trial import tried

K = QuestionKind
GOALS = [
    Goal(K.FREQUENCIES, Categories(("yes", "no")), 3000, "1"),
    Goal(K.FREQUENCIES, Integers(0, 50), 3000, "2", change=True),
    Goal(K.FREQUENCIES, Strings(4), 3000, "2"),
    Goal(K.AVERAGE, Integers(0, 100), 3000, "1"),
    Goal(K.AVERAGE, Integers(-10, 100), 3000, "2", sample=tuple([30.0] + [1.0, 3.0] * 50), missing=True),
    Goal(K.QUANTILES, Integers(0, 60), 3000, "2", share=0.25),
    Goal(K.RANGES, Integers(0, 60), 3000, "2"),
    Goal(K.ATTRIBUTES, Attributes(("a", "b", "c")), 3000, "1", share=0.2),
    Goal(K.PAIRS, Attributes(("a", "b", "c")), 3000, "2"),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: f"{goal.kind.value}-{goal.domain.kind}-{goal.change}")
@pytest.mark.thinned(1)
def test_a_plan_holds(goal):
    plan = solve(goal)
    trial = tried(plan, 30, 3)
    assert trial.held, trial
    assert trial.printed_error == pytest.approx(plan.standard_error, rel=0.12)


@pytest.mark.long
def test_a_plan_that_promises_too_much_is_missed():
    plan = solve(GOALS[0])
    wrong = tried(replace(plan, standard_error=plan.standard_error / 3), 30, 3)
    assert not wrong.error_held
    assert wrong.intervals_held
    fewer = tried(replace(plan, goal=replace(plan.goal, confidence=0.05), standard_error=1.0), 40, 3)
    assert fewer.intervals_held  # 5% intervals hold in 5%
    boasting = replace(fewer, confidence=0.95)
    assert boasting.coverage < 0.5


def run(capsys, *arguments):
    code = main(["plan", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_the_command_solves_and_verifies(capsys):
    code, out, err = run(capsys, "--kind", "average", "--integers", "0:50", "--users", 2000, "--verify", "--json")
    assert code == 0, err
    row = json.loads(out)
    assert (row["solved"], row["runs"], row["error_held"], row["intervals_held"]) == ("error", 5, True, True)
    code, out, err = run(capsys, "--kind", "ranges", "--domain", 64, "--within", 0.05, "--epsilon", 2, "--json")
    assert json.loads(out)["solved"] == "users"
    code, out, err = run(capsys, "--kind", "pairs", "--domain", 8, "--within", 0.2, "--users", 5000, "--json")
    assert json.loads(out)["solved"] == "epsilon"
    code, out, err = run(capsys, "--kind", "frequencies", "--users", 5000, "--per-day", 100, "--verify", "--runs", 3)
    assert code == 0, err
    assert "takes 50 days" in out
    assert "The error is as planned" in out


def test_a_file_of_ones_own(tmp_path, capsys):
    file = tmp_path / "people.csv"
    file.write_text("colour,age,habits\n" + "red,30,a + b\nblue,41,a\nSECRET,7,\n,,b\n" * 50)
    for kind, column in (("frequencies", "colour"), ("average", "age"), ("quantiles", "age"), ("attributes", "habits")):
        code, out, err = run(
            capsys, "--kind", kind, "--data", file, "--column", column, "--users", 2000, "--epsilon", 2, "--verify"
        )
        assert code == 0, err
        assert "SECRET" not in out + err
        assert "as planned" in out


def test_samples(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("colour,age,habits\nred,30,a + b\nblue,28,a\nred,31,\n,,b + a\n")
    colours = read_sample(file, "colour", K.FREQUENCIES)
    assert (colours.domain, colours.counts) == (Categories(("blue", "red")), (1, 1, 2))
    ages = read_sample(file, "age", K.AVERAGE)
    assert (ages.domain, ages.counts) == (Integers(28, 4), (1, 1, 0, 1, 1))
    ages = read_sample(file, "age", K.AVERAGE, (0, 30))
    assert (ages.domain, ages.counts[0], ages.counts[29], ages.counts[31]) == (Integers(0, 31), 2, 1, 1)
    habits = read_sample(file, "habits", K.PAIRS)
    assert (habits.domain, habits.counts) == (Attributes(("a", "b")), (1, 1, 0, 2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--within", 0.1], "go with --kind"),
        (["--kind", "average", "--item-bytes", 8], "--kind goes with none of"),
        (["--kind", "average", "--data", "x.csv"], "goes with --column"),
        (["--kind", "average", "--integers", "5:1"], "FIRST:LAST"),
        (["--kind", "pairs", "--domain", 7], "2^k sets"),
        (["--kind", "average", "--data", "FILE", "--column", "colour"], "no whole number"),
        (["--kind", "heavy-hitters", "--data", "FILE", "--column", "colour"], "does not depend on a sample"),
        (["--kind", "average", "--data", "FILE", "--column", "nothing"], "one column 'nothing'"),
        (["--kind", "frequencies", "--users", 30_000_000, "--verify"], "at most 20,000,000 users"),
        (["--kind", "heavy-hitters", "--domain", "strings:4", "--users", 300_000, "--verify"], "--item-bytes L"),
    ],
)
def test_what_cannot_be_is_one_line(arguments, words, tmp_path, capsys):
    file = tmp_path / "people.csv"
    file.write_text("colour,age\nSECRET,30\nblue,28\n")
    code, out, err = run(capsys, *[file if one == "FILE" else one for one in arguments])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert "SECRET" not in err


def test_an_unreadable_sample(tmp_path):
    with pytest.raises(InvalidSpec, match="cannot read"):
        read_sample(tmp_path / "gone.csv", "x", K.AVERAGE)
    file = tmp_path / "empty.csv"
    file.write_text("x\n")
    with pytest.raises(InvalidSpec, match="no lines below"):
        read_sample(file, "x", K.AVERAGE)
