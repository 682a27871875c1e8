"""What is dropped from the embedded store and what is not: tokens, units, periods, free pages; and files beside it."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace

import pytest

from ldp_server.store import AppendOutcome, Fold, SqliteLog, SqliteReader, retention
from ldp_server.store.access import AccessFile
from ldp_server.store.checkpoints import (
    Checkpoint,
    checkpoint_path,
    drop_checkpoint,
    drop_other_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.store.log import FoldPart
from ldp_server.store.reader import backup
from ldp_server.store.wal import WalMover
from tests.server.store.contract.batches import a_batch, add, held, of

STORED, USED = AppendOutcome.STORED, AppendOutcome.TOKEN_USED


@pytest.fixture
def log(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    yield log
    log.close()


def rows(log, table, owner, number):
    return log.db.execute(f"SELECT count(*) FROM {table} WHERE {owner} = ?", (number,)).fetchone()[0]


def swept(log):
    """How many slices were dropped."""
    slices = 0
    while log.sweep():
        slices += 1
    return slices


def folded(log, number, state=b"counts"):
    """Fold one record of a period, whatever it has."""
    log.finish(number)
    for part, start in enumerate(range(0, len(state), 3)):
        log.write_part(FoldPart(number, 8, part, state[start : start + 3]))
    count = log.count(number)
    return log.fold(Fold(number, 8, len(state), log.last(number), count, count))


# -- tokens and units of a collection


def tokened(log):
    """Three batches with tokens, two of them of an old period, and three sealed units."""
    number = add(log, "linkable-token")
    tokens = [os.urandom(16) for _ in range(3)]
    for token, day in zip(tokens, (1, 1, 2), strict=True):
        assert log.append([a_batch(number, period=day, token=token)]) == [STORED]
    assert log.append([a_batch(number, b"abc", period=2, units=os.urandom(48))]) == [STORED]
    return number, tokens


def test_a_token_is_for_any_period_so_it_stays_until_all_are_folded(log):
    number, tokens = tokened(log)
    old, young = of(log, number, 1), of(log, number, 2)
    folded(log, old)
    swept(log)
    assert rows(log, "used_tokens", "collection", number) == 2
    assert rows(log, "counted_units", "collection", number) == 3
    assert log.append([a_batch(number, period=2, token=token) for token in tokens]) == [USED] * 3
    folded(log, young)
    swept(log)
    assert rows(log, "used_tokens", "collection", number) == 3
    log.compact(number)
    swept(log)
    assert rows(log, "used_tokens", "collection", number) == rows(log, "counted_units", "collection", number) == 0
    assert rows(log, "periods", "collection", number) == 2, "their counts are in force"


def test_tokens_and_units_go_slice_by_slice_and_those_of_others_stay(log, monkeypatch):
    (number, _), (other, _) = tokened(log), tokened(log)
    for one in log.periods(number):
        folded(log, one.number)
    log.compact(number)
    swept_at_once = []
    monkeypatch.setattr(retention, "SLICE", 1)
    while log.sweep():
        swept_at_once.append(
            rows(log, "used_tokens", "collection", number) + rows(log, "counted_units", "collection", number)
        )
    assert swept_at_once == sorted(swept_at_once, reverse=True)
    assert max(a - b for a, b in zip([6, *swept_at_once], swept_at_once, strict=False)) == 1
    assert rows(log, "counted_units", "collection", other) == 3
    assert len(log.periods(other)) == 2


def test_a_collection_that_takes_batches_loses_nothing(log):
    number, _ = tokened(log)
    log.close_collection(number, 5)
    before = [
        rows(log, table, "collection", number) for table in ("used_tokens", "counted_units", "batches", "periods")
    ]
    assert before == [3, 3, 4, 2]
    swept(log)
    assert [
        rows(log, table, "collection", number) for table in ("used_tokens", "counted_units", "batches", "periods")
    ] == before
    assert retention.sweep_tokens(log.db, log.record(number)) is False


# -- counts


def test_parts_are_put_together_in_their_order_whatever_the_order_of_writing(log):
    number = add(log)
    log.append([a_batch(number)])
    log.finish(number)
    for part in (2, 0, 1):
        log.write_part(FoldPart(number, 8, part, b"%d--" % part))
    log.write_part(FoldPart(number, 8, 1, b"1++"))  # written again after a failure
    log.write_part(FoldPart(number, 9, 0, b"of another generation"))
    record = log.fold(Fold(number, 8, 9, 1, 1, 1))
    assert log.folded_state(record) == b"0--1++2--"
    swept(log)
    assert log.folded_state(record) == b"0--1++2--"
    assert rows(log, "folded_state", "number", number) == 3


@pytest.mark.parametrize("size", [8, 10])
def test_counts_of_another_length_than_was_written_are_not_put_in_force(log, size):
    number = add(log)
    log.append([a_batch(number)])
    log.finish(number)
    for part in range(3):
        log.write_part(FoldPart(number, 8, part, b"abc"))
    with pytest.raises(StorageError, match="the folded counts are not all there: compact the collection again"):
        log.fold(Fold(number, 8, size, 1, 1, 1))
    assert log.fold(Fold(number, 8, 9, 1, 1, 1)).generation == 8


def test_dropped_counts_go_and_the_period_stays_known(log):
    number = add(log)
    log.append([a_batch(number, period=1), a_batch(number, period=2)])
    old, young = of(log, number, 1), of(log, number, 2)
    folded(log, old)
    swept(log)
    record = log.drop_period(old)
    assert (record.dropped, log.folded_state(record)) == (True, None)
    assert rows(log, "folded_state", "number", old) == 2
    swept(log)
    assert rows(log, "folded_state", "number", old) == 0
    assert (log.period(old).folded_batches, log.period(young).dropped) == (1, False)
    assert len(held(log, young)) == 1


def test_a_period_that_was_folded_counts_from_its_last_block_on(log):
    number = add(log)
    log.append([a_batch(number) for _ in range(4)])
    folded(log, number)
    swept(log)
    assert (log.last(number), log.count(number), held(log, number)) == (4, 4, [])
    assert rows(log, "blocks", "number", number) == 0


@pytest.mark.parametrize(
    ("reserve", "slice_", "left"), [(0, 2000, 0), (7, 2000, 7), (7, 10, 20), (29, 10, 29), (30, 10, 30)]
)
def test_free_pages_are_given_back_up_to_the_reserve_a_slice_at_a_time(log, monkeypatch, reserve, slice_, left):
    """30 pages of a deleted collection are free."""
    number = add(log)
    log.append([a_batch(number, os.urandom(6000)) for _ in range(30)])
    log.delete_collection(number, 5)
    monkeypatch.setattr(retention, "SPARE_PAGES", 10**9)
    swept(log)

    def free():
        return log.db.execute("PRAGMA freelist_count").fetchone()[0]

    more = free() - 30
    monkeypatch.setattr(retention, "SPARE_PAGES", reserve + more)
    monkeypatch.setattr(retention, "SLICE", slice_)
    assert retention.give_back(log.db) is (left < 30)
    assert free() == left + more
    swept(log)
    assert free() == min(30, reserve) + more
    assert log.append([a_batch(add(log), os.urandom(6000))]) == [STORED], "no statement is left open"


@pytest.mark.parametrize("told", [True, False])
def test_a_large_deletion_needs_little_room_in_the_write_ahead_log(log, monkeypatch, told):
    """It is told how much a slice may write, so it is moved in between. If it is not told, all lies there at once."""
    number, wal = add(log), log.path.with_name("log.db-wal")
    for _ in range(10):
        log.append([a_batch(number, os.urandom(6000)) for _ in range(100)])
    log.finish(number)
    log.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log._wal.close()
    log._wal = WalMover(log.db, log.path, start=200_000, limit=600_000)
    monkeypatch.setattr(retention, "SLICE", 20)
    if not told:
        monkeypatch.setattr(log._wal, "wrote", lambda _: None)
    log.delete_collection(number, 5)
    largest = 0
    while log.sweep():
        log.tend()
        largest = max(largest, wal.stat().st_size)
    assert (largest < 3_000_000) is told


# -- recent batches that fit no index


def test_recent_batches_in_none_of_the_periods_are_damage(log):
    number = add(log)
    log.append([a_batch(number, period=day) for day in (1, 2)])
    log.check_recent(number)
    log.db.execute("UPDATE recent SET place = place & ((1 << 40) - 1) WHERE place >> 40 = ?", (of(log, number, 2),))
    with pytest.raises(Corrupt, match="recent batches of a collection are in no period: restore a backup"):
        log.check_recent(number)
    log.db.execute("UPDATE collections SET deleted = 5")
    log.check_recent(number)
    log.check_recent(99)


def test_batches_beyond_the_last_block_are_damage_and_before_it_another_try(log):
    number = add(log)
    log.append([a_batch(number), a_batch(number)])
    log.finish(number)
    log.append([a_batch(number)])
    assert log.recent(number, 1) is None
    assert len(log.recent(number, 2)) == 1
    with pytest.raises(Corrupt, match="has batches after its last block: restore a backup"):
        log.recent(number, 3)


# -- copies


def test_a_copy_has_what_the_log_has_and_is_read_by_itself(log, tmp_path):
    number, other = add(log), add(log)
    log.append([a_batch(number, b"one"), a_batch(other, b"two", period=5)])
    log.finish(number)
    log.append([a_batch(number, b"three")])
    backup(log.path, tmp_path / "copy.db")
    with closing(SqliteReader(tmp_path / "copy.db")) as copy:
        assert copy.records() == log.records()
        for one in (number, of(log, other, 5)):
            assert held(copy, one) == held(log, one)
        copy.check()
        copy.check_recent(number)


def test_a_copy_of_what_is_not_there_leaves_nothing(tmp_path):
    with pytest.raises(StorageError):
        backup(tmp_path / "none.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


# -- checkpoints of several periods and databases

ID, OTHER = b"\1" * 32, b"\2" * 32
CHECKPOINT = Checkpoint(ID, 0, 5, 300, 7, b"b" * 16, [b"c" * 16], b"state")


@pytest.mark.parametrize(
    ("period", "shard", "name"),
    [
        (0, 0, ".state"),
        (20_000, 0, "-20000.state"),
        (0, 2, "-0-2.state"),
        (20_000, 2, "-20000-2.state"),
        (1, 1, "-1-1.state"),
    ],
)
def test_each_period_and_database_has_a_checkpoint_of_its_own(tmp_path, period, shard, name):
    assert checkpoint_path(tmp_path, ID, period, shard) == tmp_path / f"{ID.hex()}{name}"
    mine = replace(CHECKPOINT, period=period, shard=shard, reports=period + shard)
    for other in ((0, 0), (7, 0), (0, 1), (7, 1)):
        write_checkpoint(tmp_path, replace(CHECKPOINT, period=other[0], shard=other[1]))
    assert write_checkpoint(tmp_path, mine) == tmp_path / f"{ID.hex()}{name}"
    assert read_checkpoint(tmp_path, ID, period, shard) == mine
    drop_checkpoint(tmp_path, ID, period, shard)
    assert read_checkpoint(tmp_path, ID, period, shard) is None
    assert read_checkpoint(tmp_path, ID, 7, 1) == replace(CHECKPOINT, period=7, shard=1)


def test_a_checkpoint_of_another_period_is_not_used(tmp_path):
    path = write_checkpoint(tmp_path, replace(CHECKPOINT, period=4))
    path.rename(checkpoint_path(tmp_path, ID, 5))
    assert read_checkpoint(tmp_path, ID, 5) is None


def test_checkpoints_of_all_periods_of_a_collection_are_kept_or_dropped_together(tmp_path):
    for collection in (ID, OTHER):
        for period, shard in ((0, 0), (9, 0), (9, 3)):
            write_checkpoint(tmp_path, replace(CHECKPOINT, collection_id=collection, period=period, shard=shard))
    drop_other_checkpoints(tmp_path, [ID, OTHER])
    assert len(list(tmp_path.iterdir())) == 6
    drop_other_checkpoints(tmp_path, [OTHER])
    assert {path.name[:64] for path in tmp_path.iterdir()} == {OTHER.hex()}
    assert len(list(tmp_path.iterdir())) == 3
    drop_other_checkpoints(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


# -- the number that says whether the file of tokens changed


def test_every_change_of_the_tokens_is_another_number(tmp_path):
    with closing(AccessFile(tmp_path / "access.db", lambda: 1000.0)) as access:
        with closing(AccessFile(tmp_path / "access.db", lambda: 1000.0)) as other:
            seen = [access.changes()]
            for change in (
                lambda: other.create("maria"),
                lambda: other.revoke("maria"),
                lambda: other.create_local(60),
                other.drop_local,
                lambda: access.create("maria"),
            ):
                change()
                seen.append(access.changes())
                assert access.changes() == seen[-1], "to ask changes nothing"
        assert len(set(seen)) == len(seen)
        assert seen == sorted(seen)


def test_a_file_of_another_form_cannot_tell(tmp_path):
    path = tmp_path / "access.db"
    with closing(AccessFile(path, lambda: 1000.0)) as access:
        assert isinstance(access.changes(), int)
        sound = path.read_bytes()
        for wrong in (sound[:18] + b"\2\2" + sound[20:], sound[:18] + b"\1\2" + sound[20:], sound[:27], b""):
            path.write_bytes(wrong)
            assert access.changes() is None
        path.write_bytes(sound[:28])
        assert access.changes() == int.from_bytes(sound[24:28], "big")
        path.write_bytes(sound)


def test_tokens_are_listed_by_their_time_and_then_their_name(tmp_path):
    now = [1000.0]
    with closing(AccessFile(tmp_path / "access.db", lambda: now[0])) as access:
        for name in ("c", "a"):
            access.create(name)
        now[0] = 999.0
        access.create("z")
        assert [one.name for one in access.tokens()] == ["z", "a", "c"]


def test_a_damaged_name_is_an_error_for_a_list_and_no_token_for_a_caller(tmp_path):
    with closing(AccessFile(tmp_path / "access.db", lambda: 1000.0)) as access:
        token = access.create("maria")
        access._db.execute("UPDATE tokens SET name = CAST(x'ff' AS TEXT)")
        with pytest.raises(Corrupt, match="is damaged or not a Hearsay database: restore a backup"):
            access.tokens()
        assert access.verify(token) is None
