"""What volunteers are worth: the noise's laws, the errors, the command and its page."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.curator import laws
from simulator.cli import main
from simulator.hybrid.draws import SeededDraws
from simulator.hybrid.every_kind import HYBRID_KINDS
from simulator.hybrid.sweep import HybridOptions, local_price, shares_of, sweep

FEW = {"users": 6000, "epsilon": "2", "central": "2", "runs": 1, "seed": 3}


def test_the_noise_has_the_laws_of_the_curator():
    draws, count = SeededDraws(np.random.default_rng(1)), 40_000
    found = np.array(draws.laplace([5] * count, 1.3)) - 5
    for z in (-2, 0, 1):
        assert np.mean(found == z) == pytest.approx(laws.laplace_law(1.3, z), abs=0.012)
    assert np.std(draws.gaussian([0] * count, 9.0)) == pytest.approx(9, rel=0.03)
    scores = [3, 1, 0]
    chosen = [draws.exponential(scores, 2.0) for _ in range(count // 4)]
    flipped = [draws.select(scores, 2.0) for _ in range(count // 4)]
    for index in range(3):
        assert chosen.count(index) * 4 / count == pytest.approx(laws.exponential_law(scores, 2.0)[index], abs=0.02)
        want = laws.permute_and_flip_law(scores, 2.0)[index]
        assert flipped.count(index) * 4 / count == pytest.approx(want, abs=0.02)
    assert {draws.uniform(3) for _ in range(60)} == {0, 1, 2}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "tables" else name for name in HYBRID_KINDS]
)
def test_answers_without_noise_are_near_the_truth(name):
    """A release at a price without limit, about everybody, is the truth; so is, nearly, a report at epsilon 8."""
    kind = HYBRID_KINDS[name](4000, "8")
    rng = np.random.default_rng(2)
    people = kind.people(rng)
    truth = kind.truth(people)
    content = kind.released(people, Fraction(10_000), SeededDraws(rng))
    assert kind.error(kind.of_release(content), truth) < 1e-3
    told = kind.reported(people, 7)
    local = kind.error(kind.of_reports(told), truth)
    assert local < 0.05
    if kind.merges:
        assert kind.error(kind.merged(content, told), truth) < local


@pytest.mark.parametrize(("name", "many"), [("most-frequent", 1), ("top", 8)])
def test_the_error_of_a_choice_is_the_share_that_it_misses(name, many):
    kind = HYBRID_KINDS[name](100, "1")
    truth = np.zeros(64)
    truth[:10] = [0.3, 0.2, 0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.01]
    best = np.arange(many, dtype=float)
    assert kind.error(best, truth) == pytest.approx(0)
    worse = best.copy()
    worse[0] = 8
    assert kind.error(worse, truth) == pytest.approx(0.26)
    rows = [{"item": {"text": kind.ITEMS[place]}} for place in range(many)]
    assert kind.of_release({"rows": rows}).tolist() == best.tolist()


def test_thresholds_are_the_shares_below_the_cuts():
    kind = HYBRID_KINDS["thresholds"](4, "1")
    truth = kind.truth(np.array([1, 64, 65, 1024]))  # the numbers 0, 63, 64 and 1,023
    assert truth[:2].tolist() == [0.5, 0.75] and truth[-1] == 0.75
    assert kind.error(truth + 0.1, truth) == pytest.approx(0.1)


def test_more_volunteers_are_worth_more_and_the_seed_decides():
    options = HybridOptions(shares=(0.02, 0.3), kinds=("items",), **FEW)
    rows = sweep(options, lambda _: None)
    assert rows == sweep(options, lambda _: None)
    few, many = rows
    assert few["volunteers"] == 120
    assert many["volunteers_alone"] < few["volunteers_alone"]
    assert many["merged"] < few["merged"] < few["alone"]
    assert many["worth"] > 1
    (price,) = local_price(options, lambda _: None)
    assert price["price"] == price["reports"] / price["release"] > 5


ASKED = ["hybrid", "--users", "5000", "--runs", "1", "--shares", "0.1", "--kind", "items", "--kind", "median"]


@pytest.mark.long
def test_the_command(capsys):
    assert main([*ASKED, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["items", "median", "items", "median"]
    assert rows[1]["merged"] is None
    assert main(ASKED) == 0
    assert "The price of the local model" in capsys.readouterr().out


@pytest.mark.long
def test_its_page(tmp_path):
    assert main([*ASKED, "--report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "price of the local model" in page
    assert (tmp_path / "out" / "hybrid.csv").read_text().startswith("kind,share,volunteers")


@pytest.mark.long
def test_a_page_of_choices_that_are_always_right(tmp_path):
    """Their error is 0, which has no logarithm, and no price."""
    asked = ["hybrid", "--users", "3000", "--epsilon", "8", "--runs", "1", "--shares", "0.5", "--kind", "most-frequent"]
    assert main([*asked, "--report", str(tmp_path / "out")]) == 0
    assert "most-frequent" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shares", "2"], "between 0 and 1"),
        (["--shares", "x"], "between 0 and 1"),
        (["--users", "100", "--shares", "0.01"], "more --users"),
        (["--central", "nothing"], "epsilon"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    assert main(["hybrid", *arguments]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err
    with pytest.raises(InvalidSpec):
        shares_of("")
