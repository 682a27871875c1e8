"""Bounds: full servers, slow readers, addresses that send too much, huge messages, too many calls, draining."""

import asyncio
import os
import time
from types import SimpleNamespace

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2
from ldp_server.config import AdmissionConfig, LimitsConfig
from tests.server.helpers import PATIENCE, Clock, batch, live, make_collection, send, taken, until


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
        await until(lambda: server.server.parts.waiting.bytes == 0)
        value = server.server.metrics.registry.get_sample_value
        await until(lambda: value("hearsay_streams") == 0)


@pytest.mark.long
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
        # Until the windows between the two are full: nothing was written for a second, in which others were served.
        seen, since = 0, time.monotonic()
        while written == 0 or time.monotonic() - since < 1.0:
            if written != seen:
                seen, since = written, time.monotonic()
            taken(await server.collector.Submit(batch(collection)))
        assert written < 20_000
        assert server.server.parts.waiting.bytes <= 16 * 1000 * collection.randomizer.report_bytes
        writer.cancel()
        call.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        await channel.close()


async def test_batches_on_the_disk_are_let_go_although_nobody_reads_their_answers(tmp_path):
    """Each stream held up to a megabyte for a client that does not read."""
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        small = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.server.port}", options=small) as channel:
            call = channel.stream_stream("/ldp.v1.Collector/SubmitStream")()
            for _ in range(200):
                await call.write(batch(collection, 1000).SerializeToString())
            await until(lambda: server.server.parts.waiting.stored.get(1) == 200)
            (stream,) = server.server.parts.collector._intake._streams
            await until(lambda: stream._queue and not server.server.parts.waiting.bytes)
            assert stream._held == 0
            assert not any(entry.submission.payload for entry in stream._queue)
            call.cancel()


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
    clock = Clock(0.0)
    monkeypatch.setattr("ldp_server.service.assemble.time", SimpleNamespace(monotonic=clock))
    async with live(tmp_path / "d", admission=admission) as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection, 10)))
        with pytest.raises(grpc.aio.AioRpcError) as busy:
            await server.collector.Submit(batch(collection, 10))
        assert busy.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert retry_seconds(busy.value) == pytest.approx(0.2)
        stream = asyncio.create_task(send(server, [batch(collection, 10)]))
        value = server.server.metrics.registry.get_sample_value
        await until(lambda: value("hearsay_busy_total", {"why": "rate"}) >= 2)  # a stream waits by itself
        assert not stream.done()
        clock.now = 0.3
        assert len(await stream) == 1
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
        stopping = asyncio.create_task(server.server.stop(grace=PATIENCE))
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


async def test_a_stream_of_huge_messages_is_refused_by_length(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection, payload=os.urandom(20 << 20)))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        taken(await server.collector.Submit(batch(collection)))


@pytest.mark.long
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


async def test_limits_may_be_as_long_as_one_likes(tmp_path):
    limits = LimitsConfig(connection_seconds=1e12, idle_seconds=1e12)
    async with live(tmp_path / "d", limits=limits) as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection)))
