"""Looks for damage in the structure of log.db, at the start and once a day, beside everything else.

Counting checks every payload it reads. This check reads the pages that no question touches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ldp_client.errors import LdpError
from ldp_server.service.logs import event
from ldp_server.service.metrics import Metrics
from ldp_server.store import LogReader
from ldp_server.store.errors import Corrupt

__all__ = ["StructureCheck"]

EVERY = 86_400.0


class StructureCheck:
    """The check of one log, on a thread and a connection of its own."""

    def __init__(self, reader: Callable[[], LogReader], metrics: Metrics, every: float = EVERY) -> None:
        self._reader = reader
        self._metrics = metrics
        self._every = every

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            try:
                await self.once()
            except Corrupt as error:
                self._metrics.damage.inc()
                event(logging.ERROR, "the log is damaged: restore a backup", reason=str(error))
            except LdpError as error:
                event(logging.WARNING, "the log could not be checked, to be tried again", reason=str(error))
            await asyncio.sleep(self._every)

    async def once(self) -> None:
        """Check once; a check that is cancelled is interrupted, because it may read for hours."""
        reader = self._reader()
        check = asyncio.ensure_future(asyncio.to_thread(reader.check))
        try:
            await asyncio.shield(check)
        except asyncio.CancelledError:
            reader.interrupt()
            await asyncio.gather(check, return_exceptions=True)
            raise
        finally:
            reader.close()
