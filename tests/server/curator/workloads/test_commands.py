"""Releases about several fields from the shell: from a file and from volunteers to tables, and to made-up people."""

import csv
import json

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_server.curator.workloads.synthetic import fit_of_release, made_up, record_of_release
from tests.server.commands import run_here

RNG = np.random.default_rng(8)
PLANS = np.array(["free", "paid", ""])[RNG.choice(3, 3000, p=[0.5, 0.4, 0.1])]
DARK = np.where(RNG.random(3000) < np.where(PLANS == "paid", 0.8, 0.2), "yes", "no")
AGES = RNG.integers(0, 5, 3000)
FIELDS = ("--field", "plan: free, paid", "--field", "dark: yes", "--field", "age: 0..4")
RANGE = ("--range", "0:4", "--epsilon", "5")
ALL = ("--data-set", "panel", "--data", "people.csv", "--person", "id")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workloads")
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "plan", "dark", "age"])
        rows.writerows(zip(range(3000), PLANS, DARK, AGES, strict=True))
    return folder


@pytest.fixture
def curator(home, capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.chdir(home)
        monkeypatch.setenv("LDP_CURATOR_HOME", "home")
        return run_here(monkeypatch, capsys, "curator", *arguments)

    if not (home / "home").exists():
        assert call("create", "panel", "--epsilon", "500")[0] == 0
    return call


@pytest.mark.parametrize("kind", ["tables", "mwem"])
def test_tables_and_made_up_people(curator, home, kind):
    code, out, err = curator("release", kind, *ALL, *FIELDS, "--epsilon", "20", "--json")
    assert (code, err) == (0, "")
    (home / f"{kind}.json").write_text(out)
    content = json.loads(json.loads(out)["release"])
    assert (content["column"], content["people"]) == ("plan, dark, age", 3000)
    found = {json.dumps(row["item"]["record"], sort_keys=True): row["count"] for row in content["rows"]}
    truth = int(((PLANS == "paid") & (DARK == "yes")).sum())
    assert abs(found['{"dark": true, "plan": "paid"}'] - truth) < 60
    asks = ("synthesize", f"{kind}.json", "--key", "home/curator.key.pub", "--csv", "made.csv", "--rows", "5000")
    code, out, err = curator(*asks)
    assert (code, err) == (0, "")
    assert "None of them is a real person's record" in out
    with (home / "made.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5000
    both = sum(row["plan"] == "paid" and row["dark"] == "yes" for row in rows) / 5000
    assert both == pytest.approx(truth / 3000, abs=0.03)
    code, again, _ = curator("show", str(content["number"]))
    assert code == 0
    assert "dark=yes" in again
    assert "┃ item" in again


def test_parities_and_an_average_from_the_shell(curator, home):
    yes_no = ("--field", "dark: yes", "--epsilon", "10", "--table", "dark")
    code, out, err = curator("release", "fourier", *ALL, *yes_no)
    assert (code, err) == (0, "")
    assert "1 parities were released" in out
    code, out, err = curator(
        "release", "average", *ALL, "--column", "age", "--range", "0:4", "--epsilon", "5", "--json"
    )
    assert (code, err) == (0, "")
    told = json.loads(json.loads(out)["release"])["details"]["average"]
    assert told["average"] == pytest.approx(float(AGES.mean()), abs=0.1)
    code, out, err = curator("release", "online", *ALL, *FIELDS, "--epsilon", "20", "--rounds", "5")
    assert (code, err) == (0, "")
    assert "cost an update" in out
    (home / "groups").write_text("free\tpaid\npaid\n")
    code, out, err = curator("release", "overlapping", *ALL, "--column", "plan", "--items", "groups", "--epsilon", "9")
    assert (code, err) == (0, "")
    assert "free or paid" in out
    code, out, _ = curator("ledger", "panel")
    assert "average" in out
    code, out, _ = curator("release", "tables", *ALL, *FIELDS, "--rho", "0.5", "--conversion-delta", "1e-6")
    assert code == 1  # the budget has no delta
    assert out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("tables",), "--field"),
        (("tables", *FIELDS, "--column", "age"), "reads the columns of its fields"),
        (("average", "--range", "0:4"), "give --column"),
        (("average", "--column", "age"), "--range"),
        (("fourier", *FIELDS), "two values"),
        (("tables", *FIELDS, "--table", "plan,town"), "no such field"),
        (("tables", "--field", "town: a, b"), "no column 'town'"),
        (("mwem", *FIELDS, "--noise", "gaussian"), "--noise laplace"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_input_is_one_line(curator, options, said):
    code, out, err = curator("release", *options, *ALL, "--epsilon", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_people_are_made_up_of_what_has_tables(curator, home):
    code, out, _ = curator("release", "average", *ALL, "--column", "age", *RANGE, "--json")
    (home / "average.json").write_text(out)
    asks = ("synthesize", "average.json", "--key", "home/curator.key.pub", "--csv", "made.csv")
    code, out, err = curator(*asks)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "tables, fourier, mwem" in err
    with pytest.raises(InvalidSpec, match="another form"):
        record_of_release({"kind": "tables"})
    fields = [{"name": "a", "kind": "yes_no", "none_is_no": True}]
    short = {"kind": "tables", "people": 3, "parameters": {"fields": fields, "tables": [["a"]]}, "rows": []}
    with pytest.raises(InvalidSpec, match="another form"):
        fit_of_release(short)


def test_made_up_rows_follow_the_distribution_to_one_row_a_cell():
    record = Record.from_readable({"fields": [{"name": "a", "kind": "integers", "lowest": 0, "highest": 6}]})
    shares = np.random.default_rng(9).dirichlet(np.ones(record.size))
    rows = made_up(record, shares, 1000, np.random.default_rng(10))["a"]
    counts = [rows.count(record.fields[0].domain.item(index)) for index in range(record.size)]
    assert sum(counts) == 1000
    assert all(abs(count - 1000 * share) < 1 for count, share in zip(counts, shares, strict=True))
    with pytest.raises(InvalidSpec, match="--rows"):
        made_up(record, shares, 0, np.random.default_rng(0))
