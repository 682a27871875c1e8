"""`python -m benchmarks compare`, without the other libraries."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.peers import compare
from benchmarks.peers.compare import CompareRow
from simulator.experiments.options import SimulationOptions

SMALL = ["compare", "--users", "2000", "--domain", "64", "--no-peers"]


def test_our_side_of_a_comparison():
    rows = compare.run(SimulationOptions(20_000, domain="256"), peers=False)
    assert set(rows[0]) == set(CompareRow.__annotations__)
    assert [row["mechanism"].split()[0] for row in rows] == ["linear-hash", "linear-hash", "randomized-response"]
    assert rows[0]["mse_over_optimum"] == pytest.approx(1.0, abs=0.3)
    assert rows[1]["mechanism"] == "linear-hash q=2 t=8"


def test_json_and_page(tmp_path, capsys):
    assert benchmarks.main([*SMALL, "--json", "--report", str(tmp_path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [set(line) for line in lines] == [set(CompareRow.__annotations__)] * 3
    assert "<svg" in (tmp_path / "index.html").read_text()
    assert len((tmp_path / "compare.csv").read_text().splitlines()) == 4


def test_a_table_for_people(capsys):
    assert benchmarks.main(SMALL) == 0
    assert "randomized-response" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--users", "10000000"], ["--domain", "4294967296"], ["--nonsense"]])
def test_bad_input_is_one_line_and_exit_code_2(arguments, capsys):
    assert benchmarks.main(["compare", "--no-peers", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
