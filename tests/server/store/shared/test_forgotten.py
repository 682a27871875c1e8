"""A deleted or compacted collection leaves nothing in PostgreSQL but what it should."""

from __future__ import annotations

import os

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import Fold, fold_parts
from tests.server.store.contract.batches import a_batch, add, count, finish, of

PARTITIONS = ("blocks", "batch_ids", "used_tokens", "counted_units")
ROWS = ("recent_ids", "periods", "segments", "folded_state")
PERIODS = {}
"""The periods of each collection, whose rows are gone when they are asked about."""


def filled(log):
    """A collection with batches in a block and recent ones, tokens and sealed units."""
    number = add(log, "linkable-token")
    log.append([a_batch(number, token=os.urandom(16)) for _ in range(5)])
    finish(log, number)
    log.append([a_batch(number, units=os.urandom(16)), a_batch(number, token=os.urandom(16))])
    PERIODS[number] = [one.number for one in log.periods(number)]
    return number


def left(aside, number):
    """Its partitions, and how many rows each table has of it."""
    db = aside()
    tables = [one for one in PARTITIONS if db.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"hearsay.{one}_{number}",)).fetchone()[0]]  # fmt: skip
    counts = {}
    for table in ROWS:
        whose, value = ("collection", [number]) if table in {"recent_ids", "periods"} else ("number", PERIODS[number])
        query = f"SELECT count(*) FROM hearsay.{table} WHERE {whose} = ANY(%s)"
        (counts[table],) = db.execute(query, (value,)).fetchone()
    return tables, counts


def swept(log):
    while log.sweep():
        pass


def test_a_deleted_collection_leaves_its_row_alone(log, aside):
    gone, other = filled(log), filled(log)
    before = left(aside, other)
    assert before[0] == list(PARTITIONS)
    assert before[1]["recent_ids"] > 0 and before[1]["periods"] == 1
    log.delete_collection(gone, 50)
    swept(log)
    assert left(aside, gone) == ([], dict.fromkeys(ROWS, 0))
    assert left(aside, other) == before
    assert log.record(gone).deleted == 50
    assert count(log, other) == 7
    swept(log)  # there is nothing left to do


def test_a_compacted_collection_keeps_its_counts_alone(log, aside):
    number = filled(log)
    finish(log, number)
    period = of(log, number)
    for part in fold_parts(period, 7, b"counts"):
        log.write_part(part)
    batches = log.count(period)
    log.fold(Fold(period, 7, len(b"counts"), log.last(period), batches, batches))
    log.compact(number)
    swept(log)
    tables, counts = left(aside, number)
    assert tables == []
    assert (counts["recent_ids"], counts["periods"]) == (0, 1)
    assert counts["folded_state"] > 0
    assert log.folded_state(log.period(period)) == b"counts"


def test_partitions_of_what_still_takes_batches_are_not_dropped(log, aside):
    number = filled(log)
    with pytest.raises(Exception, match="still takes batches"):
        aside().execute("SELECT hearsay.drop_partitions(%s)", (number,))
    assert left(aside, number)[0] == list(PARTITIONS)
    with pytest.raises(StorageError):
        log.transaction(lambda db: db.execute("SELECT hearsay.drop_partitions(%s)", (number,)))
