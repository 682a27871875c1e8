"""What everybody may ask: specs, the public list, health, reflection."""

import asyncio
import http.client
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ldp_client.protocol.v1 import collector_pb2
from ldp_server.config import Config
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.metrics import serve_metrics
from tests.server.helpers import PATIENCE, live, make_collection


async def test_specs_are_fetched_by_id_and_listed(tmp_path):
    async with live(tmp_path / "d") as server:
        shown, hidden = make_collection("shown"), make_collection("hidden")
        await server.create(shown)
        await server.create(hidden, unlisted=True)
        for collection in (shown, hidden):
            found = await server.collector.GetCollection(
                collector_pb2.GetCollectionRequest(collection_id=collection.id)
            )
            assert found.spec_bytes == collection.spec_bytes
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await server.collector.GetCollection(collector_pb2.GetCollectionRequest(collection_id=bytes(32)))
        assert missing.value.code() is grpc.StatusCode.NOT_FOUND
        listed = await server.collector.ListCollections(collector_pb2.ListCollectionsRequest())
        assert listed.ids == shown.id
        assert not listed.HasField("signed_list")


async def test_health_speaks_for_both_services(tmp_path):
    async with live(tmp_path / "d") as server:
        health = health_pb2_grpc.HealthStub(server.channel)
        for service in ("", "ldp.v1.Collector", "ldp.v1.Analyst"):
            found = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert found.status == health_pb2.HealthCheckResponse.SERVING


async def reflected(channel):
    """The services that reflection names, and the Collector's file with the files that it needs."""
    from google.protobuf import descriptor_pb2
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    mirror, request = reflection_pb2_grpc.ServerReflectionStub(channel), reflection_pb2.ServerReflectionRequest
    ask = [request(list_services=""), request(file_containing_symbol="ldp.v1.Collector")]
    services, file = [r async for r in mirror.ServerReflectionInfo(iter(ask))]
    described = descriptor_pb2.FileDescriptorProto.FromString(file.file_descriptor_response.file_descriptor_proto[0])
    ask = [request(file_by_filename=name) for name in described.dependency]
    needed = [r.file_descriptor_response.file_descriptor_proto[0] async for r in mirror.ServerReflectionInfo(iter(ask))]
    return {service.name for service in services.list_services_response.service}, described, needed


async def test_reflection_describes_both_services(tmp_path):
    """A call is put together from what reflection told, and not from the generated code."""
    from google.protobuf import descriptor_pool, message_factory

    async with live(tmp_path / "d") as server:
        services, described, needed = await reflected(server.channel)
        assert {"ldp.v1.Collector", "ldp.v1.Analyst"} <= services
        methods = {method.name: method for service in described.service for method in service.method}
        assert methods["SubmitStream"].client_streaming
        assert methods["SubmitStream"].server_streaming
        pool = descriptor_pool.DescriptorPool()
        for file in needed:
            pool.AddSerializedFile(file)
        pool.Add(described)
        method = methods["ListCollections"]
        names = [kind.removeprefix(".") for kind in (method.input_type, method.output_type)]
        request, response = (message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names)
        collection = make_collection()
        await server.create(collection)
        call = server.channel.unary_unary(
            "/ldp.v1.Collector/ListCollections",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        assert (await call(request())).ids == collection.id


async def test_a_watch_of_health_does_not_keep_a_server_that_drains(tmp_path):
    """It is told NOT_SERVING and ends. Else the server would wait for it as long as calls under way may take."""
    status = health_pb2.HealthCheckResponse
    async with live(tmp_path / "d") as server:
        health = health_pb2_grpc.HealthStub(server.channel)
        known = health.Watch(health_pb2.HealthCheckRequest())
        unknown = health.Watch(health_pb2.HealthCheckRequest(service="no.such.Service"))
        here, nowhere = aiter(known), aiter(unknown)
        assert (await anext(here)).status == status.SERVING
        assert (await anext(nowhere)).status == status.SERVICE_UNKNOWN
        stopping = asyncio.create_task(server.server.stop(grace=3600))
        assert [one.status async for one in _until_it_ends(here)] == [status.NOT_SERVING]
        assert [one.status async for one in _until_it_ends(nowhere)] == []
        await asyncio.wait_for(stopping, 60)


async def _until_it_ends(answers):
    try:
        async for one in answers:
            yield one
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_health_over_http_is_served_beside_the_metrics(tmp_path):
    async with live(tmp_path / "d") as server:
        port = serve_metrics("127.0.0.1", 0, server.server.metrics.registry, lambda: server.server.serving)

        def get(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", path)
            response = connection.getresponse()
            found = response.status, response.read()
            connection.close()
            return found

        assert await asyncio.to_thread(get, "/healthz") == (200, b"serving\n")
        status, body = await asyncio.to_thread(get, "/metrics")
        assert status == 200
        assert b"hearsay_streams" in body
        server.server.request_stop()
        assert await asyncio.to_thread(get, "/healthz") == (503, b"not serving\n")


def test_a_server_whose_event_loop_stands_still_is_not_serving(monkeypatch):
    server = CollectionServer(Config())
    now = 1000.0
    monkeypatch.setattr("ldp_server.service.running.time", SimpleNamespace(monotonic=lambda: now))
    assert not server.serving
    server._seen = now - 5
    assert server.serving
    now += 6
    assert not server.serving
