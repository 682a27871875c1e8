"""Synthetic records out of real reports: they have the estimated tables, and nothing where there is no signal."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import combinations

import numpy as np
import pyarrow.parquet
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.synthetic.fit import fitted
from ldp_server.answers.synthetic.tables import tables_answer
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.planning.tables import design_tables
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ServerProcess
from tests.server.oracles.cases import filled
from tests.server.test_every_door import shell

RECORD = Record(
    (
        Field("plan", Categories(("free", "paid"))),
        Field("age", Integers(1, 4)),
        Field("dark", YesNo(none_is_no=True)),
        Field("pet", YesNo()),
    )
)


def made(record=RECORD, epsilon="2"):
    design = design_tables(record, epsilon, "pairs")[0]
    return Collection.create(
        "Your plan?", record, "sampled-table", epsilon, opens=0, closes=1 << 33, parameters=design.parameters
    )


def people(users, seed):
    """Plans go with ages, dark with plans; pets with nothing."""
    rng = np.random.default_rng(seed)
    plan = rng.choice(3, users, p=(0.2, 0.5, 0.3))
    age = np.where(plan == 2, rng.choice(5, users, p=(0.05, 0.1, 0.15, 0.3, 0.4)), rng.choice(5, users))
    dark = (rng.random(users) < np.where(plan == 1, 0.7, 0.2)).astype(int)
    return np.array([plan, age, dark, rng.choice(3, users, p=(0.1, 0.6, 0.3))])


def indexes(values, record=RECORD):
    return sum(line * stride for line, stride in zip(values, record.strides, strict=False)).astype(np.uint64)


def shares(values, places, sizes):
    cells = values[places[0]] + sizes[places[0]] * values[places[1]]
    return np.bincount(cells, minlength=sizes[places[0]] * sizes[places[1]]) / values.shape[1]


def rms(rows):
    return math.sqrt(float(np.mean(np.square(np.concatenate(rows)))))


@pytest.mark.parametrize("users", [8_000, 60_000])
def test_tables_of_synthetic_records_agree_with_the_estimated_tables_and_are_nearer_to_the_truth(users):
    """Nearer where there is much noise, because some was left out; over all pairs of several crowds."""
    collection, sizes, before, after = made(), RECORD.sizes, 0.0, 0.0
    for seed in range(3):
        values = people(users, seed)
        found = tables_answer(collection, filled(collection.randomizer, indexes(values), seed))
        law = fitted(RECORD, found)
        drawn = law.drawn(20_000, seed)
        raw, fit, gap, apart = [], [], [], []
        for places in combinations(range(4), 2):
            names = tuple(RECORD.names[place] for place in places)
            estimate = np.array(next(one.estimates for one in found.tables if one.fields == names)) / users
            true, mine = shares(values, places, sizes), shares(drawn, places, sizes)
            raw.append(estimate - true)
            fit.append(mine - true)
            gap.append(mine - law.table(names))
            apart.append(mine - estimate)
        before += rms(raw) / 3
        after += rms(fit) / 3
        assert rms(apart) < rms(raw)
        assert rms(gap) < 0.001  # 20,000 users would have 0.0015 to 0.003 by chance
        assert np.abs(np.concatenate(gap)).max() < 0.004
    assert after < before * (0.95 if users < 10_000 else 1.05)


def test_what_goes_together_does_so_in_the_records_and_what_does_not_is_left_out():
    collection, users = made(epsilon="4"), 60_000
    values = people(users, 1)
    found = tables_answer(collection, filled(collection.randomizer, indexes(values), 1))
    told = {one.fields for one in found.signals if one.told}
    assert {("plan", "age"), ("plan", "dark")} <= told
    law = fitted(RECORD, found)
    drawn = law.drawn(users, 3)
    assert np.corrcoef(drawn[0] == 1, drawn[2])[0, 1] == pytest.approx(
        np.corrcoef(values[0] == 1, values[2])[0, 1], abs=0.05
    )
    assert abs(np.corrcoef(drawn[3] == 1, drawn[2])[0, 1]) < 0.03
    assert not set(law.left_out) & told
    strict = fitted(RECORD, found, strict=True)
    assert set(strict.left_out) == {one.fields for one in found.signals} - told
    assert set(law.left_out) <= set(strict.left_out)
    assert law.shares.min() > 0
    assert law.shares.sum() == pytest.approx(1)


@pytest.mark.long
def test_noise_is_told_from_a_signal_as_often_as_stated():
    """Users spread evenly have no effect at all: one is told in a tenth of the questions at most, and not in none."""
    record = Record(tuple(Field(name, Integers(1, 3)) for name in "abc"))
    collection, users, runs = made(record, "1"), 600, 250
    values = np.arange(users) % record.size
    told = 0
    for run in range(runs):
        values = np.random.default_rng(1000 + run).integers(0, record.size, users).astype(np.uint64)
        found = tables_answer(collection, filled(collection.randomizer, values, run))
        told += any(one.told for one in found.signals)
        ratios = [one.ratio for one in found.signals]
        assert min(ratios) > 0
    assert told <= 0.1 * runs + 3.8 * math.sqrt(0.09 * runs)
    assert told > 0  # a gate that never opens would pass everything else


def test_no_signal_is_said_and_nothing_invented():
    collection = made(epsilon="0.1")
    values = np.random.default_rng(4).integers(0, RECORD.size, 500).astype(np.uint64)
    found = tables_answer(collection, filled(collection.randomizer, values, 2))
    assert not any(one.told for one in found.signals)
    with pytest.raises(TooFewReports, match="no signal: with 500 reports"):
        fitted(RECORD, found)


def test_the_same_seed_draws_the_same_records():
    collection = made()
    law = fitted(RECORD, tables_answer(collection, filled(collection.randomizer, indexes(people(9000, 1)), 1)))
    assert law.drawn(500, 7).tolist() == law.drawn(500, 7).tolist() != law.drawn(500, 8).tolist()
    exact = law.drawn(50_000, 1)
    counts = np.zeros(law.shares.shape)
    np.add.at(counts, tuple(exact), 1)
    assert np.abs(counts - 50_000 * law.shares).max() <= 1 + 1e-6
    with pytest.raises(InvalidSpec, match="from 1 to 10,000,000"):
        law.drawn(0)


def test_a_law_of_some_fields_has_their_tables():
    collection = made()
    found = tables_answer(collection, filled(collection.randomizer, indexes(people(30_000, 1)), 1))
    whole, part = fitted(RECORD, found), fitted(RECORD, found, ("dark", "plan"))
    assert part.record.names == ("dark", "plan")
    assert part.table(("plan", "dark")) == pytest.approx(whole.table(("plan", "dark")), abs=0.01)
    assert part.table(("dark",)).sum() == pytest.approx(1)
    with pytest.raises(InvalidSpec, match="no such field"):
        fitted(RECORD, found, ("cat",))


def test_whole_records_have_a_law_and_what_cannot_is_refused():
    whole = Collection.create("?", RECORD, "randomized-response", "5", opens=0, closes=1)
    found = tables_answer(whole, filled(whole.randomizer, indexes(people(20_000, 1)), 1))
    assert [one.fields for one in found.tables] == [RECORD.names]
    assert len(found.signals) == 15
    assert fitted(RECORD, found).shares.shape == RECORD.sizes
    wide = Record(tuple(Field(f"f{i}", Integers(1, 12)) for i in range(7)))
    collection = made(wide, "4")
    values = np.random.default_rng(1).integers(0, 3, (7, 4000))
    found = tables_answer(collection, filled(collection.randomizer, indexes(values, wide), 1))
    with pytest.raises(InvalidSpec, match=r"62,748,517 different contents.*name fewer fields"):
        fitted(wide, found)
    assert fitted(wide, found, ("f0", "f3")).shares.shape == (13, 13)
    plain = Collection.create("?", Integers(1, 9), "randomized-response", "5", opens=0, closes=1)
    with pytest.raises(Unsupported, match="domain of records"):
        tables_answer(plain, filled(plain.randomizer, np.zeros(9, np.uint64), 1))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("synthetic") / "d") as server:
        yield server


@pytest.fixture(scope="module")
def counted(server):
    collection = made()
    server.create(collection)
    return collection, deliver(server, collection, indexes(people(9000, 5)))


def test_every_door_gives_the_same_records(server, counted, monkeypatch, capsys, tmp_path):
    collection, oracle = counted
    here = fitted(RECORD, tables_answer(collection, oracle)).drawn(300, 5)
    with server.analyst() as analyst:
        tables = analyst.tables(collection)
        records = tables.synthetic(300, seed=5)
    assert records.values.tolist() == here.tolist()
    assert tables.table.column("told") == [one.told for one in tables_answer(collection, oracle).signals]
    out, parquet = tmp_path / "people.csv", tmp_path / "people.parquet"
    asked = ("synthesize", collection.id.hex(), "--records", "300", "--seed", "5", "-o")
    code, text, err = shell(monkeypatch, capsys, server.data, *asked, str(out))
    assert (code, err) == (0, "")
    assert "300 synthetic records, from the tables of 9,000 reports" in text
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 300
    first = {field.name: field.domain.item(int(line[0])) for field, line in zip(RECORD.fields, here, strict=True)}
    assert rows[0] == {name: "" if value is None else str(value) for name, value in first.items()}
    (facts,) = json.loads((tmp_path / "people.csv-metadata.json").read_text())["notes"]
    assert facts["collection_id"] == collection.id.hex()
    assert any("no further privacy" in line for line in facts["statement"])
    code, text, err = shell(monkeypatch, capsys, server.data, *asked, str(parquet), "--json")
    assert (code, err) == (0, "")
    assert len(json.loads(text)["signals"]) == 10
    table = pyarrow.parquet.read_table(parquet)
    assert table.column_names == list(RECORD.names)
    assert table.column("age").to_pylist() == [RECORD.fields[1].domain.item(one) for one in here[1].tolist()]


def test_bad_wishes_are_one_line(server, counted, monkeypatch, capsys, tmp_path):
    collection, _ = counted
    for more, text in (
        (("-o", str(tmp_path / "people.txt")), "FILE.csv or FILE.parquet"),
        (("-o", str(tmp_path / "a.csv"), "--fields", "cat"), "no such field"),
        (("-o", str(tmp_path / "a.csv"), "--records", "0"), "0"),
    ):
        code, out, err = shell(monkeypatch, capsys, server.data, "synthesize", collection.id.hex(), *more)
        assert code in (1, 2)
        assert out == ""
        assert text in err
        assert "Traceback" not in err
    assert not (tmp_path / "a.csv").exists()
