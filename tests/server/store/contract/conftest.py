"""Each test of this folder runs on every store there is."""

from __future__ import annotations

import pytest

from ldp_server.store.engines import open_store


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request, tmp_path_factory):
    data = tmp_path_factory.mktemp("store")
    if request.param == "sqlite":
        found = open_store("", data)
        with found.serving():
            found.prepare()
            yield found
    else:
        server = request.getfixturevalue("postgres")
        found = open_store(server.database(), data)
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
