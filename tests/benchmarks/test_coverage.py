"""The coverage benchmark: its arithmetic, the laws that it draws counts from, and a small part of its grid."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.coverage import benchmark
from benchmarks.coverage.frequencies import Setting, settings
from benchmarks.coverage.laws import drawn, packed
from benchmarks.coverage.table import table
from benchmarks.coverage.tally import Tally, wilson
from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.oracles.laws.support import SupportLaw

HELD = np.array([0, 40, 25, 0, 10, 5])
PEOPLE = np.repeat(np.arange(6), HELD).astype(np.uint64)
RUNS = 1500


def question(mechanism, epsilon, run=0):
    parameters = {"d": 2} if mechanism == "subset-selection" else {}
    domain = Integers(1, 5)
    return Collection.create("?", domain, mechanism, epsilon, parameters=parameters, opens=0, closes=1, nonce=run)


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        ("randomized-response", "3"),
        ("subset-selection", "0.5"),
        pytest.param("randomized-response", "0.5", marks=pytest.mark.slow),
        pytest.param("subset-selection", "3", marks=pytest.mark.slow),
    ],
)
@pytest.mark.thinned(1)
def test_drawn_counts_have_the_law_of_packed_reports(mechanism, epsilon):
    """Means, variances and covariances of all cells, and the law of each cell."""
    collection = question(mechanism, epsilon)
    ways = [
        np.array([way(seed).counts.values for seed in range(RUNS)], np.float64)
        for way in (lambda seed: drawn(collection, HELD, seed), lambda seed: packed(collection, PEOPLE, seed))
    ]
    for cell in range(6):
        assert stats.ks_2samp(ways[0][:, cell], ways[1][:, cell], method="asymp").pvalue > 1e-5
    means, covariances = [way.mean(axis=0) for way in ways], [np.cov(way.T) for way in ways]
    variances = np.diag(covariances[0])
    assert (np.abs(means[0] - means[1]) < 5 * np.sqrt(2 * variances / RUNS)).all()
    scale = np.sqrt(np.outer(variances, variances))
    assert (np.abs(covariances[0] - covariances[1]) < 5 * np.sqrt(2 * 2 / RUNS) * scale).all()


def test_wilson():
    low, high = wilson(95, 100)
    assert (low, high) == (pytest.approx(0.8882, abs=1e-3), pytest.approx(0.9785, abs=1e-3))
    assert wilson(1000, 1000)[1] == pytest.approx(1)


def rows_of(tally):
    return {line.name.split(": ")[-1]: line for line in tally.rows("cell: kind")}


def test_a_row_misses_only_if_its_interval_lies_below_the_claim():
    for held, ok in ((1000, True), (930, True), (920, False)):
        found = rows_of(Tally(held=held, claims=1000, runs=100))["held"]
        assert found.ok is ok
        assert (wilson(held, 1000)[1] >= 0.94) is ok


def test_together_is_one_claim_and_widths_are_compared():
    tally = Tally(narrowest=20.0)
    for high in (10.0, 30.0):
        tally.add(np.zeros(2), np.full(2, high), np.array([5.0, 20.0]), together=True)
    assert (tally.held, tally.claims) == (1, 2)
    assert rows_of(tally)["width"].value == pytest.approx(2.0)
    assert rows_of(tally)["width"].ok is False


def test_bias_is_in_standard_deviations():
    tally = Tally()
    for error in np.linspace(9, 11, 400):
        tally.add_one((0.0, 30.0), error, 0.0)
    assert rows_of(tally)["bias"].ok is False
    assert rows_of(tally)["bias"].value == pytest.approx(10 / np.std(np.linspace(9, 11, 400)))


@pytest.mark.long
def test_the_grid_has_every_setting(monkeypatch):
    names = {(s.mechanism, s.size) for size in benchmark.SIZES for s in settings(size, 30_000, "1")}
    assert {("subset-selection", 50), ("linear-hash", 1000), ("linear-hash", 65_536), ("hashtogram", 65_536)} <= names
    cells = benchmark.cells(full=True)
    assert len({cell.name for cell, _ in cells}) == len(cells)
    assert len(cells) > 300
    monkeypatch.setenv("COVERAGE_RUNS", "0.1")
    for (cell, runs), (same, fewer) in zip(cells, benchmark.cells(full=True), strict=True):
        assert (cell.name, fewer) == (same.name, max(min(runs, 20), round(runs / 10)))


SMALL = [
    Setting("subset-selection", (("d", 14),), 50, 1000, "1", "zipf"),
    Setting("linear-hash", (("q", 17), ("t", 3)), 1000, 5000, "3", "0.5"),
]


@pytest.mark.parametrize("setting", SMALL, ids=lambda setting: setting.name)
@pytest.mark.thinned(1)
def test_cells_of_the_grid_hold(setting):
    assert [line.name for line in setting.measure(60) if line.ok is False] == []


@pytest.mark.long
def test_intervals_that_are_too_narrow_are_noticed(monkeypatch):
    true = SupportLaw.intervals_at
    monkeypatch.setattr(SupportLaw, "intervals_at", lambda law, estimates, z: true(law, estimates, 0.8 * z))
    missed = [line.name for line in SMALL[0].measure(100) if line.ok is False]
    assert any("each item: held" in name for name in missed)
    assert any("all that were picked: held" in name for name in missed)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.3", "3", "10"])
def test_more_cells_of_the_grid_hold(epsilon):
    for setting in settings(50, 1000, epsilon):
        assert [line.name for line in setting.measure(300) if line.ok is False] == []


def test_the_table_adds_up_the_cells_of_a_mechanism():
    names = ("linear-hash q=2 d=50: each item", "linear-hash q=3 d=1000: each item")
    rows = [line for name in names for line in Tally(held=95, claims=100, runs=5, width=6.0, narrowest=5.0).rows(name)]
    lines = table(json.dumps(line.as_dict()) for line in rows).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| linear-hash | each item | 2 | 200 | 95.0% (")
    assert "| 0 | 1.20, 1.20 |" in lines[2]
