"""Roles of a server that are forked and not started anew, where a test is about what they do together."""

from __future__ import annotations

import pytest

from ldp_server.child import safe_command
from ldp_server.testing import RoleProcess, ServedProcess
from tests.effort import at_length
from tests.server.commands import Started


@pytest.fixture
def forked(monkeypatch):
    start = len(safe_command("ldp_server"))

    def launch(self, command, log):
        if at_length() or command[:start] != safe_command("ldp_server"):
            return ServedProcess._launch(self, command, log)
        return Started(command[start:], self._environment, log)

    monkeypatch.setattr(RoleProcess, "_launch", launch)
