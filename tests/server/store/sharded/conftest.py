from __future__ import annotations

import pytest

from ldp_server.store.engines import open_store


@pytest.fixture(scope="module")
def addresses(postgres, tmp_path_factory):
    """Three databases that are one store."""
    found = [postgres.database() for _ in range(3)]
    open_store(" ".join(found), tmp_path_factory.mktemp("none")).prepare(roles=True)
    return found


@pytest.fixture
def store(addresses, tmp_path):
    return open_store(" ".join(addresses), tmp_path)


@pytest.fixture
def log(store):
    log = store.writer()
    yield log
    log.close()
