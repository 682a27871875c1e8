"""A token bucket for each address or certificate: how many reports one caller may send.

It stops one machine from sending most of the reports. Against somebody with many addresses only tokens or certificates
help. Memory is bounded: the callers that sent nothing for longest are forgotten. A forgotten caller starts with a full
bucket, which it would also have after a time without reports.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

__all__ = ["RateLimit"]


class RateLimit:
    """Buckets of `burst` reports that fill at `rate` reports a second. A rate of 0 means no limit."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], *, callers: int = 65_536) -> None:
        self._rate = rate
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._callers = callers
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str, reports: int) -> float:
        """Take `reports` from the bucket and return 0, or take nothing and return how many seconds to wait.

        A batch larger than the whole bucket passes when the bucket is full, and leaves a debt.
        """
        if not self._rate:
            return 0.0
        now = self._clock()
        level, then = self._buckets.pop(caller, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - then) * self._rate)
        needed = min(float(reports), self._burst)
        granted = level >= needed
        self._buckets[caller] = (level - reports if granted else level, now)
        if len(self._buckets) > self._callers:
            self._buckets.popitem(last=False)
        return 0.0 if granted else (needed - level) / self._rate
