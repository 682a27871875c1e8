"""One server for all runs over the wire that do not kill it."""

from __future__ import annotations

import pytest

from ldp_server.testing import ServerProcess
from tests.server.postgres import postgres

__all__ = ["postgres"]


@pytest.fixture(scope="session")
def wire_server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("wire") / "d") as running:
        yield running


@pytest.fixture
def there(request):
    """Return the options that send a command's reports to that server; none for a command that needs no server."""

    def options(command):
        if command != "wire":
            return []
        server = request.getfixturevalue("wire_server")
        return ["--server", server.target, "--token-file", str(server.data / "local.token")]

    return options
