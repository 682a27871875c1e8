"""Runs a program of this project with a clock that is wrong: `python -m simulator.wire.skewed SECONDS COMMAND`.

The command is `python -m MODULE ARGUMENTS`, with or without the interpreter's options. Its wall clock is SECONDS ahead
of this machine's (or behind, if that is negative), for this process and not for those that it starts. Monotonic time is
as it is.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Sequence

__all__ = ["main", "skewed_by"]


def skewed_by(seconds: float) -> list[str]:
    """Return what to put before the command of a process, so that its clock is wrong."""
    return [sys.executable, "-P", "-m", "simulator.wire.skewed", repr(float(seconds))]


def main(arguments: Sequence[str]) -> None:
    """Change the clock, and become the program."""
    seconds, command = float(arguments[0]), list(arguments[1:])
    true_time, true_time_ns = time.time, time.time_ns
    # Before the program's modules are imported: some of them take the clock as a default.
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1e9)
    place = command.index("-m")
    sys.argv = command[place + 1 :]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
