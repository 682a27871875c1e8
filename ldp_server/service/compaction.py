"""Compaction: reports become counts, of a whole collection that is over, or of periods that are long past.

What nothing needs is dropped, like the order of arrival.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import grpc

from ldp_server.service.lifecycle import Lifecycle
from ldp_server.service.live import LiveCollection
from ldp_server.service.wire import CallStatus
from ldp_server.store import CollectionRecord, Fold, GroupCommit, PeriodRecord, ReportLog, fold_parts
from ldp_server.store.checkpoints import drop_checkpoint
from ldp_server.worker.client import Worker

__all__ = ["Compaction"]

T = TypeVar("T")

TRIES = 50
PAUSE = 0.1
"""A reader, or the thread that moves the write-ahead log, may be using it: then it is cleared in a later round."""


class Compaction:
    """Folds and sweeps, one collection at a time, in short pieces of work on the writer thread."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        commit: GroupCommit[ReportLog],
        worker: Worker,
        states: Path,
        clock: Callable[[], float],
    ) -> None:
        self._lifecycle = lifecycle
        self._commit = commit
        self._worker = worker
        self._states = states
        self._clock = clock
        self._lock = asyncio.Lock()

    async def compact(self, live: LiveCollection) -> LiveCollection:
        """Fold a collection that takes no more batches. `sweep` drops its reports afterwards."""
        async with self._lock:
            live = self._lifecycle.collections.numbered(live.record.number)
            record = live.record
            if record.compacted:
                return live
            if record.closed is None and self._clock() < live.takes_until:
                raise CallStatus(
                    grpc.StatusCode.FAILED_PRECONDITION, "the collection still takes batches: close it first"
                )
            await self._on_writer(lambda log: log.seal(record.number))
            try:
                for period in await self._on_writer(lambda log: log.periods(record.number)):
                    await self._fold(record, period)
                return await self._lifecycle.change(lambda log: log.compact(record.number))
            except BaseException:
                # Perhaps the clock was wrong and the window is not over: a fold that failed must not close it.
                # Whoever is told of the failure may send at once, so the seal is off before it is told.
                await asyncio.shield(self._on_writer(lambda log: log.unseal(record.number)))
                raise

    async def retire(self, live: LiveCollection, kept: int, counted: int) -> int:
        """Fold the periods before `kept`, and drop the counts of those before `counted`; return how many changed.

        From now on the collection takes no reports of them: their batch ids go, and with them the means to count a
        batch once.
        """
        async with self._lock:
            record = self._lifecycle.collections.numbered(live.record.number).record
            if record.oldest < max(kept, counted) and not record.compacted:
                await self._lifecycle.change(lambda log: log.take_from(record.number, max(kept, counted)))
            changed = 0
            for period in await self._on_writer(lambda log: log.periods(record.number)):
                old = period.period < max(kept, counted) and period.generation is None
                gone = period.period < counted and not period.dropped
                if old:
                    await self._fold(record, period)
                if gone:
                    await self._on_writer(lambda log, one=period: log.drop_period(one.number))  # type: ignore[misc]
                    drop_checkpoint(self._states, record.id, period.period, period.shard)
                changed += old or gone
            return changed

    async def _fold(self, record: CollectionRecord, period: PeriodRecord) -> None:
        """Fold one period that takes no more batches."""
        if period.generation is not None:
            return
        number, generation = period.number, secrets.randbits(62)
        await self._on_writer(lambda log: log.finish(number))
        counts = await self._worker.checkpoint(record, period)
        for part in fold_parts(number, generation, counts.state):
            await self._on_writer(lambda log, part=part: log.write_part(part))  # type: ignore[misc]
        size, sequence = len(counts.state), counts.sequence
        fold = Fold(number, generation, size, sequence, batches=counts.batches, reports=counts.reports)
        await self._on_writer(lambda log: log.fold(fold))

    async def lead(self) -> bool:
        """Whether this server is to do the work in the background."""
        return await self._on_writer(lambda log: log.lead())

    async def gather(self) -> None:
        """Make blocks of the recent batches, where there are enough of them."""
        while await self._on_writer(lambda log: log.lead() and log.gather()):
            await asyncio.sleep(0)

    async def sweep(self) -> None:
        """Drop what nothing refers to any more, slice by slice, so that ingest goes on between slices."""
        more = True
        while more:
            async with self._lock:
                more = await self._on_writer(lambda log: log.sweep())
            await asyncio.sleep(0)
        await asyncio.to_thread(self._lifecycle.drop_checkpoints)

    async def forget(self) -> None:
        """Let no byte of the log's files show the order of arrival, or what was deleted."""
        while await self._on_writer(lambda log: log.lay_anew()):
            await asyncio.sleep(0)
        for _ in range(TRIES):
            if await self._on_writer(lambda log: log.purge()):
                return
            await asyncio.sleep(PAUSE)

    async def _on_writer(self, work: Callable[[ReportLog], T]) -> T:
        return await asyncio.wrap_future(self._commit.run(work))
