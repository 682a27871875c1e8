"""The planner of rules: its variances are those of the estimates, and with its users the rules are good enough."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.cli.main import load, run
from ldp_server.learning.needed import users_for_rules
from ldp_server.learning.rules import RuleKind, rule_count, rules_answer
from tests.server.learning.populations import asked, counted

AGE, BUYS = Field("age", Integers(0, 4)), Field("buys", YesNo(none_is_no=True))


@pytest.mark.long
def test_with_so_many_users_rules_are_good_enough():
    """At the expected number, and 40 crowds: the found threshold is at most 0.1 worse than the best in all but 6."""
    (_, need, _) = users_for_rules([AGE], BUYS, Epsilon("2"), 0.1, 0.05)
    assert need.kind is RuleKind.THRESHOLD
    assert need.expected < need.proved < 3 * need.expected
    collection = asked(Record((AGE, BUYS)), need.mechanism, "2", need.parameters)
    shares = (0.2, 0.45, 0.55, 0.8)
    wrong = [sum(1 - s if age >= first else s for age, s in enumerate(shares)) / 4 for first in range(5)]
    bad = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ages = np.bincount(rng.integers(0, 4, need.expected), minlength=4)
        held = rng.binomial(ages, shares)
        people = [({"age": a, "buys": True}, int(held[a])) for a in range(4)]
        people += [({"age": a, "buys": None}, int(ages[a] - held[a])) for a in range(4)]
        (row,) = [
            one
            for one in rules_answer(collection, counted(collection, people, seed), ("age",), "buys").rows
            if one.form is RuleKind.THRESHOLD
        ]
        first = {"always": 0, "never": 4}.get(row.rule) if not row.values else int(row.values[0].split("..")[0])
        bad += wrong[first] > min(wrong) + 0.1
    assert bad <= 6  # 0.05 of 40 are 2; more than 6 have a probability of 1 in 300


def test_what_is_wanted_has_its_price():
    def proved(epsilon="1", within=0.1, failure=0.05, label=BUYS):
        return max(one.proved for one in users_for_rules([AGE], label, Epsilon(epsilon), within, failure))

    assert proved("0.5") > proved() > proved("2")
    assert proved(within=0.05) > 3 * proved()
    assert proved(failure=0.001) > proved()
    assert proved(label=Field("plan", Categories(tuple("abcd")))) > proved()


def test_rules_are_counted():
    ages = [Field("age", Integers(0, 4)), Field("x", Integers(0, 3))]
    assert [rule_count(kind, ages[:1]) for kind in (RuleKind.POINT, RuleKind.THRESHOLD, RuleKind.STUMP)] == [6, 5, 8]
    assert rule_count(RuleKind.RECTANGLE, ages) == 10 * 6 + 1
    (need,) = users_for_rules(ages, BUYS, Epsilon("1"), 0.1)
    assert (need.kind, need.rules) == (RuleKind.RECTANGLE, 61)


def test_bad_plans_say_what_is_wrong():
    with pytest.raises(InvalidSpec, match="shares between 0 and 1"):
        users_for_rules([AGE], BUYS, Epsilon("1"), 0)
    with pytest.raises(InvalidSpec, match="one field, or about two"):
        users_for_rules([AGE, Field("c", Categories(("x", "y")))], BUYS, Epsilon("1"), 0.1)


def test_the_command(monkeypatch, capsys):
    def run_it(*arguments):
        monkeypatch.setattr(sys, "argv", ["ldp-server", *arguments])
        run()
        return capsys.readouterr()

    load()
    options = ("--field", "age: 0..3", "--label", "buys: yes", "--epsilon", "1")
    found = [json.loads(line) for line in run_it("rules-plan", *options, "--json").out.splitlines()]
    assert [one["kind"] for one in found] == ["point", "threshold", "stump"]
    assert found[0]["proved"] == users_for_rules([AGE], BUYS, Epsilon("1"), 0.05)[0].proved
    assert "users, proved" in run_it("rules-plan", *options).out
    with pytest.raises(SystemExit, match="2"):
        run_it("rules-plan", "--field", "age", "--label", "buys: yes", "--epsilon", "1")
    assert capsys.readouterr().err.startswith("ldp-server: a field is written")
