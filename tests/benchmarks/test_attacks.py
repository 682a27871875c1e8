"""The framework of attacks: names, and which are run."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.attacks import benchmark
from benchmarks.attacks.attack import Attack
from benchmarks.row import Options, row


def test_every_attack_has_a_name_of_its_own():
    names = [attack.name for attack in benchmark.attacks()]
    assert len(names) == len(set(names)) > 0


def test_only_the_attacks_that_are_named_run(monkeypatch, capsys):
    made = [Attack(name, name, lambda name=name: iter([row(name, 1, "s", "<= 2")])) for name in ("one", "two", "three")]
    monkeypatch.setattr(benchmark, "attacks", lambda: made)
    assert [line.name for line in benchmark.run(Options(only=("two",)))] == ["two: two"]
    assert main(["attacks", "--json", "--only", "three", "one"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == ["one: one", "three: three"]
    with pytest.raises(SystemExit, match="no attack four; there are one, two, three"):
        list(benchmark.run(Options(only=("four",))))
