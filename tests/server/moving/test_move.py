"""A store is moved to another one, to the bit, however often the move is cut short."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.moving import move, mover, open_end, shared
from ldp_server.moving.embedded import EmbeddedEnd
from ldp_server.moving.pieces import Key, Piece, digest_of
from ldp_server.moving.shared import SharedEnd
from ldp_server.store import AppendOutcome, DataDirectory, DirectoryLock
from ldp_server.store.engines import open_store
from ldp_server.store.errors import Corrupt, InUse
from ldp_server.volunteers.kept import FILE
from ldp_server.volunteers.opening import curated_records, served_records
from tests.server.moving.filled import Filled, contents, goes_on, some
from tests.server.store.contract.batches import a_batch, add

WAYS = [("sqlite", "postgres"), pytest.param(("postgres", "sqlite"), marks=pytest.mark.long)]
PAIRS = [
    *WAYS,
    pytest.param(("postgres", "postgres"), marks=pytest.mark.long),
    pytest.param(("sqlite", "two databases"), marks=pytest.mark.long),
    pytest.param(("postgres", "two databases"), marks=pytest.mark.long),
]


class Place:
    """Where a store is, and may come to be."""

    def __init__(self, kind, postgres, folder):
        databases = {"sqlite": 0, "postgres": 1, "two databases": 2}[kind]
        self.text = " ".join(postgres.database() for _ in range(databases)) or str(folder)
        self.folder = folder
        self.store = open_store("" if kind == "sqlite" else self.text, folder)

    def prepared(self):
        with self.store.serving():
            self.store.prepare()
        return self.store

    def records(self):
        return served_records(self.text if "://" in self.text else "", self.folder)

    def contents(self):
        with self.store.serving():
            found, records = contents(self.store), self.records()
        for collection in [one.id for one in found["records"]]:
            fresh = records.fresh(collection)
            found[collection] = (fresh, records.take(collection, 9))
            records.give_back(collection, fresh)
        records.close()
        return found

    def records_left(self):
        """How many sealed records lie here, whoever may open the store."""
        if "://" in self.text:
            with psycopg.connect(self.text.split()[0]) as connection:
                return connection.execute("SELECT count(*) FROM hearsay.volunteers").fetchone()[0]
        with closing(sqlite3.connect(self.folder / FILE)) as connection:
            return connection.execute("SELECT count(*) FROM records").fetchone()[0]

    def change(self, statement):
        """Change a row behind the store's back."""
        if "://" in self.text:
            with psycopg.connect(self.text) as connection:
                connection.execute(statement.replace(" FROM ", " FROM hearsay.").replace("UPDATE ", "UPDATE hearsay."))
        else:
            path = next(
                p for p in (DataDirectory(self.store._directory.root).moving, self.store._directory.log) if p.exists()
            )
            with sqlite3.connect(path) as connection:
                connection.execute(statement)
            connection.close()


@pytest.fixture
def place(postgres, tmp_path):
    def make(kind):
        make.made += 1
        return Place(kind, postgres, tmp_path / str(make.made))

    make.made = 0
    return make


def moved(old, new, **options):
    return move(open_end(old.text), open_end(new.text), lambda *_: None, **options)


def refused(work, kind, match):
    with pytest.MonkeyPatch.context() as changing, pytest.raises(kind, match=match) as error:
        changing.setattr(shared, "_FREED_WITHIN", 0.05)  # what holds a lock here goes on holding it
        work()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_everything_is_moved(place, pair):
    old, new = map(place, pair)
    filled = Filled(old.prepared(), records=old.records())
    before = old.contents()
    found = moved(old, new)
    assert (found.went_on_after, found.tally["collections"], found.tally["used tokens"]) == (0, 7, 8)
    assert found.tally["batches in blocks"] + found.tally["recent batches"] == len(filled.batches) - 10
    assert new.contents() == before
    with new.store.serving():
        goes_on(new.store, filled)
    assert (old.records_left(), new.records_left() > 0) == (0, True)
    refused(old.contents, StorageError, "was moved to")
    if pair[0] == "sqlite":
        refused(lambda: curated_records(old.text), StorageError, "was moved to")
    refused(lambda: moved(old, new), InvalidSpec, "was moved to .* already")
    refused(lambda: moved(old, place("sqlite")), InvalidSpec, "was moved to .* already")


def test_there_and_back(place):
    old, between, new = place("sqlite"), place("postgres"), place("sqlite")
    filled = Filled(old.prepared(), records=old.records())
    before = old.contents()
    first = moved(old, between)
    second = moved(between, new)
    assert first.digest == second.digest
    assert new.contents() == before
    with new.store.serving():
        goes_on(new.store, filled)


class Cut(BaseException):
    """The process ends here."""


class Cuts:
    """Ends moves after certain of their durable steps, in all runs together."""

    def __init__(self, *after):
        self.after, self.steps = after, 0

    def at(self, monkeypatch, home, name):
        whole = getattr(home, name)

        def cut(end, *given):
            result = whole(end, *given)
            self.steps += 1
            if self.steps in self.after:
                raise Cut
            return result

        monkeypatch.setattr(home, name, cut)


@pytest.mark.parametrize(
    "pair", [*WAYS, pytest.param(("sqlite", "two databases"), marks=pytest.mark.long)], ids="-".join
)
def test_a_move_that_is_cut_short_anywhere_goes_on(place, pair, monkeypatch):
    """In each run after one more durable step. What was moved is not moved again."""
    monkeypatch.setattr(mover, "TOGETHER", 1)
    for module in ("ends", "embedded", "shared", "sharded"):  # several pieces of each kind
        for name, size in (("SLICE", 3), ("RECORDS", 4)):
            monkeypatch.setattr(f"ldp_server.moving.{module}.{name}", size, raising=False)
    old, new = map(place, pair)
    filled = Filled(old.prepared(), 5, old.records())
    before = old.contents()
    origin, kind = (EmbeddedEnd, SharedEnd) if pair[0] == "sqlite" else (SharedEnd, EmbeddedEnd)
    cuts = Cuts(1, 2, 5, 9, 14, *range(17, 35))
    for name in ("begin", "write", "finish"):
        cuts.at(monkeypatch, kind, name)
    cuts.at(monkeypatch, origin, "leave")
    cuts.at(monkeypatch, origin, "forget_volunteers")
    for _ in range(40):
        try:
            assert moved(old, new).went_on_after > 0
        except Cut:
            if not (pair[1] == "sqlite" and DataDirectory(new.store._directory.root).log.exists()):
                refused(
                    new.contents, StorageError, "being filled by|no Hearsay schema|not one of several databases yet"
                )
        except InvalidSpec as error:
            assert "already" in str(error)
            break
        else:
            break
    assert cuts.steps > 34
    assert old.records_left() == 0
    assert new.contents() == before
    with new.store.serving():
        goes_on(new.store, filled)


@pytest.mark.parametrize("pair", WAYS, ids="-".join)
def test_what_changed_on_the_way_is_found(place, pair, monkeypatch):
    """One byte of one batch, in the new store, after it was written; and the same in the old store, before."""
    old, new = map(place, pair)
    Filled(old.prepared(), batches=5)
    before = old.contents()
    compare = mover._compare
    table = (
        "UPDATE blocks SET tie = gen_random_uuid()" if pair[1] == "postgres" else "UPDATE blocks SET tie = zeroblob(16)"
    )

    def spoil(target, *rest):
        if pair[1] == "sqlite":
            target._opened.execute(table)
        else:
            new.change(table)
        return compare(target, *rest)

    with monkeypatch.context() as changing:
        changing.setattr(mover, "_compare", spoil)
        refused(lambda: moved(old, new), Corrupt, "does not give back what was written.*--again")
    refused(lambda: moved(old, new), Corrupt, "does not give back what was written.*--again")
    assert old.contents() == before
    moved(old, new, again=True)
    assert new.contents() == before


def test_damage_of_the_old_store_is_not_moved(place):
    old, new = place("sqlite"), place("postgres")
    Filled(old.prepared(), batches=5)
    old.change("UPDATE batches SET payload = zeroblob(length(payload)) WHERE collection = 1")
    refused(lambda: moved(old, new), Corrupt, "does not fit its digest")
    other = place("postgres")
    Filled(other.prepared(), batches=5)
    other.change("UPDATE blocks SET payload = decode(repeat('00', length(payload)), 'hex') WHERE collection = 1")
    refused(lambda: moved(other, place("sqlite")), Corrupt, "does not fit its digest")


@pytest.mark.parametrize("pair", WAYS, ids="-".join)
def test_a_store_that_changed_since_is_moved_from_the_beginning(place, pair, monkeypatch):
    old, new = map(place, pair)
    filled = Filled(old.prepared(), batches=5)
    with monkeypatch.context() as changing:
        changing.setattr(mover, "_compare", lambda *_: (_ for _ in ()).throw(Cut))
        with pytest.raises(Cut):
            moved(old, new)
    with old.store.serving():
        log = old.store.writer()
        assert log.append([a_batch(filled.empty)]) == [AppendOutcome.STORED]
        log.close()
    refused(lambda: moved(old, new), InvalidSpec, "has changed since: --again")
    before = old.contents()
    assert moved(old, new, again=True).went_on_after == 0
    assert new.contents() == before


def test_records_stay_while_the_new_store_is_not_finished(place, monkeypatch):
    """Cut after the last note in the old directory. Somebody makes a token there, so the move cannot go on."""
    old, new = place("sqlite"), place("postgres")
    Filled(old.prepared(), 2, old.records())
    with monkeypatch.context() as changing:
        Cuts(1).at(changing, EmbeddedEnd, "leave")
        with pytest.raises(Cut):
            moved(old, new)
    access = old.store.access(lambda: 2_000_000.0)
    access.create("late")
    access.close()
    refused(lambda: moved(old, new), InvalidSpec, "has changed since")
    assert old.records_left() == 10


def test_a_store_in_use_is_not_moved(place):
    old, new = place("sqlite"), place("postgres")
    Filled(old.prepared(), batches=5)
    with DirectoryLock(DataDirectory(old.store._directory.root)):
        refused(lambda: moved(old, new), InUse, "is being served by process .*: stop that server")
    log = new.prepared().writer()
    refused(lambda: moved(old, new), InUse, "servers have postgresql://.* open: stop all collectors")
    log.close()
    moved(old, new)
    log = new.store.writer()
    refused(lambda: moved(new, place("sqlite")), InUse, "servers have postgresql://.* open: stop all collectors")
    log.close()


def test_locks_of_connections_that_are_just_ending_are_waited_for(place, monkeypatch):
    """A collector that was stopped, and a move that was killed, may hold theirs for a moment."""
    old, new = place("sqlite"), place("postgres")
    Filled(old.prepared(), batches=5)
    with monkeypatch.context() as changing:
        Cuts(1).at(changing, SharedEnd, "begin")
        with pytest.raises(Cut):
            moved(old, new)
    asked, whole = [], SharedEnd._ask

    def ending(end, query, values=()):
        found = whole(end, query, values)
        if "pg_try_advisory_lock" in query:
            asked.append(query)
            if len(asked) == 1:  # somebody else still has it
                if found[0][0]:  # the move that was cut has not
                    whole(end, "SELECT pg_advisory_unlock(%s, %s)", values)
                return [(False,)]
        return found

    monkeypatch.setattr(SharedEnd, "_ask", ending)
    assert moved(old, new).tally["collections"] == 7
    assert len(asked) >= 2
    with psycopg.connect(new.text) as connection:
        connection.execute("SELECT pg_advisory_lock(7903, 0)")
        refused(lambda: moved(new, place("sqlite")), InUse, "servers have postgresql://.* open")
    assert moved(new, place("sqlite")).tally["collections"] == 7


def test_a_server_that_comes_while_the_last_step_is_taken_is_not_cut_off(place, monkeypatch):
    """It would go on acknowledging batches that nobody moves."""
    old, new = place("postgres"), place("sqlite")
    filled = Filled(old.prepared(), batches=5)
    before = old.contents()
    compare, came = mover._compare, []

    def slowly(*given):
        came.append(old.store.writer())
        return compare(*given)

    with monkeypatch.context() as changing:
        changing.setattr(mover, "_compare", slowly)
        refused(lambda: moved(old, new), InUse, "servers have postgresql://.* open")
    assert came[0].append(some(filled.empty, 1)) == [AppendOutcome.STORED]
    came[0].close()
    refused(lambda: moved(old, new), InvalidSpec, "has changed since")
    assert old.contents() != before


def test_a_store_that_is_not_empty_or_not_there(place, tmp_path):
    old, full, other = place("sqlite"), place("postgres"), place("sqlite")
    Filled(old.prepared(), batches=2)
    log = full.prepared().writer()
    add(log)
    log.close()
    refused(lambda: moved(old, full), InvalidSpec, "holds collections or tokens already: name an empty database")
    refused(lambda: moved(old, full, again=True), InvalidSpec, "name an empty database")
    with other.store.serving():
        other.store.writer().close()
    refused(lambda: moved(old, other), InvalidSpec, "holds a log already")
    refused(lambda: moved(old, other, again=True), InvalidSpec, "holds a log already")
    refused(lambda: moved(old, old), InvalidSpec, "are the same")
    refused(
        lambda: move(open_end(str(tmp_path / "no")), open_end(other.text), print), StorageError, "holds no Hearsay log"
    )
    refused(lambda: moved(place("postgres"), place("sqlite")), InvalidSpec, "no Hearsay schema")
    refused(lambda: open_end("mysql://x"), InvalidSpec, "such as postgresql://")
    assert old.contents()["records"]


def test_digests_tell_pieces_apart():
    key = Key(1, 2, 3)
    values = [
        (), (None,), (0,), ("",), (b"",), ("0",), (b"0",), ([],), ([b""],), ([b"", b""],), ([b"a", b"b"],), ([b"ab"],),
        ([b"", b"ab"],), ([b"ab", b""],), ((b"a",), (b"b",)), ((1, b"a"),), ((1, "a"),), (1, b"a"),
    ]  # fmt: skip
    pieces = [Piece(key, value) for value in values] + [Piece(Key(1, 3, 2), ())]
    assert len({digest_of(piece) for piece in pieces}) == len(pieces)
    assert all("b'" not in repr(piece) for piece in pieces)
