"""Stores on PostgreSQL: one database for a module, and connections that look at it from the side."""

from __future__ import annotations

import pytest

from ldp_server.store.engines import open_store

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def address(postgres, tmp_path_factory):
    found = postgres.database()
    open_store(found, tmp_path_factory.mktemp("none")).prepare(roles=True)
    return found


@pytest.fixture
def store(address, tmp_path):
    return open_store(address, tmp_path)


@pytest.fixture
def log(store):
    log = store.writer()
    yield log
    log.close()


@pytest.fixture
def aside(address):
    """Connections beside the store's own."""
    opened = []

    def connect():
        opened.append(psycopg.connect(address, autocommit=True))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
