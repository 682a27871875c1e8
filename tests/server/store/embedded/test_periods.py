"""Periods in the embedded store: their numbers, their rows and limits, and laying many of them anew together."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing

import pytest

from ldp_server.store import AppendOutcome, Fold, SqliteLog, SqliteReader, blocks, catalog
from ldp_server.store.catalog import period_check
from ldp_server.store.errors import Corrupt, StorageError
from ldp_server.store.log import NUMBER_BITS, FoldPart
from ldp_server.store.schema import SEQUENCE_BITS
from tests.server.store.contract.batches import a_batch, add, held, of

STORED, DUPLICATE, CONFLICT = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.CONFLICT
SEALED, OVER = AppendOutcome.SEALED, AppendOutcome.PERIOD_OVER


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
def log(path):
    log = SqliteLog(path)
    yield log
    log.close()


def days(log, number, *periods, count=1):
    """Append batches of each of these periods; their records' numbers."""
    for day in periods:
        assert log.append([a_batch(number, period=day) for _ in range(count)]) == [STORED] * count
    return [of(log, number, day) for day in periods]


def places(log, number):
    """Where the recent batches of a period lie, in the order of their ids."""
    low, high = number << SEQUENCE_BITS, (number + 1) << SEQUENCE_BITS
    rows = log.db.execute("SELECT place FROM recent WHERE place >= ? AND place < ? ORDER BY batch_id", (low, high))
    return [row[0] for row in rows]


# -- numbers


def test_a_question_without_a_schedule_has_one_period_with_its_own_number(log):
    first, second = add(log), add(log)
    assert days(log, second, 0) == [second]
    assert (log.periods(first), log.record(first).periods, log.record(second).periods) == ([], 0, 1)


def test_numbers_of_periods_are_drawn_above_those_of_collections_and_fit_a_position(log):
    """Their order says nothing of which period had a batch first: 20 in their order come once in 20! runs."""
    numbers = days(log, add(log), *range(1, 21))
    assert all(1 << 22 <= number < 1 << NUMBER_BITS for number in numbers)
    assert len(set(numbers)) == 20
    assert numbers != sorted(numbers)


def test_a_number_that_is_taken_is_drawn_again(log, monkeypatch):
    drawn = iter([5, 5, 5, 0, 7])
    monkeypatch.setattr(catalog.secrets, "randbelow", lambda _: next(drawn))
    number = add(log)
    assert days(log, number, 1, 2, 3) == [(1 << 22) + 5, 1 << 22, (1 << 22) + 7]
    assert log.record(number).periods == 3


def test_the_last_number_that_is_drawn_still_has_places(log, monkeypatch):
    """SQLite's integers end at 2^63, and the places of a period end where those of the next number begin."""
    monkeypatch.setattr(catalog.secrets, "randbelow", lambda most: most - 1)
    (number,) = days(log, add(log), 1, count=3)
    assert number == (1 << NUMBER_BITS) - 2
    assert (number + 1) << SEQUENCE_BITS < 1 << 63
    log.lay_anew()
    log.finish(number)
    assert [batch.sequence for batch in held(log, number)] == [1, 2, 3]
    folded = log.write_part(FoldPart(number, 1, 0, b"x")) or log.fold(Fold(number, 1, 1, 3, 3, 3))
    while log.sweep():
        pass
    assert log.folded_state(folded) == b"x"


def test_the_place_of_a_period_that_somebody_took_is_damage(log):
    number, other = add(log), add(log)
    row = (number, other, 0, period_check(number, other, 0))
    log.db.execute("INSERT INTO periods (number, collection, period, tag) VALUES (?, ?, ?, ?)", row)
    with pytest.raises(Corrupt, match="the row of a collection is damaged"):
        log.append([a_batch(number)])
    assert log.record(number).periods == 0


# -- rows


def test_a_period_s_row_that_is_missing_is_damage_until_its_collection_is_deleted(log, path):
    number = add(log)
    kept, lost = days(log, number, 4, 5)
    log.db.execute("DELETE FROM periods WHERE number = ?", (lost,))
    with pytest.raises(Corrupt, match="periods of a collection are missing: restore a backup"):
        log.periods(number)
    assert log.period(kept).period == 4
    log.db.execute("UPDATE collections SET deleted = 9")
    assert [one.number for one in log.periods(number)] == [kept]


@pytest.mark.parametrize("column", ["number", "collection", "period"])
def test_a_row_that_names_another_period_is_damage(log, column):
    """A bit that flips must not count reports for another day, or another question."""
    number, _ = add(log), add(log)
    days(log, number, 4)
    log.db.execute(f"UPDATE periods SET {column} = {column} + 1")
    with pytest.raises(Corrupt, match="the row of a collection is damaged"):
        log._catalog.all_periods()


@pytest.mark.parametrize("column", ["folded", "folded_batches", "folded_reports", "generation", "dropped"])
def test_a_row_whose_number_became_another_type_is_damage(path, column):
    with closing(SqliteLog(path)) as log:
        days(log, add(log), 4)
    with closing(sqlite3.connect(path)) as db:
        sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'periods'").fetchone()[0]
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'periods'", (sql.replace("STRICT", ""),))
        db.commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE periods SET {column} = x'00'")
        db.commit()
    with closing(SqliteReader(path)) as reader, pytest.raises(Corrupt, match="row of a collection is damaged"):
        reader._catalog.all_periods()


def test_the_check_sum_is_of_the_first_three_columns():
    assert period_check(7, 8, 9) == hashlib.sha256(b"7 8 9").digest()[:8]
    assert len({period_check(*one) for one in ((7, 8, 9), (8, 7, 9), (7, 9, 8), (7, 8, 10), (78, 9, 9))}) == 5


def test_what_is_known_to_be_there_and_is_not(log, path):
    with pytest.raises(StorageError, match=f"the row of period 77 is not in {path}: restore a backup"):
        log._catalog.existing_period(77)
    with pytest.raises(StorageError, match=f"the row of collection 77 is not in {path}: restore a backup"):
        log.take_from(77, 5)
    with pytest.raises(StorageError, match="the row of period 77"):
        log.fold(Fold(77, 1, 0, 0, 0, 0))


# -- what is taken


def test_an_id_belongs_to_one_period_of_its_collection(log):
    number, name = add(log), os.urandom(16)
    assert log.append([a_batch(number, b"one", name, period=3)]) == [STORED]
    for _ in range(2):  # recent, then in a block
        assert log.append([a_batch(number, b"one", name, period=3), a_batch(number, b"one", name, period=4)]) == [
            DUPLICATE,
            CONFLICT,
        ]
        log.finish(of(log, number, 3))
    assert log.count(of(log, number, 3)) == 1


def test_the_first_period_that_is_taken_stands_when_the_log_is_opened_again(path):
    with closing(SqliteLog(path)) as log:
        number, other = add(log), add(log)
        log.take_from(number, 10)
    with closing(SqliteLog(path)) as log:
        group = [a_batch(number, period=9), a_batch(number, period=10), a_batch(other, period=0)]
        assert log.append(group) == [OVER, STORED, STORED]
        log.seal(number)
        assert log.append([a_batch(number, period=9)]) == [SEALED], "a seal is said first"


def test_a_folded_period_takes_nothing_and_stays_so_when_the_log_is_opened_again(path):
    with closing(SqliteLog(path)) as log:
        number = add(log)
        old, young = days(log, number, 1, 2)
        log.finish(old)
        log.write_part(FoldPart(old, 5, 0, b"counts"))
        log.fold(Fold(old, 5, 6, 1, 1, 1))
        group = [a_batch(number, period=1), a_batch(number, period=2)]
        assert log.append(group) == [SEALED, STORED]
    with closing(SqliteLog(path)) as log:
        assert log.append([a_batch(number, period=1), a_batch(number, period=2)]) == [SEALED, STORED]
        assert (log.count(old), log.count(young)) == (1, 3)


def test_what_a_failed_group_entered_is_not_remembered(log):
    """The row of a period and the sizes of a group that was rolled back."""
    number = add(log)
    days(log, number, 1)
    log.db.execute(
        "CREATE TRIGGER stop BEFORE INSERT ON recent WHEN new.payload = x'00' BEGIN SELECT raise(ABORT, 'no'); END"
    )
    for _ in range(2):
        with pytest.raises(StorageError):
            log.append(
                [
                    a_batch(number, b"good", period=1),
                    a_batch(number, b"good", period=2),
                    a_batch(number, b"\0", period=2),
                ]
            )
    assert [one.period for one in log.periods(number)] == [1]
    log.db.execute("DROP TRIGGER stop")
    assert log.append([a_batch(number, b"good", period=2)]) == [STORED]
    assert [log.count(one.number) for one in log.periods(number)] == [1, 1]
    assert log.record(number).periods == 2


def test_blocks_are_of_one_period_each(log, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 3)
    number = add(log)
    group = [a_batch(number, period=1 + place % 2) for place in range(5)]
    assert log.append(group) == [STORED] * 5
    one, two = of(log, number, 1), of(log, number, 2)
    assert (log.last(one), log.count(one), log.last(two), log.count(two)) == (3, 3, 0, 2)
    assert log.append([a_batch(number, period=2)]) == [STORED]
    assert [batch.sequence for batch in held(log, two)] == [1, 2, 3]


def test_bytes_are_those_in_blocks_and_recent_ones(log):
    number = add(log)
    log.append([a_batch(number, bytes(size)) for size in (1, 10, 100)])
    log.finish(number)
    log.append([a_batch(number, bytes(1000))])
    assert (log.held_bytes(number), log.count(number), log.last(number)) == (1111, 4, 3)
    assert blocks.recent_size(log.db, number) == (1, 1000)


# -- laid anew


def scattered(log, number):
    """Whether the places of a period's recent batches are in the order of their ids."""
    found = places(log, number)
    return found != sorted(found)


def test_periods_are_laid_anew_together_as_long_as_they_fill_a_block(log, monkeypatch):
    """Four periods of three batches: with room for six, two of them at a time."""
    monkeypatch.setattr(blocks, "BLOCK", 6)
    number = add(log)
    records = days(log, number, 1, 2, 3, 4, count=3)
    left = []
    while log._unlaid:
        assert log.lay_anew() is True
        left.append(len(log._unlaid))
    assert left == [2, 0]
    assert log.lay_anew() is False
    assert not any(scattered(log, one) for one in records)


def test_a_period_that_is_larger_than_a_block_is_laid_alone(log, monkeypatch):
    number = add(log)
    days(log, number, 1, 2, count=5)
    monkeypatch.setattr(blocks, "BLOCK", 2)
    assert (log.lay_anew(), len(log._unlaid)) == (True, 1)
    monkeypatch.setattr(blocks, "BLOCK", 1024)
    days(log, number, 1, 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 14)
    assert (log.lay_anew(), len(log._unlaid)) == (True, 1)
    assert (log.lay_anew(), len(log._unlaid)) == (True, 0)


@pytest.mark.parametrize("limit", [30, 29])
def test_as_many_bytes_as_a_block_has_are_laid_together(log, monkeypatch, limit):
    number = add(log)
    days(log, number, 1, 2, count=5)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", limit)
    log.lay_anew()
    assert len(log._unlaid) == (0 if limit == 30 else 1)


def test_what_is_recent_when_the_log_is_opened_is_laid_before_it_is_closed(path):
    with closing(SqliteLog(path)) as log:
        number = add(log)
        for _ in range(40):
            log.append([a_batch(number)])
        assert scattered(log, number), "in order once in 40! runs"
        log._unlaid.clear()  # as if the process had been killed
    with closing(SqliteLog(path)) as log:
        assert log._unlaid == {number}
        assert scattered(log, number)
    with closing(SqliteLog(path)) as log:
        assert not scattered(log, number)
        assert len(held(log, number)) == 40


def test_a_period_whose_row_is_gone_is_not_laid(log):
    number = add(log)
    one, two = days(log, number, 1, 2, count=12)
    log.db.execute("DELETE FROM periods WHERE number = ?", (one,))
    log._catalog.existing_period(two)
    with pytest.raises(StorageError, match=f"the row of period {one}"):
        while log._unlaid:
            log.lay_anew()
    assert one in log._unlaid


def test_a_log_whose_rows_are_damaged_can_still_be_closed(path):
    log = SqliteLog(path)
    (number,) = days(log, add(log), 3)
    log.db.execute("DELETE FROM periods WHERE number = ?", (number,))
    log.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        log.db.execute("SELECT 1")
