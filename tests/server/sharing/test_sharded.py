"""Several servers on one store of two databases."""

import asyncio

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2
from ldp_server.config import parse_config
from ldp_server.oracles import oracle_for
from ldp_server.service.sharing import ANSWER, COLLECT, UPKEEP
from ldp_server.store import blocks
from ldp_server.store.engines import addresses_of, open_store
from ldp_server.store.sharded.routing import shard_of
from tests.server.helpers import batch, make_collection, reason, send, taken, until
from tests.server.postgres import private_postgres
from tests.server.sharing.helpers import shared


@pytest.fixture(scope="module")
def address(postgres, tmp_path_factory):
    found = " ".join(postgres.database() for _ in range(2))
    open_store(found, tmp_path_factory.mktemp("none")).prepare(roles=True)
    return found


def counted(collection, requests):
    expected = oracle_for(collection)
    expected.accumulate(b"".join(request.payload for request in requests))
    return expected.to_bytes()


def test_the_configuration_names_several_databases(tmp_path):
    several = parse_config('store = ["postgresql://a/x", "postgresql://b/x"]', tmp_path).store
    assert addresses_of(several) == ["postgresql://a/x", "postgresql://b/x"]
    assert parse_config('store = ["postgresql://a/x"]', tmp_path).store == "postgresql://a/x"
    assert parse_config("store = []", tmp_path).store == ""
    assert addresses_of(" postgres://a/x?options=-c%20b  postgresql://c ") == [
        "postgres://a/x?options=-c%20b",
        "postgresql://c",
    ]
    for wrong in ('store = ["postgresql://a", "mysql://b"]', "store = [3]"):
        with pytest.raises(Exception, match=r"postgresql://hearsay@db|store is a str"):
            parse_config(wrong, tmp_path)


@pytest.mark.long
async def test_answers_are_those_of_an_oracle_before_and_after_folding(address, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 8)
    monkeypatch.setattr("ldp_server.service.background.GATHER_SECONDS", 0.01)
    collection = make_collection("In halves?")
    async with (
        shared(tmp_path / "c1", address, COLLECT) as first,
        shared(tmp_path / "c2", address, COLLECT) as second,
        shared(tmp_path / "answer", address, ANSWER) as answer,
        shared(tmp_path / "upkeep", address, UPKEEP) as upkeep,
    ):
        await answer.create(collection)
        for one in (first, second):
            await until(lambda one=one: one.server.parts.lifecycle.collections.get(collection.id) is not None)
        requests = [batch(collection, 3) for _ in range(40)]
        assert not any(taken(found).duplicate for found in await send(first, requests))
        assert all(taken(found).duplicate for found in await send(second, requests))
        expected = counted(collection, requests)
        assert await answer.counts(collection) == expected
        log = open_store(address, tmp_path).reader()
        number = log.record_of(collection.id).number
        assert [one.shard for one in log.periods(number)] == [0, 1]
        await until(lambda: all(log.last(one.number) >= 8 for one in log.periods(number)))
        assert (await answer.show(collection)).batches == 40
        names = [
            {request.batch_id for request in requests if shard_of(request.batch_id, 2) == shard} for shard in (0, 1)
        ]
        for one in log.periods(number):
            assert {found.batch_id for group in log.read_all(one.number, 0) for found in group} == names[one.shard]
        request = analyst_pb2.CollectionRequest(collection_id=collection.id)
        await close_and_send(answer, (first, second), collection)
        await upkeep.server.parts.compaction.lead()
        await answer.analyst.CompactCollection(request, metadata=answer.auth)
        await upkeep.server.parts.compaction.sweep()
        assert all(one.generation is not None for one in log.periods(number))
        assert await answer.counts(collection) == expected
        assert (await answer.show(collection)).reports == 120
        log.check()
        log.close()


async def close_and_send(answer, collectors, collection):
    """When closing has returned, no database takes anything."""
    request = analyst_pb2.CollectionRequest(collection_id=collection.id)
    await answer.analyst.CloseCollection(request, metadata=answer.auth)
    for one in collectors:
        more = [batch(collection) for _ in range(6)]
        assert {reason(found) for found in await send(one, more)} <= {"COLLECTION_CLOSED", "WINDOW_CLOSED"}


@pytest.fixture
def lonely():
    """A server to crash."""
    with private_postgres("shared_buffers=16MB") as server:
        yield server


def going_to(collection, shard, count):
    """Batches that go to one database."""
    found = []
    while len(found) < count:
        request = batch(collection, 2)
        if shard_of(request.batch_id, 2) == shard:
            found.append(request)
    return found


async def refused_for_now(server, request):
    with pytest.raises(grpc.aio.AioRpcError) as later:
        await server.collector.Submit(request)
    assert later.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}


async def taken_at_last(server, request):
    """Send until it is taken; whether it was known."""
    for _ in range(400):
        try:
            return taken(await server.collector.Submit(request)).duplicate
        except grpc.aio.AioRpcError as error:
            assert error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
            await asyncio.sleep(0.05)
    pytest.fail("it was never taken")


@pytest.mark.long
async def test_one_database_away(postgres, lonely, tmp_path):
    """Its batches wait and the others go on; nobody gets an answer, and nobody closes, without it."""
    address = f"{postgres.database()} {lonely.address()}"
    open_store(address, tmp_path).prepare()
    collection, second = make_collection("Half of it?"), make_collection("And then?")
    here, there = going_to(collection, 0, 12), going_to(collection, 1, 12)
    async with shared(tmp_path / "c", address, COLLECT) as collector, shared(tmp_path / "a", address, ANSWER) as answer:
        await answer.create(collection)
        await until(lambda: collector.server.parts.lifecycle.collections.get(collection.id) is not None)
        for request in (*here[:6], *there[:6]):
            assert not taken(await collector.collector.Submit(request)).duplicate
        lonely.crash()
        await refused_for_now(collector, there[6])
        for request in here[6:]:
            assert not taken(await collector.collector.Submit(request)).duplicate
        async with shared(tmp_path / "c2", address, COLLECT) as late:  # it starts without that database
            await refused_for_now(late, going_to(collection, 1, 1)[0])
        for work in (answer.counts(collection), answer.show(collection), answer.create(second)):
            with pytest.raises(grpc.aio.AioRpcError) as later:
                await work
            assert later.value.code() is grpc.StatusCode.UNAVAILABLE, later.value
        request = analyst_pb2.CollectionRequest(collection_id=collection.id)
        with pytest.raises(grpc.aio.AioRpcError) as later:
            await answer.analyst.CloseCollection(request, metadata=answer.auth)
        assert later.value.code() is grpc.StatusCode.UNAVAILABLE
        lonely.start()
        await closed_at_last(answer, request)
        log = open_store(address, tmp_path).reader()
        assert sum(log.count(one.number) for one in log.periods(1)) == 18
        assert {one.record_of(collection.id).sealed for one in log._readers} == {True}
        log.close()
        assert await answer.counts(collection) == counted(collection, [*here, *there[:6]])


async def closed_at_last(answer, request):
    for _ in range(400):
        try:
            await answer.analyst.CloseCollection(request, metadata=answer.auth)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            await asyncio.sleep(0.05)
        else:
            return
    pytest.fail("it was never closed")


@pytest.mark.long
async def test_a_database_that_comes_back_takes_its_batches(postgres, lonely, tmp_path):
    address = f"{postgres.database()} {lonely.address()}"
    open_store(address, tmp_path).prepare()
    collection = make_collection("Back again?")
    requests = [*going_to(collection, 0, 10), *going_to(collection, 1, 10)]
    async with shared(tmp_path / "s", address) as server:
        await server.create(collection)
        for place, request in enumerate(requests):
            if place == 12:
                lonely.crash()
                await refused_for_now(server, request)
                lonely.start()
            await taken_at_last(server, request)
        for request in requests:
            assert await taken_at_last(server, request)
        assert await server.counts(collection) == counted(collection, requests)
