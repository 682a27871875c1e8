"""Background work: checkpoints of counts, compaction, sweeping, forgetting the order of arrival, and the gauges.

It runs in slices, so that queries and batches do not wait for it. Compaction by the clock allows for
clocks that jump: a collection must also have been past its window for a while of monotonic time. So one wrong reading
of the wall clock does not end a collection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ldp_client.errors import LdpError
from ldp_server.service.collector import Waiting
from ldp_server.service.compaction import Compaction
from ldp_server.service.live import LiveCollection, LiveCollections
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.metrics import Metrics
from ldp_server.store import StoreUsage
from ldp_server.store.errors import Corrupt
from ldp_server.watch.spans import Spans
from ldp_server.worker.client import Worker

__all__ = ["BackgroundSchedule", "BackgroundWork", "Gauges"]

SLICE_SECONDS = 0.25
GATHER_SECONDS = 1.0


@dataclass
class BackgroundSchedule:
    """When background work is due."""

    clock: Callable[[], float]
    every: float
    """Seconds between rounds."""
    compact_after: float | None
    """Seconds from a collection's end to its compaction; None: never by itself."""
    fold_after: float | None = None
    """Seconds from a period's end to the folding of its reports; None: when its collection is compacted."""
    drop_after: float | None = None
    """Seconds from a period's end until its counts go, too; None: never."""
    patience: float = 600.0
    """Seconds of monotonic time for which a collection or period must be due before it is compacted or folded."""


class Gauges:
    """The metrics that say how things are at this moment, such as a size on disk."""

    def __init__(self, metrics: Metrics, waiting: Waiting, usage: Callable[[], StoreUsage]) -> None:
        self._metrics = metrics
        self._waiting = waiting
        self._usage = usage

    def update(self) -> None:
        metrics = self._metrics
        metrics.waiting.set(self._waiting.bytes)
        metrics.waiting_batches.set(self._waiting.batches)
        usage = self._usage()
        metrics.log_bytes.set(usage.used)
        if usage.free is not None:
            metrics.free_bytes.set(usage.free)


class BackgroundWork:
    """The background task of one server."""

    def __init__(
        self,
        collections: LiveCollections,
        compaction: Compaction,
        worker: Worker,
        arrived: Callable[[int], object],
        metrics: Metrics,
        schedule: BackgroundSchedule,
        spans: Spans | None = None,
    ) -> None:
        """`arrived` gives what changes when batches come for the collection of this number."""
        self._collections = collections
        self._compaction = compaction
        self._worker = worker
        self._arrived = arrived
        self._metrics = metrics
        self.schedule = schedule
        self._spans = spans
        self._over_since: dict[int, float] = {}
        self._past_since: dict[int, tuple[tuple[int, int], float]] = {}
        self._counted: dict[int, object] = {}
        self._lag: dict[int, int] = {}

    async def run(self) -> None:
        """Work in rounds until cancelled. What fails is logged and tried again."""
        while True:
            await asyncio.sleep(self.schedule.every)
            try:
                await self.once()
            except LdpError as error:
                event(logging.WARNING, "background work failed, to be tried again", reason=str(error))
            except Exception as error:
                self._metrics.failures.inc()
                LOGGER.error("defect in background work", exc_info=error)

    async def gather(self) -> None:
        """Make blocks of recent batches every second, where the log does not do so while it appends.

        Trouble is logged once, and again when it is another one.
        """
        said = ""
        while True:
            await asyncio.sleep(GATHER_SECONDS)
            try:
                await self._compaction.gather()
                said = ""
            except LdpError as error:
                if str(error) != said:
                    said = str(error)
                    event(logging.WARNING, "blocks were not laid, to be tried again", reason=said)

    async def once(self) -> None:
        """One round over all collections, if no other server does it."""
        if not await self._compaction.lead():
            return
        for live in self._collections:
            if live.record.deleted is None:
                try:
                    await self._tend(live)
                except Corrupt as error:  # the other collections go on
                    self._metrics.damage.inc()
                    event(logging.ERROR, "a collection is damaged", collection=live.label, reason=str(error))
        self._metrics.lag.set(sum(self._lag.values()))
        await self._compaction.sweep()
        await self._compaction.forget()

    async def _tend(self, live: LiveCollection) -> None:
        if not live.record.compacted:
            await self._checkpoint(live)
        await self._retire(live)
        if not live.record.compacted and self._due(live):
            with self._span("compact", live):
                await self._compaction.compact(live)
            event(logging.INFO, "compacted", collection=live.label)

    def _span(self, name: str, live: LiveCollection) -> AbstractContextManager[object]:
        return self._spans.span(f"background/{name}", collection=live.label) if self._spans else nullcontext()

    async def _checkpoint(self, live: LiveCollection) -> None:
        """Count in slices, so that a query never waits long for the child."""
        number = live.record.number
        arrived = self._arrived(number)
        if self._counted.get(number) == arrived:
            return  # nothing came since the last round
        behind = 1
        with self._span("checkpoint", live):
            while behind:
                behind = (await self._worker.advance(number, SLICE_SECONDS)).behind
                self._lag[number] = behind
                await asyncio.sleep(0)
        self._counted[number] = arrived

    async def _retire(self, live: LiveCollection) -> None:
        """Fold and drop the periods that are long past."""
        wanted, number = self._past(live), live.record.number
        if wanted == (0, 0):
            return
        due, since = self._past_since.get(number, (wanted, time.monotonic()))
        if wanted < due:  # the clock was wrong
            due, since = wanted, time.monotonic()
        self._past_since[number] = due, since
        if time.monotonic() - since < self.schedule.patience:
            return
        changed = await self._compaction.retire(live, *due)
        del self._past_since[number]
        if changed:
            event(logging.INFO, "periods folded or dropped", collection=live.label, periods=changed)

    def _past(self, live: LiveCollection) -> tuple[int, int]:
        """The first period that is not to be folded yet, and the first one whose counts are not to be dropped yet."""
        if not live.period_seconds:
            return 0, 0
        now, length = self.schedule.clock(), live.period_seconds
        fold, drop = (
            0 if after is None else min(max(0, int((now - after) // length)), live.periods[1] + 1)
            for after in (self.schedule.fold_after, self.schedule.drop_after)
        )
        return fold, drop

    def _due(self, live: LiveCollection) -> bool:
        after, patience = self.schedule.compact_after, self.schedule.patience
        number, now, closed = live.record.number, self.schedule.clock(), live.record.closed
        ended = live.closes if closed is None else min(live.closes, closed)
        over = closed is not None or now >= live.takes_until
        if after is None or not over or now < ended + after:
            self._over_since.pop(number, None)
            return False
        since = self._over_since.setdefault(number, time.monotonic())
        return time.monotonic() - since >= min(patience, after)
