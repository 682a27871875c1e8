"""Several servers on one store, each with a part of the work."""

import asyncio
import re
import time
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2, collector_pb2
from ldp_server.config import AdmissionConfig, CollectorConfig, Config, parse_config
from ldp_server.oracles import oracle_for
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.sharing import ANSWER, COLLECT, UPKEEP
from ldp_server.store import blocks
from ldp_server.store.engines import addresses_of, open_store
from tests.server.helpers import PATIENCE, batch, live, make_collection, reason, send, taken, until
from tests.server.sharing.helpers import shared


async def test_one_server_does_everything_on_a_shared_store(address, tmp_path):
    collection = make_collection("All in one?")
    async with shared(tmp_path / "d", address) as server:
        await server.create(collection)
        requests = [batch(collection, 5) for _ in range(20)]
        assert not any(taken(answer).duplicate for answer in await send(server, requests))
        assert all(taken(answer).duplicate for answer in await send(server, requests))
        shown = await server.show(collection)
        assert (shown.reports, shown.batches) == (100, 20)
    async with shared(tmp_path / "other", address) as server:
        assert (await server.show(collection)).reports == 100


async def test_answers_are_those_of_the_embedded_store_to_the_bit(address, tmp_path):
    collection = make_collection("The same?", nonce=4)
    requests = [batch(collection, 7) for _ in range(30)]
    async with live(tmp_path / "here") as here, shared(tmp_path / "there", address) as there:
        counts = []
        for server in (here, there):
            await server.create(collection)
            await send(server, requests)
            counts.append(await server.counts(collection))
        expected = oracle_for(collection)
        expected.accumulate(b"".join(request.payload for request in requests))
        assert counts == [expected.to_bytes()] * 2
        answers = [await server.call("Estimate", collection, top={"count": 5}) for server in (here, there)]
        assert answers[0].items == answers[1].items
        assert list(answers[0].estimates) == list(answers[1].estimates)


async def test_each_role_does_its_part(address, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 8)
    monkeypatch.setattr("ldp_server.service.background.GATHER_SECONDS", 0.01)
    collection = make_collection("Who does what?")
    async with (
        shared(tmp_path / "no1", address, COLLECT) as first,
        shared(tmp_path / "no2", address, COLLECT) as second,
        shared(tmp_path / "answer", address, ANSWER) as answer,
        shared(tmp_path / "upkeep", address, UPKEEP) as upkeep,
    ):
        await answer.create(collection)
        for one in (first, second):
            await until(lambda one=one: one.server.parts.lifecycle.collections.get(collection.id) is not None)
        requests = [batch(collection, 3) for _ in range(10)]
        assert not any(taken(found).duplicate for found in await send(first, requests))
        assert all(taken(found).duplicate for found in await send(second, requests))
        with closing(open_store(address, tmp_path).reader()) as log:
            number = log.record_of(collection.id).number
            await until(lambda: log.last(number) >= blocks.BLOCK)  # what comes after a block may be too few for one
        assert (await answer.show(collection)).reports == 30
        await comes_to_lead(upkeep)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await answer.collector.GetCollection(collector_pb2.GetCollectionRequest(collection_id=collection.id))
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        await close_and_send(answer, (first, second), collection, requests[0])
    assert not (tmp_path / "no1").exists()
    assert not (tmp_path / "no2").exists()


async def comes_to_lead(server):
    """PostgreSQL frees the lock of a server that has stopped in its own time."""
    end = time.monotonic() + PATIENCE
    while not await server.server.parts.compaction.lead():
        assert time.monotonic() < end, "another server still leads"
        await asyncio.sleep(0.02)


async def close_and_send(answer, collectors, collection, known):
    """When closing has returned, no collector takes anything, whether it has heard of it or not."""
    request = analyst_pb2.CollectionRequest(collection_id=collection.id)
    await answer.analyst.CloseCollection(request, metadata=answer.auth)
    for one in collectors:
        answers = await send(one, [batch(collection), known])
        assert {reason(found) for found in answers} <= {"COLLECTION_CLOSED", "WINDOW_CLOSED"}
    assert (await answer.show(collection)).reports == 30


async def test_a_collection_that_was_just_made_elsewhere_is_not_called_unknown(address, tmp_path):
    collection, nobody = make_collection("New?"), make_collection("Nobody's?")
    async with shared(tmp_path / "c", address, COLLECT) as collector, shared(tmp_path / "a", address) as answer:
        followed = collector.server.parts.lifecycle.collections.surely_missing.__self__
        take, followed._take = followed._take, lambda _: None  # the news is late
        await answer.create(collection)
        with pytest.raises(grpc.aio.AioRpcError) as later:
            await collector.collector.Submit(batch(collection))
        assert later.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        followed._take = take
        await until(lambda: collector.server.parts.lifecycle.collections.get(collection.id) is not None)
        taken(await collector.collector.Submit(batch(collection)))
        request = batch(nobody)
        for _ in range(200):
            try:
                assert reason(await collector.collector.Submit(request)) == "UNKNOWN_COLLECTION"
                return
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                await asyncio.sleep(0.05)
        pytest.fail("it never became unknown")


async def test_collectors_share_a_port_and_the_rates(address, tmp_path):
    async with shared(tmp_path / "a", address, COLLECT) as first:
        port = first.server.port
    listen = CollectorConfig(f"127.0.0.1:{port}", share_port=True)
    config = Config(store=address, collector=listen, admission=AdmissionConfig(collectors=4))
    servers = [CollectionServer(config, role=COLLECT) for _ in range(2)]
    for server in servers:
        await server.start()
    assert [server.port for server in servers] == [port, port]
    for server in servers:
        await server.stop(grace=0)


async def test_a_collector_behind_a_proxy_is_not_asked_for_what_operators_need(address, tmp_path):
    config = Config(data=tmp_path / "d", store=address, collector=CollectorConfig("0.0.0.0:0", plaintext=True))
    server = CollectionServer(config, role=COLLECT)
    await server.start()
    assert server.port
    await server.stop(grace=0)
    with pytest.raises(InvalidSpec, match="operators' tokens would travel unencrypted"):
        await CollectionServer(config).start()


@pytest.mark.parametrize("role", [COLLECT, ANSWER, UPKEEP])
async def test_parts_need_a_store_that_is_shared(role, tmp_path):
    with pytest.raises(InvalidSpec, match="needs a store that several servers share"):
        await CollectionServer(Config(data=tmp_path), role=role).start()


def test_the_configuration_of_the_operators_page_is_read(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "scale-out.md").read_text("utf-8")
    text, several, standby = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(addresses_of(parse_config(several, tmp_path).store)) == 2
    assert "db1.example.org,db2.example.org" in parse_config(standby, Path("config.toml")).store
    config = parse_config(text, tmp_path)
    assert config.store.startswith("postgresql://")
    assert config.collector.share_port
    assert config.admission.collectors == 4


def test_several_collectors_need_a_store_that_is_shared():
    with pytest.raises(InvalidSpec, match="need a store that they share"):
        Config(admission=AdmissionConfig(collectors=2))
    with pytest.raises(InvalidSpec, match="postgresql://"):
        Config(store="mysql://db")
