"""One interface: service and worker name no implementation of the store."""

import re
from pathlib import Path

import pytest

from ldp_server.store import LogReader, ReportLog, SqliteLog, SqliteReader

SERVER = Path(__file__).parents[3] / "ldp_server"


def test_service_and_worker_name_no_store():
    found = set()
    for folder in ("service", "worker"):
        for path in (SERVER / folder).rglob("*.py"):
            if re.search(r"sqlite|postgres(?!ql://)", path.read_text(), re.IGNORECASE):
                found.add(str(path.relative_to(SERVER)))
    assert found == set()


def test_sqlite_adds_nothing_that_the_interface_does_not_have():
    assert methods(SqliteReader) == methods(LogReader)
    assert methods(SqliteLog) == methods(ReportLog)


def test_postgresql_adds_nothing_either():
    pytest.importorskip("psycopg")
    from ldp_server.store.postgres.log import PostgresLog
    from ldp_server.store.postgres.reader import PostgresReader

    assert methods(PostgresReader) == methods(LogReader)
    assert methods(PostgresLog) == methods(ReportLog) | {"transaction"}  # for a store of several of them


def test_a_store_of_several_databases_adds_which_one_has_what():
    pytest.importorskip("psycopg")
    from ldp_server.store.sharded.log import ShardedLog
    from ldp_server.store.sharded.reader import ShardedReader

    assert methods(ShardedReader) == methods(LogReader) | {"shards_of"}
    assert methods(ShardedLog) == methods(ReportLog) | {"shards_of"}


def methods(kind):
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
