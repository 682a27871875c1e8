"""Questions about a collection: the answers are those of the oracle, and every refusal says why."""

import asyncio
import contextlib

import grpc
import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms import REPRODUCTIONS
from ldp_client.protocol.domain import Categories, Strings
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.estimates import every_item, given_items, top
from ldp_server.arrays.packing import pack
from ldp_server.config import LimitsConfig
from ldp_server.oracles import oracle_for
from simulator.crowd import simulate
from tests.server.helpers import Clock, batch, live, make_collection, taken, until

REFUSALS = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}


def code(error):
    return error.value.code().name


async def fill(server, collection, users=4000):
    """A crowd whose items are known; returns the oracle that saw the same reports."""
    indexes = np.minimum(np.arange(users) % 97 % 13, collection.domain.size - 1).astype(np.uint64)
    oracle = oracle_for(collection)
    for reports in simulate(collection.randomizer, indexes, seed=5):
        data = pack(reports, collection.randomizer.report_bytes)
        oracle.accumulate(data)
        taken(await server.collector.Submit(batch(collection, payload=data)))
    return oracle


async def test_the_summary_says_what_is_promised(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection(epsilon="0.5")
        await server.create(collection)
        oracle = await fill(server, collection)
        found = await server.show(collection)
        assert found.reports == 4000
        assert found.stored_bytes == 4000 * collection.randomizer.report_bytes
        assert found.standard_error == pytest.approx(float(np.sqrt(oracle.variance(np.zeros(1))[0])))
        assert found.lists_domain
        text = " ".join(found.statement)
        assert "eps = 0.5" in text
        assert "at most 1.649;" in text
        assert "Not hidden" in text


async def test_estimates_equal_those_of_the_oracle(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        oracle = await fill(server, collection)

        found = await server.call("Estimate", collection, all=pb.AllItems(), threshold=300.0)
        rows = every_item(collection, oracle, threshold=300.0).rows
        assert found.reports == 4000
        for name in ("estimate", "standard_error", "low", "high"):
            column = getattr(
                found, {"estimate": "estimates", "standard_error": "standard_errors"}.get(name, name + "s")
            )
            assert list(column) == pytest.approx([getattr(row, name) for row in rows])
        assert list(found.consistent) == pytest.approx([row.consistent for row in rows])
        assert [pb.Verdict.Name(v).replace("_", " ").lower() for v in found.verdicts] == [r.verdict.value for r in rows]

        found = await server.call("Estimate", collection, top=pb.TopItems(count=5), confidence=0.9)
        rows = top(collection, oracle, 5, confidence=0.9).rows
        assert [int(item.integer) for item in found.items] == [row.item for row in rows]
        assert list(found.lows) == pytest.approx([row.low for row in rows])
        assert found.coverage == "selected"
        assert found.everything_else.estimate == pytest.approx(
            top(collection, oracle, 5, confidence=0.9).everything_else.estimate
        )

        given = pb.GivenItems(items=[pb.Item(integer="3"), pb.Item(none=True), pb.Item(integer="7")])
        for together in (False, True):
            found = await server.call("Estimate", collection, given=given, together=together)
            from ldp_server.answers.estimates import Coverage

            coverage = Coverage.TOGETHER if together else Coverage.EACH
            rows = given_items(collection, oracle, [3, None, 7], coverage=coverage).rows
            assert found.coverage == coverage.value
            assert list(found.highs) == pytest.approx([row.high for row in rows])


async def test_a_query_sees_every_acknowledged_report(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        for i in range(1, 12):
            taken(await server.collector.Submit(batch(collection, i)))
            found = await server.call("Estimate", collection, top=pb.TopItems(count=1))
            assert found.reports == i * (i + 1) // 2


async def test_an_empty_collection_answers_zero(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        found = await server.call("Estimate", collection, all=pb.AllItems())
        assert found.reports == 0
        assert set(found.estimates) == {0.0}
        assert set(found.standard_errors) == {0.0}


NONSENSE = [
    {},
    {"given": pb.GivenItems()},
    {"given": pb.GivenItems(items=[pb.Item()])},
    {"given": pb.GivenItems(items=[pb.Item(text="x")])},
    {"given": pb.GivenItems(items=[pb.Item(integer="4000")])},
    {"given": pb.GivenItems(items=[pb.Item(integer="1_0")])},
    {"given": pb.GivenItems(items=[pb.Item(integer="9" * 5000)])},
    {"given": pb.GivenItems(items=[pb.Item(integer="²")])},
    {"top": pb.TopItems(count=0)},
    {"top": pb.TopItems(count=1 << 31)},
    {"all": pb.AllItems(), "confidence": 1.5},
    {"all": pb.AllItems(), "confidence": float("nan")},
    {"given": pb.GivenItems(items=[pb.Item(integer="1")] * 200)},
]


async def test_questions_that_make_no_sense_are_refused(tmp_path):
    async with live(tmp_path / "d", limits=LimitsConfig(query_items=100)) as server:
        collection = make_collection()
        await server.create(collection)
        for fields in NONSENSE:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await server.call("Estimate", collection, **fields)
            assert code(refused) == "INVALID_ARGUMENT", (fields, refused.value.details())
            assert (await server.call("Estimate", collection, all=pb.AllItems())).reports == 0


async def test_a_domain_that_cannot_be_listed_says_so(tmp_path):
    collection = Collection.create(
        "Which?", Strings(8), "hashtogram", "1", opens=0, closes=1 << 33, parameters={"rows": 2, "q": 2, "t": 4}
    )
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        assert not (await server.show(collection)).lists_domain
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.call("Estimate", collection, all=pb.AllItems())
        assert code(refused) == "INVALID_ARGUMENT"
        given = pb.GivenItems(items=[pb.Item(text="abc"), pb.Item(raw=b"\xff\xfe")])
        assert len((await server.call("Estimate", collection, given=given)).estimates) == 2


async def test_heavy_hitters_of_a_mechanism_without_a_decoder(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        assert not (await server.show(collection)).decodes_heavy_hitters
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in server.analyst.HeavyHitters(
                pb.HeavyHittersRequest(collection_id=collection.id), metadata=server.auth
            ):
                pass
        assert code(refused) == "FAILED_PRECONDITION"
        assert "linear-hash" in refused.value.details()


async def test_the_child_may_die_at_any_time(tmp_path):
    import os
    import signal

    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        oracle = await fill(server, collection)
        expected = list((await server.call("Estimate", collection, all=pb.AllItems())).estimates)
        for confidence in (0.8, 0.9):  # a question that was not just answered
            os.kill(server.server.parts.worker.pid, signal.SIGKILL)
            await until(lambda: server.server.parts.worker.pid is None)
            found = await server.call("Estimate", collection, all=pb.AllItems(), confidence=confidence)
            assert list(found.estimates) == pytest.approx(expected)
        assert oracle.reports == found.reports


async def test_a_caller_who_leaves_does_not_block_the_next(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        await fill(server, collection)
        for _ in range(4):
            call = server.analyst.Estimate(
                pb.EstimateRequest(collection_id=collection.id, all=pb.AllItems()), metadata=server.auth
            )
            await asyncio.sleep(0.01)
            call.cancel()
        assert (await server.call("Estimate", collection, all=pb.AllItems())).reports == 4000


async def test_names_of_categories_come_back_as_text(tmp_path):
    domain = Categories(("rot", "grün", "blau"))
    collection = Collection.create("Farbe?", domain, "randomized-response", "3", opens=0, closes=1 << 33)
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        await fill(server, collection, 3000)
        found = await server.call("Estimate", collection, top=pb.TopItems(count=3))
        assert {item.text for item in found.items} == {"rot", "grün", "blau"}


def every_mechanism():
    """One collection of each mechanism, from the golden vectors."""
    import json

    from tests.server.helpers import ROOT

    found = {}

    def look(value):
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                look(inner)
        elif isinstance(value, str) and len(value) > 60:
            with contextlib.suppress(ValueError):
                collection = Collection.from_bytes(bytes.fromhex(value))
                # Another test of this process may read reproductions. tests/server/sealing has those with a relay.
                if collection.randomizer.name not in REPRODUCTIONS and not collection.relayed:
                    found.setdefault(collection.randomizer.name, collection)

    for file in (ROOT / "tests" / "vectors").rglob("*.json"):
        look(json.loads(file.read_text()))
    return found


@pytest.mark.long
async def test_every_mechanism_is_taken_counted_and_answered_or_refused_in_words(tmp_path):
    """Whatever a mechanism can be asked: no question ends the child or leaves a defect behind."""
    from ldp_client.coins import draw_words
    from ldp_client.mechanisms import MECHANISMS

    collections = every_mechanism()
    sketches = {"expander-sketch", "prefix-tree", "tree-sketch"}  # test_heavy_hitters.py
    assert set(MECHANISMS) - sketches - REPRODUCTIONS <= set(collections)
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        for collection in collections.values():
            clock.now = collection.opens
            await server.create(collection)
            for reports in (0, 60):
                if reports:
                    words = collection.randomizer.words
                    data = b"".join(collection.randomize(None, draw_words(words)) for _ in range(reports))
                    taken(await server.collector.Submit(batch(collection, payload=data)))
                assert (await server.show(collection)).reports == reports
                for fields in (
                    {"all": pb.AllItems()},
                    {"top": pb.TopItems(count=2)},
                    {"given": pb.GivenItems(items=[pb.Item(none=True)])},
                ):
                    try:
                        found = await server.call("Estimate", collection, **fields)
                        assert found.reports == reports
                    except grpc.aio.AioRpcError as error:
                        assert error.code() in REFUSALS
            await server.call("CloseCollection", collection)
            await server.call("CompactCollection", collection)
            assert (await server.show(collection)).reports == 60
        assert server.server.metrics.registry.get_sample_value("hearsay_internal_errors_total") == 0
