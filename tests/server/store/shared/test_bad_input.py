"""A database that cannot be used: one clear line each, and nothing acknowledged."""

import asyncio
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import grpc
import psycopg
import pytest
from psycopg import sql

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server.config import Config
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.sharing import ANSWER, COLLECT, UPKEEP
from ldp_server.store import AppendOutcome
from ldp_server.store.engines import open_store
from ldp_server.store.errors import DiskFull, InUse, ReadOnly, WrongVersion
from ldp_server.store.postgres import access as access_module
from ldp_server.store.postgres import connecting
from ldp_server.store.postgres.schema import VERSION
from tests.server.commands import run_command
from tests.server.helpers import batch, make_collection, taken
from tests.server.postgres import Server, private_postgres
from tests.server.sharing.helpers import shared
from tests.server.store.contract.batches import a_batch, add, held
from tests.server.store.shared.waiting import wait_for


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
    """The error that PostgreSQL gives for it, raised where it would be. A disk that is really full is a longer test."""
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


@pytest.fixture(scope="module")
def lonely(tmp_path_factory):
    """A server of the test's own, whose settings it changes."""
    with private_postgres() as server:
        open_store(server.address(), tmp_path_factory.mktemp("none")).prepare()
        yield server


@pytest.fixture
def small_disk(lonely):
    """A file system of 8 MB, which PostgreSQL's user may write to."""
    if os.geteuid():
        pytest.skip("needs root, to make a small file system")
    path = lonely.root / f"small{os.urandom(4).hex()}"
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m,mode=0777", "tmpfs", str(path)]
    if subprocess.run(["/bin/mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    shutil.chown(path, lonely._user.pw_uid, lonely._user.pw_gid)
    yield path
    subprocess.run(["/bin/umount", "-l", str(path)], check=True)


@pytest.mark.long
def test_a_disk_that_is_really_full(lonely, small_disk, tmp_path):
    """Reports go to a small tablespace until it is full. What was acknowledged is there, and with room it goes on."""
    store = open_store(lonely.address(), tmp_path)
    changed(lonely.address(), f"CREATE TABLESPACE small LOCATION '{small_disk}'",
            "ALTER TABLE hearsay.segments SET TABLESPACE small")  # fmt: skip
    log, kept = store.writer(), []
    number = add(log)
    with pytest.raises(DiskFull, match="no space left") as error:
        while len(kept) < 200:
            group = [a_batch(number, os.urandom(100_000))]
            assert log.append(group) == [AppendOutcome.STORED]
            kept += group
    assert "\n" not in str(error.value)
    assert 20 < len(kept) < 90
    assert {one.batch_id for one in held(log, number)} == {one.batch_id for one in kept}
    for _ in range(2):  # it is still full, and says so again
        refused(lambda: log.append([a_batch(number, os.urandom(1_000_000))]), DiskFull, "no space left")
    subprocess.run(["/bin/mount", "-o", "remount,size=32m", str(small_disk)], check=True)
    assert log.append(group) == [AppendOutcome.STORED]
    assert log.append(kept[:5]) == [AppendOutcome.DUPLICATE] * 5
    assert log.count(number) == len(kept) + 1
    changed(lonely.address(), "ALTER TABLE hearsay.segments SET TABLESPACE pg_default", "DROP TABLESPACE small")
    log.close()


@pytest.mark.long
@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_could_lose_what_it_acknowledged(lonely, tmp_path, setting):
    store = open_store(lonely.address(), tmp_path)
    changed(lonely.address(), f"ALTER SYSTEM SET {setting} = off", "SELECT pg_reload_conf()")
    try:
        with psycopg.connect(lonely.address(), autocommit=True) as side:
            wait_for(side, f"SELECT current_setting('{setting}') = 'off'")
        for work in (store.writer, store.prepare):
            refused(work, StorageError, "fsync or full_page_writes off, and could lose")
        store.reader().close()
    finally:
        changed(lonely.address(), f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")


def test_a_server_that_is_too_old(store, monkeypatch):
    monkeypatch.setattr(connecting, "OLDEST_SERVER", 10_000_000)
    for work in (store.writer, store.reader, store.prepare):
        refused(work, WrongVersion, r"is a server of version \d+, and 15 is the oldest that is supported")


@pytest.mark.long
async def test_clients_are_told_not_now_while_the_database_is_away(lonely, tmp_path):
    """Apps and analysts alike; nothing is acknowledged, and everything goes on when it is back."""
    collection, address = make_collection("Away?"), lonely.address()
    async with shared(tmp_path / "d", address) as server:
        await server.create(collection)
        first, second = batch(collection, 3), batch(collection, 4)
        assert not taken(await server.collector.Submit(first)).duplicate
        await asyncio.to_thread(lonely.crash)
        for call in (
            lambda: server.collector.Submit(second),
            lambda: server.show(collection),
            lambda: server.create(make_collection("Another?")),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call()
            assert error.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
            assert "\n" not in error.value.details()
        await asyncio.to_thread(lonely.start)
        for request, known in ((first, True), (second, False)):
            for _ in range(600):
                try:
                    assert taken(await server.collector.Submit(request)).duplicate is known
                    break
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.1)
            else:
                pytest.fail("it never came back")
        for _ in range(100):
            try:
                assert (await server.show(collection)).reports == 7
                break
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                await asyncio.sleep(0.1)
        else:
            pytest.fail("analysts are never answered again")


def test_a_pool_that_is_empty(store, log, monkeypatch):
    monkeypatch.setattr(access_module, "CONNECTIONS", 1)
    access = store.access(lambda: 0)
    with access._pool.connection(), monkeypatch.context() as impatient:
        impatient.setattr(access._pool, "timeout", 0.05)
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


async def test_too_few_rights_are_named_when_a_server_starts(address, store, tmp_path):
    """Not when the first block is to be laid; and a right that is taken from a keeper is named alone."""
    suffix = os.urandom(4).hex()
    changed(address, f"CREATE ROLE collector_{suffix} LOGIN", f"GRANT hearsay_collector TO collector_{suffix}",
            f"CREATE ROLE reader_{suffix} LOGIN", f"GRANT USAGE ON SCHEMA hearsay TO reader_{suffix}",
            f"GRANT SELECT ON hearsay.version, hearsay.shard, hearsay.collections TO reader_{suffix}")  # fmt: skip

    def server(user, role):
        there = address.replace("//hearsay@", f"//{user}_{suffix}@")
        return CollectionServer(Config(data=tmp_path / user, store=there), role=role)

    for role in (UPKEEP, ANSWER):
        with pytest.raises(ReadOnly, match=f"the user collector_{suffix} lacks EXECUTE on function hearsay.add_partit"):
            await server("collector", role).start()
    with pytest.raises(ReadOnly, match=f"reader_{suffix} lacks EXECUTE on function hearsay.append_1: grant it .*_coll"):
        await server("reader", COLLECT).start()
    store.require_rights(keeps=True)
    changed(address, f"CREATE ROLE keeper_{suffix} LOGIN", f"GRANT hearsay_keeper TO keeper_{suffix}")
    keeper = open_store(address.replace("//hearsay@", f"//keeper_{suffix}@"), tmp_path)
    keeper.require_rights(keeps=True)
    changed(address, "REVOKE DELETE ON hearsay.segments FROM hearsay_keeper")
    refused(lambda: keeper.require_rights(keeps=True), ReadOnly, "lacks DELETE on hearsay.segments: grant it hearsay_k")
    keeper.require_rights(keeps=False)
    changed(address, "GRANT DELETE ON hearsay.segments TO hearsay_keeper")


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


@pytest.mark.long
def test_several_databases_of_one_postgres_are_prepared_at_once(tmp_path):
    """Roles belong to all of them: whoever comes second finds them made."""
    with private_postgres() as server, ThreadPoolExecutor(6) as threads:
        postgres = Server(str(server.root))
        for _ in range(4):
            stores = [open_store(postgres.database(), tmp_path) for _ in range(6)]
            list(threads.map(lambda store: store.prepare(roles=True), stores))
            for store in stores:
                store.prepare(roles=True)
            addresses = [store.name for store in stores]
            assert len(set(addresses)) == 6
            with psycopg.connect(postgres.address("postgres"), autocommit=True) as connection:
                (roles,) = connection.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'hearsay_%'").fetchone()
            assert roles >= 3
            _forget_roles(postgres)


def _forget_roles(postgres):
    """Drop the databases and the roles, so that the next ones are made anew."""
    names = ("hearsay_collector", "hearsay_keeper", "hearsay_curator")
    with psycopg.connect(postgres.address("postgres"), autocommit=True) as connection:
        databases = [row[0] for row in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 't%'")]
        for database in databases:
            if not database.startswith("template"):
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))
        for name in names:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
