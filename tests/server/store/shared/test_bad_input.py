"""A database that cannot be used: one clear line each, and nothing acknowledged."""

import os

import psycopg
import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.store import AppendOutcome
from ldp_server.store.engines import open_store
from ldp_server.store.errors import DiskFull, InUse, ReadOnly, WrongVersion
from ldp_server.store.postgres import access as access_module
from ldp_server.store.postgres.schema import VERSION
from tests.server.commands import run_command
from tests.server.store.contract.batches import a_batch, add


def refused(work, kind, match):
    with pytest.raises(kind, match=match) as error:
        work()
    assert "\n" not in str(error.value)


def changed(address, *statements):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_an_address_that_is_none(tmp_path):
    refused(lambda: open_store("postgresql://[", tmp_path), InvalidSpec, "not an address of PostgreSQL")
    refused(lambda: open_store("/var/lib/x", tmp_path), InvalidSpec, "such as postgresql://")


def test_a_server_that_does_not_answer(tmp_path):
    store = open_store(f"postgresql://hearsay@/hearsay?host={tmp_path}", tmp_path)
    for work in (store.prepare, store.writer, store.reader, lambda: store.access(lambda: 0)):
        refused(work, StorageError, "cannot reach postgresql://")
    secret = open_store("postgresql://hearsay:geheim@127.0.0.1:1/hearsay", tmp_path)
    refused(secret.writer, StorageError, r"cannot reach postgresql://127.0.0.1:1/hearsay: .*refused")
    assert "geheim" not in secret.name


def test_a_database_that_is_missing_or_not_ours_or_of_another_version(postgres, tmp_path):
    refused(open_store(postgres.address("nowhere"), tmp_path).writer, StorageError, 'database "nowhere" does not exist')
    address = postgres.database()
    store = open_store(address, tmp_path)
    for work in (store.writer, store.reader):
        refused(work, WrongVersion, "has no Hearsay schema: run `ldp-server store prepare`")
    changed(address, "CREATE SCHEMA hearsay", "CREATE TABLE hearsay.cats (name text)")
    refused(store.writer, WrongVersion, "a schema named hearsay that is not ours")
    refused(store.prepare, WrongVersion, "not ours: name another database")
    changed(address, "DROP SCHEMA hearsay CASCADE")
    store.prepare()
    for version, says in ((VERSION + 1, "use a newer one"), (VERSION - 1, "run `ldp-server store prepare`")):
        changed(address, f"UPDATE hearsay.version SET number = {version}")
        refused(store.writer, WrongVersion, says)
    changed(address, f"UPDATE hearsay.version SET number = {VERSION + 1}")
    refused(store.prepare, WrongVersion, "use a newer one")


def test_a_database_of_another_encoding(postgres, tmp_path):
    store = open_store(postgres.database(encoding="LATIN1"), tmp_path)
    refused(store.prepare, WrongVersion, "has the encoding LATIN1")


def test_preparing_twice_changes_nothing(store, log):
    number = add(log)
    store.prepare(roles=True)
    assert log.append([a_batch(number)]) == [AppendOutcome.STORED]


def test_a_database_that_takes_no_writes(store, log, aside):
    number, name = add(log), aside().info.dbname
    aside().execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        other = store.writer()
        refused(lambda: other.append([a_batch(number)]), ReadOnly, "as a standby does: name the primary")
        other.close()
    finally:
        connection = aside()
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert log.count(number) == 0


def test_a_disk_that_is_full(log, aside):
    """The error that PostgreSQL gives for it, raised where it would be."""
    number, db = add(log), aside()
    db.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$"
    )
    db.execute("CREATE TRIGGER full_disk BEFORE INSERT ON hearsay.segments EXECUTE FUNCTION full_disk()")
    try:
        refused(lambda: log.append([a_batch(number)]), DiskFull, "no space left")
    finally:
        db.execute("DROP TRIGGER full_disk ON hearsay.segments")
        db.execute("DROP FUNCTION full_disk")
    assert log.append([a_batch(number)]) == [AppendOutcome.STORED]


def test_a_pool_that_is_empty(store, log, monkeypatch):
    monkeypatch.setattr(access_module, "PATIENCE", 0.05)
    monkeypatch.setattr(access_module, "CONNECTIONS", 1)
    access = store.access(lambda: 0)
    with access._pool.connection():
        refused(access.tokens, InUse, "all connections to .* are in use")
    assert access.tokens() == []
    access.close()


def test_a_token_is_not_called_unknown_because_the_database_was_away(store, log, aside):
    """Connections that ended are not used; a database that cannot be asked is an error and no answer."""
    access = store.access(lambda: 0)
    token = access.create(f"x{os.urandom(4).hex()}")
    aside().execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND datname = current_database()")  # fmt: skip
    assert access.verify(token) is not None
    access.close()
    refused(lambda: access.find(token), StorageError, "lost")


def test_a_user_without_rights_and_one_with_those_of_a_collector(address, store, log, tmp_path):
    number = add(log)
    suffix = os.urandom(4).hex()
    changed(address, f"CREATE ROLE nobody_{suffix} LOGIN", f"CREATE ROLE collector_{suffix} LOGIN",
            f"GRANT hearsay_collector TO collector_{suffix}")  # fmt: skip

    def of(user):
        return open_store(address.replace("//hearsay@", f"//{user}_{suffix}@"), tmp_path)

    refused(of("nobody").writer, ReadOnly, "permission denied for schema hearsay")
    collector = of("collector").writer()
    assert [record.number for record in collector.records()][-1] == number
    batch = a_batch(number, units=os.urandom(16))
    assert collector.append([batch]) == [AppendOutcome.STORED]
    assert collector.counted_units(number, [batch.units]) == {batch.units}
    for work in (
        lambda: collector.close_collection(number, 5),
        lambda: collector.recent(number, 0),
        collector.sweep,
    ):
        refused(work, ReadOnly, "permission denied for table .*grant this user hearsay_collector or hearsay_keeper")
    collector.close()
    refused(lambda: of("collector").prepare(), StorageError, "must be owner|permission denied")


def test_a_keeper_s_rights_are_enough(address, log, tmp_path):
    suffix = os.urandom(4).hex()
    changed(address, f"CREATE ROLE keeper_{suffix} LOGIN", f"GRANT hearsay_keeper TO keeper_{suffix}")
    keeper = open_store(address.replace("//hearsay@", f"//keeper_{suffix}@"), tmp_path).writer()
    number = add(keeper)
    assert keeper.append([a_batch(number)]) == [AppendOutcome.STORED]
    keeper.finish(number)
    keeper.lay_anew()
    keeper.delete_collection(number, 5)
    while keeper.sweep():
        pass
    assert keeper.periods(number) == []
    keeper.close()


def test_commands_say_it_in_one_line(tmp_path):
    where = f"postgresql://hearsay@/hearsay?host={tmp_path}"
    environment = {**os.environ, "LDP_SERVER_STORE": where, "COLUMNS": "300"}
    out = str(tmp_path / "out")
    for command in (
        ["collect"],
        ["store", "prepare"],
        ["token", "create", "x", "--out", out],
        ["doctor"],
    ):
        found = run_command(command, environment, None, 120)
        assert found.returncode != 0
        said = [line for line in (found.stderr + found.stdout).splitlines() if "cannot reach" in line]
        assert len(said) == 1, found
        assert "Traceback" not in found.stderr
    found = run_command(["backup", out], environment, None, 120)
    assert (found.returncode, "pg_dump" in found.stderr) == (2, True)
