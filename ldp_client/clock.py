"""The clock: every time that the client reads comes through this interface, so that tests can set it.

`time` is the wall clock, which people and servers can move. The ledger never lets it run backwards (ledger/budget.py).
`monotonic` measures how long something took. `uptime` vouches for the time that has passed between two charges, also
of different processes (ledger/budget.py).
"""

from __future__ import annotations

import time as clocks
from functools import cache, partial
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """The interface through which the client reads the time."""

    def time(self) -> float:
        """Return seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        ...

    def uptime(self) -> float:
        """Return seconds since the machine was started, the same in all its processes; nobody can set it."""
        ...

    def boot(self) -> str:
        """Return a name for this start of the machine; "" where the system has none."""
        ...


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class SystemClock:
    """The clocks of the operating system, as they are: a report reads them ten times and more."""

    time = staticmethod(clocks.time)
    monotonic = staticmethod(clocks.monotonic)
    # Linux has a clock that counts the time that the machine sleeps, too.
    uptime = staticmethod(
        partial(clocks.clock_gettime, clocks.CLOCK_BOOTTIME) if hasattr(clocks, "CLOCK_BOOTTIME") else clocks.monotonic
    )
    boot = staticmethod(_boot)
