"""The log forgets the order of arrival: in its sequence numbers, in the bytes of its files, in copies and exports.

If the order in the log says nothing of the order of arrival, then a device's two answers have the same rank in two
collections as often as a random permutation of n has fixed points: with the exact law below, more than 14 of them come
once in 10^12 runs.
"""

import os
import random
import subprocess
import sys
import threading
import time
from math import factorial

import pytest

from benchmarks.layout import from_pages, from_wal, matches
from ldp_server.oracles import oracle_for
from ldp_server.store import AppendOutcome, SqliteLog, SqliteReader, blocks
from ldp_server.store.errors import Corrupt, DiskFull
from ldp_server.store.log import Admission, NewCollection
from ldp_server.store.reader import backup
from ldp_server.worker.counts import CountsCache
from tests.server.helpers import make_collection, payload, wait_until
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]

DEVICES = 300
MOST = 14


def tail(most):
    """The probability that a uniform permutation of many has more than so many fixed points (Poisson, to 1e-40)."""
    return 1 - sum(1 / factorial(k) for k in range(most + 1)) / sum(1 / factorial(k) for k in range(60))


def test_the_bound_is_what_the_law_says():
    assert tail(MOST) < 1e-12


def burst(log, devices=DEVICES, size=3):
    """Each device answers two questions, one after the other, in transactions of their own; returns who sent what."""
    numbers = add(log), add(log, b"b")
    owners = {}
    for device in range(devices):
        for question, number in enumerate(numbers):
            one = a_batch(number, os.urandom(size))
            owners[one.batch_id] = question, device
            log.append([one])
    return numbers, owners


def in_log(log, numbers):
    return [batch.batch_id for number in numbers for batch in held(log, number)]


@pytest.mark.parametrize("block", [50, 1024])
def test_positions_do_not_follow_arrival(log, monkeypatch, block):
    """With blocks of 50, about one device in 50 is paired: six blocks, one fixed point each."""
    monkeypatch.setattr(blocks, "BLOCK", block)
    numbers, owners = burst(log)
    assert matches(in_log(log, numbers), owners) <= (30 if block == 50 else MOST)
    for number in numbers:
        log.finish(number)
    assert matches(in_log(log, numbers), owners) <= (30 if block == 50 else MOST)
    rows = [row[0] for row in log.db.execute("SELECT batch_id FROM batches ORDER BY position")]
    assert matches(rows, owners) <= (30 if block == 50 else MOST)


@pytest.mark.parametrize("size", [3, 2000])
def test_recent_rows_do_not_follow_arrival_either(log, size):
    _, owners = burst(log, size=size)
    rows = [row[0] for row in log.db.execute("SELECT batch_id FROM recent ORDER BY place")]
    assert len(rows) == 2 * DEVICES
    for number in (1, 2):  # as exports give them
        ids = [batch.batch_id for batch in held(log, number)]
        assert ids == sorted(ids)
    assert matches(rows, owners) <= MOST


def test_any_order_of_arrival_gives_the_same_rows(tmp_path):
    found = []
    batches = [a_batch(1, os.urandom(3), token=os.urandom(16)) for _ in range(200)]
    for run in range(3):
        random.Random(run).shuffle(batches)
        log = SqliteLog(tmp_path / f"{run}.db")
        add(log)
        for start in range(0, 200, 7):
            log.append(batches[start : start + 7])
        log.finish(1)
        rows = log.db.execute("SELECT * FROM batches").fetchall()
        found.append((rows, log.db.execute("SELECT * FROM used_tokens").fetchall()))
        log.close()
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == len(found[0][1]) == 200


@pytest.mark.parametrize("finished", [False, True])
def test_the_bytes_forget_what_was_laid_anew(log, finished):
    """First the attacker is shown to work, on the write-ahead log and on pages that hold few batches."""
    numbers, owners = burst(log, 100)
    wal = log.path.with_name("log.db-wal")
    assert from_wal(wal, owners) > 80
    log.db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    assert from_pages(log.path, owners) > 80
    if finished:
        for number in numbers:
            log.finish(number)
    while log.lay_anew():
        pass
    wait_until(lambda: log.tend() or log.purge())
    assert wal.stat().st_size == 0
    assert from_pages(log.path, owners) <= MOST
    assert sorted(in_log(log, numbers)) == sorted(owners)


def test_a_backup_has_no_order_of_arrival_in_rows_or_bytes(log, tmp_path):
    numbers, owners = burst(log, 150, size=1500)
    log.append([a_batch(numbers[0], bytes(1500)) for _ in range(3)])
    backup(log.path, tmp_path / "copy.db")
    copy = SqliteLog(tmp_path / "copy.db")
    order = [batch_id for batch_id in in_log(copy, numbers) if batch_id in owners]
    assert sorted(order) == sorted(owners)
    assert matches(order, owners) <= MOST
    copy.close()
    assert from_pages(tmp_path / "copy.db", owners) <= MOST


def test_what_is_laid_anew_is_all_there(log):
    number = add(log)
    batches = [a_batch(number, os.urandom(3), token=os.urandom(16)) for _ in range(50)]
    log.append(batches)
    while log.lay_anew():
        pass
    assert {batch.batch_id: batch.payload for batch in held(log, number)} == {b.batch_id: b.payload for b in batches}
    assert log.append(batches) == [AppendOutcome.DUPLICATE] * 50
    assert log.append([a_batch(number, token=batches[7].token_id)]) == [AppendOutcome.TOKEN_USED]
    assert not log.lay_anew() or log.count(number) == 50


def test_the_write_ahead_log_is_cleared_once_nobody_reads_it(log):
    number = add(log)
    log.append([a_batch(number)])
    reader = SqliteReader(log.path)
    reader.db.execute("BEGIN")
    reader.db.execute("SELECT count(*) FROM recent").fetchone()
    log.append([a_batch(number)])
    assert not log.purge()
    reader.db.execute("COMMIT")
    assert log.purge()
    assert log.path.with_name("log.db-wal").stat().st_size == 0
    assert log.db.execute("PRAGMA busy_timeout").fetchone()[0] == 15_000
    reader.close()


def test_a_block_ends_at_so_many_bytes_too(log, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    number = add(log)
    log.append([a_batch(number, bytes(400)) for _ in range(2)])
    assert log.last(number) == 0
    log.append([a_batch(number, bytes(400))])
    assert (log.last(number), log.count(number)) == (3, 3)


def test_a_full_disk_at_the_border_of_a_block_loses_and_doubles_nothing(log, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 10)
    number = add(log)
    batches = [a_batch(number, os.urandom(3000)) for _ in range(100)]
    kept = 0
    while kept < 100:
        pages = log.db.execute("PRAGMA page_count").fetchone()[0]
        log.db.execute(f"PRAGMA max_page_count = {pages + 1}")
        try:
            while kept < 100:
                assert log.append([batches[kept]]) == [AppendOutcome.STORED]
                kept += 1
        except DiskFull:
            assert log.count(number) == kept == len(held(log, number))
        log.db.execute(f"PRAGMA max_page_count = {pages + 8}")
        if kept < 100 and log.append([batches[kept]]) == [AppendOutcome.STORED]:
            kept += 1
    assert log.append(batches) == [AppendOutcome.DUPLICATE] * 100
    assert {batch.batch_id: batch.payload for batch in held(log, number)} == {b.batch_id: b.payload for b in batches}
    assert log.last(number) == 100


def test_counts_are_exact_while_blocks_are_finished(tmp_path, monkeypatch):
    """One thread writes, and two count: what was durable before a count is in it, and what came after it is not."""
    monkeypatch.setattr(blocks, "BLOCK", 7)
    collection = make_collection()
    log = SqliteLog(tmp_path / "log.db")
    number = log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission(), 1)).number
    truth, written, wrong = oracle_for(collection), [0, 0], []

    def count(kept):
        reader = SqliteReader(tmp_path / "log.db")
        cache = CountsCache(reader, tmp_path, keep_bytes=1 << 30)
        while written[1] < 1500:
            if not kept:  # from the checkpoint of a moment ago
                cache = CountsCache(reader, tmp_path, keep_bytes=1 << 30)
            before = written[1]
            found = cache.get(number)
            if not before <= found.batches <= written[0] or found.oracle.reports != found.batches:
                wrong.append((before, found.batches, found.oracle.reports, written[0]))
            if kept:
                cache.advance(number, 60)
        if not (cache.get(number).oracle.counts.values == truth.counts.values).all():
            wrong.append("the last counts")
        reader.close()

    threads = [threading.Thread(target=count, args=(kept,)) for kept in (True, False)]
    for thread in threads:
        thread.start()
    while written[1] < 1500:
        group = [a_batch(number, payload(collection)) for _ in range(min(random.randrange(1, 20), 1500 - written[1]))]
        for one in group:
            truth.accumulate(one.payload)
        written[0] += len(group)
        log.append(group)
        log.lay_anew()
        written[1] = written[0]
    for thread in threads:
        thread.join()
    assert wrong == []
    assert log.last(number) > 1400
    log.close()


CHILD = """
import hashlib, os, pathlib, sys
from ldp_server.store import SqliteLog, Submission, blocks
blocks.BLOCK, digest = 20, hashlib.sha256(b"abc").digest()[:16]
log = SqliteLog(pathlib.Path(sys.argv[1]))
while True:
    group = [Submission(1, os.urandom(16), digest, b"abc", os.urandom(16)) for _ in range(7)]
    log.append(group)
    sys.stdout.write("".join(one.batch_id.hex() + "\\n" for one in group))
    sys.stdout.flush()
    log.lay_anew()
    log.tend()
    log.purge()
"""


@pytest.mark.long
def test_a_kill_while_blocks_are_finished_and_rows_laid_anew_loses_and_doubles_nothing(tmp_path):
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    add(log)
    log.close()
    acknowledged = set()
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
            first = child.stdout.readline()
            time.sleep(random.uniform(0, 0.3))
            child.kill()
            rest = child.stdout.read()
        acknowledged.update(line for line in (first + rest).split("\n") if len(line) == 32)
        reader = SqliteReader(path)
        found = [batch.batch_id.hex() for batch in held(reader, 1)]
        assert acknowledged <= set(found)
        assert len(set(found)) == len(found) == reader.count(1)
        reader.close()
    assert len(acknowledged) > 40


def test_periods_with_few_batches_are_laid_anew_together(log):
    """One commit a period made a server with 9,000 periods stop for 20 seconds."""
    numbers = [add(log, f"{count}".encode()) for count in range(300)]
    log.append([a_batch(number) for number in numbers])
    commits = []
    log.db.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    while log.lay_anew():
        pass
    assert len(commits) == 1
    log.append([a_batch(numbers[0]) for _ in range(900)] + [a_batch(numbers[1]) for _ in range(900)])
    commits.clear()
    while log.lay_anew():
        pass
    assert len(commits) == 2  # together they are more than a block


def test_a_damaged_period_does_not_keep_the_others_from_being_laid_anew(log, monkeypatch):
    numbers = [add(log, f"{count}".encode()) for count in range(5)]
    log.append([a_batch(number) for number in numbers])
    laid = []

    def lay(db, number, collection):
        if number == numbers[2]:
            raise Corrupt("damaged")
        laid.append(number)

    monkeypatch.setattr(blocks, "lay_anew", lay)
    while log.lay_anew():
        pass
    assert set(laid) == set(numbers) - {numbers[2]}
