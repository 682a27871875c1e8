"""What apps may send, and what they are told, through the real generated client."""

import asyncio

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2
from ldp_server.service.admission import AdmissionControl
from tests.server.helpers import NOW, PATIENCE, Clock, batch, live, make_collection, payload, reason, send, taken


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


BAD = [
    ({"collection_id": b""}, "BAD_COLLECTION_ID"),
    ({"collection_id": b"x" * 31}, "BAD_COLLECTION_ID"),
    ({"collection_id": b"x" * 32}, "UNKNOWN_COLLECTION"),
    ({"batch_id": b""}, "BAD_BATCH_ID"),
    ({"batch_id": b"x" * 17}, "BAD_BATCH_ID"),
    ({"payload": b""}, "EMPTY_BATCH"),
    ({"payload": bytes(3)}, "WRONG_LENGTH"),
    ({"payload": bytes(250_002)}, "BATCH_TOO_LARGE"),
    ({"payload": b"\xff\xff"}, "REPORT_OUT_OF_RANGE"),
]


async def test_each_kind_of_bad_batch_has_its_reason_and_its_counter(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection(q=5, t=5)
        assert collection.randomizer.report_bytes == 2
        await server.create(collection)
        counted = server.server.metrics.registry.get_sample_value
        for change, expected in BAD:
            request = batch(collection, **change)
            before = counted("hearsay_refused_batches_total", {"reason": expected}) or 0
            assert reason(await server.collector.Submit(request)) == expected
            assert reason((await send(server, [request]))[0]) == expected
            assert counted("hearsay_refused_batches_total", {"reason": expected}) == before + 2
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
            (NOW - 60.1, "NOT_YET_OPEN"),
            (NOW - 60, None),
            (NOW - 4, None),  # from a device whose clock is 4 s fast
            (NOW, None),
            (NOW + 100, None),
            (NOW + 159.9, None),
            (NOW + 160, "WINDOW_CLOSED"),
        ):
            clock.now = now
            response = await server.collector.Submit(batch(collection))
            assert (reason(response) if expected else taken(response).reports) == (expected or 1)


async def test_the_slack_around_a_window_opens_nothing_that_is_closed_or_compacted(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        closed, compacted = (make_collection(text, opens=NOW, closes=NOW + 100) for text in ("closed", "compacted"))
        for collection in (closed, compacted):
            await server.create(collection)
            taken(await server.collector.Submit(batch(collection)))
        clock.now = NOW + 101
        with pytest.raises(grpc.aio.AioRpcError, match="still takes batches"):
            await server.call("CompactCollection", compacted)
        await server.call("CloseCollection", closed)
        clock.now = NOW + 160
        await server.call("CompactCollection", compacted)
        for now in (NOW - 30, NOW + 50, NOW + 130):
            clock.now = now
            assert reason(await server.collector.Submit(batch(closed))) == "COLLECTION_CLOSED"
            assert reason(await server.collector.Submit(batch(compacted))) == "WINDOW_CLOSED"


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
                await server.collector.Submit(batch(collection), timeout=PATIENCE)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.wait_for(server.server.wait(), PATIENCE)
        assert "defect" in str(server.server.failure)
