"""The child processes that search for heavy hitters: one for each search at a time, kept for the next one for a while.

Starting a process and its libraries takes half a second of computing time, which is longer than a small search.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from ldp_server.worker.client import Worker

__all__ = ["Decoders"]

KEPT = 60.0
"""Seconds without a search after which a process is ended. It holds no counts meanwhile."""


class Decoders:
    """Lends a child process to one search at a time. How many there are at once is for the caller to bound."""

    def __init__(self, make: Callable[[], Worker], kept: float = KEPT) -> None:
        self._make = make
        self._kept = kept
        self._idle: dict[Worker, asyncio.Task[None]] = {}
        self._all: set[Worker] = set()
        """Those whose processes may still run, or be ending."""

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncGenerator[Worker, None]:
        """A process that nobody else uses. A search that is left early has ended its process by itself."""
        if self._idle:
            worker, ending = self._idle.popitem()
            ending.cancel()
        else:
            worker = self._make()
            self._all.add(worker)
        try:
            yield worker
        finally:
            if worker.pid is not None:
                self._idle[worker] = asyncio.create_task(self._end(worker))
            else:
                await self._over(worker)

    async def close(self) -> None:
        """End all processes, and wait until they have ended."""
        while self._idle:
            _, waiting = self._idle.popitem()
            waiting.cancel()
        for worker in list(self._all):
            await self._over(worker)

    async def _end(self, worker: Worker) -> None:
        await asyncio.sleep(self._kept)
        del self._idle[worker]
        await self._over(worker)

    async def _over(self, worker: Worker) -> None:
        await worker.close()
        self._all.discard(worker)
