"""Traces: a span for each call of an analyst, for each question to the estimating process, and for background work.

Traces are off unless `watch.traces` names where they go. While they are off there are no `Spans`.

A span has a name, a time, the first digits of a collection's id and a status. It never has an item, a token, a caller,
an address, a report, the text of a question or that of an error.

What apps send is not traced. A span for each batch would say when it arrived, and the log takes care to forget the
order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ldp_client import __version__
from ldp_client.errors import InvalidSpec, LdpError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span as OtelSpan

__all__ = ["Span", "Spans", "spans_to"]

_EXPORT_SECONDS = 5.0


class Span:
    """One piece of work under way."""

    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    def note(self, **fields: str) -> None:
        """Add fields, such as the status that a call ended with."""
        self._span.set_attributes({f"hearsay.{name}": value for name, value in fields.items()})

    def event(self, name: str) -> None:
        """Note that something happened now, such as the next stage of a search."""
        self._span.add_event(name)


class Spans:
    """Gives spans to a processor of OpenTelemetry, which exports them."""

    def __init__(self, processor: SpanProcessor) -> None:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

        resource = Resource.create({"service.name": "hearsay", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("hearsay", __version__)

    @contextmanager
    def span(self, name: str, *, around: bool = True, **fields: str) -> Iterator[Span]:
        """Time the block. Spans that begin inside it are part of it, if it is `around` them.

        A generator may give control away inside the block. It takes `around=False`.
        """
        from opentelemetry.trace import StatusCode, use_span  # noqa: PLC0415

        started = self._tracer.start_span(name)
        span = Span(started)
        span.note(**fields)
        try:
            if around:
                with use_span(started, record_exception=False, set_status_on_exception=False):
                    yield span
            else:
                yield span
        except BaseException as error:
            started.set_status(StatusCode.ERROR)
            if isinstance(error, LdpError):
                span.note(error=type(error).__name__)
            raise
        finally:
            started.end()

    def close(self) -> None:
        """Send what has not been sent."""
        self._provider.shutdown()


def spans_to(endpoint: str) -> Spans | None:
    """Return spans that are sent to an OTLP endpoint, over gRPC; None if there is none."""
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InvalidSpec("watch.traces needs OpenTelemetry: pip install 'hearsay[server,otel]'") from None
    plain = endpoint.startswith("http://")
    options: Any = (("grpc.enable_http_proxy", 0),) if plain else ()  # plain text stays on this machine (config.py)
    exporter = OTLPSpanExporter(endpoint, insecure=plain, timeout=_EXPORT_SECONDS, channel_options=options)
    return Spans(BatchSpanProcessor(exporter))
