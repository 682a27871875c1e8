"""How log.db is opened: what SQLite is told, for a writer and for a reader, and that a failure closes it."""

import sqlite3
from contextlib import closing

import pytest

from ldp_server.store import SqliteLog, schema
from ldp_server.store.errors import Corrupt, StorageError, WrongVersion
from ldp_server.store.schema import APPLICATION_ID, COUNTER, VERSION, connect, migrate, open_log, version_of

SETTINGS = {
    "page_size": 8192,
    "auto_vacuum": 2,  # pages are given back when they are asked for
    "journal_mode": "wal",
    "synchronous": 2,  # an fsync for every commit
    "wal_autocheckpoint": 0,  # done beside the commits
    "journal_size_limit": 64 << 20,
    "secure_delete": 1,  # dropped rows are overwritten
    "cache_size": -16384,
    "temp_store": 2,  # in memory: copies of rows go into no other file
    "busy_timeout": 15_000,
    "foreign_keys": 0,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db"


def told(db):
    return {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


@pytest.mark.parametrize("times", [1, 2])
def test_a_log_is_as_durable_and_as_forgetful_as_it_says(path, times):
    for _ in range(times - 1):
        open_log(path).close()
    with closing(open_log(path)) as db:
        assert told(db) == SETTINGS
        assert db.execute("SELECT count(*), min(i), max(i) FROM counter").fetchone() == (COUNTER, 0, COUNTER - 1)
        assert (version_of(db, path), db.execute("PRAGMA application_id").fetchone()) == (VERSION, (APPLICATION_ID,))
        assert APPLICATION_ID.to_bytes(4, "big") == b"HSLG"


def test_a_reader_cannot_write_and_makes_no_file(path):
    with pytest.raises(StorageError):
        open_log(path, read_only=True)
    assert not path.exists()
    SqliteLog(path).close()
    with closing(open_log(path, read_only=True)) as db:
        assert db.execute("PRAGMA busy_timeout").fetchone() == (15_000,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.execute("DELETE FROM counter")


def test_a_connection_may_be_used_by_another_thread_than_the_one_that_made_it(path):
    """`check_same_thread` is off: the writer thread takes over what the main thread opened."""
    from threading import Thread

    found = []
    with closing(connect(path)) as db:
        thread = Thread(target=lambda: found.append(db.execute("SELECT 1").fetchone()))
        thread.start()
        thread.join()
    assert found == [(1,)]


@pytest.mark.parametrize("found", [1, 2, VERSION + 1])
def test_a_log_of_another_version_is_refused_by_both_and_closed(path, monkeypatch, found):
    SqliteLog(path).close()
    with closing(sqlite3.connect(path)) as db:
        if found < VERSION:
            db.execute("DROP TABLE recent")
        db.execute(f"PRAGMA user_version = {found}")
    opened = []
    monkeypatch.setattr(schema, "connect", lambda *given, **more: opened.append(connect(*given, **more)) or opened[-1])
    for read_only in (False, True):
        with pytest.raises(WrongVersion, match="version"):
            open_log(path, read_only=read_only)
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            opened[-1].execute("SELECT 1")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (found,)


@pytest.mark.parametrize(
    ("application", "version", "table", "sound"),
    [
        (0, 0, False, True),  # an empty file
        (0, 0, True, False),
        (0, 1, True, False),
        (7, 0, False, False),
        (7, 1, True, False),
        (APPLICATION_ID, 0, True, False),
        (APPLICATION_ID, 1, True, True),
        (APPLICATION_ID, 9, True, True),
    ],
)
def test_which_file_is_a_hearsay_database(path, application, version, table, sound):
    with closing(connect(path)) as db:
        db.execute(f"PRAGMA application_id = {application}")
        db.execute(f"PRAGMA user_version = {version}")
        if table:
            db.execute("CREATE TABLE t (a)")
        if sound:
            assert version_of(db, path, newest=9) == version
        else:
            with pytest.raises(Corrupt, match="not a Hearsay database"):
                version_of(db, path, newest=9)


def test_migrating_says_the_version_that_was_found(path):
    steps = {number: lambda db: db.execute("SELECT 1") for number in range(3)}
    with closing(connect(path)) as db:
        assert migrate(db, path, {0: lambda db: db.execute("CREATE TABLE t (a)")}) == 0
        assert migrate(db, path, steps) == 1
        assert migrate(db, path, steps) == 3 == version_of(db, path, newest=3)
        with pytest.raises(WrongVersion, match="version 3, this program knows up to 2"):
            version_of(db, path, newest=2)
