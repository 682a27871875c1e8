"""Cutting off the write-ahead log: when it is tried, what a reader in the way means, and that nobody is waited for."""

import pytest

from ldp_server.store import SqliteLog
from ldp_server.store.schema import BUSY_SECONDS
from ldp_server.store.wal import WalMover
from tests.server.store.test_sqlite import a_batch, add, log

__all__ = ["log"]


class Answering:
    """A connection that notes what it is told, and says whether a reader was in the way."""

    def __init__(self, busy=0, error=None):
        self.busy, self.error, self.told = busy, error, []

    def execute(self, statement):
        self.told.append(statement.removeprefix("PRAGMA "))
        if self.error and "checkpoint" in statement:
            raise self.error
        return self

    def fetchone(self):
        return self.busy, 7, 7


@pytest.fixture
def path(tmp_path):
    SqliteLog(tmp_path / "log.db").close()
    return tmp_path / "log.db"


WHOLE = ["busy_timeout = 0", "wal_checkpoint(TRUNCATE)", f"busy_timeout = {1000 * BUSY_SECONDS:.0f}"]


@pytest.mark.parametrize(("busy", "left"), [(0, 0), (1, 99)])
def test_what_was_moved_counts_no_more(path, busy, left):
    db = Answering(busy)
    mover = WalMover(db, path, start=100, limit=300)
    mover.wrote(99)
    assert mover.empty() is not bool(busy)
    assert (db.told, mover._written) == (WHOLE, left)


@pytest.mark.parametrize("reason", ["long", "busy"])
def test_a_long_log_and_one_that_the_thread_is_moving_are_left_alone(path, reason):
    db = Answering()
    mover = WalMover(db, path, start=100, limit=300)
    mover.wrote(100 if reason == "long" else 5)
    mover._busy = reason == "busy"
    assert mover.empty() is False
    assert db.told == []


def test_after_an_error_readers_are_waited_for_as_before(path):
    db = Answering(error=RuntimeError("in between"))
    mover = WalMover(db, path, start=100, limit=300)
    with pytest.raises(RuntimeError):
        mover.empty()
    assert db.told == WHOLE


def test_the_file_is_cut_off_and_a_log_that_was_purged_is_so_until_the_next_write(log, monkeypatch):
    wal = log.path.with_name("log.db-wal")
    number = add(log)
    log.append([a_batch(number)])
    assert wal.stat().st_size > 0
    assert log.purge() and wal.stat().st_size == 0
    monkeypatch.setattr(log._wal, "empty", lambda: pytest.fail("there is nothing to move"))
    assert log.purge()


@pytest.mark.parametrize("change", ["append", "finish", "lay_anew", "sweep"])
def test_every_change_of_the_reports_is_a_reason_to_purge_again(log, change):
    number = add(log)
    log.append([a_batch(number)])
    if change == "sweep":
        log.delete_collection(number, 1)
    assert log.purge()
    assert {
        "append": lambda: log.append([a_batch(number)]),
        "finish": lambda: log.finish(number) is None,
        "lay_anew": log.lay_anew,
        "sweep": log.sweep,
    }[change]()
    assert log._purged is False
    assert log.count(number) == {"append": 2, "sweep": 0}.get(change, 1)
    assert log.purge()
