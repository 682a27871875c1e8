"""A database of PostgreSQL for the tests of one module."""

import pytest

from ldp_server.store.engines import open_store


@pytest.fixture(scope="module")
def address(postgres, tmp_path_factory):
    found = postgres.database()
    open_store(found, tmp_path_factory.mktemp("none")).prepare()
    return found
