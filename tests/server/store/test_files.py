"""Checkpoints, backups, the data directory and its lock: every byte that counts, and what is refused."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from ldp_server.store import DataDirectory, DirectoryLock, SqliteLog, schema
from ldp_server.store.checkpoints import (
    Checkpoint,
    drop_checkpoint,
    drop_other_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from ldp_server.store.errors import InUse, StorageError
from ldp_server.store.reader import backup

ID = bytes(range(32))
CHECKPOINT = Checkpoint(ID, 0, 5, 300, 7, b"b" * 16, [b"c" * 16, b"d" * 16], b"state of any length")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_checkpoint_comes_back(tmp_path):
    path = write_checkpoint(tmp_path, CHECKPOINT)
    assert path == tmp_path / f"{ID.hex()}.state"
    assert read_checkpoint(tmp_path, ID) == CHECKPOINT
    assert list(tmp_path.iterdir()) == [path]
    newer = replace(CHECKPOINT, sequence=6, state=b"")
    write_checkpoint(tmp_path, newer)
    assert read_checkpoint(tmp_path, ID) == newer
    assert len(path.read_bytes()) == 5 + 32 + 8 + 8 + 8 + 8 + 16 + 8 + 8 + 2 * 16 + 32


def test_a_checkpoint_of_nothing_comes_back_too(tmp_path):
    empty = replace(CHECKPOINT, recent=[], state=b"")
    write_checkpoint(tmp_path, empty)
    assert read_checkpoint(tmp_path, ID) == empty


def test_the_bytes_of_a_checkpoint(tmp_path):
    head = b"HSCP\x03" + ID
    for number in (0, 5, 300, 7):
        head += number.to_bytes(8, "little")
    head += b"b" * 16 + (2).to_bytes(8, "little") + (19).to_bytes(8, "little")
    body = head + b"c" * 16 + b"d" * 16 + b"state of any length"
    assert write_checkpoint(tmp_path, CHECKPOINT).read_bytes() == body + hashlib.sha256(body).digest()


def test_a_checkpoint_with_any_byte_changed_is_not_used(tmp_path):
    path = write_checkpoint(tmp_path, CHECKPOINT)
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        assert read_checkpoint(tmp_path, ID) is None, place
    for wrong in (b"", sound[:-1], sound + b"\0", sound[:32], sound[:116]):
        path.write_bytes(wrong)
        assert read_checkpoint(tmp_path, ID) is None


def test_a_checkpoint_of_another_collection_is_not_used(tmp_path):
    path = write_checkpoint(tmp_path, CHECKPOINT)
    other = bytes(32)
    path.rename(tmp_path / f"{other.hex()}.state")
    assert read_checkpoint(tmp_path, other) is None
    assert read_checkpoint(tmp_path, ID) is None


def test_dropping_a_checkpoint_twice_is_nothing(tmp_path):
    write_checkpoint(tmp_path, CHECKPOINT)
    drop_checkpoint(tmp_path, ID, 0)
    drop_checkpoint(tmp_path, ID, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_written_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError):
        write_checkpoint(tmp_path / "nowhere", CHECKPOINT)


def test_a_backup_is_for_its_owner_and_leaves_no_draft(tmp_path):
    source, target = tmp_path / "log.db", tmp_path / "copy.db"
    SqliteLog(source).close()
    (tmp_path / "copy.db.draft").write_bytes(b"of a backup that was interrupted")
    backup(source, target)
    assert mode(target) == 0o600
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    log = SqliteLog(target)
    assert log.records() == []
    log.close()


def test_checkpoints_of_other_collections_are_dropped(tmp_path):
    kept = write_checkpoint(tmp_path, CHECKPOINT)
    gone = write_checkpoint(tmp_path, replace(CHECKPOINT, collection_id=bytes(32)))
    draft = gone.with_suffix(".draft")
    draft.write_bytes(b"half")
    (tmp_path / "mine.txt").write_bytes(b"not a checkpoint")
    drop_other_checkpoints(tmp_path, {ID})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([kept.name, "mine.txt"])
    drop_other_checkpoints(tmp_path / "nowhere", {ID})


def test_a_backup_closes_what_it_opened(tmp_path, monkeypatch):
    opened = []

    def connect(*path, **options):
        opened.append(schema.connect(*path, **options))
        return opened[-1]

    monkeypatch.setattr("ldp_server.store.reader.connect", connect)
    SqliteLog(tmp_path / "log.db").close()
    backup(tmp_path / "log.db", tmp_path / "copy.db")
    assert len(opened) == 1
    for db in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            db.execute("SELECT 1")


def test_a_backup_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    SqliteLog(tmp_path / "log.db").close()
    flushed = []
    real = os.fsync

    def fsync(handle):
        flushed.append((Path(f"/proc/self/fd/{handle}").resolve().name, (tmp_path / "copy.db").exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    backup(tmp_path / "log.db", tmp_path / "copy.db")
    assert flushed == [("copy.db.draft", False)]


def test_a_backup_overwrites_nothing(tmp_path):
    source, target = tmp_path / "log.db", tmp_path / "copy.db"
    SqliteLog(source).close()
    target.write_bytes(b"mine")
    with pytest.raises(StorageError, match="never overwrites"):
        backup(source, target)
    assert target.read_bytes() == b"mine"


def test_a_backup_that_fails_leaves_no_draft(tmp_path):
    source = tmp_path / "log.db"
    source.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError):
        backup(source, tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.db"]


def test_a_data_directory_is_for_its_owner(tmp_path):
    directory = DataDirectory(tmp_path / "a" / "d").create()
    directory.create()
    assert mode(directory.root) == mode(directory.states) == 0o700
    names = {name: getattr(directory, name).relative_to(directory.root).as_posix()
             for name in ("lock", "log", "access", "states", "address", "local_token")}  # fmt: skip
    assert names == {
        "lock": "lock", "log": "log.db", "access": "access.db", "states": "states", "address": "address",
        "local_token": "local.token",
    }  # fmt: skip
    for _ in range(2):
        with pytest.raises(StorageError, match="holds no Hearsay log"):
            directory.require()
        directory.log.touch()  # nothing is in it
    directory.log.write_bytes(b"SQLite")
    assert directory.require() is directory


def test_the_lock_names_its_holder_and_is_given_back(tmp_path):
    directory = DataDirectory(tmp_path).create()
    with DirectoryLock(directory) as lock:
        assert directory.lock.read_text() == f"{os.getpid()}\n"
        assert mode(directory.lock) == 0o600
        with pytest.raises(InUse, match=f"being served by process {os.getpid()}$"):
            DirectoryLock(directory).acquire()
    lock.release()  # twice is nothing
    with DirectoryLock(directory):
        pass


def test_a_lock_with_an_old_number_is_written_anew(tmp_path):
    directory = DataDirectory(tmp_path).create()
    directory.lock.write_text("123456789012345\n")
    with DirectoryLock(directory):
        assert directory.lock.read_text() == f"{os.getpid()}\n"


def test_a_lock_whose_file_was_removed_still_holds(tmp_path):
    """Somebody tidies up: a second server would make the file anew, and both would write the log."""
    directory = DataDirectory(tmp_path).create()
    with DirectoryLock(directory):
        directory.lock.unlink()
        assert directory.served()
        with pytest.raises(InUse, match="by another process"):
            DirectoryLock(directory).acquire()
    assert not directory.served()
    DirectoryLock(directory).acquire().release()


def test_a_lock_whose_text_is_no_number_says_so(tmp_path):
    directory = DataDirectory(tmp_path).create()
    with DirectoryLock(directory):
        directory.lock.write_text("?")
        with pytest.raises(InUse, match="by another process"):
            DirectoryLock(directory).acquire()
