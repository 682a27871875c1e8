"""What everybody may ask: specs, the public list, health, reflection."""

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2
from tests.server.helpers import live, make_collection


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
        assert list(listed.spec_bytes) == [shown.spec_bytes]
        assert not listed.HasField("signed_list")


async def test_the_signed_list_only_grows_and_its_signature_fits(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from ldp_server.config import PublishConfig
    from ldp_server.service.admission.tokens import load_public_key, make_key

    make_key(tmp_path / "list.key")
    make_key(tmp_path / "next.key")
    publish = PublishConfig(signing_key=tmp_path / "list.key", next_key=tmp_path / "next.key.pub")
    public = load_public_key(tmp_path / "list.key.pub").public_bytes_raw()
    ask = collector_pb2.ListCollectionsRequest()
    lists = []
    async with live(tmp_path / "d", publish=publish) as server:
        for name in ("one", "two"):
            await server.create(make_collection(name))
            lists.append((await server.collector.ListCollections(ask)).signed_list)
        await server.call("DeleteCollection", make_collection("one"))
        await server.create(make_collection("three"))
    async with live(tmp_path / "d", publish=publish) as server:
        final = await server.collector.ListCollections(ask)
        lists.append(final.signed_list)
    held = []
    for signed in lists:
        assert signed.public_key == public
        Ed25519PublicKey.from_public_bytes(public).verify(
            signed.signature, b"hearsay/collection-list/v1" + signed.list_bytes
        )
        content = collector_pb2.SignedListBody.FromString(signed.list_bytes)
        assert list(content.spec_bytes)[: len(held)] == held
        assert content.serial == len(content.spec_bytes)
        assert content.next_key == load_public_key(tmp_path / "next.key.pub").public_bytes_raw()
        held = list(content.spec_bytes)
    assert len(held) == 3
    assert [*final.spec_bytes] == held[1:]


async def test_health_and_reflection_speak_for_both_services(tmp_path):
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    async with live(tmp_path / "d") as server:
        health = health_pb2_grpc.HealthStub(server.channel)
        for service in ("", "ldp.v1.Collector", "ldp.v1.Analyst"):
            found = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert found.status == health_pb2.HealthCheckResponse.SERVING
        mirror = reflection_pb2_grpc.ServerReflectionStub(server.channel)
        ask = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="ldp.v1.Collector"),
        ]
        services, file = [r async for r in mirror.ServerReflectionInfo(iter(ask))]
        assert {"ldp.v1.Collector", "ldp.v1.Analyst"} <= {s.name for s in services.list_services_response.service}
        from google.protobuf import descriptor_pb2

        described = descriptor_pb2.FileDescriptorProto.FromString(
            file.file_descriptor_response.file_descriptor_proto[0]
        )
        methods = {m.name: m for s in described.service for m in s.method}
        assert methods["SubmitStream"].client_streaming
        assert methods["SubmitStream"].server_streaming
        # A call put together from what reflection told, not from our generated code.
        from google.protobuf import descriptor_pool, message_factory

        pool = descriptor_pool.DescriptorPool()
        ask = [reflection_pb2.ServerReflectionRequest(file_by_filename=name) for name in described.dependency]
        async for needed in mirror.ServerReflectionInfo(iter(ask)):
            pool.AddSerializedFile(needed.file_descriptor_response.file_descriptor_proto[0])
        pool.Add(described)
        kinds = [
            message_factory.GetMessageClass(pool.FindMessageTypeByName(methods["ListCollections"].input_type[1:])),
            message_factory.GetMessageClass(pool.FindMessageTypeByName(methods["ListCollections"].output_type[1:])),
        ]
        collection = make_collection()
        await server.create(collection)
        call = server.channel.unary_unary(
            "/ldp.v1.Collector/ListCollections",
            request_serializer=kinds[0].SerializeToString,
            response_deserializer=kinds[1].FromString,
        )
        assert list((await call(kinds[0]())).spec_bytes) == [collection.spec_bytes]
