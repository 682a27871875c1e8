"""The clock: every time that the client reads comes through this interface, so that tests can set it.

`time` is the wall clock, which people and servers can move. The ledger never lets it run backwards (ledger/budget.py).
`monotonic` measures how long something took.
"""

from __future__ import annotations

import time
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


class SystemClock:
    """The clocks of the operating system."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
