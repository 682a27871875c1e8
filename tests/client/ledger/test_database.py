"""Storage that was deleted, restored, corrupted, filled or locked up: the ledger fails closed, and says why."""

import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest

from ldp_client import BudgetExceeded, InvalidSpec, LdpError, Policy, StorageError, StorageUntrusted
from ldp_client.ledger import budget, schema
from ldp_client.ledger.database import Link, Storage, _file_at
from ldp_client.ledger.lease import open_lease
from ldp_client.ledger.opening import connect
from ldp_client.trust.policy import UNITS
from tests.client.conftest import NOW, make

DAY = 86_400


@pytest.fixture
def files(tmp_path):
    return tmp_path / "ldp"


def spend(client, *numbers):
    for number in numbers:
        client.report(make(number), "a")


def wipe_database(files):
    for ending in ("", "-wal", "-shm"):
        (files / f"ledger.sqlite{ending}").unlink(missing_ok=True)


def refused(client, why, number=99):
    """The budget counts as spent, and nothing changes that but a reset."""
    with pytest.raises(StorageUntrusted, match=why) as caught:
        client.report(make(number), "a")
    assert isinstance(caught.value, BudgetExceeded) and isinstance(caught.value, StorageError)
    view = client.ledger()
    assert view.left == view.left_in_period == 0 and re.search(why, view.problem)
    assert client.flush(everything=True).accepted == 0


def test_files_are_private_to_the_user(open_client, files):
    spend(open_client(), 1)
    for file in files.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(files.stat().st_mode) == 0o700


def test_a_deleted_ledger_is_spent(open_client, files):
    client = open_client()
    spend(client, 1)
    client.close()
    wipe_database(files)
    refused(open_client(), "its file is missing")
    assert not (files / "ledger.sqlite").exists()


def test_an_emptied_ledger_is_spent(open_client, files):
    client = open_client()
    spend(client, 1)
    client.close()
    wipe_database(files)
    (files / "ledger.sqlite").touch()
    refused(open_client(), "its file is empty")


def test_a_deleted_witness_is_spent(open_client, files):
    client = open_client()
    spend(client, 1)
    client.close()
    (files / "ledger.witness").unlink()
    refused(open_client(), "its witness is missing")


def test_a_damaged_witness_is_spent(open_client, files):
    client = open_client()
    spend(client, 1)
    client.close()
    (files / "ledger.witness").write_bytes(b"?" * 4096)
    refused(open_client(), "its witness is damaged")


def test_everything_deleted_is_a_new_device(open_client, files):
    """A reinstall cannot be told from a first start; docs say so."""
    client = open_client()
    spend(client, 1, 2)
    client.close()
    shutil.rmtree(files)
    spend(open_client(), 3)


@pytest.mark.parametrize("later", [1, 2])
def test_an_old_copy_restored_is_spent(open_client, files, tmp_path, later):
    client = open_client()
    spend(client, 0)
    client.close()
    shutil.copy(files / "ledger.sqlite", tmp_path / "backup")
    client = open_client(policy=Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12"))
    spend(client, *range(1, 1 + later))
    client.close()
    wipe_database(files)
    shutil.copy(tmp_path / "backup", files / "ledger.sqlite")
    refused(open_client(), "older copy")


def test_an_old_copy_put_under_a_living_client_is_spent(open_client, files, tmp_path):
    client = open_client()
    spend(client, 0)
    client._storage._front.db.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    shutil.copy(files / "ledger.sqlite", tmp_path / "backup")
    spend(client, 1)
    wipe_database(files)
    (tmp_path / "backup").replace(files / "ledger.sqlite")
    refused(client, "older copy")


def test_a_ledger_of_another_installation_is_spent(open_client, files, tmp_path):
    other = open_client(storage=tmp_path / "other")
    spend(other, *range(1))
    other.close()
    client = open_client()
    spend(client, 0)
    client.close()
    wipe_database(files)
    shutil.copy(tmp_path / "other" / "ledger.sqlite", files / "ledger.sqlite")
    refused(open_client(), "another ledger")


def test_the_witness_can_live_elsewhere(open_client, files, tmp_path):
    client = open_client(witness=tmp_path / "safe" / "mark") if (tmp_path / "safe").mkdir() is None else None
    spend(client, 0)
    client.close()
    shutil.copytree(files, tmp_path / "backup")
    client = open_client(witness=tmp_path / "safe" / "mark")
    spend(client, 1)
    client.close()
    shutil.rmtree(files)
    shutil.copytree(tmp_path / "backup", files)  # the whole directory, as a backup program would
    refused(open_client(witness=tmp_path / "safe" / "mark"), "older copy")


def test_both_restored_together_go_unseen(open_client, files, tmp_path):
    """The documented limit of a witness beside the ledger: kept here so that nobody believes otherwise."""
    client = open_client()
    spend(client, 0)
    client.close()
    shutil.copytree(files, tmp_path / "backup")
    client = open_client()
    spend(client, 1)
    client.close()
    shutil.rmtree(files)
    shutil.copytree(tmp_path / "backup", files)
    assert open_client().ledger().problem is None


def test_no_flipped_byte_frees_any_budget(open_client, files, tmp_path):
    """Whatever is damaged, the client refuses, or has charged at least what it had: never less."""
    client = open_client(policy=Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12"))
    spend(client, *range(6))
    client.close()
    sound = (files / "ledger.sqlite").read_bytes()
    draw = random.Random(5)
    noticed = 0
    places = [draw.randrange(len(sound)) for _ in range(200)]
    for place in places:
        damaged = bytearray(sound)
        damaged[place] ^= 1 << draw.randrange(8)
        wipe_database(files)
        (files / "ledger.sqlite").write_bytes(damaged)
        client = open_client()
        view = client.ledger()
        if view.problem:
            noticed += 1
            # A view reads tables that a report does not (resets): if only those are damaged, the budget still says no.
            with pytest.raises((StorageError, BudgetExceeded)):
                client.report(make(50), "a")
        else:
            assert view.spent == 6 and sum(q.answers for q in view.questions) == 6
            assert not any(client.report(make(number), "b").made for number in range(6))
        client.close()
    assert noticed > 30


@pytest.mark.parametrize("size", [1, 100, 600, 5000])
def test_a_cut_off_ledger_is_spent(open_client, files, size):
    client = open_client()
    spend(client, 0, 1)
    client.close()
    os.truncate(files / "ledger.sqlite", size)
    refused(open_client(), ".")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("DELETE FROM answers WHERE id = 4", "older copy"),  # the newest: only the witness knows that there was one
        ("DELETE FROM answers WHERE id = 2", "an entry is missing"),
        ("DELETE FROM answers WHERE id = 1", "an entry is missing"),
        ("DELETE FROM answers", "entries are missing"),
        ("DELETE FROM answers WHERE id > 1", "an entry is missing"),
        ("DELETE FROM state", "state is damaged"),
        ("UPDATE state SET answers = 0, total = 0", "state is damaged"),
        ("UPDATE answers SET epsilon = 0 WHERE id = 4", "an entry is damaged"),
        ("UPDATE answers SET before = 0 WHERE id = 4", "an entry is damaged"),
        ("UPDATE answers SET generation = generation + 1 WHERE id = 4", "an entry is damaged"),
        ("UPDATE answers SET id = 5 WHERE id = 4", "an entry is damaged"),
        ("UPDATE answers SET report = x'00' WHERE id = 2", "an entry is damaged"),
    ],
)
def test_a_ledger_that_lost_something_is_spent(open_client, files, edit, why):
    """Edits that leave SQLite's file sound; what the state's row noted at the lease has to fit the entries."""
    wide = Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12")
    client = open_client(policy=wide)
    spend(client, 0, 1)
    client.close()
    leased = open_client(policy=wide, lease="2")
    spend(leased, 2)
    leased.close()
    client = open_client(policy=wide)
    spend(client, 3)
    client.close()
    with sqlite3.connect(files / "ledger.sqlite") as db:
        assert db.execute("SELECT answers FROM state").fetchone() == (3,)
        db.execute(edit)
    db.close()
    refused(open_client(), why)


def test_an_edit_under_a_living_client_is_noticed_at_its_next_report(open_client, files):
    """What it remembers of the ledger holds only until another connection commits."""
    client = open_client()
    spend(client, 0)
    with sqlite3.connect(files / "ledger.sqlite") as db:
        db.execute("UPDATE answers SET epsilon = 0")
    db.close()
    with pytest.raises(StorageUntrusted, match="an entry is damaged"):
        client.report(make(1), "a")


def test_an_interrupt_right_after_a_commit_leaves_nothing_stale(open_client, monkeypatch):
    """Ctrl-C at the worst moment: a lease is on disk, and the process has not taken note of it."""
    armed = []

    class Interrupted(sqlite3.Connection):
        def execute(self, statement, *rest):
            found = super().execute(statement, *rest)
            if statement == "COMMIT" and armed:
                armed.clear()
                raise KeyboardInterrupt
            return found

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: real(*given, **options, factory=Interrupted))
    client = open_client(policy=Policy(max_epsilon="1", budget="3", period="30 days", lifetime="12"))
    spend(client, 0)
    armed.append(True)
    with pytest.raises(KeyboardInterrupt), client._storage.charging() as (db, state):
        open_lease(db, state, b"token", 2 * UNITS, UNITS, NOW + 1000, client._policy, budget.Moment(NOW, NOW, 0, 0))
    with pytest.raises(BudgetExceeded):  # one answer and a lease of two make three
        spend(client, 1)
    assert client.ledger().spent == 3


def test_junk_is_spent(open_client, files):
    client = open_client()
    spend(client, 0)
    client.close()
    (files / "ledger.sqlite").write_bytes(b"no database at all" * 1000)
    refused(open_client(), "damaged")


def test_a_database_of_something_else_is_left_alone(open_client, files):
    files.mkdir()
    with sqlite3.connect(files / "ledger.sqlite") as db:
        db.execute("CREATE TABLE precious (a)")
    db.close()
    with pytest.raises(StorageError, match="something else"):
        open_client().report(make(), "a")
    with sqlite3.connect(files / "ledger.sqlite") as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
    db.close()


def test_another_schema_is_left_alone(open_client, files):
    client = open_client()
    spend(client, 0)
    client.close()
    with sqlite3.connect(files / "ledger.sqlite") as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    client = open_client()
    with pytest.raises(StorageError, match="another version"):
        client.report(make(1), "a")
    with pytest.raises(StorageError, match="another version"):
        client.reset("please")
    with sqlite3.connect(files / "ledger.sqlite") as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    db.close()


# -- reset


def test_a_reset_needs_a_reason(open_client):
    with pytest.raises(ValueError, match="reason"):
        open_client().reset(" ")


def test_a_reset_after_rollback_keeps_what_is_known(open_client, files, tmp_path):
    client = open_client()
    spend(client, 0)
    client.close()
    shutil.copy(files / "ledger.sqlite", tmp_path / "backup")
    client = open_client()
    spend(client, 1)
    client.close()
    wipe_database(files)
    shutil.copy(tmp_path / "backup", files / "ledger.sqlite")
    client = open_client()
    refused(client, "older copy")
    assert "older copy" in client.reset("restored from a backup by support")
    view = client.ledger()
    assert view.problem is None and view.spent == 1
    assert [(r.at, r.reason) for r in view.resets] == [(NOW, "restored from a backup by support")]
    assert not client.report(make(0), "b").made  # its answer still stands
    spend(client, 2)
    client.close()
    assert open_client().ledger().spent == 2


@pytest.mark.parametrize("how", ["missing", "junk", "empty"])
def test_a_reset_without_a_readable_ledger_begins_anew(open_client, files, how):
    client = open_client()
    spend(client, 0, 1)
    client.close()
    wipe_database(files)
    if how != "missing":
        (files / "ledger.sqlite").write_bytes(b"junk" * 1000 if how == "junk" else b"")
    client = open_client()
    refused(client, ".")
    client.reset("new phone")
    spend(client, 5, 6)
    client.close()
    view = open_client().ledger()
    assert view.problem is None and view.spent == 2 and view.resets[0].reason == "new phone"
    assert any("unusable" in file.name for file in files.iterdir()) == (how != "missing")


def test_a_reset_brings_time_back(open_client, clock):
    client = open_client()
    clock.jump(NOW + 1000 * DAY)
    spend(client, 0, 1)
    clock.jump(NOW)
    client.reset("the clock was wrong")
    with pytest.raises(BudgetExceeded):
        spend(client, 2)  # what was charged in the false future counts for a period from now
    clock.advance(30 * DAY)
    spend(client, 2)
    client.close()
    assert open_client().ledger().problem is None


def test_a_reset_by_another_process_is_noticed(open_client, files):
    client, other = open_client(), open_client()
    spend(client, 0)
    spend(other, 1)
    other.reset("because")
    with pytest.raises(BudgetExceeded, match="period"):
        spend(client, 2)
    assert client.ledger().spent == 2


# -- disks


def test_a_read_only_ledger_reports_nothing(open_client, files, monkeypatch):
    client = open_client()
    spend(client, 0)
    client.close()
    client = open_client()
    real = sqlite3.connect

    def read_only(path, **options):
        return real(f"file:{path}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with pytest.raises(StorageError, match="readonly"):
        client.report(make(1), "a")
    monkeypatch.undo()
    assert client.ledger().spent == 1
    spend(client, 1)


def test_storage_that_cannot_be_made_is_a_storage_error(open_client, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError) as caught:
        open_client(storage=tmp_path / "file" / "ldp").report(make(), "a")
    assert not isinstance(caught.value, BudgetExceeded)


@pytest.mark.parametrize("name", ["", "a\0b", "~nobody-of-this-name/ldp"])
def test_what_is_no_path_is_refused_at_once(open_client, name):
    with pytest.raises(InvalidSpec, match="storage"):
        open_client(storage=name)


def test_a_path_that_cannot_be_looked_at_is_a_storage_error(open_client, tmp_path):
    client = open_client(storage=tmp_path / ("x" * 300))
    with pytest.raises(StorageError, match="too long"):
        client.report(make(), "a")
    assert client.ledger().left == 0


def test_a_full_disk_reports_nothing_and_heals(open_client, files):
    client = open_client()
    spend(client, 0)
    db = client._storage._front.db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own "database or disk is full"
    with pytest.raises(StorageError, match="full"):
        client.report(make(1, text="x" * 3000), "a")
    assert client.ledger().spent == 1 and client.outbox().waiting == 1
    spend(client, 1)  # the connection was dropped, and with it the limit: the disk has room again
    assert client.ledger().spent == 2


def test_a_file_that_may_not_grow(tmp_path):
    """A hard limit on file size (as a quota gives) in a process of its own: errors, no charge without its bytes."""
    script = """
import resource, signal, sys
from ldp_client import Client, LdpError, Policy, Sending, Sources
from ldp_client.testing import FakeCollector, ManualClock
from tests.client.conftest import NOW, make
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
policy = Policy(max_epsilon="1", budget="1000", period="30 days", lifetime="1000")
client = Client(FakeCollector(), storage=sys.argv[1], policy=policy, sending=Sending(background=False),
                sources=Sources(clock=ManualClock(NOW)))
client.report(make(0), "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
made = 1
for number in range(1, 400):
    try:
        made += client.report(make(number), "a").made
    except LdpError as error:
        print(type(error).__name__, made)
        break
"""
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "ldp")], capture_output=True, text=True, check=True, timeout=300
    )
    kind, made = found.stdout.split()
    assert kind == "StorageError" and int(made) > 1
    storage = Storage(tmp_path / "ldp")
    with storage.reading() as (db, state):
        answers = db.execute("SELECT count(*) FROM answers").fetchone()[0]
        bytes_of_their_own = db.execute("SELECT count(DISTINCT answer) FROM outbox").fetchone()[0]
        assert state.answers == answers == bytes_of_their_own == int(made)
    storage.close()


def test_a_witness_that_cannot_be_written_stops_the_next_charge(open_client, files):
    client = open_client()
    spend(client, 0)
    (files / "ledger.witness").rename(files / "away")
    (files / "ledger.witness").mkdir()
    spend(client, 1)  # durable already when the witness is written: it stands
    with pytest.raises(LdpError):
        client.report(make(2), "a")
    (files / "ledger.witness").rmdir()
    (files / "away").rename(files / "ledger.witness")
    with pytest.raises(BudgetExceeded, match="period"):
        client.report(make(2), "a")
    assert client.ledger().spent == 2


def test_each_side_has_a_connection_of_its_own(tmp_path):
    storage = Storage(tmp_path)
    with storage.charging() as (db, _):
        assert db is storage._front.db
        assert [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "wal_autocheckpoint")] == [
            2,
            2000,
        ]
    with storage.charging(background=True) as (db, _):
        assert db is storage._back.db
    with storage.working() as db:
        assert db is storage._back.db
    with storage.peeking() as db:
        assert db is storage._front.db
    storage.close()


def test_a_late_witness_is_written_before_a_charge_and_only_then(tmp_path):
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    storage.witness.late = True
    with storage.working():
        pass
    assert storage.witness.late
    with storage.charging():
        assert not storage.witness.late
    storage.close()


def test_trouble_inside_a_look_up_is_a_storage_error(tmp_path):
    storage = Storage(tmp_path)
    for opened in (storage.peeking, storage.working, storage.charging, storage.reading):
        with pytest.raises(StorageError), opened() as found:
            db = found[0] if isinstance(found, tuple) else found
            db.execute("SELECT nonsense")
    with storage.working() as db:
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    storage.close()


def test_repr_of_a_storage_is_its_folder(tmp_path):
    assert repr(Storage(tmp_path)) == f"Storage('{tmp_path}')"


def test_the_witness_lies_where_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Storage(tmp_path / "d").witness.path == tmp_path / "d" / "ledger.witness"
    assert Storage(tmp_path / "d", tmp_path / "safe").witness.path == tmp_path / "safe"
    assert Storage(tmp_path / "d", "~/safe").witness.path == tmp_path / "safe"
    with pytest.raises(InvalidSpec, match=r"^witness: not a path"):
        Storage(tmp_path / "d", "a\0b")


def test_a_file_that_was_replaced_is_closed(tmp_path):
    """What was known of it goes with it: the new file is looked at as if for the first time."""
    storage = Storage(tmp_path)
    with storage.charging() as (db, state):
        state.changed = True
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copy(storage.path, tmp_path / "copy")
    (tmp_path / "copy").replace(storage.path)
    assert storage._front.known is not None
    with storage.charging() as (new, _):
        assert new is not db
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")
    storage.close()


def test_a_look_notices_that_the_newest_entry_is_gone(open_client, files):
    """A living reader refuses what is behind what it has seen, before any charge."""
    client = open_client()
    spend(client, 0, 1)
    assert client.ledger().problem is None
    with sqlite3.connect(files / "ledger.sqlite") as db:
        db.execute("DELETE FROM answers WHERE id = 2")
    db.close()
    assert "older copy" in client.ledger().problem


def test_a_reset_of_a_sound_ledger_found_nothing(open_client):
    client = open_client()
    spend(client, 0)
    assert client.reset("to be sure") == "nothing"
    assert [found.found for found in client.ledger().resets] == ["nothing"]


def test_a_reset_needs_neither_a_readable_ledger_nor_a_witness(open_client, files):
    client = open_client()
    spend(client, 0)
    client.close()
    wipe_database(files)
    (files / "ledger.sqlite").write_bytes(b"junk" * 1000)
    (files / "ledger.witness").unlink()
    client = open_client()
    client.reset("a broken disk")
    assert (client.ledger().problem, client.ledger().spent) == (None, 0)


def test_a_ledger_is_there_if_either_file_is(tmp_path):
    storage = Storage(tmp_path)
    assert storage.exists() is False
    for path in (storage.path, storage.witness.path):
        path.touch()
        assert storage.exists() is True
        path.unlink()


def test_after_a_reset_everything_is_verified_again(open_client, monkeypatch):
    """Also by a client that has verified the ledger before."""
    client = open_client()
    spend(client, 0)
    client.reset("to be sure")
    verified = []
    verify = schema.verify
    monkeypatch.setattr(schema, "verify", lambda db: verified.append(verify(db)))
    client.reset("once more")
    assert len(verified) >= 2  # before anything is mended, and when the ledger is opened again


def test_a_reset_makes_the_whole_path(tmp_path):
    storage = Storage(tmp_path / "a" / "b")
    storage.reset("before anything was there", NOW)
    assert storage.problem() is None
    storage.close()


def test_a_file_is_known_by_its_place_on_the_disk(tmp_path):
    path = tmp_path / "a"
    assert _file_at(str(path)) is None
    path.touch()
    first = _file_at(str(path))
    assert first == (path.stat().st_dev, path.stat().st_ino)
    (tmp_path / "b").touch()
    (tmp_path / "b").replace(path)
    assert _file_at(str(path)) != first


def test_dropping_twice_is_nothing(tmp_path):
    link = Link()
    link.drop()
    link.db = connect(tmp_path / "x")
    link.known = object()
    link.drop()
    assert (link.db, link.known) == (None, None)
    link.drop()
