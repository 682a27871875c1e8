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
from ldp_server.service.lifecycle import Core
from ldp_server.service.live import Gate
from ldp_server.service.logs import LOGGER, event

__all__ = ["Upkeep"]

SLICE_SECONDS = 0.25
PATIENCE = 600.0


class Upkeep:
    """The background task of one server."""

    def __init__(self, core: Core, ingest: Ingest, *, patience: float = PATIENCE) -> None:
        self._core = core
        self._ingest = ingest
        self._patience = patience
        self._over_since: dict[int, float] = {}
        self._counted: dict[int, float] = {}
        self._lag: dict[int, int] = {}

    async def run(self) -> None:
        """Go on until cancelled; trouble is logged and tried again."""
        every = self._core.config.retention.checkpoint_seconds
        while True:
            await asyncio.sleep(every)
            try:
                await self.once()
            except LdpError as error:
                event(logging.WARNING, "background work failed, to be tried again", reason=str(error))
            except Exception as error:
                self._core.metrics.failures.inc()
                LOGGER.error("defect in background work", exc_info=error)

    async def once(self) -> None:
        """One round over all collections."""
        self.look()
        for gate in list(self._core.gates.by_id.values()):
            if gate.record.deleted is None and gate.record.generation is None:
                await self._checkpoint(gate)
                if self._due(gate):
                    await self._core.compact(gate)
                    event(logging.INFO, "compacted", collection=gate.label)
        self._core.metrics.lag.set(sum(self._lag.values()))
        await self._core.sweep()

    def look(self) -> None:
        """Bring the gauges up to date."""
        metrics, core = self._core.metrics, self._core
        metrics.waiting.set(self._ingest.held)
        metrics.waiting_batches.set(self._ingest.waiting)
        metrics.log_bytes.set(core.log_bytes())
        metrics.free_bytes.set(shutil.disk_usage(core.directory.root).free)

    async def _checkpoint(self, gate: Gate) -> None:
        """Catch up in slices, so that a query never waits long for the child."""
        number = gate.record.number
        arrived = self._ingest.stored.get(number, 0)
        if self._counted.get(number) == arrived:
            return  # nothing came since the last round
        question = {"op": "advance", "number": number, "seconds": SLICE_SECONDS}
        while True:
            found, _ = await self._core.worker.ask(question)
            self._lag[number] = found["behind"]
            if not found["behind"]:
                break
            await asyncio.sleep(0)
        self._counted[number] = arrived

    def _due(self, gate: Gate) -> bool:
        after = self._core.config.retention.compact_seconds
        number, now = gate.record.number, self._core.clock()
        over = now >= gate.closes if gate.record.closed is None else True
        ended = gate.closes if gate.record.closed is None else min(gate.closes, gate.record.closed)
        if after is None or not over or now < ended + after:
            self._over_since.pop(number, None)
            return False
        since = self._over_since.setdefault(number, time.monotonic())
        return time.monotonic() - since >= min(self._patience, after)
