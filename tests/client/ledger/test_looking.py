"""Looking changes nothing: no file, no byte, no row, nothing that another connection would notice."""

import dataclasses
import sqlite3
from fractions import Fraction

import pytest

from ldp_client import Policy, StorageError
from ldp_client.ledger.lease import LEASE_SECONDS
from tests.client.conftest import NOW, daily, make


def everything_in(directory):
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def look(client):
    client.ledger()
    client.outbox()
    client.due(make(0))
    client.due(make(99))
    client.due(daily())


@pytest.fixture
def files(tmp_path):
    return tmp_path / "ldp"


@pytest.mark.parametrize("lease", [None, "2"])
def test_looking_changes_no_byte_and_no_row(open_client, wide, files, collector, lease):
    client = open_client(policy=wide, delay=0, lease=lease)
    for number in range(3):
        client.report(make(number), "a")
    before = everything_in(files)
    with sqlite3.connect(files / "ledger.sqlite", isolation_level=None) as db:
        version = db.execute("PRAGMA data_version").fetchone()
        look(client)
        look(open_client(policy=wide))
        assert db.execute("PRAGMA data_version").fetchone() == version
    db.close()
    after = everything_in(files)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: data
        for name, data in before.items()
        if not name.endswith("-shm")  # SQLite's read locks live there
    }
    assert collector.calls == []


def test_looking_where_nothing_is_makes_no_file(open_client, tmp_path, files):
    client = open_client()
    look(client)
    client.close()
    assert not files.exists() and list(tmp_path.iterdir()) == []
    assert client.ledger().left == 12 and client.outbox().waiting == 0


def test_a_look_at_an_empty_file_makes_no_tables(open_client, files):
    files.mkdir()
    (files / "ledger.sqlite").touch()
    look(open_client())
    assert everything_in(files) == {"ledger.sqlite": b""}


def test_a_late_witness_is_left_to_the_next_charge(open_client, files):
    client = open_client()
    client.report(make(0), "a")
    late = (files / "ledger.witness").read_bytes()
    client.report(make(1), "a")
    client.close()
    (files / "ledger.witness").write_bytes(late)
    other = open_client()
    look(other)
    assert (files / "ledger.witness").read_bytes() == late
    assert other.ledger().problem is None


def test_a_reading_transaction_cannot_write(open_client):
    client = open_client()
    client.report(make(0), "a")
    with pytest.raises(StorageError, match="readonly"), client._storage.reading() as (db, _):
        db.execute("DELETE FROM outbox")
    assert client.outbox().waiting == 1
    client.report(make(1), "a")  # and writing goes on


def test_looking_does_not_end_the_rollback_check(open_client, files, tmp_path):
    """A reader refuses what a writer refuses."""
    client = open_client()
    client.report(make(0), "a")
    client.close()
    (files / "ledger.sqlite").unlink()
    before = everything_in(files)
    view = open_client().ledger()
    assert view.left == 0 and "its file is missing" in view.problem
    assert everything_in(files) == before
    assert sorted(before) == ["ledger.witness", "sending.lock"]


def test_due_follows_the_window(open_client, clock):
    client = open_client()
    assert not client.due(make(1, opens=NOW + 10))
    clock.advance(10)
    assert client.due(make(1, opens=NOW + 10))
    assert not client.due(make(2, closes=NOW + 10))


# -- what a user sees of the ledger


def test_a_question_is_named_by_its_id_and_a_lost_lease_by_nothing(open_client, clock, wide):
    crashed = open_client(policy=wide, lease="3")
    collection = daily()
    crashed.report(collection, "a")
    crashed.flush()
    crashed._lease.forked()  # as good as killed: 2 of 3 are left, and nobody knows what they were used for
    crashed._storage.close()
    clock.advance(LEASE_SECONDS)
    client = open_client(policy=wide)
    client.report(make(1, text="Another?"), "a")
    assert [dataclasses.astuple(question) for question in client.ledger().questions] == [
        (collection.question_id, collection.question, 1, 1),
        (b"", None, 1, 2),
        (make(1, text="Another?").question_id, "Another?", 1, 1),
    ]


def test_what_is_left_is_never_below_nothing(open_client, clock):
    """The policy became stricter after the charges. What is left of a lifetime bounds what is left of a period."""
    client = open_client()
    for number in range(2):
        client.report(make(number), "a")
    client.close()
    strict = open_client(policy=Policy(max_epsilon="1", budget="1", period="30 days", lifetime="1.5")).ledger()
    assert (strict.spent, strict.left, strict.left_in_period) == (2, 0, 0)
    clock.advance(31 * 86_400)
    view = open_client(policy=Policy(max_epsilon="1", budget="1.5", period="30 days", lifetime="2.5")).ledger()
    assert (view.spent_in_period, view.left, view.left_in_period) == (0, Fraction(1, 2), Fraction(1, 2))
