"""Roles of a server that are forked and not started anew, where a test is about what they do together."""

from __future__ import annotations

import pytest

from ldp_server.testing import RoleProcess, ServedProcess
from tests.effort import at_length
from tests.server.helpers import launched


@pytest.fixture
def forked(monkeypatch):
    monkeypatch.setattr(RoleProcess, "_launch", ServedProcess._launch if at_length() else launched)
