"""What the ledger's files hold after a close, and that a close never fails."""

import sqlite3
import stat
from contextlib import closing

import pytest

from ldp_client.errors import StorageError
from ldp_client.ledger.database import Storage
from ldp_client.ledger.witness import Witness
from tests.client.conftest import NOW


def change(storage):
    with storage.charging() as (_, state):
        state.changed = True


@pytest.fixture
def storage(tmp_path):
    return Storage(tmp_path)


def test_a_close_brings_a_late_witness_up_to_date(storage, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise StorageError("no")

    change(storage)
    with monkeypatch.context() as patch:
        patch.setattr(storage.witness, "write", fail)
        change(storage)  # it stands, although the witness could not be written
    assert Witness(tmp_path / "ledger.witness").read().generation == 1
    storage.close()
    assert Witness(tmp_path / "ledger.witness").read().generation == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_close_flushes_the_witness_to_the_disk_if_it_can(storage, monkeypatch, fails):
    asked = []

    def write(progress, *, durable=False):
        asked.append((progress.generation, durable))
        if fails:
            raise StorageError("no")

    change(storage)
    monkeypatch.setattr(storage.witness, "write", write)
    storage.close()
    assert asked == [(1, True)]
    assert (storage._front.db, storage._back.db) == (None, None)


def test_who_only_looked_or_changed_nothing_writes_no_witness(storage, tmp_path):
    change(storage)
    storage.close()
    before = (tmp_path / "ledger.witness").stat().st_mtime_ns
    looking = Storage(tmp_path)
    with looking.reading():
        pass
    looking.close()
    assert (tmp_path / "ledger.witness").stat().st_mtime_ns == before


def test_both_connections_are_closed_and_the_next_use_opens_them(storage):
    change(storage)
    with storage.working():
        pass
    storage.close()
    assert (storage._front.db, storage._back.db) == (None, None)
    change(storage)
    with storage.reading() as (_, state):
        assert state.generation == 2
    storage.close()


def test_a_new_ledger_has_come_nowhere(storage):
    """Its row says nothing of a time, a charge or a change, and so does its witness."""
    with storage.working() as db:
        assert db.execute("SELECT generation, seen, answers, total, uptime, doubt, boot FROM state").fetchall() == [
            (0, 0, 0, 0, 0, 0, "")
        ]
    assert storage.witness.read().generation == 0
    storage.close()


def test_a_ledger_that_was_half_made_is_made_anew(storage, monkeypatch):
    """The witness could not be written after the tables were made: no table is there, and nobody is locked out."""

    def fail(*_):
        raise StorageError("no")

    with monkeypatch.context() as patch:
        patch.setattr(storage.witness, "replace", fail)
        with pytest.raises(StorageError, match="no"), storage.charging():
            pass
    with closing(sqlite3.connect(storage.path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    change(storage)
    assert storage.problem() is None
    storage.close()


def test_a_reset_makes_a_folder_for_its_owner_alone(tmp_path):
    storage = Storage(tmp_path / "new")
    storage.reset("before anything was there", NOW)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    storage.close()
