"""Opening the file: waiting for another process that sets it up, what SQLite is told, and the paths of apps."""

import sqlite3

import pytest

from ldp_client import InvalidSpec
from ldp_client.ledger import opening
from ldp_client.ledger.opening import configure, connect, local_path, prepare


class Busy:
    """Refuses the write-ahead log so many times."""

    def __init__(self, times, code=sqlite3.SQLITE_BUSY):
        self.left, self.code, self.asked = times, code, 0

    def execute(self, statement):
        if "journal_mode" in statement:
            self.asked += 1
            if self.left:
                self.left -= 1
                error = sqlite3.OperationalError("locked")
                error.sqlite_errorcode = self.code
                raise error
        return self

    def fetchall(self):
        return []


@pytest.fixture
def slept(monkeypatch):
    pauses = []
    monkeypatch.setattr(opening.time, "sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("times", [0, 1, 49])
def test_a_file_that_another_process_sets_up_is_waited_for(slept, times):
    db = Busy(times)
    prepare(db)
    assert (db.asked, slept) == (times + 1, [0.02] * times)


def test_it_is_not_waited_for_for_ever(slept):
    db = Busy(1000)
    with pytest.raises(sqlite3.OperationalError):
        prepare(db)
    assert db.asked == 50


def test_other_trouble_is_not_waited_for(slept):
    db = Busy(1000, sqlite3.SQLITE_IOERR)
    with pytest.raises(sqlite3.OperationalError):
        prepare(db)
    assert (db.asked, slept) == (1, [])


@pytest.mark.parametrize("given", ["", "a\0b", "~nobody-of-this-name/x"])
def test_what_is_no_path_is_named(given):
    with pytest.raises(InvalidSpec, match=r"^storage: "):
        local_path(given, "storage")


def test_a_path_from_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_path("~/x", "storage") == tmp_path / "x"


def test_a_ledger_is_as_durable_as_it_says(tmp_path):
    """A commit is on the disk when it returns; pages of a kilobyte; the log is copied at two megabytes."""
    db = connect(tmp_path / "x")
    configure(db)
    prepare(db)
    db.execute("CREATE TABLE t (a)")
    found = {name: db.execute(f"PRAGMA {name}").fetchone()[0]
             for name in ("synchronous", "journal_mode", "page_size", "wal_autocheckpoint")}  # fmt: skip
    assert found == {"synchronous": 2, "journal_mode": "wal", "page_size": 1024, "wal_autocheckpoint": 2000}
    db.close()
