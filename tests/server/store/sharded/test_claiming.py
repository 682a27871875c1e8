"""Each database says which one it is, and a configuration that disagrees is refused in one line."""

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.store.engines import open_store
from ldp_server.store.errors import StorageError, WrongVersion
from ldp_server.store.sharded import claiming
from ldp_server.volunteers.opening import served_records
from tests.server.store.contract.batches import add


@pytest.fixture
def named(addresses, tmp_path):
    def store(*places, more=()):
        return open_store(" ".join([*(addresses[place] for place in places), *more]), tmp_path)

    return store


def refused(work, kind, match):
    with pytest.raises(kind, match=match) as error:
        work()
    assert "\n" not in str(error.value)
    assert "hearsay@" not in str(error.value)


def test_another_order_or_number_is_refused_by_whoever_opens_it(named):
    named(0, 1, 2).writer().close()
    refused(named(1, 0, 2).writer, WrongVersion, "is number 2 of 3 databases, and store names it as number 1 of 3")
    refused(named(0, 2, 1).writer, WrongVersion, "is number 3 of 3 databases, and store names it as number 2 of 3")
    refused(named(0, 1).reader, WrongVersion, "is number 1 of 3 databases, and store names it as number 1 of 2")
    refused(named(0).writer, WrongVersion, "is number 1 of 3 databases, and store names it as the only one: name all")
    refused(lambda: named(1).access(lambda: 0), WrongVersion, "is number 2 of 3 databases")
    refused(lambda: named(0, 1, 1), InvalidSpec, "names a database more than once")


def test_another_order_or_number_is_refused_when_it_is_prepared(named, postgres):
    refused(named(1, 0, 2).prepare, InvalidSpec, "is number 2 of its store: name all databases in their order")
    refused(named(0, 1).prepare, InvalidSpec, "belongs to a store of 3 databases, and 2 are named: name all of them")
    named(0, 1, 2).prepare()
    fresh = postgres.database()
    refused(named(0, 1, more=[fresh]).writer, WrongVersion, "has no Hearsay schema: run `ldp-server store prepare`")


@pytest.mark.long
def test_a_database_of_another_store_is_refused(named, addresses, postgres, tmp_path):
    others = [postgres.database() for _ in range(3)]
    theirs = open_store(" ".join(others), tmp_path)
    theirs.prepare()
    mixed = open_store(" ".join([*addresses[:2], others[2]]), tmp_path)
    refused(mixed.writer, WrongVersion, "belong to different stores: correct store")
    refused(mixed.prepare, InvalidSpec, "do not all belong to the same store")
    used = open_store(postgres.database(), tmp_path)
    used.prepare()
    log = used.writer()
    add(log)
    log.close()
    behind = open_store(f"{postgres.database()} {used.environment()['LDP_SERVER_STORE']}", tmp_path)
    refused(behind.prepare, InvalidSpec, "holds collections of a store of its own: only the first database may")
    log = used.writer()  # and nothing was written into it
    log.close()
    alone = open_store(f"{used.environment()['LDP_SERVER_STORE']} {postgres.database()}", tmp_path)
    refused(alone.writer, WrongVersion, "is not one of several databases yet: run `ldp-server store prepare`")


@pytest.mark.long
def test_preparing_that_was_cut_goes_on(postgres, tmp_path, monkeypatch):
    """Killed between any two databases: the home comes last, and the same family is found again."""
    store = open_store(" ".join(postgres.database() for _ in range(3)), tmp_path)
    for written in (1, 2):
        with monkeypatch.context() as cutting:
            cutting.setattr(claiming, "_WRITE", claiming._WRITE)
            cutting.setattr(claiming, "reversed", lambda rows, n=written: list(rows)[::-1][:n], raising=False)
            store.prepare()
        refused(store.writer, WrongVersion, "is not one of several databases yet")
    store.prepare()
    log = store.writer()
    add(log)
    log.close()
    store.prepare()


def test_volunteers_records_lie_in_the_home(named, addresses):
    records = served_records(" ".join(addresses), None)
    records.close()
    refused(lambda: served_records(addresses[0], None), StorageError, "is number 1 of 3 databases")


def test_the_store_s_name_and_size(named, addresses):
    store = named(0, 1, 2)
    assert store.name.count("postgresql://") == 3
    assert (store.shared, store.shards) == (True, 3)
    assert store.usage().used == sum(each.used for each in sizes(addresses, store))
    assert open_store(store.environment()["LDP_SERVER_STORE"], None).name == store.name
    with pytest.raises(InvalidSpec, match="pg_dump"):
        store.backup("there")


def sizes(addresses, store):
    from ldp_server.store.postgres import PostgresStore

    return [PostgresStore(one, place).usage() for one, place in zip(addresses, store._destinations, strict=True)]


@pytest.mark.parametrize("roles", [True, False])
def test_roles_get_their_rights_in_every_database_if_they_are_asked_for(postgres, tmp_path, roles):
    """A role belongs to the whole PostgreSQL, and what it may do to each database."""
    found = [postgres.database() for _ in range(2)]
    open_store(found[0], tmp_path).prepare(roles=True)  # so that the roles are there in any case
    store = open_store(" ".join([postgres.database(), *found[1:]]), tmp_path)
    store.prepare(roles=roles)
    for destination in store._destinations:
        with destination.open() as db:
            for role in ("hearsay_collector", "hearsay_keeper"):
                row = db.execute("SELECT has_schema_privilege(%s, 'hearsay', 'USAGE')", (role,)).fetchone()
                assert row == (roles,)


def test_a_database_that_is_added_joins_the_family_of_the_others(postgres, tmp_path):
    found = [postgres.database() for _ in range(3)]
    families = []
    for count in (2, 3, 3):
        store = open_store(" ".join(found[:count]), tmp_path)
        store.prepare()
        for place, destination in enumerate(store._destinations):
            with destination.open() as db:
                row = db.execute("SELECT place, shards, family FROM hearsay.shard").fetchone()
            assert row[:2] == (place, count)
            families.append(row[2])
    assert len(set(families)) == 1
    store.writer().close()
