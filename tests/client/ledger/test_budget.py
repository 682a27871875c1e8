"""Charges, budgets and time, through the client's own front door."""

import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest

from ldp_client import BudgetExceeded, Policy, PolicyRefused
from ldp_client.ledger import budget
from ldp_client.ledger.budget import Moment
from ldp_client.ledger.database import Storage
from ldp_client.trust.policy import UNITS
from tests.client.conftest import NOW, daily, make

DAY = 86_400


def test_the_first_answer_stands(open_client):
    client, collection = open_client(), make()
    assert client.report(collection, "a").made
    for item in ("a", "b", None):
        receipt = client.report(collection, item)
        assert not receipt.made and not receipt.queued
    assert client.ledger().spent == 1
    assert client.outbox().waiting == 1


def test_a_new_window_sends_the_same_bytes_and_costs_nothing(open_client, collector):
    client = open_client()
    first, second = make(), make(closes=NOW + 2 * 10**8)
    assert first.question_id == second.question_id and first.id != second.id
    client.report(first, "a")
    again = client.report(second, "b")
    assert again.queued and not again.made
    assert not client.report(second, "b").queued
    client.flush(everything=True)
    assert collector.reports(first) == collector.reports(second) != []
    assert client.ledger().spent == 1


def test_the_period_is_every_stretch_of_its_length(open_client, clock):
    client = open_client()
    client.report(make(1), "a")
    clock.advance(29 * DAY)
    client.report(make(2), "a")
    clock.advance(DAY)  # the first is just out of the stretch, the second is not
    client.report(make(3), "a")
    with pytest.raises(BudgetExceeded, match="fits again after") as refused:
        client.report(make(4), "a")
    assert "2027-03-15" in str(refused.value)  # 59 days after NOW
    clock.advance(29 * DAY - 1)
    with pytest.raises(BudgetExceeded):
        client.report(make(4), "a")
    clock.advance(1)
    client.report(make(4), "a")


def test_the_lifetime_ends_it_for_good(open_client, clock):
    client = open_client(policy=Policy(max_epsilon="1", budget="2", period="30 days", lifetime="3"))
    for number in range(3):
        client.report(make(number), "a")
        clock.advance(31 * DAY)
    clock.advance(1000 * DAY)
    with pytest.raises(BudgetExceeded, match="lifetime"):
        client.report(make(9), "a")
    view = client.ledger()
    assert (view.spent, view.left, view.left_in_period) == (3, 0, 0)


def test_decimals_add_up_exactly(open_client):
    client = open_client(policy=Policy(max_epsilon="0.1", budget="1", period="30 days", lifetime="1"))
    for number in range(10):
        client.report(make(number, epsilon="0.1"), "a")
    assert client.ledger().spent == 1  # ten float tenths are not
    with pytest.raises(BudgetExceeded):
        client.report(make(11, epsilon="0.01"), "a")


def test_a_refusal_charges_and_stores_nothing(open_client):
    client = open_client()
    client.report(make(0), "a")
    client.report(make(1), "a")
    before = client.ledger(), client.outbox()
    with pytest.raises(BudgetExceeded):
        client.report(make(2), "a")
    assert (client.ledger(), client.outbox()) == before


def test_a_clock_that_goes_back_renews_nothing(open_client, clock):
    client = open_client()
    client.report(make(0), "a")
    client.report(make(1), "a")
    clock.jump(NOW - 400 * DAY)
    with pytest.raises(BudgetExceeded):
        client.report(make(2), "a")
    client.close()
    clock.jump(NOW + 10 * DAY)
    with pytest.raises(BudgetExceeded):
        open_client().report(make(2), "a")


def test_a_jump_ahead_renews_one_period_and_then_time_stands_still(open_client, clock):
    client = open_client()
    client.report(make(0), "a")
    client.report(make(1), "a")
    clock.jump(NOW + 1000 * DAY)
    client.report(make(2), "a")
    client.report(make(3), "a")
    with pytest.raises(BudgetExceeded):
        client.report(make(4), "a")  # a thousand days are one period, not thirty-three
    for back in (0, 31, 40, 900, 1031, 1100):
        clock.jump(NOW + back * DAY)
        with pytest.raises(BudgetExceeded):
            client.report(make(4), "a")
    clock.advance(30 * DAY)
    client.report(make(4), "a")


@pytest.mark.parametrize("ahead", ["looked at", "refused"])
def test_a_look_from_the_future_forgets_no_charge(open_client, clock, ahead):
    """A jump of the clock that no charge has confirmed may be taken back, and then the period begins earlier again."""
    client = open_client(policy=Policy(max_epsilon="4", budget="4", period="30 days", lifetime="12"))
    client.report(make(0, epsilon="2"), "a")
    clock.advance(20 * DAY)
    client.report(make(1, epsilon="2"), "a")
    clock.jump(NOW + 40 * DAY)
    assert client.ledger().spent_in_period == 2
    if ahead == "refused":
        with pytest.raises(BudgetExceeded):
            client.report(make(2, epsilon="4"), "a")
    clock.jump(NOW + 21 * DAY)
    assert client.ledger().spent_in_period == 4
    with pytest.raises(BudgetExceeded, match="period"):
        client.report(make(3, epsilon="0.5"), "a")


def test_a_schedule_asks_once_a_period_and_ends(open_client, clock, wide):
    client, collection = open_client(policy=wide), daily(reports=3)
    made = 0
    for _ in range(10):
        made += client.report(collection, "a").made
        made += client.report(collection, "b").made
        clock.advance(DAY)
    assert made == 3
    assert not client.report(collection, "a").made
    assert client.ledger().spent == 3
    assert [q.answers for q in client.ledger().questions] == [3]


def test_a_schedule_does_not_go_back(open_client, clock, wide):
    client, collection = open_client(policy=wide), daily()
    client.report(collection, "a")
    clock.jump(NOW - 5 * DAY)
    assert not client.report(collection, "a").made
    clock.jump(NOW + 100 * DAY)
    assert client.report(collection, "a").made
    assert not client.report(collection, "a").made  # the days between are not made up for


def test_a_reset_clock_does_not_prolong_a_schedule(open_client, clock, wide):
    client, collection = open_client(policy=wide), daily(reports=3)
    for _ in range(3):
        clock.advance(DAY)
        assert client.report(collection, "a").made
    clock.jump(NOW - 100 * DAY)
    client.reset("the clock had run ahead")
    early = daily(reports=3, opens=NOW - 200 * DAY)
    assert early.question_id == collection.question_id
    assert not client.report(early, "a").made
    assert client.ledger().spent == 3


def test_due(open_client, clock, wide):
    client, collection = open_client(policy=wide), daily(opens=NOW + DAY, reports=2)
    assert not client.due(collection)
    clock.advance(DAY)
    assert client.due(collection)
    client.report(collection, None)
    assert not client.due(collection)
    clock.advance(DAY)
    assert client.due(collection)
    client.report(collection, None)
    clock.advance(DAY)
    assert not client.due(collection)


def test_a_collection_that_is_over_is_refused(open_client):
    with pytest.raises(PolicyRefused, match="closed at"):
        open_client().report(make(closes=NOW), "a")


def test_a_collection_that_is_not_open_yet_waits(open_client, clock, collector):
    client = open_client()
    client.report(make(opens=NOW + DAY), "a")
    assert client.flush(everything=True).waiting == 1
    clock.advance(DAY)
    assert client.flush(everything=True).accepted == 1


def test_the_view_names_questions_and_sums(open_client):
    client = open_client()
    client.report(make(0, text="One?"), "a")
    client.report(make(1, text="Two?", epsilon="0.5"), "a")
    view = client.ledger()
    assert [(q.question, q.answers, q.spent) for q in view.questions] == [("One?", 1, 1), ("Two?", 1, Fraction(1, 2))]
    assert (view.spent, view.left, view.left_in_period) == (Fraction(3, 2), Fraction(21, 2), Fraction(1, 2))
    assert view.charges == {Fraction(1): 1, Fraction(1, 2): 1}


def test_the_ledger_says_what_was_revealed(open_client):
    from ldp_client.privacy import Device, privacy_statement

    client = open_client(policy=Policy(max_epsilon="1", budget="12", period="30 days", lifetime="12"))
    for number in range(12):
        client.report(make(number), "a")
    view = client.ledger()
    assert view.statement()[:2] == [
        "This device so far: eps = 12 (added up).",
        "Two such devices of one person or household: eps = 24 (added up).",
    ]
    assert view.statement() == list(privacy_statement(device=Device(["1"] * 12)).lines)
    # What is spent and not among the charges is stated too, and never less than the sum.
    held = replace(view, spent=view.spent + Fraction("0.5"))
    assert held.statement()[0] == "This device so far: eps = 12.5 (added up)."
    lost = replace(view, charges={})
    assert lost.statement()[0] == "This device so far: eps = 12 (added up)."


def test_every_entry_carries_the_total_before_it(open_client, tmp_path, clock):
    client = open_client()
    for number in range(2):
        client.report(make(number), "a")
        clock.advance(40 * DAY)
    client.close()
    with sqlite3.connect(tmp_path / "ldp" / "ledger.sqlite") as db:
        assert db.execute("SELECT before, epsilon, at FROM answers").fetchall() == [
            (0, UNITS, NOW), (UNITS, UNITS, NOW + 40 * DAY),
        ]  # fmt: skip
    db.close()


def test_reprs_show_no_report(open_client):
    collection = make()
    made = budget.MadeReport(collection, 3, b"SECRET", b"i" * 16, 1.0, 2.0)
    assert repr(made) == f"MadeReport({collection.id.hex()[:12]}, slot 3)"
    assert repr(budget.Decision(3, None)) == "Decision(slot 3, a new report)"
    assert repr(budget.Decision(3, 0, b"SECRET")) == "Decision(slot 3, an answer stands)"


def test_slots_are_whole_periods_since_1970():
    collection = daily(period=DAY)
    first = collection.opens // DAY
    moments = ((first + 1) * DAY - 1, (first + 1) * DAY, (first + 10) * DAY + 5)
    assert [budget.slot_at(collection, now) - first for now in moments] == [0, 1, 10]
    assert budget.slot_at(make(), 10 * DAY) == 0


def test_a_report_made_before_the_window_is_one_of_its_first_period():
    collection = daily(period=DAY)
    for now in (0, collection.opens - 5 * DAY, collection.opens - 1, collection.opens):
        assert budget.slot_at(collection, now) == collection.periods[0]


def test_a_question_s_words_are_stored_with_its_first_answer_only(open_client, clock, wide):
    client, collection = open_client(policy=wide), daily()
    for _ in range(3):
        assert client.report(collection, "a").made
        clock.advance(DAY)
    client.report(make(1), "a")
    with client._storage.reading() as (db, _):
        kept = [row[0] is not None for row in db.execute("SELECT question FROM answers ORDER BY id")]
    assert kept == [True, False, False, True]


def test_moments_as_text():
    assert budget.utc(0) == "1970-01-01 00:00:00 UTC"
    assert budget.utc(1e30) == "a moment beyond the calendar"


def test_a_window_ends_with_its_last_second():
    collection = make(closes=NOW + 10)
    budget.check_window(collection, NOW + 9)
    with pytest.raises(PolicyRefused, match="closed at 2027-01-15 08:00:10 UTC"):
        budget.check_window(collection, NOW + 10)


def test_a_policy_below_what_was_spent_leaves_nothing_and_no_debt(open_client):
    client = open_client()
    for number in range(2):
        client.report(make(number), "a")
    client.close()
    smaller = open_client(policy=Policy(max_epsilon="0.5", budget="0.5", period="30 days", lifetime="0.5")).ledger()
    assert (smaller.spent, smaller.left, smaller.left_in_period) == (2, 0, 0)


def test_a_charge_in_doubt_is_one_entry_of_the_next_generation(tmp_path):
    storage = Storage(tmp_path)
    for number in (1, 2):
        with storage.charging() as (db, state):
            moment = Moment(NOW + number, NOW + number, 0, 0)
            budget.charge_in_doubt(db, state, moment, 5)
    with storage.reading() as (db, state):
        entries = db.execute("SELECT id, generation, at, epsilon, before, question_id FROM answers").fetchall()
        assert entries == [(1, 1, NOW + 1, 5, 0, None), (2, 2, NOW + 2, 5, 5, None)]
        assert (state.generation, state.total) == (2, 10)
    storage.close()
