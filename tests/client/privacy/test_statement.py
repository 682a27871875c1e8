from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ldp_client.privacy
import ldp_client.privacy.statement as privacy
from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.composition import Total
from ldp_client.privacy.rounding import shown
from ldp_client.privacy.shuffle import batches, grouped, shuffled
from ldp_client.privacy.statement import Device, QuestionTerms, privacy_statement
from ldp_client.protocol.domain import Categories


def test_a_question():
    text = str(privacy_statement(QuestionTerms("1"), users=10**5, groups=(5,)))
    assert "One report: eps = 1." in text
    assert "factor of at most 2.719" in text
    assert "73.2%" in text
    assert "A household of 5, one such question each: eps = 5 (added up)." in text
    assert "answers once" in text
    assert "Not hidden by epsilon" in text
    assert "This device" not in text
    assert "shuffler" not in text


def test_a_device():
    text = str(privacy_statement(QuestionTerms("1", 365), device=Device(["1"] * 300, budget="400")))
    assert "at most 365 reports of one device: eps = 244.635 at delta = 1e-06 (optimal)" in text
    assert "This device so far: eps = 300 (added up), of 400 allowed in its life." in text
    assert "Two such devices of one person or household: eps = 600 (added up)." in text
    assert "eps = 0 (added up)" in str(privacy_statement(device=Device([])))


def test_the_line_about_a_device_holds_for_a_server_that_stops_at_the_worst_moment():
    """The server reads the line after every 20th report and may stop. The best such rule is found backwards in time.

    Being right about a stopping rule means: over all courses of events, the probability beyond what the line says is at
    most the line's delta.
    """
    each, most = 0.1, 400
    truth = 1 / (1 + math.exp(-each))
    worst, delta = {}, 0.0
    for reports in range(most, -1, -1):
        stop = reports % 20 == 0
        if stop:
            totals = _totals(privacy_statement(device=Device({Fraction(1, 10): reports})).lines[0])
            said, delta = min(totals)[0], max(delta, *(spare for _, spare in totals))
        for lies in range(reports + 1):
            gained = max(0.0, -math.expm1(said - (reports - 2 * lies) * each)) if stop else 0.0
            later = 0.0
            if reports < most:
                later = truth * worst[reports + 1, lies] + (1 - truth) * worst[reports + 1, lies + 1]
            worst[reports, lies] = max(gained, later)
    assert worst[0, 0] <= delta + 1e-12


def _totals(line):
    """Every (epsilon, delta) that a line states."""
    found = re.findall(r"eps = ([0-9.]+)(?: at delta = ([0-9.e-]+))?", line)
    return [(float(epsilon), float(delta or 0)) for epsilon, delta in found]


def test_a_crowd_is_told_about_all_its_groups():
    statement = privacy_statement(QuestionTerms("0.05"), users=10**4, groups=(9000,))
    assert "With probability 1 - 1e-06, for no group of 9000 people among the users" in str(statement)


def test_all_groups_with_answers_fixed_beforehand_and_chosen_afterwards():
    """3,000 people with a yes-or-no report each at eps 1: the exact law of the loss against each number printed."""
    lines = privacy_statement(QuestionTerms("1"), users=3000, groups=(3000,)).lines
    (line,) = [line for line in lines if "among the users" in line]
    fixed, afterwards = (epsilon for epsilon, _ in _totals(line))
    assert "fixed beforehand" in line.split(".")[0]
    assert "chosen after reading the reports" in line.split(". ")[1]
    assert (fixed, afterwards) == (1675, 3000)
    truths = stats.binom(3000, math.e / (1 + math.e))
    # Fixed beforehand: each report is eps for the truth, or eps against it.
    assert truths.sf(math.floor((3000 + fixed) / 2)) <= 1e-6
    # Chosen afterwards: a report against the truth is met with the truth itself, and counts nothing.
    assert truths.mean() == pytest.approx(2193, abs=0.5)
    assert truths.sf(fixed) > 1 - 1e-9
    # A report names one of 1,000 items, the true one with a probability e times smaller: the other answer is that item.
    weights = np.full((1000, 1000), math.e) - np.eye(1000) * (math.e - 1)
    law = weights / weights.sum(axis=1, keepdims=True)
    loss = float(law[0] @ np.log(law[0] / law.min(axis=0)))
    assert 0.999 * afterwards < 3000 * loss <= afterwards


def relayed(schedule=None, batch=10_000):
    """A question whose reports pass through a relay."""
    domain, parameters = Categories(tuple("abcdefgh")), {"q": 3, "t": 2}
    return Collection.create(
        "?", domain, "linear-hash", "1", opens=0, closes=1, parameters=parameters, schedule=schedule,
        smallest_batch=batch,
    )  # fmt: skip


def relay_lines(asked):
    lines = privacy_statement(asked).lines
    return [line for line in lines if line not in privacy_statement(replace(asked, smallest_batch=None)).lines]


def test_without_a_relay_nothing_but_the_local_epsilon_is_stated():
    text = str(privacy_statement(QuestionTerms("1", 12), users=10**6))
    assert "relay" not in text and "blanket" not in text and "clones" not in text


def test_a_relay_stands_beside_the_local_epsilon_with_all_its_conditions():
    collection = relayed()
    first, second = relay_lines(collection)
    one, half = (shuffled(collection.randomizer, users, 1e-6) for users in (10_000, 5_000))
    assert _totals(first) == [(1, 0), (float(shown(one.epsilon, 4)), 1e-6)]
    assert first.index("eps = 1 (local)") < first.index("if the relay is honest")
    assert f"(privacy blanket), among at least {10_000} reports" in first
    assert _totals(second) == [(float(shown(half.epsilon, 4)), 1e-6)]
    for condition in (
        *("do not work together", "random order", "all 10000 reports are from people who report honestly"),
        *("nobody has two reports in a batch", "If only 5000 of them are honest", "cannot tell made-up reports"),
        "the first number holds, for every user",
    ):
        assert condition in second


def test_the_batches_of_a_schedule_are_composed():
    collection = relayed(Schedule(86_400, 12))
    *_, line = relay_lines(collection)
    total = batches(collection.randomizer, 10_000, 12, 1e-6)
    several = grouped(collection.randomizer, 10_000, 12, 1e-6)
    assert _totals(line) == [(12, 0), *((float(shown(one.epsilon, 4)), 1e-6) for one in (total, several))]
    assert "One report in each of 12 batches: eps = 12 (local); if the relay is honest" in line


@pytest.mark.parametrize(("epsilon", "batch"), [("1", 2), ("15", 1000)])
def test_a_relay_that_is_worth_nothing_is_not_praised(epsilon, batch):
    (line,) = relay_lines(QuestionTerms(epsilon, 1, smallest_batch=batch))
    assert _totals(line) == [(float(epsilon), 0)]
    assert f"Batches of {batch} reports are too small to state less" in line


def test_of_a_mechanism_that_is_not_named_the_weaker_bound_is_stated_by_its_name():
    line = relay_lines(QuestionTerms("1", smallest_batch=10_000))[0]
    assert "eps = 0.05302 at delta = 1e-06 (clones)" in line


def test_where_half_of_the_reports_are_worth_nothing_their_number_stands_without_a_delta():
    """At 40 reports a batch is worth something, and 20 honest ones are not: the local epsilon holds with certainty."""
    _, conditions, *_ = privacy.relay_lines(QuestionTerms("1", smallest_batch=40))
    assert shuffled("1", 20, 1e-6) == Total(1.0, 0.0, "local")
    assert "If only 20 of them are honest, it is eps = 1 (local)." in conditions


def test_half_of_a_batch_of_three_is_one():
    _, conditions, *_ = privacy.relay_lines(QuestionTerms("1", smallest_batch=3), delta=0.3)
    assert f"If only 1 of them are honest, it is eps = {shown(shuffled('1', 1, 0.3).epsilon, 4)} at" in conditions


def test_the_local_epsilon_is_the_same_with_a_relay():
    """Every line of the statement without a relay is there word for word: a relay adds, and takes nothing back."""
    with_relay, without = privacy_statement(relayed()).lines, privacy_statement(replace(relayed(), smallest_batch=None))
    assert [line for line in with_relay if line in without.lines] == list(without.lines)


def test_a_question_of_one_report_has_no_line_about_several():
    assert "reports of one device" not in str(privacy_statement(QuestionTerms("1", 1)))
    assert "at most 2 reports of one device" in str(privacy_statement(QuestionTerms("1", 2)))


def test_up_to_nine_people_are_a_household():
    text = str(privacy_statement(QuestionTerms("0.1"), groups=(9, 10)))
    assert "A household of 9, one such question each" in text
    assert "A group of 10 people, one such question each" in text


def test_no_chance_is_stated_where_the_plain_sum_is_best():
    """Two people at epsilon 1 lose at most 2, always: nothing is said about all groups of two."""
    assert "With probability" not in str(privacy_statement(QuestionTerms("1"), users=1000, groups=(2,)))
    assert "With probability" in str(privacy_statement(QuestionTerms("0.05"), users=9000, groups=(9000,)))
    assert "With probability" not in str(privacy_statement(QuestionTerms("0.05"), users=8999, groups=(9000,)))


YES_NO = Categories(("yes", "no"))


def made(schedule=None):
    return Collection.create("?", YES_NO, "randomized-response", "1", opens=0, closes=1, schedule=schedule)


@pytest.mark.parametrize(
    ("collection", "question"),
    [(made(), QuestionTerms("1")), (made(Schedule(604_800, 52)), QuestionTerms("1", 52, 604_800))],
)
def test_of_a_collection(collection, question):
    assert privacy_statement(collection, users=1000) == privacy_statement(question, users=1000)


def test_small_totals_are_stated_without_delta():
    text = str(privacy_statement(device=Device(["1", "1"])))
    assert "This device so far: eps = 2 (added up)." in text
    assert "delta" not in text


def test_the_three_who_state_it_say_the_same(capsys):
    """A server knows the question, a ledger the device, a simulation both: what they share is the same text."""
    from ldp_client.ledger.view import LedgerView
    from simulator.cli import main

    days = 20
    collection = made(Schedule(86_400, days))
    spent = Fraction(days)
    ledger = LedgerView(spent, spent, spent, spent, Fraction(0), 86_400, 0, charges={Fraction(1): days}).statement()
    server = served(collection)
    assert (
        main(
            [
                "longitudinal",
                "--users",
                "500",
                "--domain",
                "8",
                "--days",
                str(days),
                "--epsilon",
                "1",
                "--mechanism",
                "randomized-response",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    limits = server[-1]
    assert limits == ledger[-1]
    assert limits.startswith("Not hidden")
    assert "\n".join([*server[:-1], *ledger[:-1], limits]) in printed
    assert len(server) == 6
    assert len(ledger) == 3


def served(collection):
    """What `ShowCollection` answers."""
    import asyncio
    import tempfile
    from pathlib import Path

    from tests.server.helpers import live

    async def ask():
        with tempfile.TemporaryDirectory() as folder:
            async with live(Path(folder) / "d") as server:
                await server.create(collection)
                return list((await server.show(collection)).statement)

    return asyncio.run(ask())


@given(st.floats(1e-9, 1e15), st.integers(2, 8))
def test_shown_numbers_are_rounded_up(value, digits):
    text = float(shown(value, digits))
    assert text >= value * (1 - 1e-11)
    assert text <= value * (1 + 1.01 * 10 ** (1 - digits))


def test_shown_numbers():
    assert [shown(v, 4) for v in (0.0, 1.0, 2.71801, 18345.12, 1e-3, 0.1 * (1 + 1e-12))] == [
        "0",
        "1",
        "2.719",
        "18350",
        "0.001",
        "0.1",
    ]
    assert shown(244.6340001, 6) == "244.635"
    assert str(Total(18345.123, 1e-6, "optimal")) == "eps = 18345.2 at delta = 1e-06 (optimal)"


@pytest.mark.parametrize(
    "call",
    [
        lambda: privacy_statement(QuestionTerms(0)),
        lambda: privacy_statement(QuestionTerms(1, 0)),
        lambda: privacy_statement(QuestionTerms(1), groups=(0,)),
        lambda: privacy_statement(device=Device([-1])),
    ],
)
def test_bad_input(call):
    with pytest.raises(InvalidSpec):
        call()


def test_the_public_names_are_what_is_visible():
    names = {name for name in vars(ldp_client.privacy) if not name.startswith("_")}
    modules = {name for name in names if type(vars(ldp_client.privacy)[name]).__name__ == "module"}
    assert sorted(names - modules) == list(ldp_client.privacy.__all__)
    assert math.isfinite(ldp_client.privacy.v_opt(1))


def test_two_and_five_people_are_spoken_of_unless_others_are_named():
    terms = QuestionTerms("0.5", 1)
    assert privacy_statement(terms).lines == privacy_statement(terms, groups=(2, 5)).lines
    for people in (2, 5):
        alone = set(privacy_statement(terms, groups=(people,)).lines)
        assert alone < set(privacy_statement(terms).lines)
        assert len(alone) > len(privacy_statement(terms, groups=()).lines)
