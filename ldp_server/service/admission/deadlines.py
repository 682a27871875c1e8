"""Deadlines of many waits of the same length, with one timer for all of them.

A timer for each wait costs more than most calls do besides: nearly all of them end long before. Here a timer looks at
the oldest waits from time to time. A wait ends at most a tenth later than its limit says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

__all__ = ["Deadlines"]

T = TypeVar("T")


class Deadlines:
    """Ends waits that take longer than so many seconds. A task has one wait at a time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: dict[asyncio.Task[Any], float] = {}
        """Until when, in the order in which the waits began, so the order in which they end."""
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, awaitable: Awaitable[T]) -> T:
        """Wait for it; raises TimeoutError if it takes too long."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("deadlines are for tasks")
        self._waiting[task] = time.monotonic() + self.seconds
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.seconds / 10, self._look)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if task in self._late and task.uncancel() == 0:
                raise TimeoutError from None
            raise  # somebody else wants the task to end
        finally:
            self._waiting.pop(task, None)
            self._late.discard(task)

    def _look(self) -> None:
        now = time.monotonic()
        over = []
        for task, until in self._waiting.items():
            if until > now:
                break
            over.append(task)
        for task in over:
            del self._waiting[task]
            self._late.add(task)
            task.cancel()
        more = bool(self._waiting)
        self._timer = asyncio.get_running_loop().call_later(self.seconds / 10, self._look) if more else None
