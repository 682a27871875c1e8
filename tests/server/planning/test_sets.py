"""Drafts of sets: the best number of items, the third of three, the promise against real reports, wrong options."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.set_selection import design
from ldp_server.answers.estimates import given_items
from ldp_server.cli.drafting.sets import read_sizes, sets_goal
from ldp_server.planning.sets import SetsGoal, draft_sets
from tests.server.commands import run_here
from tests.server.oracles.cases import filled

NAMES = tuple(f"app {i}" for i in range(12))
SIZES = {0: 20, 1: 30, 2: 30, 4: 15, 8: 5}
DRAFT = ("collection", "draft", "--kind", "sets", "--question", "Apps?")
ITEMS = [part for name in NAMES for part in ("--answer", name)]


def drafted(**given):
    return draft_sets("Apps?", SetsGoal(NAMES, **{"sizes": SIZES, **given}), opens=0, closes=9)


def test_what_is_cut_by_hand():
    """Of 100 users with 180 items, those with 4 or 8: at 2, all of 15 x 4 but 15, of 5 x 8 but 5; and so on."""
    goal = SetsGoal(NAMES, SIZES, users=1, epsilon="1")
    held = 30 + 60 + 60 + 40
    assert goal.lost(2) == pytest.approx((0.2, (15 * 3 + 5 * 7) / held))
    assert goal.lost(3) == pytest.approx((0.2, (15 * 2 + 5 * 6) / held))
    assert goal.lost(4) == pytest.approx((0.05, 5 * 5 / held))
    assert goal.lost(7) == pytest.approx((0.05, 5 * 2 / held))
    assert goal.lost(8) == (0.0, 0.0)
    assert goal.limits == range(2, 9)
    assert SetsGoal(NAMES, SIZES, 3, users=1, epsilon="1").limits == range(3, 4)
    assert SetsGoal(NAMES, {1: 1}, users=1, epsilon="1").limits == range(2, 3)
    assert SetsGoal(tuple(map(str, range(240))), {100: 1}, users=1, epsilon="1").limits == range(2, 16)
    assert SetsGoal(tuple(map(str, range(60))), {50: 1}, users=1, epsilon="1").limits == range(2, 21)


def test_few_users_report_few_items_and_many_report_all():
    few, some, many = (drafted(users=users, epsilon="1") for users in (50, 2_000, 10_000_000))
    assert few.most == 2 < some.most < many.most == 8
    for one in (few, some, many):
        assert one.within == min(choice.noise + choice.cut for choice in one.choices)
        assert [choice.most for choice in one.choices] == list(range(2, 9))
        assert one.parameters == design("1", 12, one.most)
        assert one.collection.domain.most == one.most
        cuts = [choice.cut for choice in one.choices]
        assert cuts == sorted(cuts, reverse=True)
        noises = [choice.noise for choice in one.choices]
        assert noises == sorted(noises)


def test_the_third_is_worked_out():
    found = drafted(users=100_000, epsilon="1", most=8)
    assert drafted(epsilon="1", within=found.within, most=8).users == pytest.approx(100_000, abs=1)
    least = drafted(users=100_000, within=found.within, most=8)
    assert (least.epsilon, least.within) == ("1", found.within)
    assert drafted(users=100_000, within=found.within * 0.999, most=8).epsilon == "1.01"
    assert drafted(users=400_000, epsilon="1", most=8).within == pytest.approx(found.within / 2)
    chosen = drafted(epsilon="1", within=0.03)
    assert chosen.within <= 0.03 < drafted(users=chosen.users - 1, epsilon="1").within


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_the_promise_is_that_of_the_interval(epsilon):
    """A quarter holds the first item: its interval reaches as far as planned, within a twentieth."""
    plan = drafted(users=40_000, epsilon=epsilon, share=0.25, most=3)
    sets = np.where(np.arange(40_000) % 4 == 0, 1, 0b110).astype(np.uint64)
    (row,) = given_items(plan.collection, filled(plan.collection.randomizer, sets, 4), ["app 0"]).rows
    noise = next(choice.noise for choice in plan.choices)
    assert (row.high - row.low) / 2 / 40_000 == pytest.approx(noise, rel=0.05)


def test_the_cut_that_is_planned_is_the_cut_that_is_made():
    """Everybody with s items, of which the planned one is any: the estimate is short by the planned part of it."""
    plan = draft_sets("?", SetsGoal(NAMES, {6: 1}, 3, 30_000, "4", share=0.5), opens=0, closes=1)
    maker = plan.collection.randomizer
    oracle = filled(maker, np.full(30_000, 0b111111, np.uint64), 9)
    found = given_items(plan.collection, oracle, ["app 0"])
    assert (plan.choices[0].cut_users, plan.choices[0].cut) == (1.0, pytest.approx(0.5 * 4 / 6))
    (row,) = found.rows
    assert row.estimate / 30_000 == pytest.approx(1 - 4 / 6, abs=6 * row.standard_error / 30_000 + 0.02)
    assert found.sets.cut.high == 30_000


def test_the_file_is_the_question_and_the_sentences_have_the_numbers():
    found = drafted(users=100_000, epsilon="1", most=4)
    assert Collection.from_toml(found.text) == found.collection
    (choice,) = found.choices
    assert found.promise == (
        f"With 100,000 reports at epsilon = 1, an item that 10% of the users hold is known to +- {choice.noise:.2%} of "
        "the users (95% interval).",
        "Sets of more than 4 items are cut: those of 5.0% of the users, as planned. Such an item is then short by "
        f"about {choice.cut:.2%} of the users. The answer says how many sets were cut.",
        "Half this interval takes 400,000 reports. A report has 1 byte.",
    )
    whole = drafted(users=300, epsilon="0.5", most=8)
    assert whole.promise[1].startswith("Careful: this says little")
    assert whole.promise[2] == "Sets of up to 8 items are reported whole; as planned, no set is cut."
    free = drafted(users=100_000, epsilon="1")
    assert "Other choices of `most`" in free.promise[-2]
    assert free.promise[-2].count(";") == 3  # the four best of the others


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"users": 5}, "two of users"),
        ({"users": 5, "epsilon": "1", "within": 0.1}, "two of users"),
        ({"users": 0, "epsilon": "1"}, "a whole number from 1"),
        ({"epsilon": "1", "within": math.nan}, "between 0 and 1"),
        ({"epsilon": "1", "within": 1.0}, "between 0 and 1"),
        ({"users": 5, "epsilon": "1", "share": 0.0}, "lie strictly between 0 and 1"),
        ({"users": 5, "epsilon": "1", "confidence": 1.0}, "lie strictly between 0 and 1"),
        ({"users": 5, "epsilon": "1", "sizes": {13: 1}}, "nobody can hold 13 items: 12 are listed"),
        ({"users": 5, "epsilon": "1", "sizes": {1: -1, 2: 5}}, "weights of sizes"),
        ({"users": 5, "epsilon": "1", "sizes": {0: 1}}, "some users hold an item"),
        ({"users": 5, "epsilon": "1", "sizes": {}}, "needs the sizes of the users' sets"),
        ({"users": 5, "epsilon": "1", "most": 13}, "from 2 to its 12 names"),
        ({"users": 5, "within": 0.001}, "5 users are too few for this error, even at epsilon 10"),
        ({"epsilon": "1", "within": 0.01, "most": 2}, "short by 0.042 of the users, however many report"),
        ({"epsilon": "0.01", "within": 1e-7, "most": 8}, "more than 1,000,000,000,000 users at epsilon 0.01"),
    ],
)
def test_what_makes_no_sense_is_refused(given, text):
    with pytest.raises(InvalidSpec, match=text):
        drafted(**given)


def test_without_sizes_nobody_holds_more():
    found = drafted(users=1000, epsilon="2", sizes={}, most=5)
    assert (found.most, found.choices[0].cut, found.choices[0].cut_users) == (5, 0.0, 0.0)


@pytest.mark.parametrize("text", ["", "1", "1:x", "1:2,1:3", "-1:2", "1:2:3", "1.5:2", "12345:1", "²:1"])
def test_sizes_that_cannot_be_read(text):
    with pytest.raises(InvalidSpec, match='sizes are written "0:20, 1:30'):
        read_sizes(text)


def test_sizes_are_read():
    assert read_sizes("0:20, 1 : 30.5,12:0") == {0: 20.0, 1: 30.5, 12: 0.0}
    goal = sets_goal(NAMES, None, 3, (5, "1", None), 0.9, 0.2)
    assert (goal.sizes, goal.most, goal.users, goal.confidence, goal.share) == ({}, 3, 5, 0.9, 0.2)
    assert sets_goal(NAMES, "2:1", None, (5, "1", None), 0.9, None).share == 0.1
    with pytest.raises(InvalidSpec, match="--answer for each"):
        sets_goal((), None, 3, (5, "1", None), 0.9, 0.2)


def test_the_command_writes_the_file(capsys, monkeypatch, tmp_path):
    file = tmp_path / "apps.toml"
    more = ("--sizes", "0:20, 1:30, 2:30, 4:15, 8:5", "--users", "100000", "--epsilon", "1", "--lasts", "2 days")
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, str(file), *ITEMS, *more)
    assert (code, err) == (0, "")
    assert f"Written to {file}" in out
    made = Collection.from_toml(file.read_text())
    best = drafted(users=100_000, epsilon="1")
    assert (made.domain.names, made.domain.most) == (NAMES, best.most)
    assert made.closes - made.opens == 2 * 86_400
    code, out, _ = run_here(monkeypatch, capsys, *DRAFT, *ITEMS, *more, "--json")
    assert json.loads(out)["within"] == best.within


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((), "--answer for each"),
        ((*ITEMS, "--users", "5", "--epsilon", "1"), "needs the sizes"),
        ((*ITEMS, "--sizes", "x", "--users", "5", "--epsilon", "1"), "sizes are written"),
        ((*ITEMS, "--most", "1", "--users", "5", "--epsilon", "1"), "1 is not in the range x>=2"),
    ],
)
def test_wrong_options_are_said_in_a_line(capsys, monkeypatch, more, text):
    code, out, err = run_here(monkeypatch, capsys, *DRAFT, *more)
    assert (code, out) == (2, "")
    assert text in err
    assert "Traceback" not in err
