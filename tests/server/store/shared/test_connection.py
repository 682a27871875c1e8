"""One connection to PostgreSQL: how it is set up, who leads, what a lost one takes with it, and how often is tried."""

from __future__ import annotations

import threading

import pytest
from psycopg import errors

from ldp_server.store import AppendOutcome
from ldp_server.store.engines import open_store
from ldp_server.store.errors import Corrupt, DiskFull, StorageError, WrongVersion
from ldp_server.store.postgres import log as log_module
from ldp_server.store.postgres import reader as reader_module
from ldp_server.store.postgres.connecting import Destination, ShardPlace
from ldp_server.store.postgres.failures import Again, Lost
from ldp_server.store.postgres.log import PostgresLog
from ldp_server.store.postgres.reader import PostgresReader
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.shared.waiting import end_session, wait_for

STORED, SEALED = AppendOutcome.STORED, AppendOutcome.SEALED
SETTINGS = {
    "statement_timeout": "0",  # a wait for a standby that is cancelled would look like success
    "idle_in_transaction_session_timeout": "1min",
    "client_connection_check_interval": "2s",
    "lock_timeout": "30s",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_partition_pruning": "on",
    "jit": "off",
    "client_encoding": "UTF8",
    "bytea_output": "hex",
    "application_name": "hearsay",
}


def pid(log):
    return log._connection.info.backend_pid


def end(aside, *logs):
    """End the server's side of these connections."""
    for one in logs:
        end_session(aside(), pid(one))


def test_a_session_is_set_up_whatever_the_database_s_own_settings_are(store, log, aside):
    name = aside().info.dbname
    changed = {"statement_timeout": "'7s'", "lock_timeout": "'1ms'", "jit": "on", "synchronous_commit": "off"}
    for setting, value in changed.items():
        aside().execute(f"ALTER DATABASE {name} SET {setting} = {value}")
    try:
        writer, reader = store.writer(), store.reader()
        for one in (writer, reader):
            assert {key: one._connection.execute(f"SHOW {key}").fetchone()[0] for key in SETTINGS} == SETTINGS
        commit = [one._connection.execute("SHOW synchronous_commit").fetchone()[0] for one in (writer, reader)]
        assert commit == ["on", "off"], "whoever only reads commits nothing"
        writer.close()
        reader.close()
    finally:
        for setting in changed:
            aside().execute(f"ALTER DATABASE {name} RESET {setting}")


@pytest.mark.parametrize(
    ("table", "kind", "text"),
    [
        ("moving", StorageError, "is being filled by `ldp-server migrate`: run that to its end first"),
        ("moved", StorageError, "was moved to another store: serve that one. .* drop the table hearsay.moved"),
    ],
)
def test_a_database_that_is_moved_is_not_served(store, log, aside, table, kind, text):
    aside().execute(f"CREATE TABLE hearsay.{table} (one int)")
    try:
        for work in (store.writer, store.reader, lambda: store.access(lambda: 0), store.usage):
            with pytest.raises(kind, match=text):
                work()
    finally:
        aside().execute(f"DROP TABLE hearsay.{table}")
    store.writer().close()


def test_a_database_that_does_not_say_its_version(store, log, aside):
    kept = aside().execute("DELETE FROM hearsay.version RETURNING number").fetchone()
    try:
        with pytest.raises(Corrupt, match="does not say which version its schema has: restore a backup"):
            store.writer()
    finally:
        aside().execute("INSERT INTO hearsay.version (number) VALUES (%s)", kept)


def test_a_database_that_is_alone_is_not_one_of_several(address, log):
    with pytest.raises(WrongVersion, match="is not one of several databases yet"):
        PostgresReader(Destination(address, ShardPlace(0, 2)))


def test_a_connection_that_is_refused_is_closed(address, aside, log):
    """A server that tries again and again would use up all connections."""
    mine = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hearsay'"
    side = aside()
    before = [pid for (pid,) in side.execute(f"SELECT pid {mine}")]
    for _ in range(3):
        with pytest.raises(WrongVersion):
            PostgresReader(Destination(address, ShardPlace(0, 2)))
    wait_for(side, f"SELECT count(*) = 0 {mine} AND pid <> ALL (%s)", before)


# -- who leads


def test_one_writer_leads_until_its_connection_ends(store, log, aside):
    other = store.writer()
    assert [log.lead(), log.lead(), other.lead(), log.lead()] == [True, True, False, True]
    end(aside, log)
    assert other.lead() is True
    log.recover()
    assert log.lead() is False
    other.close()
    wait_for(aside(), "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND classid = 7903")
    assert log.lead() is True


# -- what a lost connection takes with it


def test_a_seal_is_taken_again_by_the_next_connection(store, log, aside):
    """The lock of a seal ends with its connection. Whoever has sealed takes it again before anything else."""
    first, second, free, other = add(log), add(log), add(log), store.writer()
    log.seal(first)
    log.seal(second)
    log.unseal(second)
    end(aside, log)
    log.recover()
    assert other.append([a_batch(first), a_batch(second), a_batch(free)]) == [SEALED, STORED, STORED]
    assert log.append([a_batch(first), a_batch(free)]) == [SEALED, STORED]
    log.unseal(first)
    assert other.append([a_batch(first)]) == [STORED]
    other.close()


def test_recovering_is_a_new_connection_that_works(log):
    number, before = add(log), pid(log)
    old = log._connection
    log.recover()
    assert old.closed
    assert pid(log) != before
    assert log.append([a_batch(number)]) == [STORED]
    log.recover()
    assert len(held(log, number)) == 1


def test_a_notice_on_a_new_connection_is_heard(store, log, aside):
    """A notice says that a commit may not have reached the standbys. It makes the answer open on every connection."""
    number = add(log)
    for _ in range(2):
        log._connection.execute("DO $$ BEGIN RAISE WARNING 'not sure'; END $$")
        with pytest.raises(Lost, match=r"answered with a notice \(not sure\)"):
            log.lead()
        assert log._connection is None, "it is given up"
        log.recover()
    assert log.append([a_batch(number)]) == [STORED]


def test_nothing_is_kept_of_a_closed_log(log, aside):
    number = pid(log)
    log.close()
    log.close()
    wait_for(aside(), "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", number)
    log.recover()


# -- how often is tried


class Fails:
    """Raises so many times, then does what it stands for."""

    def __init__(self, times, error, work):
        self.times, self.error, self.work, self.calls = times, error, work, 0

    def __call__(self, *given):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return self.work(*given)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(errors.AdminShutdown("bye"), Lost), (errors.DeadlockDetected("somebody was first"), Again)],
)
@pytest.mark.parametrize("times", range(5))
def test_a_group_is_sent_three_times_at_most(log, monkeypatch, times, error, kind):
    number, batch = add(log), None
    fails = Fails(times, error, log_module.append)
    monkeypatch.setattr(log_module, "append", fails)
    batch = a_batch(number)
    if times < 3:
        assert log.append([batch]) == [STORED]
    else:
        with pytest.raises(kind):
            log.append([batch])
    assert fails.calls == min(times + 1, 3) == min(times + 1, log_module.APPEND_TRIES)
    monkeypatch.undo()
    assert len(held(log, number)) == (times < 3)


def test_a_lost_connection_is_given_up_and_one_in_a_deadlock_is_not(log, monkeypatch):
    number, append = add(log), log_module.append
    for error, kept in ((errors.DeadlockDetected("x"), True), (errors.AdminShutdown("x"), False)):
        before = pid(log)
        monkeypatch.setattr(log_module, "append", Fails(1, error, append))
        assert log.append([a_batch(number)]) == [STORED]
        assert (pid(log) == before) is kept


def test_any_other_error_leaves_no_transaction_open(log, monkeypatch):
    number = add(log)
    fails = Fails(9, errors.DiskFull("full"), log_module.append)
    monkeypatch.setattr(log_module, "append", fails)
    with pytest.raises(DiskFull):
        log.append([a_batch(number)])
    assert (fails.calls, log._connection) == (1, None)


def test_a_question_is_asked_twice_if_its_connection_is_lost(store, log, monkeypatch):
    reader = store.reader()
    number, whole = add(log), reader._open
    for times in range(4):
        fails = Fails(times, Lost("gone"), whole)
        monkeypatch.setattr(reader, "_open", fails)
        if times < 2:
            assert reader.record(number).number == number
        else:
            with pytest.raises(Lost, match="gone"):
                reader.record(number)
        assert fails.calls == min(times + 1, 2) == min(times + 1, reader_module.READ_TRIES)
    reader.close()


def test_a_reader_opens_a_connection_that_was_closed_under_it(store, log):
    number, reader = add(log), store.reader()
    reader._connection.close()
    assert reader.record(number).number == number
    reader.close()
    assert reader.record(number).number == number
    reader.close()


# -- a database that is away at first


@pytest.mark.parametrize("kind", [PostgresReader, PostgresLog])
def test_whoever_is_patient_starts_without_the_database(kind, address, log, tmp_path):
    away = Destination(f"postgresql://hearsay@/hearsay?host={tmp_path}")
    with pytest.raises(StorageError, match="cannot reach"):
        kind(away)
    patient = kind(away, patient=True)
    with pytest.raises(StorageError, match="cannot reach"):
        patient.records()
    patient._destination = Destination(address)  # it is there again
    assert patient.records() == log.records()
    patient.close()


def test_patience_does_not_mend_what_is_wrong_for_good(address, log):
    with pytest.raises(WrongVersion):
        PostgresReader(Destination(address, ShardPlace(0, 2)), patient=True)


def test_a_check_in_another_thread_can_be_ended(store, log, aside):
    reader, found = store.reader(), []

    def check():
        try:
            reader._ask("SELECT pg_sleep(600)")
        except StorageError as error:
            found.append(error)

    thread = threading.Thread(target=check)
    thread.start()
    wait_for(aside(), "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s", pid(reader))
    reader.interrupt()
    thread.join()
    assert "canceling statement" in str(found[0])
    reader.close()
    reader.interrupt()  # nothing is open


# -- the store by its address


def test_what_a_store_says_of_itself(store, address, log, tmp_path):
    assert (store.shared, store.shards) == (True, 1)
    assert store.environment() == {"LDP_SERVER_STORE": address}
    with store.serving() as right:
        assert right is None
    with store.serving(), store.serving():  # any number of servers at once
        pass
    assert open_store(address, tmp_path).name == store.name == log.name
    for backup in (tmp_path / "copy.db",):
        with pytest.raises(
            Exception, match=r"PostgreSQL's own tools \(pg_dump, pg_basebackup; .*\), not to /.*copy\.db"
        ):
            store.backup(backup)


def test_its_size_grows_with_what_it_holds(store, log):
    number, before = add(log), store.usage()
    assert before.free is None
    log.append([a_batch(number, bytes(100_000)) for _ in range(5)])
    assert store.usage().used >= before.used + 500_000


def test_posgresql_keeps_its_own_house(log):
    assert (log.tend(), log.purge(), log.renew()) == (None, True, None)


def test_a_schema_is_brought_up_to_date_step_by_step_and_says_what_it_was(postgres):
    from ldp_server.store.postgres.schema import MIGRATIONS, VERSION, migrate

    with Destination(postgres.database()).open() as db:
        done = []
        steps = {number: lambda _, number=number: done.append(number) for number in (VERSION, VERSION + 1)}
        assert migrate(db, "it") == 0
        assert migrate(db, "it") == VERSION
        assert migrate(db, "it", {**MIGRATIONS, **steps}) == VERSION
        assert done == [VERSION, VERSION + 1]
        assert db.execute("SELECT number FROM hearsay.version").fetchall() == [(VERSION + 2,)]
        with pytest.raises(
            WrongVersion, match=f"it has schema version {VERSION + 2}, this program knows up to {VERSION}"
        ):
            migrate(db, "it")


def test_a_step_that_fails_leaves_the_version_as_it_was(postgres):
    from ldp_server.store.postgres.schema import MIGRATIONS, VERSION, migrate

    def broken(db):
        db.execute("CREATE TABLE hearsay.half (one int)")
        raise ZeroDivisionError

    with Destination(postgres.database()).open() as db:
        migrate(db, "it")
        with pytest.raises(ZeroDivisionError):
            migrate(db, "it", {**MIGRATIONS, VERSION: broken})
        assert db.execute("SELECT number FROM hearsay.version").fetchall() == [(VERSION,)]
        assert db.execute("SELECT to_regclass('hearsay.half')").fetchone() == (None,)
