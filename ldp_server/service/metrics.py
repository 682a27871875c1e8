"""What the server counts, for Prometheus.

Counters change once for each group of batches, outside of the commit. A collection's label is the first twelve digits
of its id. The number of labels is bounded: further collections are counted together as "other".

Every counter is there from the start, with 0 for each value of its label. A counter that begins to exist with its first
event hides this event from `rate` and `increase`, and an alert on it would come one event late.

They are served over HTTP by threads of their own, with /healthz beside them. So a caller that fills the gRPC ports
cannot keep a health check out.
"""

from __future__ import annotations

import platform
import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, make_wsgi_app

from ldp_client import __version__
from ldp_client.protocol.v1 import collector_pb2
from ldp_server.sealing.opening import DROPPED

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

__all__ = [
    "BUSY",
    "OTHER",
    "REFUSED_TOKENS",
    "IntakeMetrics",
    "Labels",
    "Metrics",
    "add_clock",
    "begin",
    "certificate_gauge",
    "serve_metrics",
    "watch_processes",
]

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LONG = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)
OTHER = "other"
BUSY = ("full", "rate", "places", "answers", "unknown")
"""Why a batch or a call is answered "not now"."""
REFUSED_TOKENS = ("unknown", "expired", "revoked", "role", "elsewhere")
"""Why an analyst's token is refused."""
_REASONS = tuple(name for name, number in collector_pb2.Reason.items() if number)
_CODES = tuple(code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK)


class IntakeMetrics:
    """What every server counts that takes batches, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.refused_batches = Counter(
            "hearsay_refused_batches", "Batches refused for good", ["reason"], registry=registry
        )
        self.busy = Counter("hearsay_busy", 'Batches answered "not now"', ["why"], registry=registry)
        self.ended_connections = Counter("hearsay_ended_connections", "Connections ended by us", registry=registry)
        self.malformed = Counter("hearsay_malformed", "Requests that are not a valid message", registry=registry)
        self.storage_errors = Counter("hearsay_storage_errors", "Groups that could not be written", registry=registry)
        self.failures = Counter("hearsay_internal_errors", "Calls that ended in a defect", registry=registry)
        self.waiting = Gauge("hearsay_waiting_bytes", "Received and not yet durable", registry=registry)
        self.waiting_batches = Gauge("hearsay_waiting_batches", "Received and not yet durable", registry=registry)
        self.streams = Gauge("hearsay_streams", "Open streams of batches", registry=registry)
        self.group = Histogram(
            "hearsay_group_batches", "Batches in a commit", buckets=(1, 4, 16, 64, 256, 1024, 4096), registry=registry
        )
        self.commit = Histogram("hearsay_commit_seconds", "One commit", buckets=_SECONDS, registry=registry)
        self.ack = Histogram(
            "hearsay_ack_seconds",
            "Arrival to durable; the oldest batch of each commit",
            buckets=_SECONDS,
            registry=registry,
        )
        self.free_bytes = Gauge("hearsay_disk_free_bytes", "Free space where it lies", registry=registry)
        add_clock(registry)
        self.certificate_ends = certificate_gauge(registry)
        built = Info("hearsay_build", "The program that runs", registry=registry)
        built.info({"version": __version__, "python": platform.python_version(), "grpc": grpc.__version__})
        begin(self.refused_batches, _REASONS)
        begin(self.busy, BUSY)

    @staticmethod
    def by_label(counter: Counter) -> dict[str, int]:
        """Return a counter's values by its label; "" where it has none."""
        return {
            "".join(sample.labels.values()): int(sample.value)
            for metric in counter.collect()
            for sample in metric.samples
            if sample.name.endswith("_total")
        }

    def total(self, counter: Counter) -> int:
        """Return a counter's value, all labels together."""
        return sum(self.by_label(counter).values())


def add_clock(registry: CollectorRegistry) -> None:
    """Export this machine's clock. Prometheus compares it with its own: windows, periods and keys go by it."""
    clock = Gauge("hearsay_clock_seconds", "The time by this machine's clock, since 1970", registry=registry)
    clock.set_function(time.time)


def certificate_gauge(registry: CollectorRegistry) -> Gauge:
    """When the server's own certificate ends: nobody can connect afterwards."""
    return Gauge(
        "hearsay_certificate_ends_seconds", "When the server's own certificate ends, since 1970", registry=registry
    )


def begin(counter: Counter, values: Iterable[str]) -> None:
    """Let a counter begin at 0 for each value of its label."""
    for value in values:
        counter.labels(value)


class Labels:
    """Labels of collections: the first twelve digits of an id, and "other" beyond a number of them."""

    def __init__(self, most: int, begin_one: Callable[[str], None]) -> None:
        """`begin_one` lets the counters of a new label begin at 0."""
        self._most = most
        self._begin = begin_one
        self._labels: dict[bytes, str] = {}

    def of(self, collection_id: bytes) -> str:
        """The label of a collection."""
        label = self._labels.get(collection_id)
        if label is not None:
            return label
        if len(self._labels) >= self._most:
            return OTHER
        self._labels[collection_id] = label = collection_id.hex()[:12]
        self._begin(label)
        return label


class Metrics(IntakeMetrics):
    """The counters of the collection server."""

    def __init__(self, collections: int = 100) -> None:
        super().__init__()
        self._labels = Labels(collections, self._begin_collection)
        registry = self.registry
        self.reports = Counter("hearsay_reports", "Reports made durable", ["collection"], registry=registry)
        self.batches = Counter("hearsay_batches", "Batches made durable", ["collection"], registry=registry)
        self.duplicates = Counter(
            "hearsay_duplicates", "Batches received again and not counted again", ["collection"], registry=registry
        )
        self.dropped_units = Counter(
            "hearsay_dropped_units", "Sealed reports not counted, or counted before", ["reason"], registry=registry
        )
        self.small_batches = Counter(
            "hearsay_small_batches", "Batches of fewer sealed reports than a relay passes on", ["collection"],
            registry=registry,
        )  # fmt: skip
        self.refused_calls = Counter("hearsay_refused_calls", "Analyst calls refused", ["code"], registry=registry)
        self.refused_tokens = Counter("hearsay_refused_tokens", "Analyst tokens refused", ["why"], registry=registry)
        self.damage = Counter("hearsay_damage", "Damage found in stored data", registry=registry)
        self.query = Histogram("hearsay_query_seconds", "An estimate", buckets=_LONG, registry=registry)
        self.decode = Histogram("hearsay_decode_seconds", "A heavy-hitter decode", buckets=_LONG, registry=registry)
        self.log_bytes = Gauge("hearsay_log_bytes", "Size of the database on disk", registry=registry)
        self.lag = Gauge("hearsay_checkpoint_lag_batches", "Batches not yet in a checkpoint", registry=registry)
        self.sealing_key_ends = Gauge(
            "hearsay_sealing_key_ends_seconds", "When the last sealing key ends, since 1970", registry=registry
        )
        self._begin_collection(OTHER)
        begin(self.dropped_units, DROPPED)
        begin(self.refused_calls, _CODES)
        begin(self.refused_tokens, REFUSED_TOKENS)

    def _begin_collection(self, label: str) -> None:
        for counter in (self.reports, self.batches, self.duplicates, self.small_batches):
            counter.labels(label)

    def label(self, collection_id: bytes) -> str:
        """The collection's label."""
        return self._labels.of(collection_id)


def watch_processes(registry: CollectorRegistry, worker: Callable[[], int | None]) -> None:
    """Add memory, processor time and open files of the serving process, and of the estimating process while it runs."""
    ProcessCollector(registry=registry)
    ProcessCollector(namespace="hearsay_worker", pid=lambda: worker() or "none", registry=registry)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    timeout = 10.0

    def log_message(self, *_: object) -> None:
        """Write nothing: a line for each look at the metrics would only fill the log."""


def serve_metrics(host: str, port: int, registry: CollectorRegistry, serving: Callable[[], bool]) -> int:
    """Serve the metrics, and /healthz with status 200 or 503, in a thread; return the port."""
    metrics = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != "/healthz":
            found: Iterable[bytes] = metrics(environ, start)
            return found
        well = serving()
        start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"serving\n" if well else b"not serving\n"]

    made = make_server(host, port, answer, _Server6 if ":" in host else _Server, _Quiet)
    threading.Thread(target=made.serve_forever, name="metrics", daemon=True).start()
    return made.server_port
