"""The benchmarks' own arithmetic, and their command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import oracles, timing
from benchmarks.row import Options, cpu_seconds, row


def test_a_target_decides():
    assert row("a", 1.0, "x", "<= 1").ok is True
    assert row("a", 1.1, "x", "<= 1").ok is False
    assert row("a", 1.1, "x", ">= 1").ok is True
    assert row("a", 1.1, "x").ok is None
    assert json.dumps(row("a", np.float64(1.0), "x", "<= 1").as_dict())
    assert row("a", 10.0, "x", None, ("stick", 4.0)).yardstick.ratio == 2.5


def test_auc():
    ones, twos = np.ones(10), np.full(30, 2.0)
    assert oracles.auc(ones, twos) == 1
    assert oracles.auc(twos, ones) == 0
    assert oracles.auc(ones, ones) == 0.5
    rng = np.random.default_rng(1)
    assert oracles.auc(rng.normal(size=4000), rng.normal(1, 1, 4000)) == pytest.approx(0.760, abs=0.02)


def test_what_a_clock_tells_is_seen_where_the_time_differs():
    """The cases of the times are not mixed up: a call that always does more is told apart, one that does not is not."""
    work = {0: range(1), 1: range(3000)}
    assert timing._told_apart(lambda _number, kind: sum(work[kind]), 400) > 0.4
    assert 0 <= timing._reporting((None, "mate"), 20) <= 0.5
    collection, one, other = next(timing._cases())
    assert 0 <= timing._making(collection, (one, other), 20) <= 0.5


def test_cpu_seconds_are_of_the_work():
    assert cpu_seconds(lambda: sum(range(200_000)), 3) > cpu_seconds(lambda: None, 3)


def test_rows_are_json_lines(monkeypatch, capsys):
    monkeypatch.setattr(oracles, "run", lambda options: iter([row("a", 2.0, "x", "<= 1"), row("b", 1.0, "y")]))
    assert command.main(["oracles", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [set(line) for line in lines] == [{"name", "value", "unit", "target", "ok", "yardstick"}] * 2
    assert command.main(["oracles", "--strict"]) == 1
    assert "MISS" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        command.main(["nothing"])
    assert caught.value.code == 2


def test_every_benchmark_can_be_imported_and_run():
    for name in command.BENCHMARKS:
        assert callable(command.load(name))


def test_cheap_rows_of_the_oracles_hold():
    """The parts that do not depend on a clock, in earnest."""
    rows = [*oracles.report_size(), *oracles.consistency()]
    assert rows
    assert all(line.ok for line in rows), [line for line in rows if not line.ok]
    assert Options().full is False
