"""Starts a module of this program as a process that imports nothing from the working directory.

`python -m` and an empty entry of PYTHONPATH both put the working directory at the front of the path. A file planted
there, such as numpy.py, would run with the server's rights. So a child is started with -P, and with a path without the
working directory. The directory that holds this program comes first, so that parent and child run the same code: who
may write there may change the program itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ended", "lower_priority", "safe_command", "safe_environment"]

_HOME = Path(__file__).resolve().parents[1]
_AUTOGROUP = Path("/proc/self/autogroup")


def safe_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module. It belongs together with `safe_environment`."""
    return [sys.executable, "-P", "-m", module, *arguments]


def safe_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with a safe path: the child finds the same modules."""
    unsafe = {Path.cwd(), _HOME}
    entries = [entry for entry in sys.path if Path(entry).is_absolute() and Path(entry).resolve() not in unsafe]
    return {**os.environ, **(more or {}), "PYTHONPATH": os.pathsep.join([str(_HOME), *entries])}


async def ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process and of its pipes, which asyncio closes a little later.

    A loop that is closed in between leaves the pipes open. What the process had said and nobody read is dropped.
    """
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()
        with contextlib.suppress(ConnectionError):
            await process.stdin.wait_closed()
    if process.stdout is not None:
        with contextlib.suppress(RuntimeError):  # another call reads, and sees the end itself
            await process.stdout.read()


def lower_priority(steps: int) -> None:
    """Let other processes go first, by so many steps of `nice`.

    Linux may share processor time among sessions first and among the processes of a session second (autogroups). `nice`
    means nothing between sessions then. So a process that leads a session of its own lowers the session too.
    """
    with contextlib.suppress(OSError):
        os.nice(steps)
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # a system without autogroups
            _AUTOGROUP.write_text(str(steps), "ascii")
