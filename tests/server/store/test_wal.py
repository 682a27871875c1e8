"""The write-ahead log: it stays small, and readers only delay it."""

import os

import pytest

from ldp_server.store import AppendOutcome, SqliteReader
from ldp_server.store.wal import WalMover
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]


@pytest.mark.parametrize("size", [3, 3000])
def test_the_write_ahead_log_stays_small_whatever_the_batches(log, size):
    """Single reports touch a page of the index each: what counts is pages, not payload."""
    number = add(log)
    log._wal = WalMover(log.db, log.path, start=300_000, limit=900_000)
    wal = log.path.with_name("log.db-wal")
    largest = 0
    for _ in range(400):
        log.append([a_batch(number, os.urandom(size)) for _ in range(6)])
        log.tend()
        largest = max(largest, wal.stat().st_size)
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
