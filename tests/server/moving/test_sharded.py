"""A store of several databases is moved: into one, to the bit, and nothing that was taken is taken again."""

import os

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.moving import move, open_end
from ldp_server.oracles import oracle_for, restore
from ldp_server.store import Admission, AppendOutcome, Fold, NewCollection, fold_parts
from ldp_server.store.engines import open_store
from ldp_server.store.errors import InUse, StorageError
from ldp_server.store.sharded.routing import shard_of
from ldp_server.volunteers.opening import served_records
from tests.server.helpers import batch, make_collection
from tests.server.store.contract.batches import a_batch, add, count, finish, held

STORED, DUPLICATE, SEALED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.SEALED
USED = AppendOutcome.TOKEN_USED


@pytest.fixture
def old(postgres, tmp_path):
    text = " ".join(postgres.database() for _ in range(2))
    store = open_store(text, tmp_path / "none")
    store.prepare()
    return text, store


def counts_of(log, collection, number):
    oracle = oracle_for(collection)
    for one in held(log, number):
        oracle.accumulate(one.payload)
    return oracle.to_bytes()


def fold_all(log, collection, number):
    """Fold each record of a collection's only period, as upkeep does."""
    for one in log.periods(number):
        log.finish(one.number)
        oracle = oracle_for(collection)
        batches = [found for group in log.read_all(one.number, 0) for found in group]
        for found in batches:
            oracle.accumulate(found.payload)
        state = oracle.to_bytes()
        for part in fold_parts(one.number, 7, state, 100):
            log.write_part(part)
        log.fold(Fold(one.number, 7, len(state), log.last(one.number), len(batches), oracle.reports))
        yield one


def moved(old, new):
    return move(open_end(old), open_end(new), lambda *_: None)


class Spread:
    """What was put into a store of two databases."""

    def __init__(self, store):
        self.log = log = store.writer()
        self.question = make_collection("Counted by halves?")
        self.over = log.add(NewCollection(self.question.id, self.question.spec_bytes, True, Admission(), 1)).number
        self.reports = [a_batch(self.over, batch(self.question, 3).payload) for _ in range(40)]
        self.open, self.tokens, self.sealed = add(log), add(log, "linkable-token"), add(log)
        self.batches = [a_batch(self.open, os.urandom(1 + place % 4), period=place % 3) for place in range(90)]
        self.append([*self.reports, *self.batches[:60]])
        for one in log.periods(self.open):
            log.finish(one.number)
        self.append(self.batches[60:])
        self.used = [os.urandom(16) for _ in range(25)]
        self.shown = [a_batch(self.tokens, b"x%d" % place, token=token) for place, token in enumerate(self.used)]
        self.append(self.shown)
        finish(log, self.tokens)
        units = [os.urandom(16) for _ in range(100)]
        halves = [[one for one in units if shard_of(one, 2) == place] for place in (0, 1)]
        self.units = [*halves[0][:5], *halves[1][:4]]  # some of both databases, or the batch would be one there too
        self.append([a_batch(self.sealed, b"123456789", units=b"".join(self.units))])
        self.expected = counts_of(log, self.question, self.over)
        list(fold_all(log, self.question, self.over))
        log.compact(self.over)
        log.close()
        records = served_records(store.environment()["LDP_SERVER_STORE"], None)
        records.give(self.question.id, b"n" * 16, b"sealed", 1)
        records.close()

    def append(self, batches):
        assert set(self.log.append(batches)) == {STORED}

    def is_in(self, store):
        """Everything is in a store of one database, which goes on."""
        log = store.writer()
        assert [one.shards for one in log.records()] == [1] * 4
        (over,) = log.periods(self.over)
        assert over.number == self.over
        assert (over.folded_batches, over.folded_reports) == (40, 120)
        assert log.folded_state(over) == self.expected
        assert restore(self.question, log.folded_state(over)).reports == 120
        assert [one.period for one in log.periods(self.open)] == [0, 1, 2]
        for one in log.periods(self.open):
            mine = {each.batch_id: each.payload for each in self.batches if each.period == one.period}
            assert {each.batch_id: each.payload for each in held(log, one.number)} == mine
            assert log.last(one.number) == 20
            assert [each.sequence for each in held(log, one.number)] == [*range(1, 21), *[0] * 10]
        assert set(log.append([*self.batches, *self.shown])) == {DUPLICATE}
        assert set(log.append([a_batch(self.tokens, token=token) for token in self.used])) == {USED}
        assert log.append([a_batch(self.over)]) == [SEALED]
        assert log.counted_units(self.sealed, [*self.units, os.urandom(16)]) == set(self.units)
        assert log.append([a_batch(self.open), a_batch(self.tokens, token=os.urandom(16))]) == [STORED] * 2
        assert count(log, self.sealed) == 2
        log.check()
        log.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_databases_become_one(old, postgres, tmp_path, monkeypatch, kind):
    for module in ("ends", "embedded", "shared", "sharded"):  # several pieces of each kind
        monkeypatch.setattr(f"ldp_server.moving.{module}.SLICE", 4)
    text, store = old
    filled = Spread(store)
    new = str(tmp_path / "new") if kind == "sqlite" else postgres.database()
    found = moved(text, new)
    assert (found.tally["collections"], found.tally["periods"], found.tally["used tokens"]) == (4, 6, 25)
    assert (found.tally["sealed units"], found.tally["volunteers' records"]) == (9, 1)
    target = open_store("" if kind == "sqlite" else new, tmp_path / "new")
    with target.serving():
        filled.is_in(target)
    with pytest.raises(StorageError, match="was moved to"):
        store.writer()
    with pytest.raises(InvalidSpec, match=r"was moved to .* already"):
        moved(text, new)
    with pytest.raises(InvalidSpec, match=r"was moved to .* already"):
        moved(text, postgres.database())


@pytest.mark.long
def test_what_is_folded_by_halves_is_not_moved(old, tmp_path):
    text, store = old
    log, question = store.writer(), make_collection("By halves?")
    number = log.add(NewCollection(question.id, question.spec_bytes, True, Admission(), 1)).number
    log.append([a_batch(number, batch(question, 2).payload) for _ in range(20)])
    folding = fold_all(log, question, number)
    next(folding)
    log.close()
    with pytest.raises(InUse, match="folded or dropped in one database and not in another: let `ldp-server upkeep`"):
        moved(text, str(tmp_path / "new"))
    log = store.writer()  # it can still be served
    assert log.append([a_batch(number)]) in ([STORED], [SEALED])
    log.close()


def test_one_of_several_is_no_store_and_used_ones_are_not_filled(old, postgres, tmp_path):
    text, _ = old
    for one in text.split():
        with pytest.raises(StorageError, match="of 2 databases, and store names it as the only one: name all"):
            moved(one, str(tmp_path / "new"))
        with pytest.raises(StorageError, match="of 2 databases, and store names it as the only one: name all"):
            moved(text, one)
    used = postgres.database()
    alone = open_store(used, tmp_path)
    alone.prepare()
    log = alone.writer()
    add(log)
    with pytest.raises(InvalidSpec, match="holds collections already: name empty databases"):
        moved(text, f"{postgres.database()} {used}")
    with pytest.raises(InvalidSpec, match="holds collections already: name empty databases"):
        moved(text, f"{used} {postgres.database()}")
    log.close()
    alone.writer().close()  # nothing was written into it
    with pytest.raises(InvalidSpec, match="are the same"):
        moved(text, text)
