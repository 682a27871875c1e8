"""A ledger whose file is exchanged or damaged between two uses: every file is checked in full before it is believed."""

import shutil
import sqlite3
import sys
from contextlib import closing

import pytest

from ldp_client import StorageError, StorageUntrusted
from ldp_client.ledger import opening
from ldp_client.ledger.database import Storage
from ldp_client.ledger.opening import Opening, connect
from ldp_client.ledger.schema import Damaged
from ldp_client.ledger.witness import LedgerProgress, Witness
from tests.client.conftest import NOW, make


def edit(path, *statements):
    """Change a ledger as no client would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_a_damaged_copy_put_under_a_living_client_is_spent(open_client, tmp_path, wide):
    """The damage is in an old entry, at which only the check of the whole file looks."""
    client = open_client(policy=wide)
    for number in range(3):
        client.report(make(number), "a")
    path, copy = client._storage.path, tmp_path / "copy"
    edit(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, copy)
    edit(copy, "UPDATE answers SET epsilon = 0 WHERE id = 1", "PRAGMA wal_checkpoint(TRUNCATE)")
    copy.replace(path)
    with pytest.raises(StorageUntrusted, match="an entry is damaged"):
        client.report(make(9), "a")


@pytest.fixture
def opened(monkeypatch):
    """The connections that are opened meanwhile."""
    found = []
    monkeypatch.setattr(opening, "connect", lambda path: found.append(connect(path)) or found[-1])
    return found


def make_ledger(folder):
    storage = Storage(folder)
    with storage.charging() as (_, state):
        state.changed = True
    storage.close()
    return Opening(storage.path, Witness(folder / "ledger.witness"))


def assert_closed(connections):
    assert connections
    for db in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            db.execute("SELECT 1")


def test_a_schema_that_is_no_text_is_damage(tmp_path, opened):
    """SQLite's message about such a table cannot be decoded, so sqlite3 raises no error of its own."""
    ledger = make_ledger(tmp_path)
    edit(
        tmp_path / "ledger.sqlite",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE'",
    )
    opened.clear()
    with pytest.raises(Damaged, match="it is damaged"):
        ledger.connect()
    assert_closed(opened)


def test_whatever_is_wrong_the_connection_is_closed(tmp_path, opened):
    """An open one would keep what it had begun, and lock the others out."""
    ledger = make_ledger(tmp_path)
    (tmp_path / "ledger.witness").unlink()
    opened.clear()
    with pytest.raises(Damaged, match="its witness is missing"):
        ledger.connect()
    assert_closed(opened)


def test_after_a_reset_by_another_process_a_writer_asks_the_witness_and_a_reader_does_not(tmp_path):
    """A reader's view may be older than the witness, because others go on meanwhile. A writer's is not."""
    mine, other = Storage(tmp_path), Storage(tmp_path)
    with mine.charging() as (_, state):
        state.changed = True
    with mine.working():
        pass  # both of its connections are open
    other.reset("a test", NOW)
    other.witness.write(other.witness.seen._replace(generation=99))
    with mine.reading() as (_, state):
        assert state.instance == other.witness.seen.instance
    mine.witness.seen = LedgerProgress(b"before the reset", 1)
    with pytest.raises(StorageUntrusted, match="older copy"), mine.charging():
        pass
    for storage in (mine, other):
        storage.close()


def test_to_close_a_lease_is_a_change_of_the_ledger(open_client, wide):
    """Whatever changes the ledger raises its generation, so that a copy of before is known for what it is."""
    client = open_client(policy=wide, lease="5")
    client.report(make(), "a")
    client.flush()
    before = client._storage.witness.seen.generation
    client._lease.close()
    assert client._storage.witness.seen.generation == before + 1


def test_a_path_that_cannot_be_looked_at_is_not_there(tmp_path):
    """The name is longer than the system takes: what is wrong is for the next transaction to say."""
    assert Storage(tmp_path / ("x" * 300)).exists() is False


def test_every_kind_of_use_notices_that_the_file_was_replaced(tmp_path):
    """And goes on with the connection it has where it was not."""
    storage = Storage(tmp_path)
    uses = [storage.charging, storage.working, storage.peeking, storage.reading]
    for use in uses:
        with storage.charging() as (_, state):
            state.changed = True
        with storage.working():
            pass
        links = storage._front, storage._back
        before = [link.db for link in links]
        with use():
            pass
        assert [link.db for link in links] == before
        edit(storage.path, "PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(storage.path, tmp_path / "copy")
        (tmp_path / "copy").replace(storage.path)
        with use():
            pass
        assert [link.db is db for link, db in zip(links, before, strict=True)].count(False) == 1
    storage.close()


def test_a_witness_that_cannot_be_replaced_is_an_error(tmp_path):
    """A reset must not believe that it has begun anew."""
    (tmp_path / "mark" / "something").mkdir(parents=True)
    with pytest.raises(StorageError, match="mark"):
        Witness(tmp_path / "mark").replace(LedgerProgress(b"i" * 16, 1))


def test_a_half_made_witness_of_an_earlier_reset_does_not_count(tmp_path):
    """A reset that was cut short left it behind. Its records must not come into the file of the next reset."""
    Witness(tmp_path / "mark.new").write(LedgerProgress(b"o" * 16, 99))
    witness = Witness(tmp_path / "mark")
    witness.replace(LedgerProgress(b"i" * 16, 3))
    assert witness.read() == LedgerProgress(b"i" * 16, 3)


def test_a_child_lets_its_parent_s_connection_live(tmp_path):
    """After a fork it is forgotten and never destroyed: to close it would touch the parent's files."""
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    db = storage._front.db
    before = sys.getrefcount(db)
    storage.forked()
    assert storage._front.db is None
    assert sys.getrefcount(db) == before  # the storage's reference is gone, and one is never given back
    db.close()
