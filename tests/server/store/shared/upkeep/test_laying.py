"""Blocks on PostgreSQL: when a period has enough for one, what one holds, and what a slow neighbour leaves behind."""

from __future__ import annotations

import os

import pytest
from psycopg import errors

from ldp_server.store import AppendOutcome, blocks
from ldp_server.store.errors import Corrupt, InUse, StorageError
from ldp_server.store.postgres import laying
from tests.server.store.contract.batches import a_batch, add, held

STORED, DUPLICATE, USED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.TOKEN_USED


def segments(aside, number):
    """The ids of each segment's batches."""
    rows = aside().execute("SELECT ids FROM hearsay.segments WHERE number = %s", (number,)).fetchall()
    return [[one.bytes for one in row[0]] for row in rows]


def recent_ids(aside, collection):
    query = "SELECT count(*) FROM hearsay.recent_ids WHERE collection = %s"
    return aside().execute(query, (collection,)).fetchone()[0]


def in_blocks(aside, collection):
    query = "SELECT batches FROM hearsay.blocks WHERE collection = %s ORDER BY last"
    return [row[0] for row in aside().execute(query, (collection,)).fetchall()]


def one_by_one(log, number, count, payload=b"abc"):
    batches = [a_batch(number, payload) for _ in range(count)]
    for one in batches:
        assert log.append([one]) == [STORED]
    return batches


@pytest.mark.parametrize(
    ("limit", "value", "size"),
    [("BLOCK", 4, 3), ("BLOCK_BYTES", 12, 3)],
    ids=["batches", "bytes"],
)
def test_a_period_is_gathered_from_its_limit_on(log, aside, monkeypatch, limit, value, size):
    """Four batches of three bytes: one fewer is not enough, whether batches or bytes are counted."""
    number, other = add(log), add(log)
    while log.gather():
        pass
    monkeypatch.setattr(blocks, limit, value)
    one_by_one(log, number, 3, bytes(size))
    one_by_one(log, other, 3, bytes(size))
    assert (log.gather(), in_blocks(aside, number)) == (False, [])
    one_by_one(log, number, 1, bytes(size))
    assert (log.gather(), in_blocks(aside, number)) == (True, [4])
    assert (log.gather(), in_blocks(aside, other)) == (False, [])
    assert (log.last(number), log.count(number), recent_ids(aside, number)) == (4, 4, 0)


def test_a_deleted_collection_is_not_gathered_and_not_laid_anew(log, aside, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 2)
    number = add(log)
    one_by_one(log, number, 3)
    log.delete_collection(number, 5)
    log.gather()
    log.lay_anew()
    assert in_blocks(aside, number) == []
    assert len(segments(aside, number)) == 3


def test_a_block_has_about_so_many_bytes(log, aside, monkeypatch):
    """Whole segments: the first one always, and others while they fit."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10)
    number = add(log)
    one_by_one(log, number, 6, b"12345")
    log.finish(number)
    assert in_blocks(aside, number) == [2, 2, 2]
    one_by_one(log, number, 1, bytes(11))
    one_by_one(log, number, 1, bytes(11))
    log.finish(number)
    assert in_blocks(aside, number) == [2, 2, 2, 1, 1]
    assert [batch.sequence for batch in held(log, number)] == list(range(1, 9))


def test_a_block_is_in_the_order_of_ids_and_keeps_every_length(log, aside):
    number = add(log)
    batches = [a_batch(number, os.urandom(size % 4)) for size in range(12)]
    for one in batches:
        log.append([one])
    log.finish(number)
    found = held(log, number)
    assert [one.batch_id for one in found] == sorted(one.batch_id for one in batches)
    assert {one.batch_id: one.payload for one in found} == {one.batch_id: one.payload for one in batches}
    lengths = aside().execute("SELECT lengths FROM hearsay.blocks WHERE collection = %s", (number,)).fetchone()[0]
    assert lengths == [len(one.payload) for one in found]
    other = add(log)
    one_by_one(log, other, 3)
    log.finish(other)
    assert aside().execute("SELECT lengths FROM hearsay.blocks WHERE collection = %s", (other,)).fetchone() == (None,)


def test_tokens_stay_used_after_their_batches_are_in_a_block(log, aside):
    number = add(log, "linkable-token")
    tokens = [os.urandom(16) for _ in range(3)]
    for token in tokens:
        log.append([a_batch(number, token=token)])
    log.append([a_batch(number)])
    log.lay_anew()
    assert log.append([a_batch(number, token=one) for one in tokens]) == [USED] * 3
    log.finish(number)
    assert log.append([a_batch(number, token=one) for one in tokens]) == [USED] * 3
    query = "SELECT array_agg(token_id ORDER BY token_id) FROM hearsay.used_tokens WHERE collection = %s"
    assert [one.bytes for one in aside().execute(query, (number,)).fetchone()[0]] == sorted(tokens)


# -- laid anew: one segment in the order of ids


def test_what_lies_in_several_segments_is_laid_into_one(log, aside):
    number, alone = add(log), add(log)
    batches = [a_batch(number, os.urandom(1 + size % 3), token=os.urandom(16)) for size in range(8)]
    for one in batches:
        log.append([one])
    one_by_one(log, alone, 1)
    place = aside().execute("SELECT id FROM hearsay.segments WHERE number = %s", (alone,)).fetchone()
    assert log.lay_anew() is False
    assert segments(aside, number) == [sorted(one.batch_id for one in batches)]
    assert {one.batch_id: one.payload for one in held(log, number)} == {one.batch_id: one.payload for one in batches}
    found = aside().execute("SELECT batch_id, token_id FROM hearsay.recent_ids WHERE collection = %s", (number,))
    assert {a.bytes: b.bytes for a, b in found.fetchall()} == {one.batch_id: one.token_id for one in batches}
    assert aside().execute("SELECT id FROM hearsay.segments WHERE number = %s", (alone,)).fetchone() == place
    assert log.append(batches) == [DUPLICATE] * 8
    log.check_recent(number)


def test_two_segments_are_several(log, aside):
    number = add(log)
    one_by_one(log, number, 2)
    assert (number, number) in laying.scattered(log._connection)
    log.lay_anew()
    assert (number, number) not in laying.scattered(log._connection)
    (place,) = aside().execute("SELECT id FROM hearsay.segments WHERE number = %s", (number,)).fetchone()
    assert 0 <= place < 1 << 56


# -- somebody else at the same time


@pytest.fixture
def layer(aside):
    """Another process that has the right to lay the blocks of a collection."""

    def holds(collection):
        db = aside()
        db.execute("SELECT pg_advisory_lock(7901, %s)", (collection,))
        return lambda: db.execute("SELECT pg_advisory_unlock(7901, %s)", (collection,))

    return holds


def test_whoever_finds_another_layer_at_work_leaves_it_to_that_one(log, aside, monkeypatch, layer):
    monkeypatch.setattr(blocks, "BLOCK", 2)
    number, other = add(log), add(log)
    for one in (number, other):
        one_by_one(log, one, 3)
    gives_back = layer(number)
    assert log.gather() is True
    assert (in_blocks(aside, number), in_blocks(aside, other)) == ([], [3])
    log.lay_anew()
    assert len(segments(aside, number)) == 3
    gives_back()
    assert log.gather() is True
    assert in_blocks(aside, number) == [3]


def test_the_right_to_lay_is_given_back(log, aside, monkeypatch):
    """After a block, after nothing, and after an error."""
    number = add(log)
    one_by_one(log, number, 2)
    held_locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7901"
    log.finish(number)
    assert laying.finish(log._connection, number, number, wait=True) is laying.Laid.NOTHING
    one_by_one(log, number, 2)
    with monkeypatch.context() as patched:
        patched.setattr(laying, "_forget", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            log.finish(number)
    assert aside().execute(held_locks).fetchone() == (0,)
    log.finish(number)
    assert in_blocks(aside, number) == [2, 2]


def test_a_right_that_was_lost_in_between_is_an_error(log, monkeypatch):
    number = add(log)
    one_by_one(log, number, 1)

    def loses(db, collection):
        db.execute("SELECT pg_advisory_unlock(7901, %s)", (collection,))

    monkeypatch.setattr(laying, "_barrier", loses)
    with pytest.raises((InUse, StorageError), match=r"right to lay blocks was lost|notice"):
        log.finish(number)


def test_segments_that_another_process_took_are_not_laid_twice(log, aside, monkeypatch):
    number = add(log)
    one_by_one(log, number, 2)
    take = laying._take

    def taken_meanwhile(db, *given):
        found = take(db, *given)
        db.execute("DELETE FROM hearsay.segments WHERE number = %s AND id = %s", (number, found.segments[0]))
        return found

    monkeypatch.setattr(laying, "_take", taken_meanwhile)
    with pytest.raises(StorageError, match="were laid by another process at the same time: this is tried again"):
        log.finish(number)
    monkeypatch.undo()
    assert len(segments(aside, number)) == 2, "nothing happened"
    log.finish(number)
    assert len(held(log, number)) == 2


# -- a group under way that is slow


def slow(*_):
    raise errors.LockNotAvailable("canceling statement due to lock timeout")


def test_the_ids_of_a_block_stay_recent_while_a_group_is_slow(log, aside, monkeypatch):
    """The block is laid, nothing is stored twice, and the ids go when the log is swept next time."""
    number, other = add(log), add(log)
    batches = one_by_one(log, number, 3)
    others = one_by_one(log, other, 2)
    while log.sweep():
        pass
    with monkeypatch.context() as patched:
        patched.setattr(laying, "_barrier", slow)
        assert laying.finish(log._connection, number, number, wait=True) is laying.Laid.IDS_LEFT
        log._tidied = True
        log.append([a_batch(number)])
        log.finish(number)
    assert log._tidied is False
    assert (recent_ids(aside, number), in_blocks(aside, number)) == (4, [3, 1])
    assert log.append(batches) == [DUPLICATE] * 3
    assert log.count(number) == 4
    log.check_recent(number)
    while log.sweep():
        pass
    assert log._tidied is True
    assert (recent_ids(aside, number), recent_ids(aside, other)) == (0, 2)
    assert log.append([*batches, *others]) == [DUPLICATE] * 5


def test_what_was_left_is_not_removed_while_another_process_lays(log, aside, monkeypatch, layer):
    number = add(log)
    one_by_one(log, number, 2)
    with monkeypatch.context() as patched:
        patched.setattr(laying, "_barrier", slow)
        log.finish(number)
    gives_back = layer(number)
    laying.tidy(log._connection)
    assert recent_ids(aside, number) == 2
    gives_back()
    laying.tidy(log._connection)
    assert recent_ids(aside, number) == 0


# -- damage


def test_a_segment_that_does_not_fit_its_digests_becomes_no_block(log, aside):
    number = add(log)
    one_by_one(log, number, 2)
    change = "UPDATE hearsay.segments SET payload = '\\x787878' WHERE number = %s"
    aside().execute(change, (number,))
    with pytest.raises(Corrupt, match="does not fit its digest"):
        log.finish(number)
    assert in_blocks(aside, number) == []
    log.delete_collection(number, 1)


def test_recent_batches_without_their_ids_are_damage(log, aside):
    number = add(log)
    one_by_one(log, number, 2)
    log.check_recent(number)
    aside().execute(
        "DELETE FROM hearsay.recent_ids WHERE collection = %s AND batch_id = "
        "(SELECT min(batch_id::text)::uuid FROM hearsay.recent_ids WHERE collection = %s)", (number, number),
    )  # fmt: skip
    with pytest.raises(Corrupt, match="do not fit their ids"):
        log.check_recent(number)
    log.delete_collection(number, 1)
    log.check_recent(number)


def test_a_block_that_is_missing_is_damage(log, aside):
    """The first, one in the middle, or the last. What was read before it is given out."""
    for place in range(3):
        number = add(log)
        for _ in range(3):
            one_by_one(log, number, 2)
            log.finish(number)
        log.check()
        lost = aside().execute("SELECT last FROM hearsay.blocks WHERE collection = %s ORDER BY last", (number,))
        (last,) = lost.fetchall()[place]
        aside().execute("DELETE FROM hearsay.blocks WHERE collection = %s AND last = %s", (number, last))
        with pytest.raises(Corrupt, match="blocks of a collection are missing"):
            log.check()
        if place < 2:
            found = []
            with pytest.raises(Corrupt, match="a block of a collection is missing"):
                found.extend(batch for part in log.read(number, 0, max_bytes=1) for batch in part)
        else:
            with pytest.raises(Corrupt, match="the newest batches of a collection cannot be read"):
                held(log, number)
        log.delete_collection(number, 1)
        log.check()
        assert [batch.sequence for batch in held(log, number)] in ([], [1, 2], [1, 2, 3, 4]), "it ends, and is no error"
        while log.sweep():
            pass
        assert held(log, number) == []
