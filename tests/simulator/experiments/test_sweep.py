"""Sweeps: all points checked first, every finished point kept, the same file for any number of processes."""

from __future__ import annotations

import csv

import pytest

from ldp_client.errors import InvalidSpec
from simulator.experiments import sweep

GRID = """
runs = 2
[grid]
users = [500, 1000]
epsilon = ["1", 2, "4.0"]
domain = [64]
population = ["zipf:1.1", "uniform"]
"""
CLOCKS = {"randomize_seconds", "aggregate_seconds", "estimate_seconds", "peak_rss_mb"}


def written(tmp_path, text=GRID, name="grid.toml"):
    file = tmp_path / name
    file.write_text(text)
    return file


def without_clocks(path):
    with path.open() as stream:
        return [{k: v for k, v in row.items() if k not in CLOCKS} for row in csv.DictReader(stream)]


@pytest.mark.long
def test_a_grid_is_simulated_in_order(tmp_path):
    loaded = sweep.load(written(tmp_path))
    rows = sweep.run(loaded)
    assert len(rows) == 12
    assert [row["users"] for row in rows] == ["500"] * 6 + ["1000"] * 6
    assert rows[2]["epsilon"] == "2"
    assert rows[4]["epsilon"] == "4"
    assert 0.3 < float(rows[0]["mse_over_optimum"]) < 3
    assert without_clocks(loaded.output) == [{k: v for k, v in row.items() if k not in CLOCKS} for row in rows]


@pytest.mark.long
def test_parquet_holds_the_same_numbers(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    loaded = sweep.load(written(tmp_path))
    rows = sweep.run(loaded)
    table = pq.read_table(loaded.output.with_suffix(".parquet")).to_pylist()
    assert [row["users"] for row in table] == [int(row["users"]) for row in rows]
    assert [row["max_error"] for row in table] == [float(row["max_error"]) for row in rows]


@pytest.mark.long
def test_processes_do_not_change_results(tmp_path):
    one, two = sweep.load(written(tmp_path)), sweep.load(written(tmp_path, GRID, "other.toml"))
    sweep.run(one)
    sweep.run(two, processes=3)
    assert without_clocks(one.output) == without_clocks(two.output)


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    loaded = sweep.load(written(tmp_path))
    real, done = sweep._point, []

    def stops_after_five(point):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(point)
        return real(point)

    monkeypatch.setattr(sweep, "_point", stops_after_five)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(loaded)
    kept = without_clocks(loaded.output)
    assert len(kept) == 5
    with loaded.output.open("a") as stream:
        stream.write("1000,1,64,auto,uni")  # a line that a crash cut short

    def counts(point):
        done.append(point)
        return real(point)

    monkeypatch.setattr(sweep, "_point", counts)
    told = []
    rows = sweep.run(loaded, progress=told.append)
    assert len(rows) == len(done) == sum(told) == 12
    assert without_clocks(loaded.output)[:5] == kept
    sweep.run(loaded)
    assert len(done) == 12


@pytest.mark.long
def test_rows_of_another_grid_are_kept(tmp_path):
    loaded = sweep.load(written(tmp_path))
    sweep.run(loaded)
    smaller = sweep.load(written(tmp_path, GRID.replace("[500, 1000]", "[500]")))
    assert len(sweep.run(smaller)) == 6
    assert len(without_clocks(smaller.output)) == 12


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[grid", "TOML"),
        ("", "grid"),
        ("[grid]\nusers = 5", "list"),
        ("[grid]\nusers = []", "empty"),
        ("[grid]\nepsilon = [1]", "users"),
        ("[grid]\nusers = [1.5]", "whole"),
        ("[grid]\nusers = [10]\nepsilon = [99]", "epsilon"),
        ("[grid]\nusers = [10]\ncolour = [1]", "colour"),
        ("[grid]\nusers = [10]\nmechanism = ['magic']", "magic"),
        ("[grid]\nusers = [10]\ndomain = [8]\npopulation = ['zipf:1:100']", "domain"),
        ("seed = -1\n[grid]\nusers = [10]", "seed"),
        ("runs = 0\n[grid]\nusers = [10]", "runs"),
        ("output = 'x.txt'\n[grid]\nusers = [10]", "csv"),
        ("extra = 1\n[grid]\nusers = [10]", "extra"),
        (f"[grid]\nusers = {list(range(1, 401))}\ndomain = {list(range(10, 310))}", "split"),
    ],
)
def test_impossible_grids_are_refused_before_anything_is_written(tmp_path, text, wanted):
    with pytest.raises(InvalidSpec, match=wanted) as caught:
        sweep.load(written(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["grid.toml"]


def test_a_file_that_is_something_else_is_not_overwritten(tmp_path):
    loaded = sweep.load(written(tmp_path))
    loaded.output.write_text("dear diary\n")
    with pytest.raises(InvalidSpec, match="move it away"):
        sweep.run(loaded)
    assert loaded.output.read_text() == "dear diary\n"


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(InvalidSpec, match="No such file"):
        sweep.load(tmp_path / "none.toml")
