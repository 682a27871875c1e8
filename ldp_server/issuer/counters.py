"""What the issuer counts, for Prometheus. No account has a label: how many tokens one got is nobody's business here."""

from __future__ import annotations

import platform

import grpc
from prometheus_client import CollectorRegistry, Counter, Histogram, Info

from ldp_client import __version__
from ldp_server.service.metrics import add_clock, certificate_gauge

__all__ = ["REFUSED_REQUESTS", "IssuerMetrics"]

REFUSED_REQUESTS = ("secret", "malformed", "key", "limit", "rate", "places")
"""Why a request is refused."""
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class IssuerMetrics:
    """The counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.signed = Counter("hearsay_issuer_tokens", "Tokens signed for the first time", registry=registry)
        self.again = Counter("hearsay_issuer_again", "Requests signed again", registry=registry)
        self.refused = Counter("hearsay_issuer_refused", "Calls refused", ["why"], registry=registry)
        self.faults = Counter("hearsay_issuer_faults", "Signatures that did not verify", registry=registry)
        self.failures = Counter("hearsay_issuer_errors", "Calls that ended in a defect", registry=registry)
        self.ended = Counter("hearsay_issuer_ended_connections", "Connections ended by us", registry=registry)
        self.seconds = Histogram("hearsay_issuer_seconds", "One call", buckets=_SECONDS, registry=registry)
        add_clock(registry)
        self.certificate_ends = certificate_gauge(registry)
        built = Info("hearsay_build", "The program that runs", registry=registry)
        built.info({"version": __version__, "python": platform.python_version(), "grpc": grpc.__version__})
        for why in REFUSED_REQUESTS:
            self.refused.labels(why)
