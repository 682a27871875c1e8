"""The store in a data directory as a whole: what it opens, how large it is, and which directories it refuses."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.store import AppendOutcome, DataDirectory, DirectoryLock
from ldp_server.store.engines import VARIABLE, EmbeddedStore, inherited, open_store
from ldp_server.store.errors import InUse, ReadOnly, StorageError
from tests.server.store.contract.batches import a_batch, add, held


@pytest.fixture
def store(tmp_path):
    return EmbeddedStore(tmp_path / "d")


def test_a_directory_is_the_store_of_an_empty_address(tmp_path):
    found = open_store("", tmp_path / "d")
    assert isinstance(found, EmbeddedStore)
    assert (found.name, found.shared, found.shards) == (str(tmp_path / "d"), False, 1)
    assert not (tmp_path / "d").exists(), "naming a store makes nothing"


def test_what_one_process_writes_another_object_reads(store):
    with store.serving():
        store.prepare()
        store.require_rights(keeps=True)
        (log,) = store.writers()
        number = add(log)
        batch = a_batch(number, b"what was sent")
        assert log.append([batch]) == [AppendOutcome.STORED]
        with closing(store.reader()) as reader:
            assert [one.payload for one in held(reader, number)] == [b"what was sent"]
            assert (reader.record(number).shards, reader.record(number).periods) == (1, 1)
        log.close()


def test_one_server_at_a_time(store, tmp_path):
    with store.serving():
        with pytest.raises(InUse, match=f"^{tmp_path}/d is being served by process {os.getpid()}$"), store.serving():
            pass
        with EmbeddedStore(tmp_path / "other").serving():
            pass
    with store.serving():
        assert (tmp_path / "d" / "states").is_dir()


def test_the_lock_is_given_back_when_the_server_ends_with_an_error(store):
    with pytest.raises(ZeroDivisionError), store.serving():
        raise ZeroDivisionError
    with store.serving():
        pass


def test_nobody_else_changes_it_so_nobody_is_told(store):
    with store.serving(), store.watch(None) as watch:
        assert watch is None
    with pytest.raises(NotImplementedError):
        store.keep_cosignatures([])


def test_its_size_is_that_of_the_database_and_its_write_ahead_log(store, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    assert store.usage().used == 0
    (folder / "log.db").write_bytes(bytes(1000))
    assert store.usage().used == 1000
    (folder / "log.db-wal").write_bytes(bytes(70))
    for other in ("access.db", "log.db-shm", "lock"):
        (folder / other).write_bytes(bytes(5))
    found = store.usage()
    assert found.used == 1070
    assert 0 < found.free <= shutil.disk_usage(folder).total


def test_a_child_process_opens_the_same_store(store, tmp_path, monkeypatch):
    environment = store.environment()
    assert environment == {VARIABLE: ""}
    monkeypatch.setenv(VARIABLE, environment[VARIABLE])
    assert inherited(tmp_path / "d").name == store.name
    monkeypatch.delenv(VARIABLE)
    assert isinstance(inherited(tmp_path / "d"), EmbeddedStore)
    monkeypatch.setenv(VARIABLE, "mysql://db")
    with pytest.raises(InvalidSpec, match=r"^store is "):
        inherited(tmp_path / "d")


def test_a_child_process_opens_the_same_database(tmp_path, monkeypatch):
    pytest.importorskip("psycopg")
    monkeypatch.setenv(VARIABLE, "postgresql://u:secret@db/one")
    assert inherited(tmp_path).name == "postgresql://db/one"
    monkeypatch.setenv(VARIABLE, "postgresql://a/one postgresql://b/two")
    assert inherited(tmp_path).name == "postgresql://a/one, postgresql://b/two"
    assert (inherited(tmp_path).shards, inherited(tmp_path).shared) == (2, True)
    assert inherited(tmp_path).environment() == {VARIABLE: os.environ[VARIABLE]}


def test_a_backup_needs_a_log_and_holds_what_the_log_holds(store, tmp_path):
    with pytest.raises(StorageError, match="holds no Hearsay log: start it with `ldp-server serve` first"):
        store.backup(tmp_path / "copy.db")
    with store.serving(), closing(store.writer()) as log:
        number = add(log)
        log.append([a_batch(number, b"kept")])
        store.backup(tmp_path / "copy.db")
        log.append([a_batch(number, b"later")])
    (tmp_path / "e").mkdir()
    (tmp_path / "copy.db").rename(tmp_path / "e" / "log.db")
    with closing(EmbeddedStore(tmp_path / "e").reader()) as reader:
        assert [one.payload for one in held(reader, number)] == [b"kept"]


def test_tokens_lie_beside_the_log(store, tmp_path):
    with store.serving():
        access = store.access(lambda: 1000.0)
        access.create("maria")
        access.close()
    assert (tmp_path / "d" / "access.db").stat().st_mode & 0o777 == 0o600


# -- directories that are refused


def test_a_log_that_is_gone_is_not_begun_anew(store, tmp_path):
    """Its tokens are there, so there was a log. An empty one would acknowledge what was sent a second time."""
    directory = DataDirectory(tmp_path / "d").create()
    directory.access.touch()
    with pytest.raises(StorageError, match=r"log\.db is missing, though access\.db is there: restore a backup"):
        store.serving()
    directory.log.touch()
    with pytest.raises(StorageError, match=r"log\.db has no bytes, though access\.db is there: restore a backup"):
        store.serving()
    directory.access.unlink()
    with store.serving():
        pass


def test_a_log_that_a_move_has_not_filled_is_not_served(store, tmp_path):
    directory = DataDirectory(tmp_path / "d").create()
    directory.moving.touch()
    with pytest.raises(StorageError, match=r"is being filled by `ldp-server migrate`: run it again to the end"):
        store.serving()
    assert directory.moving.name == "log.db.moving"
    directory.log.touch()
    with store.serving():
        pass


def test_a_log_that_was_moved_away_is_not_served(store, tmp_path):
    directory = DataDirectory(tmp_path / "d").create()
    assert directory.moved_to() is None
    directory.refuse_moved()
    directory.moved.write_text("postgresql://db/hearsay\n")
    assert directory.moved_to() == "postgresql://db/hearsay"
    with pytest.raises(StorageError) as refused:
        store.serving()
    assert str(refused.value) == (
        f"everything in {tmp_path}/d was moved to postgresql://db/hearsay: serve that store. To serve this one all the "
        f"same, without what came there since, remove {tmp_path}/d/moved"
    )
    directory.moved.unlink()
    with store.serving():
        pass


def test_a_directory_that_nobody_may_make(tmp_path):
    (tmp_path / "file").write_bytes(b"no directory")
    with pytest.raises(StorageError, match=r"file/d: Not a directory$"):
        EmbeddedStore(tmp_path / "file" / "d").serving()


def test_a_lock_that_nobody_may_write(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ReadOnly, match=r"lock cannot be written: Permission denied$"):
        DirectoryLock(DataDirectory(tmp_path)).acquire()


def test_a_lock_holds_although_its_number_cannot_be_written(tmp_path, monkeypatch):
    """On a full disk the server can still be stopped and started."""

    def full(*_):
        raise OSError(28, "No space left on device")

    directory = DataDirectory(tmp_path)
    monkeypatch.setattr(os, "write", full)
    with DirectoryLock(directory):
        monkeypatch.undo()
        with pytest.raises(InUse, match=r"by another process$"):
            DirectoryLock(directory).acquire()


def test_other_files_of_a_directory_have_their_places(tmp_path):
    directory = DataDirectory(Path("/d"))
    assert (directory.cosignatures, directory.moved) == (Path("/d/cosignatures.json"), Path("/d/moved"))
    assert (directory.moving, directory.address) == (Path("/d/log.db.moving"), Path("/d/address"))
