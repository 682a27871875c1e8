"""Rights on PostgreSQL: each one that a role needs is asked for at the start, and named if it is missing."""

from __future__ import annotations

import os

import psycopg
import pytest

from ldp_server.store.engines import open_store
from ldp_server.store.errors import ReadOnly
from ldp_server.store.postgres.rights import require_rights

TABLES = (
    "analyst_tokens", "batch_ids", "blocks", "collections", "counted_units", "folded_state", "periods", "recent_ids",
    "salt", "segments", "used_tokens",
)  # fmt: skip
OF_THE_OWNER = ("version", "shard")


@pytest.fixture(scope="module")
def roles(address):
    """A user that is a keeper, one that is a collector, and one that is nobody; each with a connection of its own."""
    suffix = os.urandom(4).hex()
    names = {kind: f"{kind}_{suffix}" for kind in ("keeper", "collector", "nobody")}
    with psycopg.connect(address, autocommit=True) as db:
        for kind, name in names.items():
            db.execute(f"CREATE ROLE {name} LOGIN")
            if kind != "nobody":
                db.execute(f"GRANT hearsay_{kind} TO {name}")
    return names


@pytest.fixture
def user(address, roles):
    opened = []

    def connect(kind):
        opened.append(psycopg.connect(address.replace("//hearsay@", f"//{roles[kind]}@"), autocommit=True))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def missing(db, *, keeps):
    """What is said to be missing, or nothing."""
    try:
        require_rights(db, "it", keeps=keeps)
    except ReadOnly as error:
        text = str(error)
        assert "\n" not in text
        role = "hearsay_keeper" if keeps else "hearsay_collector"
        assert text.startswith("it: the user ")
        assert text.endswith(f": grant it {role}, a role that `ldp-server store prepare --roles` makes")
        return text.partition(" lacks ")[2].partition(":")[0]
    return None


def test_each_role_is_enough_for_its_own_part(user):
    keeper, collector = user("keeper"), user("collector")
    assert (missing(keeper, keeps=True), missing(keeper, keeps=False)) == (None, None)
    assert missing(collector, keeps=False) is None
    assert missing(collector, keeps=True) == "EXECUTE on function hearsay.add_partitions"


def test_the_user_is_named(user, roles):
    with pytest.raises(ReadOnly, match=f"the user {roles['collector']} lacks"):
        require_rights(user("collector"), "it", keeps=True)


@pytest.mark.parametrize("table", TABLES)
def test_a_keeper_needs_all_four_rights_on_every_table(user, aside, table):
    db, keeper = aside(), user("keeper")
    for right in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        db.execute(f"REVOKE {right} ON hearsay.{table} FROM hearsay_keeper")
        try:
            assert missing(keeper, keeps=True) == f"{right} on hearsay.{table}"
        finally:
            db.execute(f"GRANT {right} ON hearsay.{table} TO hearsay_keeper")
    assert missing(keeper, keeps=True) is None


@pytest.mark.parametrize("table", OF_THE_OWNER)
def test_what_the_owner_alone_changes_a_keeper_may_read(user, aside, table):
    db, keeper = aside(), user("keeper")
    for right in ("INSERT", "UPDATE", "DELETE"):
        assert not db.execute(
            "SELECT has_table_privilege('hearsay_keeper', %s, %s)", (f"hearsay.{table}", right)
        ).fetchone()[0]
    assert keeper.execute(f"SELECT count(*) FROM hearsay.{table}").fetchone() is not None
    assert missing(keeper, keeps=True) is None


@pytest.mark.parametrize("table", ["collections", "periods", "counted_units"])
def test_a_collector_reads_three_tables(user, aside, table):
    db, collector = aside(), user("collector")
    db.execute(f"REVOKE SELECT ON hearsay.{table} FROM hearsay_collector")
    try:
        assert missing(collector, keeps=False) == f"SELECT on hearsay.{table}"
    finally:
        db.execute(f"GRANT SELECT ON hearsay.{table} TO hearsay_collector")
    assert missing(collector, keeps=False) is None


def test_a_collector_appends(user, aside):
    db, collector = aside(), user("collector")
    db.execute("REVOKE EXECUTE ON FUNCTION hearsay.append_1 FROM hearsay_collector")
    try:
        assert missing(collector, keeps=False) == "EXECUTE on function hearsay.append_1"
    finally:
        db.execute("GRANT EXECUTE ON FUNCTION hearsay.append_1 TO hearsay_collector")


def test_a_keeper_needs_every_function(user, aside):
    db, keeper = aside(), user("keeper")
    functions = db.execute(
        "SELECT DISTINCT p.proname FROM pg_proc p WHERE p.pronamespace = 'hearsay'::regnamespace ORDER BY 1"
    ).fetchall()
    assert len(functions) > 4
    for (name,) in functions:
        db.execute(f"REVOKE EXECUTE ON FUNCTION hearsay.{name} FROM hearsay_keeper")
        try:
            assert missing(keeper, keeps=True) == f"EXECUTE on function hearsay.{name}"
        finally:
            db.execute(f"GRANT EXECUTE ON FUNCTION hearsay.{name} TO hearsay_keeper")
    assert missing(keeper, keeps=True) is None


def test_a_collector_changes_nothing_by_itself(user):
    """It appends through one function, and reads what is asked. Reports, tokens and analysts are not its business."""
    collector = user("collector")
    for table in TABLES:
        for right in ("INSERT", "UPDATE", "DELETE"):
            (may,) = collector.execute("SELECT has_table_privilege(%s, %s)", (f"hearsay.{table}", right)).fetchone()
            assert not may, f"{right} on {table}"
    for table in ("segments", "blocks", "analyst_tokens", "salt"):
        assert collector.execute("SELECT has_table_privilege(%s, 'SELECT')", (f"hearsay.{table}",)).fetchone() == (
            False,
        )


def test_a_user_without_any_right_is_refused_in_one_line(address, roles, tmp_path):
    store = open_store(address.replace("//hearsay@", f"//{roles['nobody']}@"), tmp_path)
    for keeps in (True, False):
        with pytest.raises(ReadOnly, match="permission denied for schema hearsay; grant this user hearsay_collector"):
            store.require_rights(keeps=keeps)
