"""The write-ahead log: it stays small, readers only delay it; when it is moved, and by whom."""

import os
import threading

import pytest

from ldp_server.store import AppendOutcome, SqliteLog, SqliteReader, blocks, wal
from ldp_server.store.wal import WalMover
from tests.server.helpers import wait_until
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]


@pytest.mark.parametrize("size", [3, 3000])
def test_the_write_ahead_log_stays_small_whatever_the_batches(log, size, monkeypatch):
    """Single reports touch a page of the index each: what counts is pages, not payload. A block is written again."""
    monkeypatch.setattr(blocks, "BLOCK", 100)
    number = add(log)
    log._wal = WalMover(log.db, log.path, start=300_000, limit=900_000)
    file = log.path.with_name("log.db-wal")
    largest = 0
    for _ in range(400):
        log.append([a_batch(number, os.urandom(size)) for _ in range(6)])
        log.tend()
        largest = max(largest, file.stat().st_size)
    assert largest < 6_000_000
    assert len(held(log, number)) == 2400


def test_a_reader_in_the_way_only_delays_the_checkpoint(log):
    number = add(log)
    log._wal = WalMover(log.db, log.path, start=100_000, limit=200_000)
    reader = SqliteReader(log.path)
    reader.db.execute("BEGIN")
    reader.db.execute("SELECT count(*) FROM batches").fetchone()
    try:
        for _ in range(100):
            assert log.append([a_batch(number, os.urandom(3000)) for _ in range(6)])[0] is AppendOutcome.STORED
            log.tend()
        assert reader.db.execute("SELECT count(*) FROM batches").fetchone()[0] == 0
        reader.db.execute("COMMIT")
        assert len(held(reader, number)) == 600
    finally:
        reader.close()


class Counting:
    """A connection that says what a checkpoint brought, and counts how often it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def execute(self, statement):
        assert statement == "PRAGMA wal_checkpoint(PASSIVE)"
        self.asked += 1
        return self

    def fetchone(self):
        return self.answers.pop(0)


@pytest.fixture
def path(tmp_path):
    SqliteLog(tmp_path / "log.db").close()
    return tmp_path / "log.db"


def test_nothing_is_done_below_the_start(path):
    mover = WalMover(Counting(), path, start=100, limit=300)
    mover.wrote(99)
    mover.tend()
    assert mover._thread is None
    mover.close()


def test_at_the_start_the_thread_is_asked_once_and_its_pass_leads_to_the_rest(path):
    db = Counting((0, 7, 7))
    mover = WalMover(db, path, start=100, limit=300)
    mover.wrote(60)
    mover.wrote(40)
    mover.tend()
    assert mover._thread is not None
    wait_until(lambda: not mover._busy)
    assert (mover._written, db.asked) == (300, 0)
    mover.tend()  # the writer moves the rest itself
    assert (mover._written, db.asked) == (0, 1)
    mover.tend()
    assert db.asked == 1
    mover.close()
    assert not mover._thread.is_alive()


def test_no_pass_while_the_thread_is_at_one(path):
    db = Counting()
    mover = WalMover(db, path, start=100, limit=300)
    mover._busy = True
    mover.wrote(899)
    mover.tend()
    assert (db.asked, mover._thread, mover._written) == (0, None, 899)


def test_the_writer_waits_for_a_pass_that_lags_far_behind(path):
    """On a busy machine the thread may get no processor time for long."""
    db = Counting((0, 7, 7))
    mover = WalMover(db, path, start=100, limit=300)
    mover._busy = True
    mover.wrote(900)
    writer = threading.Thread(target=mover.tend)
    writer.start()
    writer.join(0.3)
    assert writer.is_alive()
    mover._busy = False
    mover._moved.set()
    writer.join(60)
    assert (db.asked, mover._written) == (1, 0)


@pytest.mark.parametrize(
    ("answer", "left"), [((0, 7, 7), 0), ((1, 7, 7), 100), ((0, 7, 6), 100), ((1, 7, 6), 100), ((0, 0, 0), 0)]
)
def test_a_reader_in_the_way_means_another_try_after_as_much_again(path, answer, left):
    db = Counting(answer)
    mover = WalMover(db, path, start=100, limit=300)
    mover.wrote(300)
    mover.tend()
    assert (mover._written, db.asked, mover._thread) == (left, 1, None)


def test_the_sizes_are_the_stated_ones(path):
    mover = WalMover(Counting(), path)
    assert (mover._start, mover._limit) == (wal.START, wal.LIMIT) == (16 * 2**20, 48 * 2**20)


def test_closing_without_a_thread_is_nothing(path):
    WalMover(Counting(), path).close()
