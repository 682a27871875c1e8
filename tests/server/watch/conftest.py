"""A real server that serves its metrics, and one look at them right after it has started."""

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.helpers import ServerProcess


class Watched(ServerProcess):
    """A server with its metrics on a free port."""

    def __init__(self, folder, settings=""):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.metrics_port = probe.getsockname()[1]
        file = folder / "server.toml"
        file.write_text(f'[watch]\nmetrics = "127.0.0.1:{self.metrics_port}"\n{settings}')
        super().__init__(folder / "d", "--config", str(file))

    def scrape(self):
        """The families of metrics, by name."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=300) as page:
            return {family.name: family for family in text_string_to_metric_families(page.read().decode())}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    with Watched(tmp_path_factory.mktemp("watched")) as server:
        server.at_the_start = server.scrape()
        yield server
