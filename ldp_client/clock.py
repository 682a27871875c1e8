"""The clock: every time that the client reads comes through this interface, so that tests can set it.

`time` is the wall clock, which people and servers can move. The ledger never lets it run backwards (ledger/budget.py).
`monotonic` measures how long something took. `uptime` vouches for the time that has passed between two charges, also
of different processes (ledger/budget.py).
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Protocol

__all__ = ["Clock", "SystemClock"]

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


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


class SystemClock:
    """The clocks of the operating system."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> float:
        # Linux has a clock that counts the time that the machine sleeps, too.
        return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)

    def boot(self) -> str:
        return _boot()


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
