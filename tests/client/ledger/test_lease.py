"""The memory-speed mode: budget first, reports in memory, durable soon after; a crash costs budget, never privacy."""

import time
from fractions import Fraction

import pytest

from ldp_client import BudgetExceeded, Policy, PolicyRefused
from ldp_client.ledger.lease import LEASE_SECONDS
from tests.client.conftest import NOW, daily, make


def rows(client):
    with client._storage.reading() as (db, _):
        return {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("answers", "outbox", "leases")
        }


def test_reports_are_in_memory_first_and_the_budget_is_not(open_client, wide, collector):
    client = open_client(policy=wide, lease="10")
    for number in range(4):
        receipt = client.report(make(number), "a")
        assert receipt.made and not receipt.durable
    assert rows(client) == {"answers": 0, "outbox": 0, "leases": 1}
    assert client.ledger().spent == 10 == client.ledger().leased
    assert collector.calls == []
    client.flush(everything=True)
    assert len(collector.received) == 4
    view = client.ledger()
    assert (view.spent, view.leased) == (10, 6)
    client.close()
    assert open_client(policy=wide).ledger().spent == 4


def test_the_first_answer_stands_in_memory_and_on_disk(open_client, wide):
    client = open_client(policy=wide, lease="10")
    assert client.report(make(), "a").made
    assert not client.report(make(), "b").made
    client.flush()
    assert not client.report(make(), "b").made
    client.close()
    again = open_client(policy=wide, lease="10")
    assert not again.report(make(), "b").made
    assert again.ledger().spent == 1


def test_a_new_window_gets_the_bytes_that_are_still_in_memory(open_client, wide, collector):
    client = open_client(policy=wide, lease="10")
    first, second = make(), make(closes=NOW + 2 * 10**8)
    client.report(first, "a")
    assert client.report(second, "b").queued
    client.flush(everything=True)
    assert collector.reports(first) == collector.reports(second) != []
    client.close()
    assert open_client(policy=wide).ledger().spent == 1


def test_leases_follow_one_another_and_the_budget_ends(open_client):
    client = open_client(policy=Policy(max_epsilon="1", budget="5", period="1 day", lifetime="9"), lease="2")
    for number in range(5):
        client.report(make(number), "a")
    with pytest.raises(BudgetExceeded, match="5 of 5"):
        client.report(make(6), "a")
    assert rows(client) == {"answers": 5, "outbox": 5, "leases": 0}
    assert client.ledger().spent == 5


@pytest.mark.timeout(20)
def test_a_lease_smaller_than_a_report_still_pays_for_it(open_client, wide):
    """`report` once opened one lease after the other, each too small, for ever."""
    client = open_client(policy=wide, lease="0.5")
    for number in range(3):
        assert client.report(make(number, epsilon="3"), "a").made
    assert client.report(make(9, epsilon="0.5"), "a").made
    client.flush()
    client.close()
    assert open_client(policy=wide).ledger().spent == Fraction("9.5")


@pytest.mark.timeout(20)
def test_report_returns_even_if_no_lease_ever_lasts(open_client, wide, monkeypatch):
    """Other threads may use up a lease before its report takes from it. Then the report is paid on its own."""
    client = open_client(policy=wide, lease="5")
    renew = client._lease._renew

    def robbed(price):
        renew(price)
        client._lease._left = 0

    monkeypatch.setattr(client._lease, "_renew", robbed)
    receipt = client.report(make(), "a")
    assert receipt.made and receipt.durable
    client.close()
    assert open_client(policy=wide).ledger().spent == 1


def test_the_rest_of_a_budget_is_leased(open_client):
    client = open_client(policy=Policy(max_epsilon="1", budget="2.5", period="1 day", lifetime="9"), lease="2")
    client.report(make(0), "a")
    client.report(make(1), "a")
    client.report(make(2, epsilon="0.5"), "a")
    with pytest.raises(BudgetExceeded):
        client.report(make(3, epsilon="0.5"), "a")


def test_a_crash_costs_the_lease_and_frees_nothing(open_client, clock):
    policy = Policy(max_epsilon="1", budget="5", period="1 day", lifetime="9")
    client = open_client(policy=policy, lease="3")
    client.report(make(0), "a")
    client.flush()
    client.report(make(1), "a")
    client._lease.forked()  # as good as killed: memory is gone, the disk is as it was
    client._storage.close()
    other = open_client(policy=policy)
    assert other.ledger().spent == 3
    assert other.report(make(1), "b").made  # what was lost never left the device, so it may be asked again
    assert other.ledger().spent == 4
    clock.advance(LEASE_SECONDS)
    other.report(make(2), "a")
    view = other.ledger()
    assert (view.spent, view.leased) == (5, 0)
    assert [q.question for q in view.questions].count(None) == 1
    with pytest.raises(BudgetExceeded):
        other.report(make(3), "a")


def test_what_wakes_up_after_its_lease_was_charged_pays_nothing_twice(open_client, clock):
    policy = Policy(max_epsilon="1", budget="9", period="1 day", lifetime="9")
    sleeper, other = open_client(policy=policy, lease="3"), open_client(policy=policy)
    sleeper.report(make(0), "a")
    clock.advance(LEASE_SECONDS + 1)
    other.report(make(1), "a")  # the sleeper's lease is charged whole: 3
    assert other.ledger().spent == 4
    sleeper.flush()
    assert other.ledger().spent == 4
    assert not other.report(make(0), "b").made


def test_two_processes_answer_once(open_client, wide, collector):
    fast, durable = open_client(policy=wide, lease="5"), open_client(policy=wide)
    fast.report(make(), "a")
    durable.report(make(), "b")
    fast.flush(everything=True)
    durable.flush(everything=True)
    assert len(collector.received) == 1  # one answer on the wire; both were paid for
    fast.close()
    assert durable.ledger().spent == 2


def test_an_idle_lease_is_given_back(open_client, wide, clock):
    client = open_client(policy=wide, lease="5")
    client.report(make(), "a")
    clock.advance(LEASE_SECONDS * 0.8)
    client._lease.tend()
    assert client.ledger().spent == 1
    assert client.report(make(1), "a").made


def test_due_answers_rightly_and_stores_nothing(open_client, wide, clock):
    """What is in memory counts as answered; asking does not write it."""
    client, collection = open_client(policy=wide, lease="50"), daily(reports=3, period=60)
    assert client.due(collection)
    for number in range(3):
        assert client.report(collection, "a").made
        assert not client.due(collection)
        clock.advance(60)
        assert client.due(collection) == (number < 2)
    assert rows(client)["answers"] == 0 and client._lease.pending == 3
    client.flush()
    assert not client.due(collection)


def test_an_answer_that_is_being_stored_is_counted_once(open_client, wide, clock):
    """Between the commit of a flush and the moment when the lease forgets the answer it is in both places."""
    client, collection = open_client(policy=wide, lease="50"), daily(reports=2)
    client.report(collection, "a")
    client._lease._settled = lambda made: None  # the moment lasts
    client.flush()
    clock.advance(86_400)
    assert client._lease.slots(collection) and rows(client)["answers"] == 1
    assert client.due(collection)
    assert client.report(collection, "a").made


def test_schedules_count_what_is_in_memory(open_client, wide, clock):
    client, collection = open_client(policy=wide, lease="50"), daily(reports=3)
    made = 0
    for _ in range(6):
        made += client.report(collection, "a").made
        clock.advance(86_400)
    assert made == 3


def test_a_schedule_ends_although_all_its_reports_are_in_memory(open_client, wide, clock):
    """Within one lease nothing is stored: only memory says that the schedule has had its reports."""
    client, collection = open_client(policy=wide, lease="50"), daily(reports=3, period=60)
    made = 0
    for _ in range(6):
        made += client.report(collection, "a").made
        clock.advance(60)
    assert (made, rows(client)["answers"], client._lease.pending) == (3, 0, 3)


def test_nothing_is_taken_from_a_lease_in_the_second_of_its_end(open_client, wide, clock):
    """From that second on another process may have charged it whole."""
    client = open_client(policy=wide, lease="50")
    client.report(make(0), "a")
    token = client._lease._token
    clock.advance(LEASE_SECONDS - 1)
    client.report(make(1), "a")
    assert client._lease._token == token
    clock.advance(1)
    client.report(make(2), "a")
    assert client._lease._token != token
    assert rows(client)["leases"] == 1


def test_a_failed_flush_keeps_the_reports(open_client, wide, collector, monkeypatch):
    client = open_client(policy=wide, lease="5")
    client.report(make(), "a")
    with client._storage.working() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(1, 5):
        client.report(make(number, text="x" * 3000), "a")
    assert "full" in str(client.flush(everything=True).error)
    assert client.flush(everything=True).accepted == 5  # on a fresh connection, with room again
    assert client.ledger().leased == 0


def test_the_background_thread_makes_them_durable(open_client, wide):
    client = open_client(policy=wide, lease="5", background=True, clock=None)
    import time as real

    now = int(real.time())
    client.report(make(opens=now - 10, closes=now + 10**6), "a")
    deadline = time.monotonic() + 10
    while rows(client)["answers"] == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert rows(client)["answers"] == 1


def test_an_idle_lease_is_given_back_in_its_last_quarter(open_client, wide, clock):
    client = open_client(policy=wide, lease="10")
    client.report(make(), "a")
    client.flush()
    lease = client._lease
    clock.advance(LEASE_SECONDS * 3 // 4)
    lease.close_if_idle()
    assert rows(client)["leases"] == 1
    clock.advance(1)
    lease.close_if_idle()
    assert rows(client)["leases"] == 0
    assert client.ledger().spent == 1


def test_a_closed_lease_has_nothing_left_to_write(open_client, wide, monkeypatch):
    client = open_client(policy=wide, lease="10")
    client.report(make(), "a")
    lease = client._lease
    lease.close()
    monkeypatch.setattr(client._storage, "charging", None)  # no further transaction
    lease.close()
    lease.close_if_idle()
    lease.flush()
    assert lease.pending == 0
    assert lease.tend() == 300.0


def test_nothing_is_taken_from_a_lease_that_is_being_renewed(open_client, wide, monkeypatch):
    client = open_client(policy=wide, lease="2")
    for number in range(2):
        client.report(make(number), "a")
    lease, charging = client._lease, client._storage.charging
    lease._left = 5  # less than the next report's price, in units of epsilon
    left = []

    def watched(**options):
        left.append(lease._left)
        return charging(**options)

    monkeypatch.setattr(client._storage, "charging", watched)
    assert client.report(make(2), "a").made
    assert left == [0]


def test_what_is_known_in_memory_is_bounded(open_client, wide, monkeypatch):
    monkeypatch.setattr("ldp_client.ledger.lease._KNOWN_ANSWERS", 3)
    client = open_client(policy=wide, lease="10")
    for number in range(4):
        client.report(make(number), "a")
    assert len(client._lease._known) == 4
    client.flush()
    assert len(client._lease._known) == 0
    assert not client.report(make(0), "b").made  # the ledger knows


def test_a_window_that_is_over_pays_nothing_from_a_lease(open_client, wide, clock):
    """Neither with a lease that is open, where the latest moment that was seen counts, nor with one to come."""
    client, short, long = open_client(policy=wide, lease="10"), make(0, closes=NOW + 10), make(1)
    clock.advance(9)
    assert client.report(long, "a").made
    clock.advance(1)
    for _ in range(2):
        with pytest.raises(PolicyRefused, match="closed at 2027-01-15 08:00:10 UTC"):
            client.report(short, "a")
        clock.advance(-5)
    client.flush()
    assert rows(client)["answers"] == 1
    client.close()
    clock.advance(20)
    later = open_client(policy=wide, lease="10")
    with pytest.raises(PolicyRefused, match="closed at"):
        later.report(short, "a")
    assert later.ledger().spent == 1, "no lease was opened for it"
