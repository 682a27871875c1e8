"""What operators may do, and what each refusal is."""

import grpc
import pytest

from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.config import LimitsConfig
from tests.server.helpers import NOW, Clock, batch, bearer, live, make_collection, taken


def code(error):
    return error.value.code().name


async def test_creating_listing_showing(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection = make_collection(opens=NOW + 10, closes=NOW + 20)
        info = await server.create(collection)
        assert info.collection_id == collection.id
        assert (info.state, info.admission, info.reports_per_token) == (pb.UPCOMING, pb.OPEN, 1)
        with pytest.raises(grpc.aio.AioRpcError) as twice:
            await server.create(collection)
        assert code(twice) == "ALREADY_EXISTS"
        states = []
        for now in (NOW + 10, NOW + 20 + 60):
            clock.now = now
            states.append((await server.show(collection)).info.state)
        await server.call("CloseCollection", collection)
        states.append((await server.show(collection)).info.state)
        await server.call("CompactCollection", collection)
        states.append((await server.show(collection)).info.state)
        await server.call("DeleteCollection", collection)
        listed = await server.analyst.ListAllCollections(pb.ListAllCollectionsRequest(), metadata=server.auth)
        states += [c.state for c in listed.collections]
        assert states == [pb.RUNNING, pb.ENDED, pb.CLOSED, pb.COMPACTED, pb.DELETED]


@pytest.mark.parametrize("spec", [b"", b"junk", b"\x0a\x00", bytes((1 << 20) + 1)])
async def test_specs_that_are_none_are_refused(tmp_path, spec):
    async with live(tmp_path / "d") as server:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.analyst.CreateCollection(pb.CreateCollectionRequest(spec_bytes=spec), metadata=server.auth)
        assert code(refused) == "INVALID_ARGUMENT"


async def test_limits_on_collections(tmp_path):
    async with live(tmp_path / "d", limits=LimitsConfig(collections=1, worker_memory_mb=50)) as server:
        with pytest.raises(grpc.aio.AioRpcError) as large:
            await server.create(make_collection(count=1 << 20, q=3, t=13))
        assert code(large) == "INVALID_ARGUMENT"
        assert "MB" in large.value.details()
        await server.create(make_collection())
        with pytest.raises(grpc.aio.AioRpcError) as many:
            await server.create(make_collection("another"))
        assert code(many) == "FAILED_PRECONDITION"


METHODS = {
    "CreateCollection": pb.CreateCollectionRequest,
    "ListAllCollections": pb.ListAllCollectionsRequest,
    "ShowCollection": pb.ShowCollectionRequest,
    "CloseCollection": pb.CollectionRequest,
    "DeleteCollection": pb.CollectionRequest,
    "CompactCollection": pb.CollectionRequest,
    "Estimate": pb.EstimateRequest,
    "Numbers": pb.NumbersRequest,
    "Attributes": pb.AttributesRequest,
    "Tables": pb.TablesRequest,
    "Relations": pb.RelationsRequest,
    "ServerStatus": pb.ServerStatusRequest,
    "HeavyHitters": pb.HeavyHittersRequest,
    "Export": pb.ExportRequest,
    "ListPeriods": pb.ListPeriodsRequest,
    "Trend": pb.TrendRequest,
    "Change": pb.TrendRequest,
    "Compare": pb.CompareRequest,
}


def test_every_method_is_on_the_list_below():
    assert set(METHODS) == {method.name for method in pb.DESCRIPTOR.services_by_name["Analyst"].methods}


@pytest.mark.parametrize("method", METHODS)
async def test_no_method_answers_without_a_good_token(tmp_path, method, caplog):
    from ldp_server.store import AccessFile

    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        access = AccessFile(tmp_path / "d" / "access.db", clock)
        (tmp_path / "other").mkdir()
        elsewhere = AccessFile(tmp_path / "other" / "access.db", clock)
        revoked, expired, foreign = access.create("old"), access.create("late", "manage", 10), elsewhere.create("old")
        access.revoke("old")
        clock.now += 10
        row = elsewhere._db.execute(
            "SELECT id, 'copied', role, created, expires, revoked, local, hash FROM tokens"
        ).fetchone()
        access._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        forged = server.token[:-4] + ("AAAA" if not server.token.endswith("AAAA") else "BBBB")
        bad = [(), *map(bearer, (revoked, expired, foreign, forged, "", "x" * 5000))]
        bad.append((("authorization", server.token),))  # without "Bearer"
        for metadata in bad:
            call = getattr(server.analyst, method)(METHODS[method](), metadata=metadata)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                if method in {"HeavyHitters", "Export"}:
                    async for _ in call:
                        pass
                else:
                    await call
            assert code(refused) == "UNAUTHENTICATED"
        for secret in (revoked, expired, foreign, forged, server.token):
            assert secret not in caplog.text
            assert secret.split("_", 2)[2] not in caplog.text
        access.close()
        elsewhere.close()


async def test_a_token_stops_working_the_moment_it_is_revoked(tmp_path):
    from ldp_server.store import AccessFile

    async with live(tmp_path / "d") as server:
        ask = pb.ServerStatusRequest()
        assert (await server.analyst.ServerStatus(ask, metadata=server.auth)).collections == 0
        access = AccessFile(tmp_path / "d" / "access.db", Clock())
        access.revoke(access.tokens()[0].name)
        access.close()
        with pytest.raises(grpc.aio.AioRpcError):
            await server.analyst.ServerStatus(ask, metadata=server.auth)


async def test_the_analyst_can_have_a_port_of_its_own(tmp_path):
    from ldp_client.protocol.v1 import analyst_pb2_grpc
    from ldp_server.config import AnalystConfig

    async with live(tmp_path / "d", analyst=AnalystConfig(listen="127.0.0.1:0")) as server:
        assert server.server.analyst_port != server.server.port
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.create(make_collection())
        assert code(refused) == "UNIMPLEMENTED"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.server.analyst_port}") as channel:
            stub = analyst_pb2_grpc.AnalystStub(channel)
            request = pb.CreateCollectionRequest(spec_bytes=make_collection().spec_bytes)
            await stub.CreateCollection(request, metadata=server.auth)
        taken(await server.collector.Submit(batch(make_collection())))
