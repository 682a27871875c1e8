"""When the write-ahead log is moved, and by whom; the thread's passes are awaited, never timed."""

from __future__ import annotations

import pytest

from ldp_server.store import SqliteLog, wal
from ldp_server.store.wal import WalMover
from tests.server.helpers import wait_until


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
    mover.wrote(1000)
    mover.tend()
    assert (db.asked, mover._thread, mover._written) == (0, None, 1000)


@pytest.mark.parametrize(
    ("answer", "left"), [((0, 7, 7), 0), ((1, 7, 7), 100), ((0, 7, 6), 100), ((1, 7, 6), 100), ((0, 0, 0), 0)]
)
def test_a_reader_in_the_way_means_another_try_after_as_much_again(path, answer, left):
    db = Counting(answer)
    mover = WalMover(db, path, start=100, limit=300)
    mover.wrote(300)
    mover.tend()
    assert (mover._written, db.asked, mover._thread) == (left, 1, None)


def test_the_sizes_are_the_stated_ones():
    assert (wal.START, wal.LIMIT) == (16 * 2**20, 48 * 2**20)


def test_closing_without_a_thread_is_nothing(path):
    WalMover(Counting(), path).close()
