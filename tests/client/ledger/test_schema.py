"""The rows of the ledger: what is read from them, and every way in which they may not fit together."""

import sqlite3
from contextlib import closing
from hashlib import blake2b

import pytest

from ldp_client.ledger import schema
from ldp_client.ledger.schema import Damaged, LedgerEntry, State, check

ONE = b"1" * 16


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        schema.create(db, State(ONE, 0, 0, 0, 0))
        yield db


def put(db, number, generation=None, at=100, epsilon=5, before=None):
    """An entry with a sound check sum, whatever else is wrong with it."""
    generation = number if generation is None else generation
    before = 5 * (number - 1) if before is None else before
    schema.enter(db, State(ONE, 0, 0, 0, 0), LedgerEntry(number, generation, at, epsilon, before))


def note(db, generation, seen, answers, total):
    schema.write_state(db, State(ONE, generation, seen, answers, total))


def totals(db):
    state = schema.read_state(db)
    return state.generation, state.seen, state.answers, state.total


def test_a_new_ledger_is_empty(db):
    assert schema.read_state(db) == State(ONE, 0, 0, 0, 0, leases=False)
    schema.verify(db)
    with schema.blank() as (view, state):
        assert schema.read_state(view).instance == state.instance
        assert totals(view) == (0, 0, 0, 0)
    assert len(state.instance) == 16
    assert schema.new_instance() != schema.new_instance()


def test_the_state_is_the_later_of_its_row_and_the_newest_entry(db):
    put(db, 1, generation=4, at=100)
    put(db, 2, generation=6, at=100)
    assert totals(db) == (6, 100, 2, 10)
    note(db, 5, 99, 1, 5)
    assert totals(db) == (6, 100, 2, 10)
    note(db, 9, 300, 2, 10)  # a lease or a reset after the entry
    assert totals(db) == (9, 300, 2, 10)
    schema.verify(db)


def test_open_leases_are_noticed(db):
    row = (b"token", 7, 1000)
    db.execute("INSERT INTO leases VALUES (?, ?, ?, ?)", (*row, check(*row)))
    assert schema.read_state(db).leases
    schema.verify(db)
    db.execute("UPDATE leases SET remaining = 6")
    with pytest.raises(Damaged, match="a lease is damaged"):
        schema.verify(db)


@pytest.mark.parametrize(("answers", "total"), [(3, 15), (2, 9), (2, 11)])
def test_entries_that_do_not_reach_what_was_noted_are_refused(db, answers, total):
    put(db, 1)
    put(db, 2)
    note(db, 2, 100, answers, total)
    with pytest.raises(Damaged, match="an entry is missing"):
        schema.read_state(db)


def test_no_entry_at_all(db):
    note(db, 1, 100, 1, 5)
    with pytest.raises(Damaged, match="its entries are missing"):
        schema.read_state(db)


@pytest.mark.parametrize(
    "second",
    [
        {"number": 3, "before": 5},
        {"number": 2, "before": 4},
        {"number": 2, "before": 6},
        {"number": 2, "generation": 0},
        {"number": 2, "at": 99},
    ],
)
def test_entries_out_of_order_are_refused_although_each_is_sound(db, second):
    put(db, 1)
    put(db, **second)
    put(db, second["number"] + 1, generation=9)
    with pytest.raises(Damaged, match="an entry is missing"):
        schema.verify(db)


def test_entries_of_one_moment_and_one_generation_are_sound(db):
    for number in (1, 2, 3):
        put(db, number, generation=1, at=100)
    put(db, 4, generation=2, at=101)
    schema.verify(db)


def test_the_first_entry_is_number_one_and_follows_nothing(db):
    put(db, 2, before=0)
    with pytest.raises(Damaged, match="an entry is missing"):
        schema.verify(db)


@pytest.mark.parametrize("noted", [1, 2])
def test_a_total_that_was_noted_on_the_way_has_to_be_met(db, noted):
    for number in (1, 2, 3):
        put(db, number)
    note(db, 2, 100, noted, 5 * noted)
    schema.verify(db)
    note(db, 2, 100, noted, 5 * noted + 1)
    with pytest.raises(Damaged, match="an entry is damaged"):
        schema.verify(db)


def test_only_entries_from_the_future_are_dated_anew(db):
    for number, at in ((1, 50), (2, 100), (3, 101), (4, 500)):
        put(db, number, at=at)
    schema.redate(db, 100)
    assert [row[0] for row in db.execute("SELECT at FROM answers ORDER BY id")] == [50, 100, 100, 100]
    schema.verify(db)


def test_entering_keeps_the_totals():
    with schema.blank() as (db, state):
        assert not state.entered
        schema.enter(db, state, LedgerEntry(1, 1, 70, 5, 0))
        assert (state.seen, state.answers, state.total, state.entered) == (70, 1, 5, True)


def test_what_the_next_transaction_begins_with():
    state = State(
        ONE, 1, 2, 3, 4, leases=False, changed=True, entered=True, recent=(1, 2, 3), outbox=(1, 2, 3, 4, True)
    )
    assert state.settled() == State(ONE, 1, 2, 3, 4, leases=False, outbox=(1, 2, 3, 4, True))
    assert State(ONE, 1, 2, 3, 4).leases  # unknown: look


def test_the_check_sum_of_a_row():
    assert check(b"a", 1, None) == blake2b(b"(b'a', 1, None)", digest_size=8).digest()


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        (sqlite3.SQLITE_CORRUPT, True),
        (sqlite3.SQLITE_CORRUPT | 1 << 8, True),
        (sqlite3.SQLITE_NOTADB, True),
        (sqlite3.SQLITE_ERROR, True),
        (None, True),
        (sqlite3.SQLITE_BUSY, False),
        (sqlite3.SQLITE_BUSY | 1 << 8, False),
        (sqlite3.SQLITE_FULL, False),
    ],
)
def test_which_errors_mean_that_the_file_is_at_fault(number, damage):
    error = sqlite3.OperationalError("words")
    if number is not None:
        error.sqlite_errorcode = number
    assert schema.is_damage(error) is damage
    assert schema.code(error) == (1 if number is None else number % 256)


def test_the_repr_of_an_entry_is_its_number():
    assert repr(LedgerEntry(3, 1, 70, 5, 0, b"q" * 32, 2, b"SECRET", "Why?", b"c" * 32)) == "LedgerEntry(3)"
