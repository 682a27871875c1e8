"""What apps may send, and what they are told, through the real generated client."""

import asyncio
import os

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2, collector_pb2
from ldp_server.config import AdmissionConfig, LimitsConfig
from ldp_server.service.admission import AdmissionControl
from tests.server.helpers import NOW, Clock, batch, live, make_collection, payload, reason, taken


async def send(server, requests):
    return [response async for response in server.collector.SubmitStream(iter(requests))]


async def test_a_batch_is_acknowledged_counted_and_not_counted_again(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        request = batch(collection, 5)
        first = taken(await server.collector.Submit(request))
        again = taken(await server.collector.Submit(request))
        assert (first.reports, first.duplicate) == (5, False)
        assert (again.reports, again.duplicate) == (5, True)
        found = await server.show(collection)
        assert (found.reports, found.batches) == (5, 1)


async def test_the_same_id_with_another_payload_is_a_conflict(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        request = batch(collection, payload=payload(collection, 3, start=1))
        taken(await server.collector.Submit(request))
        request.payload = payload(collection, 3, start=2)
        assert reason(await server.collector.Submit(request)) == "BATCH_ID_CONFLICT"
        assert (await server.show(collection)).reports == 3


async def test_concurrent_duplicates_count_once(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        requests = [batch(collection, 2) for _ in range(20)]
        calls = [server.collector.Submit(r) for r in requests * 5]
        streams = [send(server, reversed(requests)) for _ in range(3)]
        unary = await asyncio.gather(*calls)
        streamed = await asyncio.gather(*streams)
        answers = [*unary, *(a for answers in streamed for a in answers)]
        assert sum(not taken(a).duplicate for a in answers) == 20
        assert (await server.show(collection)).reports == 40


async def test_answers_of_a_stream_come_in_order_with_refusals_among_them(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        good = [batch(collection, 1 + i % 3) for i in range(300)]
        bad = batch(collection, payload=b"\xff" * collection.randomizer.report_bytes)
        answers = await send(server, [*good[:100], bad, *good[100:]])
        assert [a.batch_id for a in answers] == [r.batch_id for r in [*good[:100], bad, *good[100:]]]
        assert reason(answers[100]) == "REPORT_OUT_OF_RANGE"
        assert sum(a.WhichOneof("outcome") == "accepted" for a in answers) == 300
        assert (await server.show(collection)).reports == sum(1 + i % 3 for i in range(300))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"collection_id": b""}, "BAD_COLLECTION_ID"),
        ({"collection_id": b"x" * 31}, "BAD_COLLECTION_ID"),
        ({"collection_id": b"x" * 32}, "UNKNOWN_COLLECTION"),
        ({"batch_id": b""}, "BAD_BATCH_ID"),
        ({"batch_id": b"x" * 17}, "BAD_BATCH_ID"),
        ({"payload": b""}, "EMPTY_BATCH"),
        ({"payload": bytes(3)}, "WRONG_LENGTH"),
        ({"payload": bytes(250_002)}, "BATCH_TOO_LARGE"),
        ({"payload": b"\xff\xff"}, "REPORT_OUT_OF_RANGE"),
    ],
)
async def test_each_kind_of_bad_batch_has_its_reason_and_its_counter(tmp_path, change, expected):
    async with live(tmp_path / "d") as server:
        collection = make_collection(q=5, t=5)
        assert collection.randomizer.report_bytes == 2
        await server.create(collection)
        request = batch(collection, **change)
        assert reason(await server.collector.Submit(request)) == expected
        assert reason((await send(server, [request]))[0]) == expected
        counted = server.server.metrics.registry.get_sample_value("hearsay_refused_batches_total", {"reason": expected})
        assert counted == 2
        assert (await server.show(collection)).reports == 0
        taken(await server.collector.Submit(batch(collection)))


async def test_a_report_just_below_the_bound_is_taken_and_the_bound_is_not(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection(q=5, t=5)
        bound, width = collection.randomizer.bound, collection.randomizer.report_bytes
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection, payload=(bound - 1).to_bytes(width, "little"))))
        at = batch(collection, payload=bytes(width) + bound.to_bytes(width, "little"))
        assert reason(await server.collector.Submit(at)) == "REPORT_OUT_OF_RANGE"


async def test_before_in_and_after_the_window(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection = make_collection(opens=NOW, closes=NOW + 100)
        await server.create(collection)
        for now, expected in (
            (NOW - 0.1, "NOT_YET_OPEN"),
            (NOW, None),
            (NOW + 99.9, None),
            (NOW + 100, "WINDOW_CLOSED"),
        ):
            clock.now = now
            response = await server.collector.Submit(batch(collection))
            assert (reason(response) if expected else taken(response).reports) == (expected or 1)


async def test_a_clock_that_jumps_shuts_and_opens_nothing_for_good(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection = make_collection(opens=NOW, closes=NOW + 100)
        await server.create(collection)
        request = batch(collection)
        taken(await server.collector.Submit(request))
        clock.now = NOW + 10**7  # a wrong date, for a moment
        assert reason(await server.collector.Submit(batch(collection))) == "WINDOW_CLOSED"
        await server.server.parts.background.once()
        clock.now = NOW + 50
        assert not taken(await server.collector.Submit(batch(collection))).duplicate
        assert taken(await server.collector.Submit(request)).duplicate
        clock.now = 12.0
        assert reason(await server.collector.Submit(batch(collection))) == "NOT_YET_OPEN"


async def test_closed_and_deleted_each_say_so_and_a_deleted_one_cannot_return(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        request = batch(collection, 4)
        taken(await server.collector.Submit(request))
        await server.call("CloseCollection", collection)
        assert reason(await server.collector.Submit(request)) == "COLLECTION_CLOSED"
        await server.call("DeleteCollection", collection)
        assert reason(await server.collector.Submit(request)) == "COLLECTION_DELETED"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.create(collection)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await server.server.parts.compaction.sweep()
    async with live(tmp_path / "d") as server:
        assert reason(await server.collector.Submit(request)) == "COLLECTION_DELETED"
        rows = server.server.parts.log.db.execute("SELECT count(*) FROM batches").fetchone()[0]
        assert rows == 0


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


async def test_a_client_that_disappears_mid_stream_disturbs_nobody(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        for _ in range(5):
            call = server.collector.SubmitStream()
            for _ in range(30):
                await call.write(batch(collection))
            await call.read()
            call.cancel()
        requests = [batch(collection) for _ in range(50)]
        assert len(await send(server, requests)) == 50
        found = await server.show(collection)
        assert 55 <= found.reports <= 200
        assert server.server.parts.waiting.bytes == 0
        open_streams = server.server.metrics.registry.get_sample_value("hearsay_streams")
        assert open_streams == 0


async def test_a_reader_that_never_reads_is_not_read_from_for_ever(tmp_path):
    limits = LimitsConfig(stream_batches=16, stream_bytes=100_000)
    async with live(tmp_path / "d", limits=limits) as server:
        collection = make_collection()
        await server.create(collection)
        small = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.server.port}", options=small)
        call = channel.stream_stream(
            "/ldp.v1.Collector/SubmitStream",
            request_serializer=collector_pb2.SubmitRequest.SerializeToString,
            response_deserializer=collector_pb2.SubmitResponse.FromString,
        )()
        written = 0

        async def write():
            nonlocal written
            for _ in range(20_000):
                await call.write(batch(collection, 1000))
                written += 1

        writer = asyncio.create_task(write())
        seen = -1
        while written != seen:  # until the windows between the two are full
            seen = written
            await asyncio.sleep(0.7)
        assert 0 < written < 20_000
        assert server.server.parts.waiting.bytes <= 16 * 1000 * collection.randomizer.report_bytes
        taken(await server.collector.Submit(batch(collection)))  # others are served meanwhile
        writer.cancel()
        call.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        await channel.close()


async def test_a_full_server_says_not_now_and_when(tmp_path):
    async with live(tmp_path / "d", limits=LimitsConfig(waiting_bytes=1500)) as server:
        collection = make_collection()
        await server.create(collection)
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await server.collector.Submit(batch(collection, 2000))
        assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert retry_seconds(busy.value) > 0
        # A stream is not refused: it is read as room comes.
        answers = await send(server, [batch(collection, 500) for _ in range(40)])
        assert sum(taken(answer).reports for answer in answers) == 20_000


def retry_seconds(error):
    from google.rpc import error_details_pb2, status_pb2

    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    info = error_details_pb2.RetryInfo()
    assert status_pb2.Status.FromString(details).details[0].Unpack(info)
    return info.retry_delay.ToTimedelta().total_seconds()


async def test_an_address_that_sends_too_much_waits(tmp_path, monkeypatch):
    monkeypatch.setattr("ldp_server.service.admission.peers._address", lambda _: ("198.51.100.7", False))
    admission = AdmissionConfig(reports_per_second=50.0, burst=10.0)
    async with live(tmp_path / "d", admission=admission) as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection, 10)))
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await server.collector.Submit(batch(collection, 10))
        assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 0 < retry_seconds(busy.value) <= 0.2
        assert len(await send(server, [batch(collection, 10)])) == 1  # a stream waits by itself
        assert (await server.show(collection)).reports == 20


async def test_draining_finishes_what_was_read_and_refuses_the_new(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        call = server.collector.SubmitStream()
        sent = [batch(collection) for _ in range(40)]
        for request in sent:
            await call.write(request)
        first = await call.read()
        stopping = asyncio.create_task(server.server.stop(grace=5))
        answers = [first]
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            while (answer := await call.read()) is not grpc.aio.EOF:
                answers.append(answer)
            await call.code()
            raise_for(await call.code(), call)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        await stopping
        acknowledged = {answer.batch_id for answer in answers}
    async with live(tmp_path / "d") as again:
        answers = await send(again, sent)
        known = {a.batch_id for a in answers if taken(a).duplicate}
        assert acknowledged <= known
        assert (await again.show(collection)).reports == 40


def raise_for(code, call):
    raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "", "")


async def test_bytes_that_are_no_message_are_refused_and_counted(tmp_path):
    async with live(tmp_path / "d") as server:
        for method in ("Submit", "GetCollection", "ListCollections"):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await server.channel.unary_unary(f"/ldp.v1.Collector/{method}")(b"\xff\xff\xff")
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        call = server.channel.stream_stream("/ldp.v1.Collector/SubmitStream")()
        await call.write(b"\xff" * 10)
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert server.server.metrics.registry.get_sample_value("hearsay_malformed_total") == 4


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


async def test_a_stream_of_huge_messages_is_refused_by_length(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection, payload=os.urandom(20 << 20)))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        taken(await server.collector.Submit(batch(collection)))


async def test_a_message_that_unpacks_to_something_huge_is_refused(tmp_path):
    async with live(tmp_path / "d") as server:
        call = server.channel.unary_unary("/ldp.v1.Collector/Submit")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(bytes(64 << 20), compression=grpc.Compression.Gzip)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_calls_open_at_once_are_bounded(tmp_path):
    async with live(tmp_path / "d", limits=LimitsConfig(calls=3)) as server:
        collection = make_collection()
        await server.create(collection)
        calls = [server.collector.SubmitStream() for _ in range(3)]
        for call in calls:
            await call.write(batch(collection))
            taken(await call.read())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for call in calls:
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
        taken(await server.collector.Submit(batch(collection)))


async def test_counts_are_exact_whatever_the_road(tmp_path):
    from ldp_server.oracles import oracle_for, restore

    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        requests = [batch(collection, 7) for _ in range(60)]
        for request in requests[:10]:
            taken(await server.collector.Submit(request))
        await send(server, requests[10:])
        expected = oracle_for(collection)
        for request in requests:
            expected.accumulate(request.payload)
        found = restore(collection, await server.counts(collection))
        assert (found.counts.values == expected.counts.values).all()
        ask = analyst_pb2.ExportRequest(collection_id=collection.id, kind=analyst_pb2.REPORTS)
        raw = b"".join([p.data async for p in server.analyst.Export(ask, metadata=server.auth)])
        again = oracle_for(collection)
        again.accumulate(raw)
        assert (again.counts.values == expected.counts.values).all()


async def test_a_defect_is_told_counted_logged_and_passes(tmp_path, monkeypatch, caplog):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        monkeypatch.setattr(AdmissionControl, "admit", lambda *_: 1 / 0)
        for call in (server.collector.Submit(batch(collection)), send(server, [batch(collection)])):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.INTERNAL
            assert refused.value.details().rpartition("(")[2].rstrip(")") in caplog.text or "defect" in caplog.text
        monkeypatch.undo()
        assert server.server.metrics.registry.get_sample_value("hearsay_internal_errors_total") == 2
        taken(await server.collector.Submit(batch(collection)))


async def test_a_defect_in_the_writer_thread_leaves_nobody_waiting(tmp_path, monkeypatch):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        commit = server.server.parts.commit
        commit._check = lambda *_: 1 / 0
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await server.collector.Submit(batch(collection), timeout=10)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.wait_for(server.server.wait(signals=False), 5)
        assert "defect" in str(server.server.failure)
