"""Traces of a real server: what has a span, and that no span says what nobody may know."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Strings
from ldp_client.protocol.v1 import analyst_pb2
from ldp_server.config import Config, WatchConfig, parse_config
from ldp_server.heavy_hitters import planner
from ldp_server.service.assemble import CollectionServer
from ldp_server.watch import Spans, spans_to
from tests.server.helpers import ROOT, ServerProcess, batch, bearer, live, make_collection, taken, until

SECRET = "swordfish"
FIELDS = {"hearsay.collection", "hearsay.status", "hearsay.error"}
VALUES = re.compile(r"[0-9a-f]{12}|[A-Z_]{2,30}|[A-Z][A-Za-z]{3,30}")


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
async def traced(tmp_path, exporter):
    async with live(tmp_path / "d", spans=Spans(SimpleSpanProcessor(exporter))) as server:
        yield server


def words():
    domain = Strings(4)
    plan = planner.plan(1000, domain, "4")
    return planner.create(f"Which {SECRET}?", domain, "4", plan, opens=0, closes=1 << 33)


def named(exporter, name):
    return [span for span in exporter.get_finished_spans() if span.name == name]


async def only(exporter, name):
    """The one span of a name. A call's span ends after its caller has the answer."""
    await until(lambda: named(exporter, name))
    (found,) = named(exporter, name)
    return found


async def test_a_call_has_a_span_with_its_collection_and_its_end(traced, exporter):
    collection = make_collection()
    await traced.create(collection)
    await traced.collector.Submit(batch(collection, 30))
    await traced.call("Estimate", collection, top=analyst_pb2.TopItems(count=3))
    call = await only(exporter, "analyst/Estimate")
    assert call.attributes == {"hearsay.collection": collection.id.hex()[:12], "hearsay.status": "OK"}
    asked = await only(exporter, "worker/AskEstimate")
    assert asked.parent.span_id == call.context.span_id
    assert call.start_time <= asked.start_time <= asked.end_time <= call.end_time
    assert [event.name for event in asked.events] == ["the process is free"]


async def test_a_search_names_its_stages(traced, exporter):
    collection = words()
    await traced.create(collection)
    request = analyst_pb2.HeavyHittersRequest(collection_id=collection.id)
    async for _ in traced.analyst.HeavyHitters(request, metadata=traced.auth):
        pass
    search = await only(exporter, "worker/AskDecode")
    events = [event.name for event in search.events]
    assert events[0] == "the process is free"
    assert set(events[1:]) <= {"counting", "transform", "search", "done"}
    assert len(set(events)) == len(events) >= 2
    call = await only(exporter, "analyst/HeavyHitters")
    assert search.parent.span_id == call.context.span_id


async def test_a_call_that_fails_has_its_status_and_no_words(traced, exporter):
    unknown = make_collection("Never created?")
    with pytest.raises(grpc.aio.AioRpcError):
        await traced.call("Estimate", unknown, top=analyst_pb2.TopItems(count=1))
    with pytest.raises(grpc.aio.AioRpcError):
        await traced.analyst.ServerStatus(analyst_pb2.ServerStatusRequest(), metadata=bearer(f"hearsay_{SECRET}"))
    call = await only(exporter, "analyst/Estimate")
    assert call.attributes["hearsay.status"] == "NOT_FOUND"
    assert not call.status.is_ok
    assert call.status.description is None
    stranger = await only(exporter, "analyst/ServerStatus")
    assert stranger.attributes == {"hearsay.status": "UNAUTHENTICATED"}


async def test_background_work_has_spans(traced, exporter):
    collection = make_collection()
    await traced.create(collection)
    taken(await traced.collector.Submit(batch(collection, 30)))
    exporter.clear()
    await traced.server.parts.background.once()
    work = await only(exporter, "background/checkpoint")
    assert work.attributes == {"hearsay.collection": collection.id.hex()[:12]}
    assert named(exporter, "worker/AskAdvance")[0].parent.span_id == work.context.span_id


async def test_what_apps_send_has_no_span(traced, exporter):
    collection = make_collection()
    await traced.create(collection)
    exporter.clear()
    for _ in range(3):
        taken(await traced.collector.Submit(batch(collection, 2)))
    assert exporter.get_finished_spans() == ()


async def test_no_span_holds_an_item_a_token_an_address_or_a_report(traced, exporter):
    collection = Collection.create(
        f"Which {SECRET}?",
        Strings(9),
        "hashtogram",
        "2",
        opens=0,
        closes=1 << 33,
        parameters={"rows": 2, "q": 3, "t": 4},
    )
    await traced.create(collection)
    request = batch(collection, 40)
    taken(await traced.collector.Submit(request))
    item = analyst_pb2.Item(text=SECRET)
    await traced.call("Estimate", collection, given=analyst_pb2.GivenItems(items=[item]))
    with pytest.raises(grpc.aio.AioRpcError):
        await traced.call("Estimate", collection, given=analyst_pb2.GivenItems(items=[analyst_pb2.Item(integer="7")]))
    await traced.counts(collection)
    spans = exporter.get_finished_spans()
    assert len(spans) >= 5
    for span in spans:
        assert set(span.attributes) <= FIELDS
        for value in span.attributes.values():
            assert VALUES.fullmatch(value), value
        assert all(event.attributes == {} for event in span.events)
        assert span.status.description is None
        text = span.to_json()
        for secret in (SECRET, traced.token, traced.token.split("_")[1], "127.0.0.1", request.payload.hex(), "test-"):
            assert secret not in text


@pytest.mark.parametrize("raised", [RuntimeError(SECRET), InvalidSpec(SECRET), asyncio.CancelledError()])
@pytest.mark.parametrize("around", [True, False])
def test_a_span_ends_without_the_words_of_an_exception(exporter, raised, around):
    spans = Spans(SimpleSpanProcessor(exporter))
    with pytest.raises(type(raised)), spans.span("work", around=around):
        raise raised
    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok
    assert SECRET not in span.to_json()


class Endpoint(trace_service_pb2_grpc.TraceServiceServicer):
    """An OTLP endpoint that keeps what it receives."""

    def __init__(self):
        self.names = []

    def Export(self, request, context):
        for resource in request.resource_spans:
            self.names += [span.name for scope in resource.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


def test_a_server_sends_its_spans_to_an_endpoint(tmp_path):
    received = Endpoint()
    endpoint = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(received, endpoint)
    port = endpoint.add_insecure_port("127.0.0.1:0")
    endpoint.start()
    file = tmp_path / "server.toml"
    file.write_text(f'[watch]\ntraces = "http://127.0.0.1:{port}"\n')
    # Traffic to this machine stays on it: a proxy that does not exist would swallow the spans.
    proxy = {"http_proxy": "http://127.0.0.1:9", "grpc_proxy": "http://127.0.0.1:9"}
    with ServerProcess(tmp_path / "d", "--config", str(file), environment=proxy) as server, server.analyst() as analyst:
        analyst.create(make_collection())
    assert "analyst/CreateCollection" in received.names  # sent at the latest when the server stops
    endpoint.stop(None)


def test_a_server_whose_endpoint_is_gone_serves_and_stops(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text('[watch]\ntraces = "http://127.0.0.1:9"\n')
    with ServerProcess(tmp_path / "d", "--config", str(file)) as server:
        with server.analyst() as analyst:
            analyst.create(make_collection())
        process = server.process
        server.stop()
    assert process.returncode == 0


def test_traces_are_off_unless_configured():
    assert spans_to("") is None
    assert CollectionServer(Config())._spans is None


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("127.0.0.1:4317", "OTLP endpoint"),
        ("grpc://127.0.0.1:4317", "OTLP endpoint"),
        ("http://127.0.0.1", "host:port"),
        ("http://otel.example.org:4317", "unencrypted"),
        ("http://127.example.org:4317", "unencrypted"),
    ],
)
def test_endpoints_that_make_no_sense_are_refused(endpoint, says):
    with pytest.raises(InvalidSpec, match=says):
        parse_config(f'[watch]\ntraces = "{endpoint}"\n', ROOT)


def test_without_the_extra_the_server_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    config = replace(Config(), watch=WatchConfig(traces="https://otel.example.org:4317"))
    with pytest.raises(InvalidSpec, match=r"pip install 'hearsay\[server,otel\]'"):
        CollectionServer(config)
