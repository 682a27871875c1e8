"""What the home decides, in all databases: also if the process is killed at any point of it."""

import contextlib
import os
import threading

import pytest

from ldp_client.errors import StorageError
from ldp_server.store import Admission, AppendOutcome, Fold, NewCollection, fold_parts
from ldp_server.store.engines import open_store
from ldp_server.store.errors import Corrupt
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.sharded.following import follow
from ldp_server.store.sharded.routing import shard_of
from tests.server.store.contract.batches import a_batch, add, count, held

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED
OVER = AppendOutcome.PERIOD_OVER


class Killed(BaseException):
    """The process ends here."""


class Kills:
    """Ends the process before a transaction of one of the databases."""

    def __init__(self, monkeypatch, before):
        self.left = before
        whole = PostgresLog.transaction

        def counted(log, work):
            self.left -= 1
            if self.left < 0:
                raise Killed
            return whole(log, work)

        monkeypatch.setattr(PostgresLog, "transaction", counted)


def to_each(number, shards=3, **fields):
    """A batch for each database, in their order."""
    found = {}
    while len(found) < shards:
        one = a_batch(number, b"abc", **fields)
        found.setdefault(shard_of(one.batch_id, shards), one)
    return [found[shard] for shard in range(shards)]


def a_collection():
    return NewCollection(os.urandom(32), b"spec", True, Admission("linkable-token", 3), 9)


def decided(log, number):
    return [(one.record(number).closed, one.record(number).deleted, one.record(number).oldest) for one in log._logs]


@pytest.mark.long
def test_a_collection_enters_all_or_none_wherever_it_is_cut(store, monkeypatch):
    """Killed before each transaction in turn; then the same is done again, by another process, and once more."""
    for steps in range(40):
        new, log = a_collection(), store.writer()
        before = [one.id for one in log.records()]
        with monkeypatch.context() as cutting:
            kills = Kills(cutting, steps)
            with contextlib.suppress(Killed):
                log.add(new)
        log.close()
        log = store.writer()
        if kills.left < 0:
            assert [one.id for one in log.records()] == before
            log.check()
            other = log.add(a_collection()).number  # another one comes in between, and gets a number of its own
            record = log.add(new)
            assert record.number != other
        else:
            record = log.record_of(new.id)
        assert {one.record(record.number).id for one in log._logs} == {new.id}
        assert {one.record(record.number).admission for one in log._logs} == {("linkable-token", 3)}
        assert [one.record(record.number).shards for one in log._logs] == [3] * 3
        assert log.append(to_each(record.number)) == [STORED] * 3
        with pytest.raises(StorageError, match="exists already"):
            log.add(new._replace(created=77))
        assert {one.record(record.number).created for one in log._logs} == {9}
        log.check()
        log.close()
        if kills.left >= 0:
            break
    else:
        pytest.fail("it never went through")
    assert steps > 5


def test_numbers_are_above_all_that_a_database_has_seen(log, monkeypatch):
    """A copy that a killed process left in the second database keeps its number for its collection."""
    new = a_collection()
    with monkeypatch.context() as cutting:
        # The home, the highest number and the id in the two others, the copy in the second: and not that in the third.
        Kills(cutting, 6)
        with pytest.raises(Killed):
            log.add(new)
    log.recover()
    left = log._logs[1].record_of(new.id).number
    assert log.record_of(new.id) is None
    assert [log.add(a_collection()).number for _ in range(2)] == [left + 1, left + 2]
    assert log.add(new).number == left


def test_a_copy_is_never_replaced_by_that_of_another_collection(log):
    """A slow process that lost its lock finds the number taken."""
    from ldp_server.store.sharded.entering import _copy

    record, other = log.add(a_collection()), log._logs[1]
    with pytest.raises(StorageError):
        other.transaction(lambda db: _copy(db, a_collection(), record.number, 3, "it"))
    known = NewCollection(record.id, b"spec", True, Admission(), 1)
    with pytest.raises(StorageError, match="another server enters collections in it at this moment"):
        other.transaction(lambda db: _copy(db, known, record.number + 7, 3, "it"))
    assert other.record(record.number).id == record.id
    assert other.record(record.number + 7) is None


@pytest.mark.parametrize(
    ("change", "refused", "row"),
    [
        (lambda log, number: log.close_collection(number, 50), SEALED, (50, None, 0)),
        pytest.param(
            lambda log, number: log.delete_collection(number, 60), SEALED, (None, 60, 0), marks=pytest.mark.long
        ),
        pytest.param(lambda log, number: log.take_from(number, 5), OVER, (None, None, 5), marks=pytest.mark.long),
    ],
    ids=["close", "delete", "take from"],
)
def test_a_change_that_was_cut_is_caught_up_with(store, log, monkeypatch, change, refused, row):
    """Killed before each of its transactions. Whoever leads brings the others to what the home says, and then no
    database takes what it forbids; nothing that was taken is lost.
    """
    for steps in range(30):
        number = add(log)
        first = to_each(number, period=3)
        assert log.append(first) == [STORED] * 3
        with monkeypatch.context() as cutting:
            kills = Kills(cutting, steps)
            other = store.writer()
            with contextlib.suppress(Killed):
                change(other, number)
            other.close()
        begun = decided(log, number)[0] == row
        log.lay_anew()
        assert decided(log, number) == [row if begun else (None, None, 0)] * 3
        expected = refused if begun else STORED
        assert log.append(to_each(number, period=3)) == [expected] * 3
        change(log, number)
        assert decided(log, number) == [row] * 3
        assert log.append(to_each(number, period=3)) == [refused] * 3
        if kills.left >= 0:
            assert steps >= 3
            return
    pytest.fail("it never went through")


def test_the_first_time_of_closing_stands_everywhere(log):
    number = add(log)
    log._home.close_collection(number, 100)  # and here the process was killed
    assert decided(log, number)[1] == (None, None, 0)
    assert log.close_collection(number, 200).closed == 100
    assert decided(log, number) == [(100, None, 0)] * 3


def test_following_touches_only_what_is_behind(log):
    one, two, three = add(log), add(log), add(log)
    for number in (one, two):
        log._home.close_collection(number, 5)
    log._home.take_from(three, 6)
    home, second = log._logs[:2]
    assert follow(home, second, 1, one) == 1
    assert decided(log, two)[1] == (None, None, 0)
    assert follow(home, second, 1) == 2
    assert follow(home, second, 1) == 0
    assert decided(log, three)[1] == (None, None, 6)
    assert decided(log, one)[2] == (None, None, 0)


def test_nothing_is_counted_after_a_close_returned(store, log):
    """Three writers append to all databases while it is closed: what is there when closing has returned is all."""
    number, ends = add(log), threading.Event()
    outcomes = []

    def write():
        mine = store.writer()
        while not ends.is_set():
            outcomes.append(mine.append([a_batch(number) for _ in range(20)]))
        mine.close()

    threads = [threading.Thread(target=write) for _ in range(3)]
    for one in threads:
        one.start()
    while count(log, number) < 200:
        pass
    log.close_collection(number, 5)
    there = count(log, number)
    ends.set()
    for one in threads:
        one.join()
    assert count(log, number) == there == sum(one is STORED for found in outcomes for one in found)
    log.append([a_batch(number)])
    assert count(log, number) == there


def test_a_seal_is_on_all_databases_or_on_none(store, log, monkeypatch):
    number, other = add(log), store.writer()
    whole = PostgresLog.seal

    def failing(one, sealed):
        if one is other._logs[2]:
            raise StorageError("away")
        whole(one, sealed)

    with monkeypatch.context() as changing:
        changing.setattr(PostgresLog, "seal", failing)
        with pytest.raises(StorageError, match="away"):
            other.seal(number)
    assert log.append(to_each(number)) == [STORED] * 3
    other.seal(number)
    assert log.append(to_each(number)) == [SEALED] * 3
    other.unseal(number)
    assert log.append(to_each(number)) == [STORED] * 3
    other.close()


def test_a_collection_is_compacted_when_each_database_has_counts_alone(log):
    number = add(log)
    log.append([*to_each(number), *(a_batch(number) for _ in range(27))])  # each database has some
    records = log.periods(number)
    assert [one.shard for one in records] == [0, 1, 2]
    for one in records:
        with pytest.raises(StorageError, match="changed while"):
            log.compact(number)
        assert not any(each.record(number).compacted for each in log._logs)
        log.finish(one.number)
        for part in fold_parts(one.number, 5, b"state %d" % one.shard):
            log.write_part(part)
        batches = log.count(one.number)
        done = log.fold(Fold(one.number, 5, 7, log.last(one.number), batches, batches))
        assert (done.number, done.folded_batches) == (one.number, batches)
    assert log.compact(number).compacted
    assert log.compact(number).compacted
    while log.sweep():
        pass
    assert [log.folded_state(one) for one in log.periods(number)] == [b"state 0", b"state 1", b"state 2"]
    assert log.append(to_each(number)) == [SEALED] * 3
    assert held(log, number) == []


@pytest.mark.long
def test_a_collection_of_before_stays_in_the_home(postgres, tmp_path):
    """A database that was alone becomes the first of two. What it has stays its own, and new collections are spread."""
    first, second = postgres.database(), postgres.database()
    alone = open_store(first, tmp_path)
    alone.prepare()
    log = alone.writer()
    old, batches = add(log), [a_batch(1) for _ in range(20)]
    assert log.append(batches[:10]) == [STORED] * 10
    log.close()
    both = open_store(f"{first} {second}", tmp_path)
    both.prepare()
    log = both.writer()
    assert log.append(batches) == [DUPLICATE] * 10 + [STORED] * 10
    assert [one.shard for one in log.periods(old)] == [0]
    new = add(log)
    assert new == old + 1
    assert log.append(to_each(new, 2)) == [STORED] * 2
    assert (log.record(old).shards, log.record(new).shards) == (1, 2)
    log.close_collection(old, 4)
    log.check()
    third = open_store(f"{first} {second} {postgres.database()}", tmp_path)
    third.prepare()
    with pytest.raises(StorageError, match="number 1 of 3 databases, and store names it as number 1 of 2: name all"):
        both.reader()
    with pytest.raises(StorageError, match="number 1 of 3 databases, and store names it as the only one: name all"):
        alone.reader()
    grown = third.writer()
    assert grown.append(to_each(new, 2)) == [STORED] * 2
    assert grown.record(add(grown)).shards == 3
    with pytest.raises(StorageError, match="is spread over 3 databases, and store names 2: name all"):
        log.periods(3)  # by a server that has run since before
    grown.close()
    log.close()


def test_a_database_from_an_older_backup_is_noticed(log):
    number = add(log)
    log.check()
    copy = log._logs[2]
    copy.transaction(lambda db: db.execute("UPDATE hearsay.collections SET id = %s WHERE number = %s",
                                           (os.urandom(32), number)))  # fmt: skip
    with pytest.raises(Corrupt, match=r"lacks a collection that .* has: was it restored from an older backup"):
        log.check()
    log._home.close_collection(number, 3)
    copy.transaction(lambda db: db.execute("DELETE FROM hearsay.collections WHERE number = %s", (number,)))
    with pytest.raises(StorageError, match="lacks a collection that the first database has"):
        log.close_collection(number, 3)
    log._home.transaction(lambda db: db.execute("DELETE FROM hearsay.collections WHERE number = %s", (number,)))
