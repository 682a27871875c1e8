"""Background work: checkpoints, compaction after the window, sweeping, and watching the disk.

It runs in slices and gives way to everything else. Compaction by the clock is careful with clocks: a collection must
have been seen past its window for a while of *monotonic* time too, so that one wrong look at the wall clock does not
end a collection for good.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time

from ldp_client.errors import LdpError
from ldp_server.service.ingest import Ingest
from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollection
from ldp_server.service.logs import LOGGER, event

__all__ = ["BackgroundWork"]

SLICE_SECONDS = 0.25
PATIENCE = 600.0


class BackgroundWork:
    """The background task of one server."""

    def __init__(self, lifecycle: Lifecycle, ingest: Ingest, *, patience: float = PATIENCE) -> None:
        self._lifecycle = lifecycle
        self._ingest = ingest
        self._patience = patience
        self._over_since: dict[int, float] = {}
        self._counted: dict[int, float] = {}
        self._lag: dict[int, int] = {}

    async def run(self) -> None:
        """Go on until cancelled; trouble is logged and tried again."""
        every = self._lifecycle.config.retention.checkpoint_seconds
        while True:
            await asyncio.sleep(every)
            try:
                await self.once()
            except LdpError as error:
                event(logging.WARNING, "background work failed, to be tried again", reason=str(error))
            except Exception as error:
                self._lifecycle.metrics.failures.inc()
                LOGGER.error("defect in background work", exc_info=error)

    async def once(self) -> None:
        """One round over all collections."""
        self.look()
        for live in list(self._lifecycle.collections.by_id.values()):
            if live.record.deleted is None and live.record.generation is None:
                await self._checkpoint(live)
                if self._due(live):
                    await self._lifecycle.compact(live)
                    event(logging.INFO, "compacted", collection=live.label)
        self._lifecycle.metrics.lag.set(sum(self._lag.values()))
        await self._lifecycle.sweep()

    def look(self) -> None:
        """Bring the gauges up to date."""
        metrics, lifecycle = self._lifecycle.metrics, self._lifecycle
        metrics.waiting.set(self._ingest.held)
        metrics.waiting_batches.set(self._ingest.waiting)
        metrics.log_bytes.set(lifecycle.log_bytes())
        metrics.free_bytes.set(shutil.disk_usage(lifecycle.directory.root).free)

    async def _checkpoint(self, live: LiveCollection) -> None:
        """Catch up in slices, so that a query never waits long for the child."""
        number = live.record.number
        arrived = self._ingest.stored.get(number, 0)
        if self._counted.get(number) == arrived:
            return  # nothing came since the last round
        question = {"op": "advance", "number": number, "seconds": SLICE_SECONDS}
        while True:
            found, _ = await self._lifecycle.worker.ask(question)
            self._lag[number] = found["behind"]
            if not found["behind"]:
                break
            await asyncio.sleep(0)
        self._counted[number] = arrived

    def _due(self, live: LiveCollection) -> bool:
        after = self._lifecycle.config.retention.compact_seconds
        number, now = live.record.number, self._lifecycle.clock()
        over = now >= live.closes if live.record.closed is None else True
        ended = live.closes if live.record.closed is None else min(live.closes, live.record.closed)
        if after is None or not over or now < ended + after:
            self._over_since.pop(number, None)
            return False
        since = self._over_since.setdefault(number, time.monotonic())
        return time.monotonic() - since >= min(self._patience, after)
