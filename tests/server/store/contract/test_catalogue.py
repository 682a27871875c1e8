"""The contract of every store: collections, their periods, and counts in the place of reports."""

import os

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import Admission, AppendOutcome, Fold, NewCollection, fold_parts
from ldp_server.store.errors import Corrupt
from ldp_server.store.log import NUMBER_BITS
from tests.server.helpers import tries
from tests.server.store.contract.batches import a_batch, add, draw, held, of

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED
OVER = AppendOutcome.PERIOD_OVER


def sweep(log):
    while log.sweep():
        pass


def fold(log, number, state=b"counts" * 100, generation=7):
    """Fold one record of a period."""
    log.finish(number)
    for part in fold_parts(number, generation, state, 250):
        log.write_part(part)
    count = log.count(number)
    return log.fold(Fold(number, generation, len(state), log.last(number), batches=count, reports=3 * count))


def test_collections_are_named_and_numbered_in_the_order_of_creation(log, reader):
    first = log.add(NewCollection(os.urandom(32), b"one", True, Admission(), 10))
    second = log.add(NewCollection(os.urandom(32), b"two", False, Admission("linkable-token", 3), 20))
    assert second.number == first.number + 1
    assert log.records()[-2:] == reader.records()[-2:] == [first, second]
    assert reader.record(second.number) == reader.record_of(second.id) == second
    assert (second.spec, second.public, second.admission, second.created) == (b"two", False, ("linkable-token", 3), 20)
    assert (second.closed, second.deleted, second.compacted, second.sealed) == (None, None, False, False)
    with pytest.raises(StorageError):
        log.add(NewCollection(first.id, b"three", True, Admission(), 30))
    assert len(log.records()) == len(reader.records())


def test_closing_and_deleting_keep_their_first_time_and_take_nothing_more(log):
    number = add(log)
    batch = a_batch(number)
    assert log.append([batch]) == [STORED]
    assert log.close_collection(number, 100).closed == 100
    assert log.close_collection(number, 200).closed == 100
    assert log.append([a_batch(number), batch]) == [SEALED, SEALED]
    assert (log.last(of(log, number)), len(held(log, number))) == (1, 1)
    assert log.delete_collection(number, 300).deleted == 300
    assert log.delete_collection(number, 400).deleted == 300
    sweep(log)
    assert (held(log, number), log.periods(number), log.held_bytes(number)) == ([], [], 0)
    assert log.record(number).spec == b"spec"
    assert log.append([batch]) == [SEALED]


def test_a_seal_is_for_a_while(log):
    number, other = add(log), add(log)
    log.seal(number)
    log.seal(number)
    assert log.append([a_batch(number), a_batch(other)]) == [SEALED, STORED]
    log.unseal(number)
    assert log.append([a_batch(number)]) == [STORED]
    log.close_collection(number, 5)
    log.unseal(number)
    assert log.append([a_batch(number)]) == [SEALED]


def test_a_seal_holds_for_every_writer_and_ends_with_its_own(store, log):
    if not store.shared:
        pytest.skip("one writer at a time")
    number, other = add(log), store.writer()
    other.seal(number)
    assert log.append([a_batch(number)]) == [SEALED]
    other.close()
    for _ in tries():  # the server notices that its connection ended
        if log.append([a_batch(number)]) == [STORED]:
            return
    pytest.fail("the seal outlived its writer")


def test_periods_have_numbers_of_their_own(log, reader):
    number = add(log)
    days = [20_000, 20_003, 0, 20_001]
    assert log.append([a_batch(number, period=day) for day in days]) == [STORED] * 4
    found = reader.periods(number)
    assert [one.period for one in found] == sorted(days)
    assert found[0].number == number | found[0].shard << NUMBER_BITS
    assert len({one.number for one in found}) == 4
    assert log.record(number).periods == sum(one.shard == 0 for one in found)
    assert all(reader.period(one.number) == one for one in found)
    assert {one.collection for one in found} == {number}
    reader.check_recent(number)


def test_old_periods_are_refused_from_a_day_on(log):
    number = add(log)
    log.append([a_batch(number, period=5)])
    assert log.take_from(number, 10).oldest == 10
    assert log.take_from(number, 8).oldest == 10
    assert log.append([a_batch(number, period=9), a_batch(number, period=10)]) == [OVER, STORED]


def test_counts_take_the_place_of_reports(log, reader, one_database):
    collection = add(log)
    batches = [a_batch(collection, bytes([i])) for i in range(5)]
    log.append(batches)
    number = of(log, collection)
    assert reader.folded_state(reader.period(number)) is None
    record = fold(log, number)
    assert (record.folded, record.folded_batches, record.folded_reports, record.generation) == (5, 5, 15, 7)
    assert reader.folded_state(record) == b"counts" * 100
    sweep(log)
    assert (held(log, number), log.last(number), log.count(number)) == ([], 5, 5)
    assert log.append([batches[0], a_batch(collection)]) == [SEALED, SEALED]
    assert log.compact(collection).compacted
    sweep(log)
    assert reader.folded_state(reader.period(number)) == b"counts" * 100
    assert log.append([batches[0]]) == [SEALED]
    log.check()


def test_a_period_is_folded_and_the_others_go_on(log, reader, one_database):
    number = add(log, "linkable-token")
    tokens = [draw(), draw()]
    log.append([a_batch(number, period=day, token=tokens[day - 1]) for day in (1, 2)])
    old, young = of(log, number, 1), of(log, number, 2)
    fold(log, old)
    sweep(log)
    assert log.append([a_batch(number, period=1), a_batch(number, period=2)]) == [SEALED, STORED]
    assert log.append([a_batch(number, period=2, token=tokens[0])]) == [AppendOutcome.TOKEN_USED]
    assert log.drop_period(old).dropped
    sweep(log)
    assert reader.folded_state(reader.period(old)) is None
    assert len(held(log, young)) == 2
    with pytest.raises(StorageError, match="folded before"):
        log.drop_period(young)
    with pytest.raises(StorageError, match="changed while"):
        log.compact(number)


def test_a_fold_of_what_has_changed_is_refused(log, one_database):
    collection = add(log)
    log.append([a_batch(collection)])
    number = of(log, collection)
    log.finish(number)
    for part in fold_parts(number, 3, b"state"):
        log.write_part(part)
    with pytest.raises(StorageError, match="not all there"):
        log.fold(Fold(number, 3, 6, 1, 1, 1))
    log.append([a_batch(collection)])
    with pytest.raises(StorageError, match="changed while"):
        log.fold(Fold(number, 3, 5, 1, 1, 1))
    log.finish(number)
    with pytest.raises(StorageError, match="changed while"):
        log.fold(Fold(number, 3, 5, 1, 1, 1))
    assert log.fold(Fold(number, 3, 5, 2, 2, 2)).generation == 3
    for part in fold_parts(number, 4, b"state"):
        log.write_part(part)
    with pytest.raises(StorageError, match="changed while"):
        log.fold(Fold(number, 4, 5, 2, 2, 2))
    assert log.period(number).generation == 3


def test_an_empty_collection_is_compacted(log):
    number = add(log)
    assert log.compact(number).compacted
    sweep(log)
    assert log.append([a_batch(number)]) == [SEALED]


def test_a_reader_in_the_middle_of_a_folded_period_ends(log, one_database):
    collection = add(log)
    log.append([a_batch(collection, os.urandom(40)) for _ in range(10)])
    number = of(log, collection)
    log.finish(number)
    log.append([a_batch(collection, os.urandom(40)) for _ in range(10)])
    log.finish(number)
    batches = log.read(number, 0, max_bytes=100)
    assert next(batches)
    fold(log, number)
    sweep(log)
    for _ in batches:
        pass
    assert held(log, number) == []


def test_numbers_beyond_the_last_block_are_damage(log):
    """As after going back to an older backup, beside counts that are newer."""
    number = add(log)
    log.append([a_batch(number)])
    with pytest.raises(Corrupt):
        log.recent(of(log, number), 5)
