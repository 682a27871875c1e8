"""Writes that fail in the middle: what was acknowledged stays, the rest may come again, and nothing counts twice."""

import os
import sqlite3
from pathlib import Path

import pytest

from ldp_server.store import AppendOutcome, SqliteLog, SqliteReader
from ldp_server.store.errors import InUse, Removed, StorageError
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]


def descriptor(path):
    """This process's open descriptor of a file."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and str(entry.readlink()).removesuffix(" (deleted)") == str(path):
            return int(entry.name)
    raise AssertionError(f"{path} is not open")


def break_file(path):
    """From now on every write to the open file fails: its descriptor is one that may only read."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    read_only = os.open(path, os.O_RDONLY)
    os.dup2(read_only, descriptor(path))
    os.close(read_only)


def wal_of(log):
    return log.path.with_name("log.db-wal")


def test_a_failed_write_keeps_what_was_there_and_the_batch_may_come_again(log):
    number = add(log)
    kept, lost = a_batch(number, b"kept"), a_batch(number, b"lost")
    assert log.append([kept]) == [AppendOutcome.STORED]
    break_file(wal_of(log))
    with pytest.raises(StorageError, match="IOERR"):
        log.append([lost])
    log.recover()
    assert log.append([kept, lost]) == [AppendOutcome.DUPLICATE, AppendOutcome.STORED]
    assert sorted(batch.payload for batch in held(log, number)) == [b"kept", b"lost"]
    log.check()


def test_recovering_leaves_nothing_in_the_write_ahead_log(log):
    """What lies in it may not be on the disk after a failed fsync; the database file is synced anew."""
    number = add(log)
    log.append([a_batch(number, b"kept")])
    assert wal_of(log).stat().st_size > 0
    log.recover()
    assert wal_of(log).stat().st_size == 0
    assert len(held(log, number)) == 1


def test_recovering_waits_for_a_reader_that_keeps_the_write_ahead_log(log, monkeypatch):
    monkeypatch.setattr("ldp_server.store.schema.BUSY_SECONDS", 0.1)
    number = add(log)
    reader = SqliteReader(log.path)
    reader.db.execute("BEGIN")
    reader.db.execute("SELECT count(*) FROM batches").fetchone()
    log.append([a_batch(number, b"kept")])
    with pytest.raises(InUse):
        log.recover()
    reader.close()
    log.recover()
    assert len(held(log, number)) == 1


def test_a_removed_write_ahead_log_is_noticed_at_the_next_write_and_rescued(log):
    number = add(log)
    batches = [a_batch(number, os.urandom(20)) for _ in range(5)]
    assert log.append(batches[:4]) == [AppendOutcome.STORED] * 4
    reader = SqliteReader(log.path)
    assert len(held(reader, number)) == 4
    wal_of(log).unlink()
    with pytest.raises(StorageError, match="removed or replaced"):
        log.append(batches[4:])
    log.recover()
    assert log.append(batches) == [AppendOutcome.DUPLICATE] * 5
    one_more = a_batch(number, b"more")
    assert log.append([one_more]) == [AppendOutcome.STORED]
    reader.renew()
    assert len(held(reader, number)) == 6
    reader.close()
    log.check()
    log.close()
    again = sqlite3.connect(log.path)
    assert again.execute("SELECT count(*) FROM recent").fetchone() == (6,)
    again.close()


def test_a_write_ahead_log_that_another_program_made_anew_is_noticed(log):
    number = add(log)
    log.append([a_batch(number)])
    wal_of(log).unlink()
    wal_of(log).write_bytes(b"")
    with pytest.raises(StorageError, match="removed or replaced"):
        log.append([a_batch(number)])


def test_catalogue_changes_notice_a_removed_write_ahead_log_too(log):
    number = add(log)
    wal_of(log).unlink()
    with pytest.raises(StorageError, match="removed or replaced"):
        log.close_collection(number, 5)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_removed_database_is_never_made_anew(log, replaced, tmp_path):
    number = add(log)
    log.append([a_batch(number)])
    log.path.rename(tmp_path / "elsewhere.db")
    if replaced:
        other = SqliteLog(tmp_path / "other.db")
        other.close()
        (tmp_path / "other.db").rename(log.path)
    for attempt in (lambda: log.append([a_batch(number)]), log.recover, log.renew):
        with pytest.raises(Removed, match="put it back"):
            attempt()
    assert log.path.exists() == replaced


def test_a_collection_sealed_for_the_moment_stays_sealed_over_a_recovery(log):
    number = add(log)
    log.seal(number)
    log.recover()
    assert log.append([a_batch(number)]) == [AppendOutcome.SEALED]
    log.unseal(number)
    assert log.append([a_batch(number)]) == [AppendOutcome.STORED]
