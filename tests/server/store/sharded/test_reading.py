"""Several databases read as one log: each number leads to its own database, and what is away is said or waited for."""

from __future__ import annotations

import os
import time
from contextlib import closing

import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.store import AppendOutcome
from ldp_server.store.engines import open_store
from ldp_server.store.errors import Corrupt, ReadOnly
from ldp_server.store.log import NUMBER_BITS, Fold, FoldPart
from ldp_server.store.postgres.connecting import Destination
from ldp_server.store.sharded.routing import inner_number, outer_number, shard_of
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.sharded.test_deciding import to_each

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED


@pytest.fixture
def reader(store, log):
    reader = store.reader()
    yield reader
    reader.close()


def away(monkeypatch, *readers):
    """These databases cannot be reached, from now on and until `undo`."""
    for one in readers:
        one.close()
        monkeypatch.setattr(one, "_destination", Destination("postgresql://hearsay@/hearsay?host=/nowhere"))


def filled(log):
    """A collection with a block of two batches and a recent one in each database."""
    number = add(log)
    kept = [*to_each(number), *to_each(number)]
    assert log.append(kept) == [STORED] * 6
    for one in log.periods(number):
        log.finish(one.number)
    late = to_each(number)
    assert log.append(late) == [STORED] * 3
    return number, kept, late


def test_the_number_of_a_record_says_which_database_it_is_in():
    for number in (1, 77, (1 << NUMBER_BITS) - 1):
        for shard in (0, 1, 5):
            outer = outer_number(number, shard)
            assert inner_number(outer) == (shard, number)
            assert (outer == number) == (shard == 0)


def test_each_question_about_a_period_is_asked_where_it_lies(log, reader):
    number, kept, late = filled(log)
    found = reader.periods(number)
    assert [one.number for one in found] == [outer_number(number, shard) for shard in range(3)]
    for shard, one in enumerate(found):
        mine = [batch for batch in kept if shard_of(batch.batch_id, 3) == shard]
        assert reader.period(one.number) == one
        assert (reader.last(one.number), reader.count(one.number), reader.held_bytes(one.number)) == (2, 3, 9)
        assert [batch.batch_id for part in reader.read(one.number, 0) for batch in part] == sorted(
            batch.batch_id for batch in mine
        )
        assert [batch.batch_id for batch in reader.recent(one.number, 2)] == [late[shard].batch_id]
        assert reader.recent(one.number, 1) is None
        assert reader.known(one, [batch.batch_id for batch in mine])
        assert reader.known(one, [late[shard].batch_id])
        assert not reader.known(one, [late[shard - 1].batch_id])
    ties = [reader.tie(one.number, 2) for one in found]
    assert len(set(ties)) == 3 and None not in ties
    assert [reader.tie(one.number, 1) for one in found] == [None] * 3
    reader.check_recent(number)
    reader.check()


def test_what_is_not_there(log, reader):
    number = add(log)
    for shard in range(3):
        nowhere = outer_number(4_000_000, shard)
        assert reader.period(nowhere) is None
        assert (reader.last(nowhere), reader.count(nowhere), reader.held_bytes(nowhere)) == (0, 0, 0)
    assert reader.periods(number) == []
    assert (reader.periods(4_000_000), reader.shards_of(4_000_000)) == ([], 0)
    assert reader.shards_of(number) == 3
    assert reader.record(4_000_000) is None
    assert reader.counted_units(number, []) == set()


def test_a_record_in_a_database_that_is_not_named(log, reader):
    beyond = outer_number(1, 3)
    for work in (
        lambda: reader.period(beyond),
        lambda: log.finish(beyond),
        lambda: log.write_part(FoldPart(beyond, 1, 0, b"")),
    ):
        with pytest.raises(
            StorageError,
            match="a collection is spread over 4 databases, and store names 3: name all of them, in their order",
        ):
            work()
    assert reader.period(outer_number(1, 2)) is None or reader.period(outer_number(1, 2)).shard == 2


def test_periods_are_in_their_order_and_those_of_one_period_together(log):
    number = add(log)
    for day in (9, 3, 0):
        log.append(to_each(number, period=day))
    found = log.periods(number)
    assert [(one.period, one.shard) for one in found] == [(day, shard) for day in (0, 3, 9) for shard in range(3)]
    assert len({one.number for one in found}) == 9


def test_units_are_looked_up_in_their_own_databases_alone(log, reader, monkeypatch):
    number, digests = add(log), [os.urandom(16) for _ in range(30)]
    assert log.append([a_batch(number, bytes(30), units=b"".join(digests))]) == [STORED]
    asked = {}
    for shard, one in enumerate(reader._readers):
        whole = one.counted_units

        def counted(collection, theirs, shard=shard, whole=whole):
            asked[shard] = list(theirs)
            return whole(collection, theirs)

        monkeypatch.setattr(one, "counted_units", counted)
    assert reader.counted_units(number, [*digests, b"new" * 5 + b"."]) == set(digests)
    assert {shard_of(one, 3) for shard in asked for one in asked[shard]} == set(asked) == {0, 1, 2}
    assert all(shard_of(one, 3) == shard for shard in asked for one in asked[shard])
    asked.clear()
    alone = [one for one in digests if shard_of(one, 3) == 1]
    assert reader.counted_units(number, alone) == set(alone)
    assert list(asked) == [1]


def test_an_outcome_goes_back_to_its_own_submission(log):
    """A group of batches, some known and some new, for several databases: in the order in which they were given."""
    number = add(log)
    old, new = [a_batch(number) for _ in range(9)], [a_batch(number) for _ in range(9)]
    assert log.append(old) == [STORED] * 9
    mixed = [batch for pair in zip(old, new, strict=True) for batch in pair]
    assert log.append(mixed) == [DUPLICATE, STORED] * 9
    assert log.append([]) == []
    assert log.append([a_batch(4_000_000)]) == [SEALED]


# -- counts in the place of reports


def test_each_part_of_a_period_is_folded_and_dropped_by_itself(log, reader):
    number, _, _ = filled(log)
    for one in log.periods(number):
        log.finish(one.number)
        with pytest.raises(StorageError, match="folded before its counts are dropped"):
            log.drop_period(one.number)
        log.write_part(FoldPart(one.number, 4, 0, b"counts %d" % one.shard))
        done = log.fold(Fold(one.number, 4, 8, 3, 3, 30))
        assert (done.number, done.folded, done.folded_batches, done.folded_reports) == (one.number, 3, 3, 30)
        assert reader.folded_state(reader.period(one.number)) == b"counts %d" % one.shard
    second = log.periods(number)[1]
    dropped = log.drop_period(second.number)
    assert (dropped.number, dropped.dropped) == (second.number, True)
    assert [reader.folded_state(one) for one in reader.periods(number)] == [b"counts 0", None, b"counts 2"]


# -- a database that is away


def test_an_answer_needs_all_databases(log, reader, monkeypatch):
    number, _, _ = filled(log)
    away(monkeypatch, reader._readers[2])
    with pytest.raises(StorageError, match="cannot reach"):
        reader.periods(number)
    with pytest.raises(StorageError, match="cannot reach"):
        reader.check()
    assert len(held(reader, outer_number(number, 1), after=2)) == 1, "a part that is there can be read"
    monkeypatch.undo()
    assert len(reader.periods(number)) == 3


@pytest.mark.parametrize("work", ["gather", "sweep", "lay_anew"])
def test_the_others_are_tended_while_one_is_away_and_it_is_said_once(log, monkeypatch, caplog, work):
    caplog.set_level("WARNING")
    done, second = [], log._logs[1]
    for shard, one in enumerate(log._logs):
        if shard != 1:
            monkeypatch.setattr(one, work, lambda shard=shard: done.append(shard))
    with monkeypatch.context() as cut:
        away(cut, second)
        for _ in range(3):
            getattr(log, work)()
    assert done == [0, 2] * 3
    said = [one for one in caplog.messages if one == "a database of the store cannot be tended"]
    assert len(said) == 1
    assert "cannot reach" in caplog.records[0].fields["reason"]
    getattr(log, work)()  # it is back
    with monkeypatch.context() as cut:
        away(cut, second)
        getattr(log, work)()
    assert caplog.messages.count("a database of the store cannot be tended") == 2


@pytest.mark.parametrize("work", ["gather", "sweep", "lay_anew"])
def test_without_the_first_database_nothing_is_tended(log, monkeypatch, work):
    away(monkeypatch, log._home)
    with pytest.raises(StorageError, match="cannot reach"):
        getattr(log, work)()


@pytest.mark.parametrize("work", ["gather", "sweep"])
def test_there_is_more_to_do_if_there_is_in_one_of_them(log, monkeypatch, work):
    for busy in range(3):
        for shard, one in enumerate(log._logs):
            monkeypatch.setattr(one, work, lambda more=shard == busy: more)
        assert getattr(log, work)() is True
    for one in log._logs:
        monkeypatch.setattr(one, work, lambda: False)
    assert getattr(log, work)() is False
    assert log.purge() is True


@pytest.mark.parametrize("gone", [1, 2])
def test_a_store_is_opened_without_one_of_its_databases_but_not_without_the_first(store, log, monkeypatch, gone):
    nowhere = Destination("postgresql://hearsay@/hearsay?host=/nowhere")
    monkeypatch.setattr(store._destinations[gone], "_conninfo", nowhere._conninfo)
    for opened in (store.reader(), store.writer(), *store.writers()):
        opened.close()
    store.require_rights(keeps=True)
    monkeypatch.setattr(store._destinations[0], "_conninfo", nowhere._conninfo)
    for work in (store.reader, store.writer, store.writers, lambda: store.require_rights(keeps=True)):
        with pytest.raises(StorageError, match="cannot reach"):
            work()


def test_rights_that_are_missing_in_any_database_are_an_error(store, monkeypatch):
    def refuse(place):
        def require(self, *, keeps):
            if self._destination is store._destinations[place]:
                raise ReadOnly("it lacks a right")

        return require

    for place in range(3):
        monkeypatch.setattr("ldp_server.store.sharded.store.PostgresStore.require_rights", refuse(place))
        with pytest.raises(ReadOnly, match="it lacks a right"):
            store.require_rights(keeps=False)


def test_recovering_connects_to_the_first_and_the_others_when_they_are_asked(log):
    number = add(log)
    before = [one._connection.info.backend_pid for one in log._logs]
    log.recover()
    assert [one._connection is None for one in log._logs] == [False, True, True]
    assert log.append(to_each(number)) == [STORED] * 3
    assert not {one._connection.info.backend_pid for one in log._logs} & set(before)


def test_closing_closes_all_and_a_check_is_ended_in_all(log, reader, monkeypatch):
    ended = []
    for one in reader._readers:
        monkeypatch.setattr(one, "interrupt", lambda one=one: ended.append(one))
    reader.interrupt()
    assert ended == list(reader._readers)
    assert reader.renew() is None
    reader.close()
    assert [one._connection for one in reader._readers] == [None] * 3
    assert log.tend() is None


# -- the store by its addresses


def test_names_are_in_their_order_and_without_users(store, addresses):
    names = [Destination(one).name for one in addresses]
    assert store.name == ", ".join(names)
    assert "hearsay@" not in store.name
    with store.serving() as right:
        assert right is None
    with closing(store.reader()) as reader:
        assert reader.name == store.name


def test_the_same_database_twice_is_refused(addresses, tmp_path):
    with pytest.raises(InvalidSpec, match=r"^store names postgresql://.* more than once$"):
        open_store(f"{addresses[0]} {addresses[0]}", tmp_path)
    with pytest.raises(InvalidSpec, match=r"^store names a database more than once$"):
        open_store(f"{addresses[0]} {addresses[1]} {addresses[0]}", tmp_path)


def test_tokens_and_changes_are_those_of_the_first(store, addresses, log):
    access = store.access(lambda: 1000.0)
    name = f"x{os.urandom(4).hex()}"
    token = access.create(name)
    access.close()
    from ldp_server.store.postgres.connecting import Family, ShardPlace
    from ldp_server.store.postgres.store import PostgresStore

    home = PostgresStore(addresses[0], Destination(addresses[0], ShardPlace(0, 3, Family())))
    with closing(home.access(lambda: 1000.0)) as alone:
        assert alone.verify(token).name == name


def test_a_database_from_another_time_is_damage_whichever_it_is(log):
    for shard in (1, 2):
        number = add(log)
        log._logs[shard].transaction(
            lambda db, number=number: db.execute("DELETE FROM hearsay.collections WHERE number = %s", (number,))
        )
        with pytest.raises(
            Corrupt, match=r"^postgresql://.* lacks a collection that postgresql://.* has: was it restored"
        ):
            log.check()
        log._home.transaction(
            lambda db, number=number: db.execute("DELETE FROM hearsay.collections WHERE number = %s", (number,))
        )
        log.check()


def test_the_one_that_leads_is_the_one_that_leads_in_the_first_database(store, log):
    other = store.writer()
    assert [log.lead(), other.lead(), log.lead()] == [True, False, True]
    log.close()
    while not other.lead():  # the server notices that its connection ended
        time.sleep(0.01)
    other.close()
