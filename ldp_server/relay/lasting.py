"""What has been so for an hour, by a clock that nobody sets.

Nothing is deleted because the machine's clock says so at one moment: a clock may be far ahead for a while, such as
after a start without a time server. So what the clock says must last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

__all__ = ["Lasting"]


class Lasting:
    """Since when each of some things has been so, without a break that was seen."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 3600.0
        self._steady = steady
        self._since: dict[Hashable, float] = {}

    def holds(self, key: Hashable, so: bool) -> bool:
        """Note whether this is so now; return whether it has been for long enough."""
        if not so:
            self._since.pop(key, None)
            return False
        now = self._steady()
        return now - self._since.setdefault(key, now) >= self.seconds
