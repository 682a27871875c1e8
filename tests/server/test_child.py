"""Child processes: the priority they take."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_server.child import ended, safe_environment

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


LEAVES = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.5); print(1)'])"


async def test_a_process_has_ended_when_its_pipes_are_closed():
    """Another process keeps them open for half a second. What it says is read, and its caller may close the loop."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LEAVES, stdin=pipe, stdout=pipe)
    await ended(process)
    assert process.returncode == 0
    assert process.stdin.is_closing()
    assert process.stdout.at_eof()
