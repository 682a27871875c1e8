"""Leases that nobody closed: who charges them, when, and how much."""

import pytest

from ldp_client import StorageError
from ldp_client.ledger.lease import LEASE_SECONDS
from ldp_client.testing import RepeatableCoins
from tests.client.conftest import NOW, daily, make


@pytest.fixture
def lost(open_client, wide):
    """A client that died with a lease of 5, of which 1 is used and stored."""
    client = open_client(policy=wide, lease="5")
    client.report(make(0), "a")
    client.flush()
    client._lease.forked()
    client._storage.close()


@pytest.mark.parametrize("lease", [None, "3"])
def test_the_next_report_after_its_end_charges_it(open_client, wide, clock, lost, lease):
    """Whether that report is paid on its own or from a new lease."""
    client = open_client(policy=wide, lease=lease, coins=RepeatableCoins(b"another process"))
    clock.advance(LEASE_SECONDS)
    client.report(make(1), "a")
    client.flush()
    view = client.ledger()
    assert [(q.question_id, q.spent) for q in view.questions if q.question is None] == [(b"", 4)]
    assert (view.spent - view.leased, view.leased) == (6, 2 if lease else 0)


@pytest.mark.parametrize("lease", [None, "3"])
def test_until_its_end_it_is_set_aside_and_not_charged(open_client, wide, clock, lost, lease):
    client = open_client(policy=wide, lease=lease, coins=RepeatableCoins(b"another process"))
    clock.advance(LEASE_SECONDS - 1)
    client.report(make(1), "a")
    client.flush()
    view = client.ledger()
    assert all(q.question is not None for q in view.questions)
    assert (view.spent - view.leased, view.leased) == (2, 6 if lease else 4)


def test_a_lease_that_was_used_up_leaves_no_charge_behind(open_client, wide, clock):
    client = open_client(policy=wide, lease="2")
    for number in range(2):
        client.report(make(number), "a")
    client.flush()
    client._lease.forked()
    client._storage.close()
    clock.advance(LEASE_SECONDS)
    other = open_client(policy=wide)
    other.report(make(2), "a")
    view = other.ledger()
    assert (view.spent, view.leased, len(view.questions)) == (3, 0, 3)


@pytest.mark.parametrize("how", ["flush", "close"])
def test_what_is_stored_is_in_memory_no_more(open_client, wide, clock, how):
    client, collection = open_client(policy=wide, lease="5"), daily()
    slots = []
    for _ in range(2):
        client.report(collection, "a")
        slots += client._lease.slots(collection)
        getattr(client._lease, how)()
        assert client._lease.slots(collection) == []
        clock.advance(86_400)
    assert slots == [NOW // 86_400, NOW // 86_400 + 1]


@pytest.mark.parametrize("how", ["closed", "idle"])
def test_nothing_is_taken_from_a_lease_that_was_given_back(open_client, wide, clock, how):
    """Its budget is free again, so a report made from it would be paid by nobody."""
    client = open_client(policy=wide, lease="5")
    client.report(make(0), "a")
    if how == "closed":
        client._lease.close()
    else:
        clock.advance(LEASE_SECONDS * 0.9)
        client._lease.tend()
    assert (client.ledger().spent, client.ledger().leased) == (1, 0)
    assert client.report(make(1), "a").made
    assert (client.ledger().spent, client.ledger().leased) == (6, 5)
    client.close()
    assert open_client(policy=wide).ledger().spent == 2


def test_who_made_no_report_has_no_lease_to_give_back(open_client, wide, tmp_path):
    client = open_client(policy=wide, lease="5")
    client._lease.close()
    client._lease.tend()
    client.close()
    assert not (tmp_path / "ldp").exists()


@pytest.mark.parametrize("step", ["flush", "close", "renew"])
def test_a_step_that_fails_says_so_and_keeps_reports_and_lease(open_client, wide, monkeypatch, step):
    client = open_client(policy=wide, lease="2")
    for number in range(2):
        client.report(make(number), "a")
    lease, before = client._lease, client._lease._token

    def fail(**_):
        raise StorageError("no")

    with monkeypatch.context() as patch:
        patch.setattr(client._storage, "charging", fail)
        with pytest.raises(StorageError, match="no"):
            client.report(make(9), "a") if step == "renew" else getattr(lease, step)()
    assert (lease.pending, lease._token) == (2, before)
    client.close()
    again = open_client(policy=wide)
    assert (again.ledger().spent, again.ledger().leased, again.outbox().waiting) == (2, 0, 2)
