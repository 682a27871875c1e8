"""One address floods a server: the others are answered, and the memory stays bounded."""

import pytest

from benchmarks.attacks import flood
from benchmarks.attacks.benchmark import collection
from tests.server.helpers import ServerProcess


@pytest.fixture
def server(tmp_path):
    with ServerProcess(tmp_path / "d") as server:
        server.create(collection())
        yield server


def test_idle_streams_of_one_address_keep_nobody_else_out(server):
    with flood.idle_streams(server, 4100):
        assert flood.answered(server, collection().id) < 10
        assert server.reports(collection()) == 0


def test_unfinished_messages_take_bounded_memory(server):
    assert flood.unfinished_messages(server, 2000, 300_000, 8.0) < 300e6
    assert flood.answered(server, collection().id) < 10
