"""Looking changes nothing: no file, no byte, no row, nothing that another connection would notice."""

import dataclasses
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from ldp_client import Policy, StorageError
from ldp_client.ledger.database import Storage
from ldp_client.ledger.lease import LEASE_SECONDS
from ldp_client.ledger.view import read_answered, read_ledger
from ldp_client.privacy import Device, privacy_statement
from tests.client.conftest import NOW, daily, make


def everything_in(directory):
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def look(client):
    client.ledger()
    client.outbox()
    client.due(make(0))
    client.due(make(99))
    client.due(daily())


@pytest.fixture
def files(tmp_path):
    return tmp_path / "ldp"


@pytest.mark.parametrize("lease", [None, "2"])
def test_looking_changes_no_byte_and_no_row(open_client, wide, files, collector, lease):
    client = open_client(policy=wide, delay=0, lease=lease)
    for number in range(3):
        client.report(make(number), "a")
    before = everything_in(files)
    with sqlite3.connect(files / "ledger.sqlite", isolation_level=None) as db:
        version = db.execute("PRAGMA data_version").fetchone()
        look(client)
        look(open_client(policy=wide))
        assert db.execute("PRAGMA data_version").fetchone() == version
    db.close()
    after = everything_in(files)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: data
        for name, data in before.items()
        if not name.endswith("-shm")  # SQLite's read locks live there
    }
    assert collector.calls == []


def test_looking_where_nothing_is_makes_no_file(open_client, tmp_path, files):
    client = open_client()
    look(client)
    client.close()
    assert not files.exists() and list(tmp_path.iterdir()) == []
    assert client.ledger().left == 12 and client.outbox().waiting == 0


def test_a_look_at_an_empty_file_makes_no_tables(open_client, files):
    files.mkdir()
    (files / "ledger.sqlite").touch()
    look(open_client())
    assert everything_in(files) == {"ledger.sqlite": b""}


def test_a_late_witness_is_left_to_the_next_charge(open_client, files):
    client = open_client()
    client.report(make(0), "a")
    late = (files / "ledger.witness").read_bytes()
    client.report(make(1), "a")
    client.close()
    (files / "ledger.witness").write_bytes(late)
    other = open_client()
    look(other)
    assert (files / "ledger.witness").read_bytes() == late
    assert other.ledger().problem is None


def test_a_reading_transaction_cannot_write(open_client):
    client = open_client()
    client.report(make(0), "a")
    with pytest.raises(StorageError, match="readonly"), client._storage.reading() as (db, _):
        db.execute("DELETE FROM outbox")
    assert client.outbox().waiting == 1
    client.report(make(1), "a")  # and writing goes on


def test_looking_does_not_end_the_rollback_check(open_client, files, tmp_path):
    """A reader refuses what a writer refuses."""
    client = open_client()
    client.report(make(0), "a")
    client.close()
    (files / "ledger.sqlite").unlink()
    before = everything_in(files)
    view = open_client().ledger()
    assert view.left == 0 and "its file is missing" in view.problem
    assert everything_in(files) == before
    assert sorted(before) == ["ledger.witness", "sending.lock"]


def test_due_follows_the_window(open_client, clock):
    client = open_client()
    assert not client.due(make(1, opens=NOW + 10))
    clock.advance(10)
    assert client.due(make(1, opens=NOW + 10))
    assert not client.due(make(2, closes=NOW + 10))


# -- what a user sees of the ledger


def test_a_question_is_named_by_its_id_and_a_lost_lease_by_nothing(open_client, clock, wide):
    crashed = open_client(policy=wide, lease="3")
    collection = daily()
    crashed.report(collection, "a")
    crashed.flush()
    crashed._lease.forked()  # as good as killed: 2 of 3 are left, and nobody knows what they were used for
    crashed._storage.close()
    clock.advance(LEASE_SECONDS)
    client = open_client(policy=wide)
    client.report(make(1, text="Another?"), "a")
    assert [dataclasses.astuple(question) for question in client.ledger().questions] == [
        (collection.question_id, collection.question, 1, 1),
        (b"", None, 1, 2),
        (make(1, text="Another?").question_id, "Another?", 1, 1),
    ]


def test_what_is_left_is_never_below_nothing(open_client, clock):
    """The policy became stricter after the charges. What is left of a lifetime bounds what is left of a period."""
    client = open_client()
    for number in range(2):
        client.report(make(number), "a")
    client.close()
    strict = open_client(policy=Policy(max_epsilon="1", budget="1", period="30 days", lifetime="1.5")).ledger()
    assert (strict.spent, strict.left, strict.left_in_period) == (2, 0, 0)
    clock.advance(31 * 86_400)
    view = open_client(policy=Policy(max_epsilon="1", budget="1.5", period="30 days", lifetime="2.5")).ledger()
    assert (view.spent_in_period, view.left, view.left_in_period) == (0, Fraction(1, 2), Fraction(1, 2))


DAY = 86_400


def answered(client, most=10):
    return read_answered(client._storage, most)


def damage(files):
    path = files / "ledger.sqlite"
    path.write_bytes(b"no database " * 500)


def test_an_empty_ledger_has_everything_left(open_client, policy):
    client = open_client()
    view = client.ledger()
    assert (view.spent, view.left, view.spent_in_period, view.left_in_period, view.leased) == (0, 12, 0, 2, 0)
    assert (view.period, view.now, view.questions, view.resets, view.problem) == (policy.period, NOW, (), (), None)
    assert (view.charges, answered(client)) == ({}, ())


def test_what_cannot_be_trusted_counts_as_spent(open_client, files, policy, clock):
    """The clock and the period are in their own places, although both are whole seconds."""
    client = open_client()
    client.report(make(), "a")
    client.close()
    damage(files)
    clock.advance(5)
    view = open_client().ledger()
    assert (view.spent, view.left, view.spent_in_period) == (policy.lifetime, 0, policy.budget)
    assert (view.left_in_period, view.leased, view.charges) == (0, 0, {})
    assert (view.period, view.now) == (policy.period, NOW + 5)
    assert (view.questions, view.resets) == ((), ())
    assert "cannot be trusted" in view.problem
    assert view.statement() == ["This ledger cannot be trusted; everything counts as spent."]
    with pytest.raises(StorageError):
        answered(open_client())


def test_the_view_is_of_one_policy_and_another_one_sees_its_own_limits(open_client, clock):
    client = open_client()
    client.report(make(), "a")
    wide = Policy(max_epsilon="1", budget="5", period="1 day", lifetime="7")
    view = read_ledger(client._storage, wide, clock)
    assert (view.spent, view.left, view.spent_in_period, view.left_in_period) == (1, 6, 1, 4)
    assert view.period == DAY
    clock.advance(DAY - 1)
    assert read_ledger(client._storage, wide, clock).spent_in_period == 1
    clock.advance(1)
    later = read_ledger(client._storage, wide, clock)
    assert (later.spent, later.spent_in_period, later.left_in_period) == (1, 0, 5)


def test_less_is_left_in_the_period_than_its_budget_if_the_lifetime_ends_first(open_client, clock):
    policy = Policy(max_epsilon="1", budget="2", period="1 day", lifetime="2.5")
    client = open_client(policy=policy)
    for number in range(2):
        client.report(make(number), "a")
        clock.advance(2 * DAY)
    view = client.ledger()
    assert (view.left, view.spent_in_period, view.left_in_period) == (Fraction(1, 2), 0, Fraction(1, 2))


def test_a_lease_is_spent_and_no_charge_and_the_statement_counts_it(open_client, wide):
    client = open_client(policy=wide, lease="3")
    client.report(make(0), "a")
    view = client.ledger()
    assert (view.spent, view.leased, view.charges) == (3, 3, {})
    assert view.statement() == list(privacy_statement(device=Device(["3"])).lines)
    client.flush()
    view = client.ledger()
    assert (view.spent, view.leased, view.charges) == (3, 2, {Fraction(1): 1})
    assert view.statement() == list(privacy_statement(device=Device(["1", "2"])).lines)
    client.close()
    view = open_client(policy=wide).ledger()
    assert (view.spent, view.leased, view.charges) == (1, 0, {Fraction(1): 1})
    assert view.statement() == list(privacy_statement(device=Device(["1"])).lines)


def test_charges_are_counted_by_amount(open_client, wide):
    client = open_client(policy=wide)
    for number, epsilon in enumerate(["1", "0.5", "1", "0.25", "0.5", "0.5"]):
        client.report(make(number, epsilon=epsilon), "a")
    assert client.ledger().charges == {Fraction(1): 2, Fraction(1, 2): 3, Fraction(1, 4): 1}
    assert sum(amount * count for amount, count in client.ledger().charges.items()) == client.ledger().spent


# -- the answered questions


def test_questions_are_in_the_order_of_their_first_answers(open_client, wide, clock):
    client, weekly = open_client(policy=wide), daily(text="Each day?")
    client.report(make(1, text="First?"), "a")
    client.report(weekly, "a")
    clock.advance(DAY)
    client.report(make(0, text="Third?"), "a")
    client.report(weekly, "a")
    found = answered(client)
    assert [(one.asked.question, one.asked.answers, one.asked.spent) for one in found] == [
        ("First?", 1, 1), ("Each day?", 2, 2), ("Third?", 1, 1),
    ]  # fmt: skip
    assert [one.asked.question_id for one in found][1] == weekly.question_id
    assert [one.asked for one in found] == list(client.ledger().questions)


def test_the_newest_reports_come_first_and_as_many_as_were_asked_for(open_client, wide, clock):
    client, asked = open_client(policy=wide), daily()
    for _ in range(4):
        client.report(asked, "a")
        clock.advance(DAY)
    first = NOW // DAY
    for most, slots in ((0, []), (1, [3]), (3, [3, 2, 1]), (4, [3, 2, 1, 0]), (9, [3, 2, 1, 0])):
        (found,) = answered(client, most)
        assert [made.slot for made in found.made] == [first + slot for slot in slots]
        assert [made.at for made in found.made] == [NOW + DAY * slot for slot in slots]
        assert found.asked.answers == 4


def test_a_report_is_shown_with_its_bytes_and_charge_until_it_is_sent_with_its_time(
    open_client, wide, collector, clock
):
    client, asked = open_client(policy=wide, delay="10 minutes"), make(epsilon="0.5")
    client.report(asked, "a")
    ((made,),) = [one.made for one in answered(client)]
    assert (made.epsilon, made.collection_id, made.slot, made.at) == (Fraction(1, 2), asked.id, 0, NOW)
    assert NOW <= made.due <= NOW + 600
    assert "report" not in repr(made)
    clock.advance(601)
    client.flush(everything=True)
    ((sent,),) = [one.made for one in answered(client)]
    assert sent.due is None
    assert (sent.report, sent.epsilon) == (made.report, made.epsilon)
    assert [made.report] == [bytes(one) for one in collector.reports(asked)] or collector.received


def test_looking_at_answers_needs_a_ledger_that_can_be_read(tmp_path):
    storage = Storage(tmp_path / "none")
    assert read_answered(storage, 5) == ()
    assert not (tmp_path / "none").exists()


# -- resets, as the user is shown them


def test_resets_are_shown_in_their_order_with_what_was_wrong(open_client, files, clock):
    client = open_client()
    client.report(make(), "a")
    assert client.reset("to be sure") == "nothing"
    client.close()
    damage(files)
    clock.advance(7)
    client = open_client()
    found = client.reset("a broken disk")
    assert found.startswith("the ledger") and "cannot be trusted" in found
    assert str(files / "ledger.sqlite") not in found, "a path says nothing to the user"
    view = client.ledger()
    assert [(one.at, one.reason, one.found) for one in view.resets] == [(NOW + 7, "a broken disk", found)]
    assert view.spent == 0


def test_what_was_wrong_is_said_in_one_clause(open_client, files):
    client = open_client()
    client.report(make(), "a")
    client.close()
    damage(files)
    assert open_client().reset("why not") == "the ledger cannot be trusted: it is damaged"


def test_a_database_of_something_else_is_named_without_its_path(files):
    files.mkdir()
    with closing(sqlite3.connect(files / "ledger.sqlite")) as db:
        db.execute("CREATE TABLE cats (name TEXT)")
    storage = Storage(files)
    assert str(storage.problem()).startswith(f"{files}/ledger.sqlite: a database of something else")
    assert storage.reset("it is mine", NOW) == "a database of something else"
    (kept,) = files.glob("ledger.sqlite.unusable-*")
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("SELECT count(*) FROM cats").fetchone() == (0,), "it is thrown away by nobody"


def test_a_reset_where_no_folder_can_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    storage = Storage(tmp_path / "file" / "ldp")
    with pytest.raises(StorageError) as refused:
        storage.reset("because", NOW)
    assert str(refused.value) == f"{tmp_path}/file/ldp: Not a directory"


@pytest.mark.parametrize("reason", ["", " ", "\n\t"])
def test_a_reset_without_a_reason_changes_nothing(open_client, reason):
    client = open_client()
    client.report(make(), "a")
    before = client.ledger()
    with pytest.raises(Exception, match="a reset needs a reason: say why the ledger may be trusted again"):
        client.reset(reason)
    assert client.ledger() == before
