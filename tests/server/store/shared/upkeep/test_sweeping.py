"""Counts in the place of reports on PostgreSQL: when they are taken, and what is dropped and kept after each step."""

from __future__ import annotations

import os

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import AppendOutcome, Fold
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import FoldPart
from tests.server.store.contract.batches import a_batch, add, finish, held, of

STORED, SEALED, USED = AppendOutcome.STORED, AppendOutcome.SEALED, AppendOutcome.TOKEN_USED


@pytest.fixture(autouse=True)
def _swept(log):
    """Each test begins with nothing to sweep."""
    while log.sweep():
        pass


def rows(aside, table, owner, number):
    return aside().execute(f"SELECT count(*) FROM hearsay.{table} WHERE {owner} = %s", (number,)).fetchone()[0]


def parts(aside, number):
    query = "SELECT generation, part FROM hearsay.folded_state WHERE number = %s ORDER BY 1, 2"
    return aside().execute(query, (number,)).fetchall()


def written(log, number, state=b"counts", generation=7):
    for part, start in enumerate(range(0, len(state), 3)):
        log.write_part(FoldPart(number, generation, part, state[start : start + 3]))


def folded(log, number, state=b"counts", generation=7):
    log.finish(number)
    written(log, number, state, generation)
    count = log.count(number)
    return log.fold(Fold(number, generation, len(state), log.last(number), count, count))


def filled(log, *days):
    """A collection with two batches of each day in a block, with a token each; and the numbers of its periods."""
    number = add(log, "linkable-token")
    for day in days:
        for _ in range(2):
            assert log.append([a_batch(number, period=day, token=os.urandom(16))]) == [STORED]
        log.finish(of(log, number, day))
    return number, [of(log, number, day) for day in days]


# -- putting counts in force


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size": 5}, "are not all there"), ({"size": 7}, "are not all there"),
        ({"generation": 8}, "are not all there"),
        ({"sequence": 1}, "changed while"), ({"sequence": 3}, "changed while"),
    ],
)  # fmt: skip
def test_counts_of_anything_else_than_is_there_are_refused(log, change, text):
    _, (period,) = filled(log, 0)
    written(log, period)
    given = {"number": period, "generation": 7, "size": 6, "sequence": 2, "batches": 2, "reports": 2}
    with pytest.raises(StorageError, match=f"{text}.*: compact the collection again|{text}.*: compact it again"):
        log.fold(Fold(**{**given, **change}))
    assert log.period(period).generation is None
    assert log.fold(Fold(**given)).generation == 7


def test_counts_are_refused_while_a_batch_is_recent(log):
    number, (period,) = filled(log, 0)
    written(log, period)
    log.append([a_batch(number)])
    with pytest.raises(StorageError, match="changed while it was being compacted"):
        log.fold(Fold(period, 7, 6, 2, 2, 2))
    assert log.append([a_batch(number)]) == [STORED]


def test_a_period_is_folded_once(log):
    _, (period,) = filled(log, 0)
    folded(log, period)
    written(log, period, b"others", 8)
    with pytest.raises(StorageError, match="changed while"):
        log.fold(Fold(period, 8, 6, 2, 2, 2))
    assert log.folded_state(log.period(period)) == b"counts"


def test_parts_are_read_in_their_order_up_to_the_first_that_is_missing(log):
    _, (period,) = filled(log, 0)
    for part in (3, 1, 0):
        log.write_part(FoldPart(period, 7, part, b"%d" % part))
    record = log.fold(Fold(period, 7, 2, 2, 2, 2))
    assert log.folded_state(record) == b"01"


def test_a_part_that_is_written_again_takes_the_place_of_the_first(log):
    _, (period,) = filled(log, 0)
    written(log, period, b"wrong!")
    written(log, period, b"counts")
    assert log.folded_state(log.fold(Fold(period, 7, 6, 2, 2, 2))) == b"counts"


@pytest.mark.parametrize("change", ["data", "folded", "folded_batches", "folded_reports"])
def test_counts_that_are_not_what_was_written_are_damage(log, aside, change):
    _, (period,) = filled(log, 0)
    record = folded(log, period)
    if change == "data":
        aside().execute("UPDATE hearsay.folded_state SET data = '\\x00' WHERE number = %s AND part = 1", (period,))
    else:
        aside().execute(f"UPDATE hearsay.periods SET {change} = {change} + 1 WHERE number = %s", (period,))
    with pytest.raises(Corrupt, match="the folded counts of a collection do not fit their digest"):
        log.folded_state(log.period(period))
    assert record.generation == 7


# -- what is swept


def test_a_folded_period_loses_its_reports_and_the_others_keep_theirs(log, aside):
    number, (old, young) = filled(log, 1, 2)
    folded(log, old)
    assert (rows(aside, "blocks", "number", old), rows(aside, "batch_ids", "number", old)) == (1, 2)
    assert log.sweep() is True
    assert [rows(aside, table, "number", old) for table in ("blocks", "batch_ids", "folded_state")] == [0, 0, 2]
    assert [rows(aside, table, "number", young) for table in ("blocks", "batch_ids")] == [1, 2]
    assert rows(aside, "used_tokens", "collection", number) == 4, "a token is for any period"
    assert log.sweep() is False, "it is swept once"
    assert (log.count(old), log.last(old), len(held(log, young))) == (2, 2, 2)
    log.check()


def test_several_folded_periods_are_swept_one_after_the_other(log, aside):
    _, periods = filled(log, 1, 2, 3)
    for one in periods[:2]:
        folded(log, one)
    left = []
    while log.sweep():
        left.append(sum(rows(aside, "blocks", "number", one) for one in periods))
    assert left == [2, 1]


def test_counts_that_another_one_has_overtaken_are_dropped(log, aside):
    _, (period,) = filled(log, 0)
    written(log, period, b"early", 5)
    folded(log, period)
    assert parts(aside, period) == [(5, 0), (5, 1), (7, 0), (7, 1)]
    while log.sweep():
        pass
    assert parts(aside, period) == [(7, 0), (7, 1)]
    assert log.folded_state(log.period(period)) == b"counts"


def test_counts_that_somebody_is_writing_stay_for_a_day(log, aside):
    """Another process may be in the middle of it. What nobody has put in force after a day was left behind."""
    _, (period,) = filled(log, 0)
    written(log, period)
    assert log.sweep() is False
    change = "UPDATE hearsay.folded_state SET written = now() - interval '{}' WHERE number = %s"
    aside().execute(change.format("23 hours"), (period,))
    assert log.sweep() is False
    aside().execute(change.format("25 hours"), (period,))
    assert (log.sweep(), parts(aside, period)) == (True, [])
    assert len(held(log, period)) == 2


def test_counts_of_a_period_that_is_not_there_are_dropped(log, aside):
    number, _ = filled(log, 0)
    nobody = 8_000_000 + number
    written(log, nobody)
    assert (log.sweep(), parts(aside, nobody)) == (True, [])


def test_dropped_counts_go_and_what_the_period_was_stays_known(log, aside):
    _, (period, other) = filled(log, 1, 2)
    for one in (period, other):
        folded(log, one)
    while log.sweep():
        pass
    record = log.drop_period(period)
    assert (record.dropped, log.folded_state(record), len(parts(aside, period))) == (True, None, 2)
    while log.sweep():
        pass
    assert (parts(aside, period), len(parts(aside, other))) == ([], 2)
    assert (log.period(period).folded_batches, log.count(period)) == (2, 2)


def test_a_compacted_collection_is_swept_in_one_step_and_keeps_its_counts(log, aside):
    number, periods = filled(log, 1, 2)
    for one in periods:
        folded(log, one, b"state%d" % log.period(one).period)
    with pytest.raises(StorageError, match="folded before"):
        log.drop_period(filled(log, 0)[1][0])
    log.compact(number)
    assert log.append([a_batch(number, period=3)]) == [SEALED]
    assert log.sweep() is True
    assert aside().execute("SELECT to_regclass(%s)", (f"hearsay.blocks_{number}",)).fetchone() == (None,)
    assert [log.folded_state(log.period(one)) for one in periods] == [b"state1", b"state2"]
    assert rows(aside, "recent_ids", "collection", number) == 0
    assert log.sweep() is False
    assert log.record(number).compacted


def test_a_deleted_collection_leaves_its_row_and_the_next_one_s_rows(log, aside):
    (number, periods), (other, theirs) = filled(log, 1, 2), filled(log, 1)
    folded(log, periods[0])
    log.append([a_batch(one, period=9) for one in (number, other)])
    log.delete_collection(number, 5)
    while log.sweep():
        pass
    for table in ("segments", "folded_state"):
        assert [rows(aside, table, "number", one) for one in periods] == [0, 0]
    for table in ("periods", "recent_ids", "batch_ids", "used_tokens"):
        assert rows(aside, table, "collection", number) == 0
    assert [rows(aside, table, "collection", other) for table in ("periods", "recent_ids", "used_tokens")] == [2, 1, 2]
    assert len(held(log, theirs[0])) == 2
    assert log.record(number).deleted == 5


def test_a_token_of_a_folded_period_stays_used_until_the_collection_is_compacted(log):
    number, token = add(log, "linkable-token"), os.urandom(16)
    log.append([a_batch(number, period=1, token=token), a_batch(number, period=2)])
    finish(log, of(log, number, 1))
    folded(log, of(log, number, 1))
    while log.sweep():
        pass
    assert log.append([a_batch(number, b"again", period=2, token=token)]) == [USED]


def test_rows_that_are_not_there_are_named(log):
    with pytest.raises(StorageError, match=r"the row of period 8000001 is not in postgresql://.*: restore a backup"):
        log.fold(Fold(8_000_001, 1, 0, 0, 0, 0))
    for work in (lambda: log.close_collection(8_000_001, 1), lambda: log.take_from(8_000_001, 1)):
        with pytest.raises(
            StorageError, match=r"the row of collection 8000001 is not in postgresql://.*: restore a backup"
        ):
            work()
    with pytest.raises(StorageError, match="changed while"):
        log.compact(8_000_001)


def test_the_latest_decision_stands(log):
    number = add(log)
    assert [log.take_from(number, day).oldest for day in (5, 3, 9)] == [5, 5, 9]
    assert [log.close_collection(number, when).closed for when in (50, 40)] == [50, 50]
    assert [log.delete_collection(number, when).deleted for when in (70, 60)] == [70, 70]
