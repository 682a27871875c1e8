"""Merging: right intervals from both cohorts together, smaller errors than either, and a warning that is a promise."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.answers.merging.cohorts import CohortCount, merged
from ldp_server.answers.merging.sources import of_estimates, of_release
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.releases.histogram import LaplaceHistogram
from tests.server.commands import run_here
from tests.server.helpers import NOW

VOLUNTEERS, REPORTS = 400, 20_000
LOCAL = 0.02 * REPORTS  # a standard error of two percent


def cohorts(rng, shares, *, skew=0.0):
    """Counts of both cohorts: sampled from one population (or a skewed one), with noise."""
    one = rng.multinomial(VOLUNTEERS, [shares[0] + skew, *shares[1:-1], shares[-1] - skew])
    other = rng.multinomial(REPORTS, shares)
    names = [f"i{k}" for k in range(len(shares) - 1)]
    noisy = rng.laplace(scale=2.0, size=len(names))
    local = rng.normal(scale=LOCAL, size=len(names))
    return (
        {name: CohortCount(one[k] + noisy[k], 8.0) for k, name in enumerate(names)},
        {name: CohortCount(other[k] + local[k], LOCAL**2) for k, name in enumerate(names)},
    )


@pytest.mark.parametrize("shares", [(0.3, 0.2, 0.5), (0.004, 0.001, 0.995), (0.97, 0.02, 0.01)])
def test_the_interval_holds_and_is_narrower_than_either(shares):
    """Also for items that hardly anybody holds, where a plug-in variance would be 0."""
    rng = np.random.default_rng(17)
    runs, inside, error, alone, local = 1000, 0, 0.0, 0.0, 0.0
    for _ in range(runs):
        one, other = cohorts(rng, shares)
        row = merged(one, VOLUNTEERS, other, REPORTS).rows[0]
        inside += row.low <= shares[0] <= row.high
        error += (row.share - shares[0]) ** 2
        alone += (row.volunteers - shares[0]) ** 2
        local += (row.reports - shares[0]) ** 2
        assert row.standard_error <= min(row.volunteers_error, row.reports_error)
    assert inside / runs >= 0.925
    # Weights go by cautious variances, so that intervals hold also for few people: that costs a few percent at most.
    assert error < 1.06 * min(alone, local)


def test_the_warning_is_rare_where_there_is_one_population_and_certain_where_there_are_two():
    rng = np.random.default_rng(18)
    shares = (0.3, 0.2, 0.1, 0.1, 0.3)
    false = sum(
        merged(one, VOLUNTEERS, other, REPORTS).disagree for one, other in (cohorts(rng, shares) for _ in range(1000))
    )
    assert false <= 25  # 1% of 1,000 at most: more than 25 with a probability under 1e-4
    one, other = cohorts(rng, shares, skew=0.25)
    found = merged(one, VOLUNTEERS, other, REPORTS)
    assert found.disagree
    assert found.chance < 1e-6
    assert "beyond chance (probability at most" in found.warning


def test_what_cannot_be_merged():
    one = {"a": CohortCount(1, 1)}
    for wrong in ((one, 0, one, 5), (one, 5, {"b": CohortCount(1, 1)}, 5)):
        with pytest.raises(InvalidSpec):
            merged(*wrong)
    with pytest.raises(InvalidSpec, match="confidence"):
        merged(one, 5, one, 5, confidence=1.0)
    with pytest.raises(InvalidSpec, match="chosen by their noise"):
        of_release({"kind": "items", "rows": [], "people": 3})
    with pytest.raises(InvalidSpec, match="chosen by their estimates"):
        of_estimates({"coverage": "selected", "rows": [], "reports": 1})


def estimates(rome):
    """What `ldp-server estimate --items FILE --json` prints."""
    rows = [
        {"item": {"text": "rome"}, "estimate": rome, "standard_error": 200.0, "low": 0, "high": 1},
        {"item": {"text": "oslo"}, "estimate": 20_000 - rome, "standard_error": 200.0, "low": 0, "high": 1},
        {"item": {"none": True}, "estimate": 0.0, "standard_error": None, "low": 0, "high": 1},
    ]
    return json.dumps({"coverage": "each", "reports": 20_000, "rows": rows})


@pytest.fixture
def home(tmp_path):
    create_data_set(tmp_path / "home", "panel", DataSetBudget("pure", Fraction(4)), NOW)
    people = PeopleFile(400, {"city": ["rome"] * 300 + ["oslo"] * 100}, b"p" * 32)
    request = ReleaseRequest("panel", "city", LaplaceHistogram(("rome", "oslo", "none"), Fraction(4)))
    signed = release(tmp_path / "home", request, people, ExactDraws(), NOW, "opendp")
    (tmp_path / "r.json").write_text(json.dumps(signed.as_dict()))
    return tmp_path / "home"


def test_the_command(home, tmp_path, monkeypatch, capsys):
    files = ["merge", tmp_path / "r.json", tmp_path / "e.json", "--key", home / f"{KEY_FILE}.pub"]

    def command(*arguments):
        return run_here(monkeypatch, capsys, "curator", *arguments)

    (tmp_path / "e.json").write_text(estimates(15_000.0))
    code, out, err = command(*files)
    assert (code, err) == (0, "")
    assert "Warning" not in out
    assert "400 volunteers and 20,000 reports" in out
    (tmp_path / "e.json").write_text(estimates(5_000.0))
    assert "Warning: the two sources disagree" in command(*files)[1]
    shape = json.loads(command(*files, "--json")[1])
    assert shape["chance"] < 0.01
    assert [row["item"] for row in shape["rows"]] == [{"text": "rome"}, {"text": "oslo"}]
    assert command("show", "1", "--list", "--home", home)[1] == "rome\noslo\nnone\n"
    (tmp_path / "e.json").write_text("[]")
    code, out, err = command(*files)
    assert (code, out, err.count("\n")) == (2, "", 1)
