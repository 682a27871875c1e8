"""Each test of this folder runs on every store there is."""

from __future__ import annotations

import pytest

from ldp_server.store.engines import open_store
from tests.server.store.contract.batches import draw


@pytest.fixture(scope="module", params=["sqlite", "postgres", pytest.param("two databases", marks=pytest.mark.long)])
def store(request, tmp_path_factory):
    data = tmp_path_factory.mktemp("store")
    if request.param == "sqlite":
        found = open_store("", data)
        with found.serving():
            found.prepare()
            yield found
    else:
        server = request.getfixturevalue("postgres")
        several = request.param == "two databases"
        found = open_store(" ".join(server.database() for _ in range(1 + several)), data)
        found.prepare()
        with found.serving():
            yield found


@pytest.fixture
def log(store):
    log = store.writer()
    yield log
    log.close()


@pytest.fixture
def reader(store, log):
    """Beside a log that is open: an empty store is made by whoever writes."""
    reader = store.reader()
    yield reader
    reader.close()


@pytest.fixture
def one_database(store, monkeypatch):
    """For what is said of the batches of one database: ids that go to the last one there is."""
    monkeypatch.setattr(draw, "shards", store.shards)
    monkeypatch.setattr(draw, "wanted", store.shards - 1)
