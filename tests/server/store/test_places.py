"""Where batches lie: recent ones at random places of their collection, laid anew in the order of their ids."""

import os

import pytest

from ldp_server.store import AppendOutcome, Fold, blocks
from ldp_server.store.errors import Corrupt
from ldp_server.store.insert import LARGE
from ldp_server.store.log import FoldPart
from ldp_server.store.schema import SEQUENCE_BITS
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]

RANGE = 1 << 39
"""New batches lie in the lower half of a collection's places."""


def places(log, number):
    """The places of the recent batches within their collection, in the order of their ids."""
    rows = log.db.execute("SELECT place FROM recent WHERE collection = ? ORDER BY batch_id", (number,))
    return [row[0] - (number << SEQUENCE_BITS) for row in rows]


@pytest.mark.parametrize("together", [True, False])
def test_small_batches_lie_anywhere(log, together):
    """512 places in 8 parts of the range: one stays empty once in 10^28 runs."""
    add(log)
    number = add(log, b"b")
    batches = [a_batch(number, os.urandom(LARGE - 1)) for _ in range(512)]
    for group in [batches] if together else [[one] for one in batches]:
        log.append(group)
    found = places(log, number)
    assert {place // (RANGE // 8) for place in found} == set(range(8))
    assert found != sorted(found)


def test_large_batches_of_a_group_lie_side_by_side_in_the_order_of_their_ids(log):
    number = add(log)
    starts = []
    for _ in range(64):
        log.append([a_batch(number, os.urandom(LARGE)) for _ in range(3)])
        found = places(log, number)
        assert found == list(range(found[0], found[0] + 3))
        starts.append(found[0])
        log.finish(number)
    assert {start // (RANGE // 4) for start in starts} == {0, 1}  # below 2^38, so that a run ends within the range


def test_what_is_laid_anew_lies_in_the_order_of_ids_and_far_apart(log):
    other, number = add(log), add(log, b"b")
    log.append([a_batch(number, os.urandom(3)) for _ in range(100)])
    log.append([a_batch(other)])
    kept = places(log, other)
    blocks.lay_anew(log.db, number, number)
    found = places(log, number)
    assert [place >> blocks.APART for place in found] == list(range(1, 101))
    assert len({place & ((1 << blocks.APART) - 1) for place in found}) > 90  # and at random within its part
    assert places(log, other) == kept
    assert log.db.execute("SELECT count(*) FROM temp.laid").fetchone() == (0,)


def test_a_full_collection_that_is_laid_anew_stays_within_its_places():
    """There are fewer than two blocks of recent batches at any time."""
    assert (2 * blocks.BLOCK + 1) << blocks.APART <= 1 << SEQUENCE_BITS


def test_a_block_of_other_batches_than_were_counted_is_not_made(log):
    number = add(log)
    log.append([a_batch(number, bytes([i])) for i in range(3)])
    with pytest.raises(Corrupt, match="are missing"):
        log._transaction(lambda db: blocks.finish(db, number, number, (4, 4)))
    assert (log.last(number), log.count(number), len(held(log, number))) == (0, 3, 3)
    assert blocks.finish(log.db, number, number, (3, 3)) == 3
    assert blocks.finish(log.db, number, number, (0, 0)) == 3  # nothing is recent: no block is made
    assert log.db.execute("SELECT number, last, length(tie), bytes FROM blocks").fetchall() == [(number, 3, 16, 3)]


def test_blocks_follow_one_another_and_each_has_a_tie_of_its_own(log):
    number = add(log)
    for size in (2, 1, 4):
        log.append([a_batch(number, os.urandom(3)) for _ in range(size)])
        log.finish(number)
    assert [log.tie(number, last) is None for last in range(9)] == [last not in {2, 3, 7} for last in range(9)]
    assert len({log.tie(number, last) for last in (2, 3, 7)}) == 3
    assert [batch.sequence for batch in held(log, number)] == list(range(1, 8))


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_known_means_every_one_of_them_here(log, finished):
    number, other = add(log), add(log, b"b")
    first, second, third = a_batch(number), a_batch(number), a_batch(other)
    log.append([first, third])
    if finished:
        log.finish(number)
    log.append([second])
    if finished == 2:
        log.finish(number)
    ids = [first.batch_id, second.batch_id]
    here, there = log.period(number), log.period(other)
    assert log.known(here, ids) and log.known(here, ids[:1]) and log.known(here, [])
    assert not log.known(here, [*ids, third.batch_id])
    assert not log.known(here, [b"x" * 16, *ids])
    assert not log.known(there, ids[:1])


def test_which_collections_have_recent_batches(log):
    first, second, third = (add(log, name) for name in (b"a", b"b", b"c"))
    log.append([a_batch(one) for one in (first, second, third, third)])
    assert blocks.unlaid(log.db) == {first, second, third}
    log.finish(second)
    assert blocks.unlaid(log.db) == {first, third}
    assert [blocks.recent_size(log.db, one) for one in (first, second, third)] == [(1, 3), (0, 0), (2, 6)]


def test_tokens_move_into_a_block_with_their_batches(log):
    number, other = add(log), add(log, b"b")
    mine, none, theirs = a_batch(number, token=b"t" * 16), a_batch(number), a_batch(other, token=b"t" * 16)
    assert log.append([mine, none, theirs]) == [AppendOutcome.STORED] * 3
    log.finish(number)
    assert log.db.execute("SELECT collection, token_id FROM used_tokens").fetchall() == [(number, b"t" * 16)]
    assert log.db.execute("SELECT collection, token_id FROM recent").fetchall() == [(other, b"t" * 16)]
    assert log.append([a_batch(number, b"new", token=b"t" * 16)]) == [AppendOutcome.TOKEN_USED]


def test_finishing_a_block_counts_as_writing_its_batches_once_more(log, monkeypatch):
    """The thread that moves the write-ahead log is told how much was written."""
    monkeypatch.setattr(blocks, "BLOCK", 10)
    number = add(log)
    written = []
    monkeypatch.setattr(log._wal, "wrote", written.append)
    for size in (9, 1):
        log.append([a_batch(number, os.urandom(20_000)) for _ in range(size)])
    assert 180_000 < written[0] < 300_000
    assert 220_000 < written[1] < 300_000


@pytest.mark.parametrize("why", ["deleted", "compacted", "damaged"])
def test_rows_that_go_while_they_are_read_end_the_reading_or_are_damage(log, why):
    """What was deleted or compacted meanwhile may go; of any other collection no row may be missing."""
    number = add(log)
    log.append([a_batch(number, bytes([i])) for i in range(6)])
    log.finish(number)
    reading = log.read(number, 0, max_bytes=1)
    assert [batch.sequence for batch in next(reading)] == [1]
    if why == "deleted":
        log.delete_collection(number, 5)
    if why == "compacted":
        log.write_part(FoldPart(number, 1, 0, b"counts"))
        log.fold(Fold(number, 1, 6, 6, 6, 6))
    log.db.execute("DELETE FROM batches WHERE (position & 7) < 4")
    if why == "damaged":
        with pytest.raises(Corrupt, match="have a gap"):
            next(reading)
    else:
        assert list(reading) == []


@pytest.mark.parametrize("limit", ["BLOCK", "BLOCK_BYTES"])
def test_each_block_that_fills_up_begins_at_nothing(log, monkeypatch, limit):
    """What was counted for one block must not be counted for the next one."""
    monkeypatch.setattr(blocks, limit, 4)
    number = add(log)
    for _ in range(11):
        log.append([a_batch(number, b"x")])
    assert [last for (last,) in log.db.execute("SELECT last FROM blocks ORDER BY last")] == [4, 8]
    assert len(places(log, number)) == 3
    assert len(held(log, number)) == 11


def test_recent_batches_of_a_deleted_collection_are_not_read_before_they_are_swept(log):
    number = add(log)
    log.append([a_batch(number)])
    assert len(log.recent(number, 0)) == 1
    log.delete_collection(number, 5)
    assert log.recent(number, 0) == []
    assert len(places(log, number)) == 1
