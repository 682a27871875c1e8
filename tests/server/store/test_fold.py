"""Folding on the log itself: cut short anywhere, it loses nothing and counts nothing twice."""

import os
from itertools import pairwise

import pytest

from ldp_client.errors import StorageError
from ldp_server.oracles import oracle_for
from ldp_server.store import Admission, Fold, NewCollection, SqliteLog, SqliteReader, fold_parts, retention
from ldp_server.store.log import FoldPart
from ldp_server.store.schema import SEQUENCE_BITS
from ldp_server.worker.counts import CountsCache
from tests.server.helpers import make_collection
from tests.server.store.test_sqlite import a_batch, add, held, log

__all__ = ["log"]


def filled(tmp_path, collection, batches=20):
    log = SqliteLog(tmp_path / "log.db")
    log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission(), 1))
    oracle = oracle_for(collection)
    from tests.server.helpers import payload

    for _ in range(batches):
        data = payload(collection, 7)
        oracle.accumulate(data)
        log.append([a_batch(1, data)])
    log.finish(1)
    return log, oracle


@pytest.mark.parametrize("cut", ["before parts", "between parts", "before commit", "before sweep", "in sweep", "never"])
def test_a_fold_cut_short_anywhere_loses_nothing(tmp_path, cut, monkeypatch):
    collection = make_collection()
    log, oracle = filled(tmp_path, collection)
    (tmp_path / "states").mkdir()
    monkeypatch.setattr("ldp_server.store.retention.SLICE", 3)
    state = oracle.to_bytes()
    parts = list(fold_parts(1, 99, state, size=40))
    assert len(parts) > 2
    steps = {"before parts": 0, "between parts": 2}.get(cut, len(parts))
    for row in parts[:steps]:
        log.write_part(row)
    if cut in {"before sweep", "in sweep", "never"}:
        log.fold(Fold(1, 99, len(state), 20, batches=20, reports=140))
    if cut == "in sweep":
        assert log.sweep()
    log.close()  # the power fails here

    again = SqliteLog(tmp_path / "log.db")
    reader = SqliteReader(tmp_path / "log.db")

    def counted():
        return CountsCache(reader, tmp_path / "states", keep_bytes=1 << 20).get(1).oracle.counts.values

    assert (counted() == oracle.counts.values).all()
    while again.sweep():
        pass
    assert (counted() == oracle.counts.values).all()
    reader.close()
    folded = cut in {"before sweep", "in sweep", "never"}
    assert again.db.execute("SELECT count(*) FROM batches").fetchone()[0] == (0 if folded else 20)
    assert again.db.execute("SELECT count(*) FROM folded_state").fetchone()[0] == (len(parts) if folded else 0)
    assert again.last(1) == 20
    again.close()


def test_a_fold_with_missing_parts_or_new_batches_is_refused(tmp_path):
    collection = make_collection()
    log, oracle = filled(tmp_path, collection)
    state = oracle.to_bytes()
    with pytest.raises(StorageError, match="not all there"):
        log.fold(Fold(1, 5, len(state), 20, batches=20, reports=140))
    for row in fold_parts(1, 5, state):
        log.write_part(row)
    with pytest.raises(StorageError, match="changed"):
        log.fold(Fold(1, 5, len(state), 19, batches=19, reports=133))
    assert log.period(1).generation is None
    log.unseal(1)
    from tests.server.helpers import payload

    log.append([a_batch(1, payload(collection))])
    assert log.last(1) == 20
    with pytest.raises(StorageError, match="changed"):
        log.fold(Fold(1, 5, len(state), 20, batches=20, reports=140))
    log.close()


# -- dropping what nothing refers to


TABLES = {"batches": "collection", "recent": "collection", "used_tokens": "collection", "blocks": "number",
          "folded_state": "number", "periods": "collection"}  # fmt: skip


def rows(log, number):
    """How many rows of each table belong to a collection."""
    return {
        table: log.db.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (number,)).fetchone()[0]
        for table, column in TABLES.items()
    }


def fill(log, number):
    """Five batches in two blocks and three recent ones, all with tokens; two parts of folded counts."""
    for size in (4, 1):
        log.append([a_batch(number, os.urandom(9), token=os.urandom(16)) for _ in range(size)])
        log.finish(number)
    log.append([a_batch(number, os.urandom(9), token=os.urandom(16)) for _ in range(3)])
    for part in range(2):
        log.write_part(FoldPart(number, 7, part, b"x"))


FULL = {"batches": 5, "recent": 3, "used_tokens": 5, "blocks": 2, "folded_state": 2, "periods": 1}
EMPTY = dict.fromkeys(TABLES, 0)


@pytest.fixture
def numbers(log):
    numbers = [add(log, name) for name in (b"a", b"b", b"c")]
    for number in numbers:
        fill(log, number)
    return numbers


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr(retention, "SLICE", 2)


def swept(log, number):
    """The rows of a collection after each slice, until there is nothing to do."""
    found = [rows(log, number)]
    while log.sweep():
        found.append(rows(log, number))
    return found


@pytest.mark.usefixtures("_small")
def test_a_deleted_collection_goes_slice_by_slice_and_its_neighbours_stay(log, numbers):
    before, number, after = numbers
    for other in (before, after):  # their own abandoned parts would be dropped as well
        log.db.execute("DELETE FROM folded_state WHERE number = ?", (other,))
    log.delete_collection(number, 5)
    found = swept(log, number)
    assert (found[0], found[-1]) == (FULL, EMPTY)
    sizes = [sum(one.values()) for one in found]
    assert all(0 < earlier - later <= 2 for earlier, later in pairwise(sizes))
    for other in (before, after):
        assert rows(log, other) == FULL | {"folded_state": 0}
        assert len(held(log, other)) == 8
    assert not log.sweep()


@pytest.mark.usefixtures("_small")
def test_of_a_compacted_collection_the_counts_in_force_stay_and_nothing_else(log, numbers):
    number = numbers[1]
    log.finish(number)
    for part, data in enumerate((b"new", b"counts")):
        log.write_part(FoldPart(number, 8, part, data))
    log.fold(Fold(number, 8, 9, log.last(number), 8, 8))
    assert swept(log, number)[-1] == EMPTY | {"used_tokens": 8, "folded_state": 2, "periods": 1}
    assert log.compact(number).compacted
    assert swept(log, number)[-1] == EMPTY | {"folded_state": 2, "periods": 1}
    assert log.folded_state(log.period(number)) == b"newcounts"
    assert (log.last(number), held(log, number)) == (8, [])


def test_of_a_living_collection_only_abandoned_counts_are_dropped(log, numbers):
    assert log.sweep()
    assert [rows(log, number)["folded_state"] for number in numbers] == [0, 2, 2]  # one collection at a time
    while log.sweep():
        pass
    assert [rows(log, number) for number in numbers] == [FULL | {"folded_state": 0}] * 3


def test_a_deletion_after_a_compaction_drops_the_counts_too(log, numbers):
    number = numbers[0]
    log.finish(number)
    log.write_part(FoldPart(number, 8, 0, b"counts"))
    log.fold(Fold(number, 8, 6, log.last(number), 8, 8))
    while log.sweep():
        pass
    log.delete_collection(number, 5)
    assert swept(log, number)[-1] == EMPTY


def test_free_pages_are_given_back_slice_by_slice_but_for_some(log, monkeypatch):
    number = add(log)
    log.append([a_batch(number, os.urandom(6000)) for _ in range(100)])
    log.delete_collection(number, 5)
    monkeypatch.setattr(retention, "SPARE_PAGES", 10**9)
    while log.sweep():
        pass
    monkeypatch.setattr(retention, "SPARE_PAGES", 20)
    monkeypatch.setattr(retention, "SLICE", 30)
    free = [log.db.execute("PRAGMA freelist_count").fetchone()[0]]
    assert free[0] > 90
    while log.sweep():
        free.append(log.db.execute("PRAGMA freelist_count").fetchone()[0])
    assert all(0 < earlier - later <= 30 for earlier, later in pairwise(free)), free
    assert free[-1] <= 20 < free[-2]
    assert not retention.give_back(log.db)


@pytest.mark.parametrize("change", ["data", "sequence", "batches", "reports"])
def test_counts_that_are_not_what_was_written_are_refused(log, change):
    number = add(log)
    log.append([a_batch(number)])
    log.finish(number)
    log.write_part(FoldPart(number, 8, 0, b"counts"))
    record = log.fold(Fold(number, 8, 6, 1, 1, 1))
    assert log.folded_state(record) == b"counts"
    if change == "data":
        log.db.execute("UPDATE folded_state SET data = x'00'")
    else:
        column = {"sequence": "folded", "batches": "folded_batches", "reports": "folded_reports"}[change]
        log.db.execute(f"UPDATE periods SET {column} = 2")
    with pytest.raises(retention.Corrupt, match="do not fit their digest"):
        log.folded_state(log.period(number))


def test_the_first_place_of_a_collection_is_dropped_with_it_and_not_with_its_neighbour(log):
    """New batches lie there once in 2^39 times."""
    numbers = [add(log, name) for name in (b"a", b"b")]
    for number in numbers:
        log.append([a_batch(number)])
        log.db.execute("UPDATE recent SET place = ? WHERE collection = ?", (number << SEQUENCE_BITS, number))
    log.delete_collection(numbers[0], 5)
    assert [log.count(number) for number in numbers] == [1, 1]
    while log.sweep():
        pass
    assert [log.count(number) for number in numbers] == [0, 1]
