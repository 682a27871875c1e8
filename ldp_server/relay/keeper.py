"""What a relay does by the clock: it ends rounds, and keeps no order of arrival on the disk."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ldp_client.errors import LdpError, StorageError
from ldp_server.relay.forward import Forwarder
from ldp_server.relay.lasting import Lasting
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.served import Served, ServedCollections
from ldp_server.relay.store import Ended, RelayLog
from ldp_server.service.logs import event
from ldp_server.store import GroupCommit

__all__ = ["Keeper", "log_ended", "update_gauges"]

_TICK = 1.0
"""Seconds between looks at the clock."""
_LAY_EVERY = 30.0
"""Seconds after which recent units are written again in the order of their digests."""


class Keeper:
    """Ends the rounds of all collections. What it does runs on the writer thread, between groups."""

    def __init__(
        self,
        served: ServedCollections,
        commit: GroupCommit[RelayLog],
        metrics: RelayMetrics,
        forwarder: Forwarder,
        remember: int,
        clock: Callable[[], float],
    ) -> None:
        """`remember` is for how many rounds digests are kept after their reports have gone."""
        self._served = served
        self._commit = commit
        self._metrics = metrics
        self._forwarder = forwarder
        self._remember = remember
        self._clock = clock
        self._ended: dict[int, tuple[int, bool]] = {}
        """By the collection's number: the newest round that was ended, and whether it was surely the last one."""
        self.lasting = Lasting()

    async def run(self, tick: float = _TICK) -> None:
        """Work until cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(tick)

    async def run_laying(self, every: float = _LAY_EVERY) -> None:
        """Lay the store anew until cancelled."""
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.wrap_future(self._commit.run(_lay))
            except StorageError:
                continue  # the next group of batches meets the same trouble, and it is reported there

    async def once(self) -> None:
        """End the rounds that are over."""
        for served in self._served:
            over = served.rounds.over(self._clock())
            sure = self.lasting.holds(served.number, over >= served.rounds.last)
            if self._ended.get(served.number) == (over, sure):
                continue
            try:
                work = partial(self._end, served=served, over=over, sure=sure)
                ended = await asyncio.wrap_future(self._commit.run(work))
            except StorageError:
                continue  # nothing has changed; it is tried again
            except LdpError as error:
                event(logging.ERROR, "a round could not be ended", collection=served.label, reason=str(error))
                continue
            self._ended[served.number] = over, sure
            self._count(served, ended)

    def _end(self, log: RelayLog, served: Served, over: int, *, sure: bool) -> Ended:
        final = over >= served.rounds.last
        return log.end_round(
            served.number, served.smallest_batch, over, final=final, sure=sure, remember=self._remember
        )

    def _count(self, served: Served, ended: Ended) -> None:
        metrics, label = self._metrics, served.label
        metrics.short.labels(label).set(ended.short)
        metrics.releases.labels(label).inc(len(ended.released))
        metrics.released.labels(label).inc(sum(ended.released))
        metrics.merged.labels(label).inc(ended.merged)
        metrics.given_up.labels("too few").inc(ended.given_up)
        log_ended(served, ended)
        if ended.released:
            self._forwarder.released.set()


def log_ended(served: Served, ended: Ended) -> None:
    """Say what became of a round, in numbers of reports."""
    name, least = served.label, served.smallest_batch
    for count in ended.released:
        event(logging.INFO, "released", collection=name, reports=count)
    if ended.short:
        hint = "nothing goes until there are enough; at the end of the window the rest is deleted"
        event(
            logging.WARNING,
            "too few reports to release",
            collection=name,
            held=ended.waits,
            smallest_batch=least,
            rounds=ended.short,
            hint=hint,
        )
    if ended.given_up:
        reason = f"the window is over with fewer than {least}"
        event(logging.WARNING, "reports were given up", collection=name, reports=ended.given_up, reason=reason)


def _lay(log: RelayLog) -> None:
    log.lay_anew()
    log.purge()


def update_gauges(metrics: RelayMetrics, waiting_bytes: int, batches: int, held_bytes: int, folder: Path) -> None:
    """The metrics that say how things are at this moment."""
    metrics.waiting.set(waiting_bytes)
    metrics.waiting_batches.set(batches)
    metrics.held_bytes.set(held_bytes)
    metrics.free_bytes.set(shutil.disk_usage(folder).free)
