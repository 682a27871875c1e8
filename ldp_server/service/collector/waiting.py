"""What is received and not yet durable, with the counters of the collections."""

from __future__ import annotations

from collections.abc import Callable

from ldp_server.sealing.opening import REPLAYED
from ldp_server.service.intake import UnderWay
from ldp_server.service.live import LiveCollections
from ldp_server.service.metrics import Metrics

__all__ = ["Waiting"]


class Waiting(UnderWay):
    """The submissions under way, and how many batches each collection got."""

    def __init__(self, collections: LiveCollections, metrics: Metrics, limit: int, clock: Callable[[], float]) -> None:
        super().__init__(metrics, limit)
        self._collections = collections
        self._counters = metrics
        self._clock = clock
        self.stored: dict[int, int] = {}
        """Batches made durable since the start, by the collection's number."""

    def _count_stored(self, number: int, batches: int, reports: int) -> None:
        self.stored[number] = self.stored.get(number, 0) + batches
        live = self._collections.numbered(number)
        live.arrivals.note(reports, self._clock())
        self._counters.batches.labels(live.label).inc(batches)
        self._counters.reports.labels(live.label).inc(reports)

    def _count_replayed(self, units: int) -> None:
        self._counters.dropped_units.labels(REPLAYED).inc(units)

    def _count_duplicate(self, number: int) -> None:
        self._counters.duplicates.labels(self._collections.numbered(number).label).inc()
