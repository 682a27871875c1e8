"""Rules: the best ones are found, as by trying all; their errors are what they say, allowing for the choice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.answers.estimates import Verdict
from ldp_server.arrays.packing import pack
from ldp_server.learning.rules import RuleKind, _best_rectangle, _Learner, rules_answer, values_that_count
from ldp_server.learning.shares import CellTotals
from ldp_server.oracles import oracle_for
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.view import table_view
from tests.server.learning.populations import asked, counted

AGES = Record((Field("age", Integers(0, 6)), Field("buys", YesNo())))
BOX = Record((Field("x", Integers(1, 4)), Field("y", Integers(1, 3)), Field("buys", YesNo(none_is_no=True))))


def buyers(limit, users=600):
    """Those from an age on buy, but for a tenth; the others do not, but for a tenth."""
    return [
        ({"age": age, "buys": told}, users * (9 if (age >= limit) == told else 1) // 10)
        for age in range(6)
        for told in (True, False)
    ]


def test_a_threshold_is_found_and_better_than_a_constant():
    collection = asked(AGES, epsilon="2")
    found = rules_answer(collection, counted(collection, buyers(3), 1), ("age",), "buys")
    rows = {row.form: row for row in found.rows}
    assert list(rows) == [RuleKind.POINT, RuleKind.THRESHOLD, RuleKind.STUMP]
    best = rows[RuleKind.THRESHOLD]
    assert (best.rule, best.values, best.rules) == ("age is at least 3", ("3..5",), 7)
    assert best.low <= 0.1 <= best.high
    assert best.gain_low <= 0.4 <= best.gain_high
    assert best.verdict is Verdict.YES
    assert found.label == "buys is yes"
    assert abs(found.counted - 3600) < 200


def test_stumps_may_be_turned():
    collection = asked(AGES, epsilon="4")
    found = rules_answer(collection, counted(collection, buyers(2), 1), ("age",), "buys", [False])
    (stump,) = [row for row in found.rows if row.form is RuleKind.STUMP]
    assert (stump.rule, stump.values) == ("age is below 2", ("not 2..5",))
    assert stump.rules == 12


def test_what_is_no_better_than_a_constant_is_not_said_to_be():
    """The label is drawn without a look at the age: 'better' comes in at most a twentieth of crowds, and never 'no'."""
    collection = asked(AGES, epsilon="2")
    people = [({"age": age, "buys": told}, 300) for age in range(6) for told in (True, False)]
    said = [
        row.verdict
        for seed in range(30)
        for row in rules_answer(collection, counted(collection, people, seed), ("age",), "buys").rows
        if row.form is RuleKind.STUMP
    ]
    assert set(said) <= {Verdict.YES, Verdict.CANNOT_TELL}
    assert said.count(Verdict.YES) <= 6
    assert binom.sf(6, 30, 0.05) < 1 / 600


def test_two_lies_of_eighty_users_are_inside_the_interval_of_a_gain():
    """Ten users of each age hold the label and ten do not, so no rule gains; but two reports are lies.

    At epsilon 8 a report is a lie in 1 of 330 cases, and two lies come in 1 of 45 crowds. With a normal law alone, the
    99% interval of a gain would be above 0 here: "better", where nothing is.
    """
    record = Record((Field("age", Integers(0, 4)), Field("buys", YesNo(none_is_no=True))))
    collection = asked(record, epsilon="8")
    users = [record.index({"age": age, "buys": told}) for age in range(4) for told in (True, False) for _ in range(10)]
    for age, told in ((0, True), (3, False)):
        users[users.index(record.index({"age": age, "buys": told}))] = record.index({"age": age, "buys": not told})
    oracle = oracle_for(collection)
    oracle.accumulate(pack(np.array(users, np.uint64), collection.randomizer.report_bytes))
    rows = rules_answer(collection, oracle, ("age",), "buys", confidence=0.99).rows
    found = [row for row in rows if row.form is not RuleKind.POINT]
    assert all(row.gain == pytest.approx(2 / 80, abs=0.003) for row in found)
    for row in rows:
        assert row.gain_low <= 0 <= row.gain_high
        assert row.verdict is Verdict.CANNOT_TELL
        assert row.gain_high < 0.2  # and it still says something


@pytest.mark.long
def test_few_lies_do_not_make_a_rule_better():
    """150 crowds of 100 users at epsilon 8, labels as they come: gains are inside their 99% intervals in all but 8."""
    record = Record((Field("age", Integers(0, 4)), Field("buys", YesNo(none_is_no=True))))
    collection = asked(record, epsilon="8")
    wrong = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        held = np.bincount(4 * rng.integers(0, 2, 100) + rng.integers(0, 4, 100), minlength=8).reshape(2, 4)
        people = [({"age": age, "buys": bool(told)}, int(held[told, age])) for told in (0, 1) for age in range(4)]
        (row,) = [
            one
            for one in rules_answer(
                collection, counted(collection, people, seed), ("age",), "buys", confidence=0.99
            ).rows
            if one.form is RuleKind.THRESHOLD
        ]
        first = {"always": 0, "never": 4}.get(row.rule) if not row.values else int(row.values[0].split("..")[0])
        error = (held[0, first:].sum() + held[1, :first].sum()) / 100
        gain = min(held[0].sum(), held[1].sum()) / 100 - error
        wrong += not row.gain_low - 1e-9 <= gain <= row.gain_high + 1e-9
    assert wrong <= 8
    assert binom.sf(8, 150, 0.01) < 1e-4


@pytest.mark.long
def test_the_errors_of_chosen_rules_are_inside_their_intervals():
    collection = asked(AGES, epsilon="1")
    people = buyers(3, 300)
    held = {(item["age"], item["buys"]): count for item, count in people}
    right = 0
    for seed in range(40):
        (row,) = [
            one
            for one in rules_answer(
                collection, counted(collection, people, seed), ("age",), "buys", confidence=0.8
            ).rows
            if one.form is RuleKind.THRESHOLD
        ]
        first = {"always": 0, "never": 6}.get(row.rule) if not row.values else int(row.values[0].split("..")[0])
        wrong = sum(count for (age, told), count in held.items() if (age >= first) != told) / sum(held.values())
        right += row.low <= wrong <= row.high
    assert right >= 25
    assert binom.cdf(24, 40, 0.8) < 1 / 300


def test_the_best_rectangle_is_the_best_of_all():
    rng = np.random.default_rng(4)
    for _ in range(50):
        surplus = rng.normal(size=(4, 3))
        rule, count = _best_rectangle(surplus)
        stretches = [
            [(first, after) for first in range(size) for after in range(first + 1, size + 1)] for size in surplus.shape
        ]
        sums = [surplus[a:b, c:d].sum() for (a, b), (c, d) in itertools.product(*stretches)]
        assert count == len(sums) + 1
        (a, b), (c, d) = rule.inside
        assert surplus[a:b, c:d].sum() == pytest.approx(max(0.0, *sums))


def test_every_kind_finds_the_best_of_its_rules():
    collection = asked(AGES, epsilon="1")
    view = table_view(counted(collection, buyers(4), 3), AGES, AskedTable(AGES, (0, 1)))
    sums = CellTotals(view)
    learner = _Learner(AGES, frozenset({2}), sums)
    base = sums.estimate(learner.base)
    never = sums.estimate(frozenset(age + 7 * 2 for age in range(1, 7))) / base
    found = learner.best(RuleKind.THRESHOLD, 0.95).estimate
    every = [
        sums.estimate(frozenset(age + 7 * (2 if age <= first else 1) for age in range(1, 7))) / base
        for first in range(7)
    ]
    assert found == pytest.approx(min(every))
    assert every[6] == pytest.approx(never)


def test_rectangles():
    collection = asked(BOX, epsilon="4")
    people = [
        ({"x": x, "y": y, "buys": (2 <= x <= 3 and y >= 2) or None}, 300) for x in range(1, 5) for y in range(1, 4)
    ]
    (row,) = rules_answer(collection, counted(collection, people, 1), ("x", "y"), "buys").rows
    assert (row.form, row.rule, row.values) == (
        RuleKind.RECTANGLE, "x is from 2 to 3 and y is at least 2", ("2..3", "2..3"),
    )  # fmt: skip
    assert row.verdict is Verdict.YES


def test_bad_questions_about_rules_say_what_to_do():
    collection = asked(BOX)
    oracle = counted(collection, [({"x": 1, "y": 1, "buys": True}, 50)], 1)
    for fields, label, values, message in (
        (("x",), "x", [], "a rule is about one or two fields"),
        (("x", "buys"), "y", [2], "two fields give rectangles"),
        (("x",), "y", [], "say which values of 'y' count"),
        (("x",), "y", [9], "is one of its own, and not none"),
        (("x",), "y", ["tea"], "a value of 'y' that counts"),
        (("x",), "y", [1, 2, 3], "leave some of them out"),
        (("z",), "buys", [], "has no such field"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            rules_answer(collection, oracle, fields, label, values)


def test_values_of_categories_and_of_yes_and_no_count():
    assert values_that_count(Field("c", Categories(("x", "y", "z"))), ["x", "z"]) == {1, 3}
    assert values_that_count(Field("b", YesNo()), ["no"]) == {1}
    assert values_that_count(Field("b", YesNo(none_is_no=True)), [False]) == {0}
    assert values_that_count(Field("b", YesNo()), []) == {2}
