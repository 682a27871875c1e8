"""A question about a collection is one call: it is named by a few digits, and the answer says what was asked."""

import re

import grpc
import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.service.live import LiveCollections
from ldp_server.service.signed_list import ListPublisher
from ldp_server.store import Admission, CollectionRecord
from tests.server.helpers import batch, live, make_collection, taken


async def refused(call):
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code().name, error.value.details()


async def test_an_estimate_is_one_call(tmp_path):
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection, 50)))
        given = pb.GivenItems(items=[pb.Item(text="3"), pb.Item(text="40"), pb.Item(none=True)])
        request = pb.EstimateRequest(id_prefix=collection.id.hex()[:6], given=given)
        found = await server.analyst.Estimate(request, metadata=server.auth)
        assert Collection.from_bytes(found.collection.spec_bytes).id == collection.id
        shown = await server.show(collection)
        shown.info.statement.extend(shown.statement)  # every answer to a question has it
        assert found.collection == shown.info
        assert found.reports == 50
        by_id = pb.EstimateRequest(
            collection_id=collection.id,
            given=pb.GivenItems(items=[pb.Item(integer="3"), pb.Item(integer="40"), pb.Item(none=True)]),
        )
        assert await server.analyst.Estimate(by_id, metadata=server.auth) == found


async def test_text_stays_text_where_items_are_text(tmp_path):
    collection = Collection.create(
        "Which?", Categories(("7", "x")), "randomized-response", "2", opens=0, closes=1 << 33
    )
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        given = pb.GivenItems(items=[pb.Item(text="7")])
        found = await server.call("Estimate", collection, given=given)
        assert [item.text for item in found.items] == ["7"]


async def test_every_request_about_a_collection_takes_a_prefix(tmp_path):
    collection = make_collection()
    prefix = collection.id.hex()[:4]
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection, 50)))
        shown = await server.analyst.ShowCollection(pb.ShowCollectionRequest(id_prefix=prefix), metadata=server.auth)
        assert shown.info.collection_id == collection.id
        for kind in (pb.COUNTS, pb.REPORTS):
            request = pb.ExportRequest(id_prefix=prefix, kind=kind)
            pieces = [piece async for piece in server.analyst.Export(request, metadata=server.auth)]
            assert pieces[0].collection.spec_bytes == collection.spec_bytes
            assert pieces[-1].reports == 50
        for method in ("CloseCollection", "CompactCollection", "DeleteCollection"):
            info = await getattr(server.analyst, method)(pb.CollectionRequest(id_prefix=prefix), metadata=server.auth)
            assert info.collection_id == collection.id
        shown = await server.analyst.ShowCollection(pb.ShowCollectionRequest(id_prefix=prefix), metadata=server.auth)
        assert shown.info.state == pb.DELETED


async def test_an_export_of_nothing_still_says_of_what(tmp_path):
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        request = pb.ExportRequest(collection_id=collection.id, kind=pb.REPORTS)
        pieces = [piece async for piece in server.analyst.Export(request, metadata=server.auth)]
        assert [(piece.data, piece.reports) for piece in pieces] == [(b"", 0)]
        assert pieces[0].collection.collection_id == collection.id


async def test_a_prefix_must_fit_one_collection(tmp_path, caplog):
    collections = [make_collection(f"number {n}") for n in range(300)]
    digits = [collection.id.hex()[:4] for collection in collections]
    async with live(tmp_path / "d") as server:
        await server.create(collections[0])

        def ask(**fields):
            return server.analyst.ShowCollection(pb.ShowCollectionRequest(**fields), metadata=server.auth)

        other = next(d for d in ("0000", "1111") if d != digits[0])
        assert (await refused(ask(id_prefix=other)))[0] == "NOT_FOUND"
        for bad in (digits[0][:3], digits[0].upper() + "G", "zzzz", "abcd\nfake line", "0" * 65):
            code, text = await refused(ask(id_prefix=bad))
            assert code == "INVALID_ARGUMENT"
            assert re.search("4 to 64 digits", text)
        both = ask(id_prefix=digits[0], collection_id=collections[0].id)
        assert "not by both" in (await refused(both))[1]
    assert "fake line" not in caplog.text


def two_of_one_prefix():
    """Two collections whose ids begin with the same four digits: among some hundreds there are such."""
    seen = {}
    collection = make_collection("question 0")
    while collection.id[:2] not in seen:
        seen[collection.id[:2]] = collection
        collection = make_collection(f"question {len(seen)}")
    return seen[collection.id[:2]], collection


def test_a_prefix_of_two_collections_is_refused():
    held = LiveCollections(lambda _: "", ListPublisher(None, None))
    first, second = two_of_one_prefix()
    for number, one in enumerate((first, second), 1):
        record = CollectionRecord(number, one.id, one.spec_bytes, True, Admission(), 0, None, None)
        held.put(record)
    assert held.find(pb.CollectionRequest(id_prefix=second.id.hex()[:40])).record.number == 2
    with pytest.raises(InvalidSpec, match=r"2 collections .* give more digits"):
        held.find(pb.CollectionRequest(id_prefix=second.id.hex()[:4]))
