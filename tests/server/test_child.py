"""Child processes: the priority they take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_server.child import safe_environment

AUTOGROUP = Path("/proc/self/autogroup")
SHOW = """
import os, pathlib
from ldp_server.child import lower_priority
lower_priority(7)
print(os.nice(0), *pathlib.Path("/proc/self/autogroup").read_text().split()[-1:])
"""


def shown(**options):
    """What a process that has lowered itself by 7 steps says of itself and of its session."""
    command = [sys.executable, "-P", "-c", SHOW]
    done = subprocess.run(command, env=safe_environment(), capture_output=True, text=True, check=True, **options)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this system does not group sessions")
def test_who_leads_a_session_lowers_the_whole_session():
    before = AUTOGROUP.read_text()
    here = [int(word) for word in before.split()[-1:]]  # nothing for a process that is in no group
    lowered = min(os.nice(0) + 7, 19)  # the tests themselves may run at a low priority
    assert shown(start_new_session=True) == [lowered, 7]
    assert shown() == [lowered, *here], "a process in somebody else's session lowers itself alone"
    assert AUTOGROUP.read_text() == before
