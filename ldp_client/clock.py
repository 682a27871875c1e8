"""The clock is passed in: what the client knows of time comes through this seam.

`time` is the wall clock, which people and servers can move; the ledger never lets it run backwards (ledger.py).
`monotonic` only measures how long something took.
"""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Where the client reads the time."""

    def time(self) -> float:
        """Return seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back."""
        ...


class SystemClock:
    """The clocks of the operating system."""

    def time(self) -> float:
        """Return seconds since 1970-01-01 UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back."""
        return time.monotonic()
