"""What a log gives back, and what it does between its transactions."""

import threading

from ldp_server.store.wal import WalMover
from tests.server.helpers import wait_until
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]


def movers():
    return [thread for thread in threading.enumerate() if thread.name == "hearsay-wal"]


def begin_moving(log, number):
    """Let the thread that moves the write-ahead log make one pass."""
    log._wal = WalMover(log.db, log.path, start=1, limit=1 << 30)
    log.append([a_batch(number)])
    log.tend()
    wait_until(lambda: not log._wal._busy)


def test_recovering_and_closing_end_the_thread_that_moves_the_write_ahead_log(log):
    """Else every recovery would leave a thread and a connection behind."""
    before = movers()
    number = add(log)
    begin_moving(log, number)
    assert len(movers()) == len(before) + 1
    log.recover()
    assert movers() == before
    begin_moving(log, number)
    log.close()
    assert movers() == before
    log._open()
    assert len(held(log, number)) == 2
