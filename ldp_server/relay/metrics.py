"""What a relay counts, for Prometheus. Every counter is there from the start (ldp_server/service/metrics.py)."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

from ldp_server.service.metrics import OTHER, IntakeMetrics, Labels, begin

__all__ = ["GIVEN_UP", "RelayMetrics"]

GIVEN_UP = ("too few", "refused", "never taken")
"""Why reports are given up: the window ended with fewer than the smallest batch; the collection server refused a batch
for good; it took none until long after the window."""


class RelayMetrics(IntakeMetrics):
    """The counters of a relay."""

    def __init__(self, collections: int = 100) -> None:
        super().__init__()
        self._labels = Labels(collections, self._begin_collection)
        registry = self.registry
        self.held = Counter(
            "hearsay_relay_reports", "Reports taken and made durable", ["collection"], registry=registry
        )
        self.duplicates = Counter(
            "hearsay_relay_duplicates", "Batches of which every report was there already", ["collection"],
            registry=registry,
        )  # fmt: skip
        self.releases = Counter("hearsay_relay_releases", "Releases", ["collection"], registry=registry)
        self.released = Counter("hearsay_relay_released_reports", "Reports released", ["collection"], registry=registry)
        self.merged = Counter(
            "hearsay_relay_merged_reports", "Reports released with those of a later period", ["collection"],
            registry=registry,
        )  # fmt: skip
        self.forwarded = Counter(
            "hearsay_relay_forwarded_reports", "Reports that the collection server has taken", ["collection"],
            registry=registry,
        )  # fmt: skip
        self.given_up = Counter("hearsay_relay_given_up_reports", "Reports given up", ["why"], registry=registry)
        self.away = Counter(
            "hearsay_relay_forward_failures", "Attempts to reach the collection server that failed", registry=registry
        )
        self.list_failures = Counter(
            "hearsay_relay_list_failures", "Attempts to fetch the list of collections that failed", registry=registry
        )
        self.short = Gauge(
            "hearsay_relay_short_rounds", "Rounds in a row that ended with too few reports", ["collection"],
            registry=registry,
        )  # fmt: skip
        self.outgoing = Gauge(
            "hearsay_relay_outgoing", "Whether released reports wait for the collection server", registry=registry
        )
        self.held_bytes = Gauge("hearsay_relay_held_bytes", "Reports held or on their way", registry=registry)
        self.collections = Gauge("hearsay_relay_collections", "Collections that are served", registry=registry)
        begin(self.given_up, GIVEN_UP)
        self._begin_collection(OTHER)

    def _begin_collection(self, label: str) -> None:
        for counter in (self.held, self.duplicates, self.releases, self.released, self.merged, self.forwarded):
            counter.labels(label)
        self.short.labels(label)

    def label(self, collection_id: bytes) -> str:
        """The collection's label."""
        return self._labels.of(collection_id)
