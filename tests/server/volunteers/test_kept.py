"""Records of volunteers in a data directory and on PostgreSQL: the same rules, and each record used or withdrawn."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.store import Admission, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.store.errors import ReadOnly
from ldp_server.volunteers import interface
from ldp_server.volunteers.interface import Given
from ldp_server.volunteers.kept import KeptRecords
from ldp_server.volunteers.opening import curated_records, served_records
from tests.server.helpers import NOW, tries
from tests.server.store.shared.waiting import end_session

KEPT, OTHER, OVER = Given.KEPT, Given.OTHER_RECORD, Given.OVER


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, tmp_path_factory):
    """What opens the records of a server, and its log."""
    data = tmp_path_factory.mktemp("kept")
    address = "" if request.param == "sqlite" else request.getfixturevalue("postgres").database()
    store = open_store(address, data)
    store.prepare(roles=bool(address))
    log = store.writer()
    yield address, data, log
    log.close()


@pytest.fixture
def records(place):
    found = served_records(*place[:2])
    yield found
    found.close()


@pytest.fixture
def asked(place):
    """A collection that is open."""
    id_ = os.urandom(32)
    place[2].add(NewCollection(id_, b"spec", True, Admission(), 1))
    return id_


def test_a_record_is_kept_once_and_its_name_takes_no_other(records, asked):
    assert records.give(asked, b"n" * 32, b"sealed", NOW) is KEPT
    assert records.give(asked, b"n" * 32, b"sealed", NOW + 5) is KEPT
    assert records.give(asked, b"n" * 32, b"others", NOW) is OTHER
    assert records.take(asked, NOW) == [(b"n" * 32, b"sealed")]


def test_what_was_used_cannot_be_withdrawn_unless_it_is_given_back(records, asked):
    names = [bytes([i]) * 32 for i in range(4)]
    for name in reversed(names):
        records.give(asked, name, name[:5], NOW)
    assert records.withdraw(asked, names[0])
    assert records.withdraw(asked, names[0])
    assert sorted(records.fresh(asked)) == names[1:]
    assert records.take(asked, NOW) == [(name, name[:5]) for name in names[1:]]
    assert records.fresh(asked) == []
    assert not records.withdraw(asked, names[1])
    records.give_back(asked, names[1:2])
    assert records.fresh(asked) == names[1:2]
    assert records.withdraw(asked, names[1])
    assert records.take(asked, NOW + 1) == [(name, name[:5]) for name in names[2:]]
    assert (records.forget(asked), records.forget(asked)) == (2, 0)
    assert records.withdraw(asked, names[2])


def test_collections_do_not_meet(place, records, asked):
    other = os.urandom(32)
    place[2].add(NewCollection(other, b"spec", True, Admission(), 1))
    for one in (asked, other):
        assert records.give(one, b"n" * 32, one, NOW) is KEPT
    assert records.withdraw(asked, b"n" * 32)
    assert records.take(other, NOW) == [(b"n" * 32, other)]
    assert records.take(asked, NOW) == []


def test_each_of_many_is_used_or_withdrawn_whoever_comes_first(place, asked):
    """Volunteers give and withdraw through several servers while a curator takes, and rows are written again."""
    address, data, log = place
    servers = [served_records(address, data) for _ in range(3)]
    names = [os.urandom(32) for _ in range(60)]
    first = [servers[k % 3].give(asked, name, name, NOW) for k, name in enumerate(names)]
    assert set(first) == {KEPT}

    def withdraws(server):
        return [name for name in names[::2] if server.withdraw(asked, name)]

    with ThreadPoolExecutor(4) as pool:
        gone = [pool.submit(withdraws, server) for server in servers[:2]]
        taken = pool.submit(servers[2].take, asked, NOW)
        if address:
            for _ in range(5):
                log.lay_anew()
        used = {name for name, _ in taken.result()}
        withdrawn = Counter(name for one in gone for name in one.result())
    assert used.isdisjoint(withdrawn)
    assert used | set(withdrawn) == set(names)
    assert set(withdrawn) <= set(names[::2])
    for server in servers:
        server.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_collection_that_another_server_closed_takes_no_record(place, records, asked):
    log = place[2]
    assert records.give(asked, b"n" * 32, b"sealed", NOW) is KEPT
    log.close_collection(log.record_of(asked).number, NOW)
    assert records.give(asked, b"m" * 32, b"sealed", NOW) is OVER
    assert records.give(os.urandom(32), b"m" * 32, b"sealed", NOW) is OVER
    assert records.withdraw(asked, b"n" * 32)


def test_rows_that_are_written_again_are_in_the_order_of_names(postgres, tmp_path):
    """In a database of its own, because room that others left would be used first."""
    import psycopg

    address, names, asked = postgres.database(), [os.urandom(32) for _ in range(30)], os.urandom(32)
    store = open_store(address, tmp_path)
    store.prepare()
    with closing(store.writer()) as log, closing(served_records(address, tmp_path)) as records:
        log.add(NewCollection(asked, b"spec", True, Admission(), 1))
        assert {records.give(asked, name, name, NOW) for name in names} == {KEPT}
        log.lay_anew()
        with psycopg.connect(address) as side:
            rows = side.execute("SELECT name, sealed, laid FROM hearsay.volunteers ORDER BY ctid").fetchall()
        assert rows == [(name, name, True) for name in sorted(names)]
        records.take(asked, 7)
        records.give_back(asked, names[:3])
        assert records.give(asked, b"n" * 32, b"later", NOW) is KEPT
        log.lay_anew()
        assert sorted(records.fresh(asked)) == sorted([*names[:3], b"n" * 32])


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_connection_that_ends_is_opened_again(place, records, asked):
    import psycopg

    with psycopg.connect(place[0], autocommit=True) as side:
        for _ in range(2):
            end_session(side, records._connection.info.backend_pid)
            assert records.give(asked, b"n" * 32, b"sealed", NOW) is KEPT
    assert records.fresh(asked) == [b"n" * 32]


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_servers_need_no_right_to_read_records_and_curators_none_to_anything_else(place, records, asked):
    import psycopg

    address, suffix = place[0], os.urandom(4).hex()
    with psycopg.connect(address, autocommit=True) as side:
        for role in ("collector", "curator"):
            side.execute(f"CREATE ROLE {role}_{suffix} LOGIN")
            side.execute(f"GRANT hearsay_{role} TO {role}_{suffix}")

    def of(user):
        return curated_records(address.replace("//hearsay@", f"//{user}_{suffix}@"))

    server, curator = of("collector"), of("curator")
    assert server.give(asked, b"n" * 32, b"sealed", NOW) is KEPT
    assert server.give(asked, b"m" * 32, b"sealed", NOW) is KEPT
    assert server.withdraw(asked, b"m" * 32)
    for work in (lambda: server.take(asked, 1), lambda: server.fresh(asked), lambda: server.forget(asked)):
        with pytest.raises(ReadOnly, match="permission denied"):
            work()
    with pytest.raises(ReadOnly, match="permission denied"):
        curator.give(asked, b"x" * 32, b"sealed", NOW)
    assert curator.take(asked, 1) == [(b"n" * 32, b"sealed")]
    curator.give_back(asked, [b"n" * 32])
    assert curator.forget(asked) == 1
    for one in (server, curator):
        one.close()
    reader = open_store(address.replace("//hearsay@", f"//curator_{suffix}@"), place[1]).reader()
    with closing(reader), pytest.raises(ReadOnly, match="permission denied"):
        reader.records()


def test_what_a_curator_names(tmp_path):
    with pytest.raises(InvalidSpec, match="is not there"):
        curated_records(str(tmp_path))
    with pytest.raises(InvalidSpec, match="postgresql://curator@db"):
        curated_records("mysql://db")
    KeptRecords(tmp_path / "volunteers.db").close()
    curated_records(str(tmp_path)).close()


def test_one_curator_at_a_time(place, records, asked, monkeypatch):
    """The second one waits for the first, and then says that it is there. A third comes in afterwards."""
    other = curated_records(place[0] or str(place[1]))
    with records.curating() as mine:
        assert mine()
        with monkeypatch.context() as impatient:
            impatient.setattr(interface, "CURATOR_SECONDS", 0.0)
            with pytest.raises(Unavailable, match="another curator"), other.curating():
                raise AssertionError("two at once")
    with other.curating() as mine:
        assert mine()
    other.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_curator_whose_session_ended_knows_that_it_is_no_longer_alone(place, records, asked):
    import psycopg

    with records.curating() as mine:
        assert mine()
        with psycopg.connect(place[0], autocommit=True) as side:
            side.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7908"
            )
            for _ in tries():
                if not side.execute("SELECT 1 FROM pg_locks WHERE classid = 7908").fetchone():
                    break
        assert not mine()


def test_the_names_of_those_that_were_used(records, asked):
    for name in (b"a" * 32, b"b" * 32):
        records.give(asked, name, b"sealed", NOW)
    assert records.used(asked) == []
    records.take(asked, NOW)
    records.give(asked, b"c" * 32, b"sealed", NOW)
    assert sorted(records.used(asked)) == [b"a" * 32, b"b" * 32]
    records.give_back(asked, [b"a" * 32])
    assert records.used(asked) == [b"b" * 32]
