"""Two transactions at the same time, in the one order that goes wrong if something is forgotten."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg import errors

from ldp_client.errors import StorageError
from ldp_server.store import AppendOutcome, Fold, fold_parts
from ldp_server.store.postgres import laying
from ldp_server.store.postgres.appending import _values, calls
from ldp_server.store.postgres.failures import Again
from ldp_server.store.postgres.log import WORK_TRIES
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.shared.waiting import WAITS_FOR_A_LOCK, wait_for

STORED, DUPLICATE = AppendOutcome.STORED, AppendOutcome.DUPLICATE


def append_on(connection, batches):
    """Append inside the connection's own transaction."""
    from ldp_server.store.postgres.arrays import register

    register(connection)
    (call,) = calls(batches)
    values = _values(call, [batches[place] for place in call.places])
    sql = "SELECT hearsay.append_1(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
    return connection.execute(sql, values, binary=True).fetchone()[0]


class NaiveReader:
    """Goes on after the highest number it has seen: the reader that the store must not have."""

    def __init__(self, connection):
        self.db, self.last, self.seen = connection, 0, []

    def go_on(self):
        rows = self.db.execute("SELECT id, name FROM naive WHERE id > %s ORDER BY id", (self.last,)).fetchall()
        self.seen += [name for _, name in rows]
        self.last = max([self.last, *(number for number, _ in rows)])


def test_a_reader_misses_no_batch_that_commits_late_and_a_naive_one_does(log, aside):
    number = add(log)
    first, second, side = aside(), aside(), aside()
    side.execute("CREATE TABLE naive (id bigserial PRIMARY KEY, name text)")
    naive, early, late = NaiveReader(side), a_batch(number), a_batch(number)
    log.append([a_batch(number, b"first")])  # the first batch of a period enters its row
    log.finish(number)
    seen = set()
    for name, connection, batch in (("late", first, late), ("early", second, early)):
        connection.execute("BEGIN")
        connection.execute("INSERT INTO naive (name) VALUES (%s)", (name,))
        append_on(connection, [batch])
    for connection in (second, first):  # the second one commits first
        connection.execute("COMMIT")
        naive.go_on()
        seen.update(batch.batch_id for batch in held(log, number, after=1))
    log.finish(number)
    assert naive.seen == ["early"]
    assert seen == {early.batch_id, late.batch_id}
    assert [batch.sequence for batch in held(log, number)] == [1, 2, 3]
    side.execute("DROP TABLE naive")


@pytest.mark.parametrize("careful", [True, False])
def test_a_batch_that_comes_again_while_its_block_is_laid(store, log, aside, monkeypatch, careful):
    """Who appends has looked for the id before the block was there, and enters it after the id has left the recent
    ones. Without the barrier between the two the batch is stored twice.
    """
    if not careful:
        monkeypatch.setattr(laying, "_barrier", lambda *_: None)
    number, writer, side = add(log), store.writer(), aside()
    ids = sorted(os.urandom(16) for _ in range(2))
    blocker, known = (a_batch(number, b"abc", one) for one in ids)
    assert log.append([known]) == [STORED]
    holder = aside()
    holder.execute("BEGIN")
    append_on(holder, [blocker])  # the writer waits for the end of this before it comes to `known`
    with ThreadPoolExecutor(2) as pool:
        appended = pool.submit(writer.append, [blocker, known])
        wait_for(side, WAITS_FOR_A_LOCK, "transactionid")
        laid = pool.submit(log.finish, number)
        if careful:
            wait_for(side, WAITS_FOR_A_LOCK, "advisory")
        else:
            laid.result()
        holder.execute("ROLLBACK")
        outcomes = appended.result()
        laid.result()
    assert outcomes[0] is STORED
    assert (outcomes[1] is DUPLICATE) == careful
    assert len(held(log, number)) == (2 if careful else 3)
    writer.close()
    if not careful:  # the damage is found, and goes with the collection
        log.delete_collection(number, 1)
        while log.sweep():
            pass


def test_closing_waits_for_who_is_inside_and_nobody_comes_after(store, log, aside):
    number, keeper, side = add(log), store.writer(), aside()
    inside = aside()
    inside.execute("BEGIN")
    assert append_on(inside, [a_batch(number)]) is None
    with ThreadPoolExecutor(2) as pool:
        closing = pool.submit(keeper.close_collection, number, 77)
        wait_for(side, WAITS_FOR_A_LOCK, "advisory")
        after = pool.submit(log.append, [a_batch(number)])
        assert not closing.done()
        inside.execute("COMMIT")
        assert closing.result().closed == 77
        assert after.result() == [AppendOutcome.SEALED]
    assert log.count(number) == 1
    keeper.close()


def test_two_folders_at_once_and_one_of_them_is_told(store, log):
    number, other = add(log), store.writer()
    log.append([a_batch(number) for _ in range(4)])
    log.finish(number)
    for one, generation in ((log, 5), (other, 6)):
        for part in fold_parts(number, generation, b"state%d" % generation):
            one.write_part(part)
    with ThreadPoolExecutor(2) as pool:
        folds = [
            pool.submit(one.fold, Fold(number, generation, 6, 4, 4, 4)) for one, generation in ((log, 5), (other, 6))
        ]
        errors = [found.exception() for found in folds]
    assert sorted(error is None for error in errors) == [False, True]
    assert isinstance(next(error for error in errors if error), StorageError)
    winner = (5, 6)[errors.index(None)]
    assert log.folded_state(log.period(number)) == b"state%d" % winner
    other.close()


def test_two_layers_at_once_lay_each_batch_once(store, log, monkeypatch):
    monkeypatch.setattr("ldp_server.store.blocks.BLOCK", 2)
    number, other = add(log), store.writer()
    batches = [a_batch(number, os.urandom(4)) for _ in range(120)]

    def append():
        for start in range(0, 120, 6):
            log.append(batches[start : start + 6])

    def lay(writer):
        while not appended.done():
            writer.gather()
        writer.finish(number)

    third = store.writer()
    with ThreadPoolExecutor(3) as pool:
        appended = pool.submit(append)
        laying_ = [pool.submit(lay, one) for one in (other, third)]
        for found in (appended, *laying_):
            found.result()
    found = held(log, number)
    assert [batch.sequence for batch in found] == list(range(1, 121))
    assert {b.batch_id: b.payload for b in found} == {b.batch_id: b.payload for b in batches}
    log.check()
    log.check_recent(number)
    other.close()
    third.close()


def test_ids_that_a_killed_layer_left_behind_change_nothing_and_are_removed(store, log, monkeypatch, aside):
    number = add(log)
    batch = a_batch(number)
    log.append([batch])

    def killed(*_):
        raise StorageError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(laying, "_barrier", killed)
        with pytest.raises(StorageError):
            log.finish(number)
    assert log.append([batch]) == [DUPLICATE]
    log.check_recent(number)
    assert [b.sequence for b in held(log, number)] == [1]
    other = store.writer()
    while other.sweep():
        pass
    left = "SELECT count(*) FROM hearsay.recent_ids WHERE collection = %s"
    assert aside().execute(left, (number,)).fetchone() == (0,)
    assert log.append([batch]) == [DUPLICATE]
    other.close()


@pytest.mark.parametrize("failures", range(WORK_TRIES + 2))
def test_a_transaction_that_somebody_else_was_first_in_is_tried_again_a_few_times(log, failures):
    """The error of the last try is raised as it is; nothing of a try that failed is left."""
    number, tried = add(log), []

    def work(db):
        db.execute("UPDATE hearsay.collections SET oldest = oldest + 1 WHERE number = %s", (number,))
        tried.append(1)
        if len(tried) <= failures:
            raise errors.SerializationFailure("somebody was first")
        return "done"

    if failures < WORK_TRIES:
        assert log.transaction(work) == "done"
    else:
        with pytest.raises(Again, match="somebody was first"):
            log.transaction(work)
    assert len(tried) == min(failures + 1, WORK_TRIES)
    assert log.record(number).oldest == (failures < WORK_TRIES)
