"""The public list as the server keeps and signs it: order, parts, its bound, and when it is withheld."""

import asyncio
import sqlite3
from dataclasses import replace
from hashlib import sha256

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ldp_client.errors import ListForked, PolicyRefused
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.trust.list_heads import Cosignature, ListHead, ListProof, check_entry, check_growth, cosign, seen_by
from ldp_client.trust.merkle import EMPTY_ROOT
from ldp_client.trust.signed_list import EMPTY_HEAD, MAX_LISTED, PART_IDS, extended_head, verify_head, verify_list
from ldp_server.config import PublishConfig
from ldp_server.service import lifecycle, signed_list
from ldp_server.service.admission.key_files import load_private_key, load_public_key, make_key
from ldp_server.service.signed_list import ListPublisher
from ldp_server.service.wire import CallStatus
from ldp_server.store import Admission, CollectionRecord
from tests.server.helpers import live, make_collection, until


@pytest.fixture
def publish(tmp_path):
    for name in ("list.key", "next.key"):
        make_key(tmp_path / name)
    return PublishConfig(signing_key=tmp_path / "list.key", next_key=tmp_path / "next.key.pub")


@pytest.fixture
def public(publish, tmp_path):
    return load_public_key(tmp_path / "list.key.pub").public_bytes_raw()


async def part_of(server, part=0):
    return await server.collector.ListCollections(pb.ListCollectionsRequest(part=part))


def believed(answer, public, previous=None):
    """What a device makes of an answer that holds a whole list."""
    signed = answer.signed_list
    head = verify_head(signed.list_bytes, signed.signature, signed.public_key, keys=[public], previous=previous)
    return verify_list(head, answer.ids, previous=previous)


def failure(error):
    return error.value.code().name, error.value.details()


async def test_the_signed_list_only_grows_and_its_signature_fits(tmp_path, publish, public):
    answers = []
    one, two, three, hidden = (make_collection(name) for name in ("one", "two", "three", "hidden"))
    async with live(tmp_path / "d", publish=publish) as server:
        answers.append(await part_of(server))
        for collection in (one, two):
            await server.create(collection)
            answers.append(await part_of(server))
        await server.call("DeleteCollection", one)
        await server.create(hidden, unlisted=True)
        await server.create(three)
        answers.append(await part_of(server))
    async with live(tmp_path / "d", publish=publish) as server:
        answers.append(await part_of(server))
    held = None
    for answer in answers:
        Ed25519PublicKey.from_public_bytes(public).verify(
            answer.signed_list.signature, b"hearsay/collection-list/v1" + answer.signed_list.list_bytes
        )
        held = believed(answer, public, held)
        assert held.signed.next_key == load_public_key(tmp_path / "next.key.pub").public_bytes_raw()
    assert held.ordered == (one.id, two.id, three.id)
    assert answers[-1] == answers[-2]  # a restart changes nothing


def record(number, id_=None, *, public=True):
    return CollectionRecord(number, id_ or number.to_bytes(32, "big"), b"", public, Admission(), 0, None, None)


@pytest.mark.long
def test_parts_of_a_full_list(publish, public):
    publisher = ListPublisher(load_private_key(publish.signing_key), None)
    for number in range(1, MAX_LISTED + 1):
        publisher.put(record(number))
    parts = [
        pb.ListCollectionsResponse.FromString(publisher.response(part)) for part in range(MAX_LISTED // PART_IDS + 1)
    ]
    assert {len(part.ids) for part in parts[:-1]} == {32 * PART_IDS}
    assert max(part.ByteSize() for part in parts) < 66_000
    assert len({part.signed_list.signature for part in parts}) == 1
    packed = b"".join(part.ids for part in parts)
    parts[0].ids = packed
    assert believed(parts[0], public).serial == MAX_LISTED
    assert extended_head(EMPTY_HEAD, packed) == pb.SignedListBody.FromString(parts[0].signed_list.list_bytes).head
    for beyond in (MAX_LISTED // PART_IDS + 1, (1 << 32) - 1):
        assert pb.ListCollectionsResponse.FromString(publisher.response(beyond)).ids == b""
    assert publisher.is_full
    publisher.put(record(MAX_LISTED))  # known: it may change, for example be deleted
    publisher.put(record(MAX_LISTED + 1, public=False))
    publisher.response(0)
    publisher.put(record(MAX_LISTED + 2))  # more than devices take: no list rather than one that they refuse
    with pytest.raises(CallStatus, match="withheld"):
        publisher.response(0)


def test_a_list_out_of_order_is_withheld(publish):
    publisher = ListPublisher(load_private_key(publish.signing_key), None)
    publisher.put(record(2))
    publisher.response(0)
    publisher.put(record(1))
    with pytest.raises(CallStatus, match="order of creation") as error:
        publisher.response(0)
    assert error.value.code is grpc.StatusCode.DATA_LOSS


async def test_creation_is_refused_when_the_list_is_full(tmp_path, publish, public, monkeypatch):
    for module in (signed_list, lifecycle):
        monkeypatch.setattr(module, "MAX_LISTED", 2)
    one, two, three, four = (make_collection(name) for name in ("one", "two", "three", "four"))
    async with live(tmp_path / "d", publish=publish) as server:
        await server.create(one)
        await server.call("DeleteCollection", one)
        await server.create(two)
        held = believed(await part_of(server), public)
        with pytest.raises(grpc.aio.AioRpcError) as full:
            await server.create(three)
        code, text = failure(full)
        assert code == "FAILED_PRECONDITION"
        assert "the public list is full (2 collections" in text
        assert "unlisted" in text
        with pytest.raises(grpc.aio.AioRpcError) as known:
            await server.create(two)
        assert failure(known)[0] == "ALREADY_EXISTS"
        await server.create(three, unlisted=True)
        await server.call("CloseCollection", two)
        await server.call("DeleteCollection", two)
        assert believed(await part_of(server), public, held) == held
        assert server.server.metrics.registry.get_sample_value(
            "hearsay_refused_calls_total", {"code": "FAILED_PRECONDITION"}
        )
    async with live(tmp_path / "d", publish=publish) as server:
        assert believed(await part_of(server), public, held) == held
        with pytest.raises(grpc.aio.AioRpcError) as full:
            await server.create(four)
        assert failure(full)[0] == "FAILED_PRECONDITION"


async def test_many_who_create_at_once_get_no_more_than_the_bound(tmp_path, publish, public, monkeypatch):
    for module in (signed_list, lifecycle):
        monkeypatch.setattr(module, "MAX_LISTED", 3)
    collections = [make_collection(f"question {i}") for i in range(8)]
    async with live(tmp_path / "d", publish=publish) as server:
        results = await asyncio.gather(*map(server.create, collections), return_exceptions=True)
        refused = [result.code().name for result in results if isinstance(result, grpc.aio.AioRpcError)]
        assert refused == ["FAILED_PRECONDITION"] * 5
        held = believed(await part_of(server), public)
        assert held.serial == 3
    async with live(tmp_path / "d", publish=publish) as server:
        assert believed(await part_of(server), public, held) == held


async def test_the_list_goes_on_as_before_if_a_creator_goes_away(tmp_path, publish, public, monkeypatch):
    """Its row is written. So its collection is held and listed too, before any that comes later."""
    gone, later = make_collection("gone"), make_collection("later")
    async with live(tmp_path / "d", publish=publish) as server:
        parts = server.server.parts
        begun, goes_on = asyncio.Event(), asyncio.Event()
        loop, add = asyncio.get_running_loop(), parts.log.add

        def slow_add(new):
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result(60)
            return add(new)

        monkeypatch.setattr(parts.log, "add", slow_add)
        call = asyncio.ensure_future(parts.lifecycle.create(gone.spec_bytes, Admission(), public=True))
        await begun.wait()
        monkeypatch.setattr(parts.log, "add", add)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        goes_on.set()
        await server.create(later)
        await until(lambda: parts.lifecycle.collections.get(gone.id) is not None)
        held = believed(await part_of(server), public)
        assert held.ordered == (gone.id, later.id)
    async with live(tmp_path / "d", publish=publish) as server:
        assert believed(await part_of(server), public, held) == held


async def test_a_damaged_row_withholds_the_list_and_nothing_else(tmp_path, publish, public):
    one, two, hidden = (make_collection(name) for name in ("one", "two", "hidden"))
    async with live(tmp_path / "d", publish=publish) as server:
        for collection in (one, two):
            await server.create(collection)
        await server.create(hidden, unlisted=True)
        held = believed(await part_of(server), public)
    damage(tmp_path / "d", hidden)
    async with live(tmp_path / "d", publish=publish) as server:
        assert believed(await part_of(server), public, held) == held
    damage(tmp_path / "d", one)
    async with live(tmp_path / "d", publish=publish) as server:
        with pytest.raises(grpc.aio.AioRpcError) as withheld:
            await part_of(server)
        assert failure(withheld)[0] == "DATA_LOSS"
        assert "damaged" in failure(withheld)[1]
        found = await server.collector.GetCollection(pb.GetCollectionRequest(collection_id=two.id))
        assert found.spec_bytes == two.spec_bytes


def damage(data, collection):
    with sqlite3.connect(data / "log.db") as db:
        assert db.execute("UPDATE collections SET spec = x'00' WHERE id = ?", (collection.id,)).rowcount == 1
    db.close()


# -- proofs and witnesses


async def proof_of(server, size=0, collection=b""):
    return await server.collector.ProveList(pb.ProveListRequest(size=size, collection_id=collection))


def as_proof(answer):
    signed = answer.signed_list
    given = signed.list_bytes, signed.signature, signed.public_key
    return ListProof(*given, tuple(answer.consistency), answer.index, tuple(answer.inclusion))


async def test_proofs_of_a_list_that_grows(tmp_path, publish, public):
    collections = [make_collection(name) for name in ("one", "two", "three", "four", "five")]
    heads = [ListHead(0, EMPTY_ROOT)]
    async with live(tmp_path / "d", publish=publish) as server:
        for number, collection in enumerate(collections):
            await server.create(collection)
            for before in heads:
                answer = await proof_of(server, before.size, collection.id)
                signed = believed_head(answer, public)
                head = check_growth(before, signed, answer.consistency)
                assert check_entry(collection.id, signed, as_proof(answer)) == number
                assert believed(await part_of(server), public).list_head == head
            heads.append(head)
            wrong = ListHead(head.size, bytes(32))
            with pytest.raises(ListForked, match="cannot show"):
                check_growth(wrong, signed, (await proof_of(server, head.size)).consistency)
        assert check_entry(collections[1].id, signed, as_proof(await proof_of(server, 0, collections[1].id))) == 1
        with pytest.raises(PolicyRefused, match="cannot show"):
            check_entry(collections[0].id, signed, as_proof(await proof_of(server, 0, collections[1].id)))
        for size, collection, code in (
            (6, b"", "FAILED_PRECONDITION"),
            (0, bytes(32), "NOT_FOUND"),
            (0, b"x", "NOT_FOUND"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await proof_of(server, size, collection)
            assert failure(refused)[0] == code
        assert answer.ByteSize() < 700


def believed_head(answer, public):
    signed = answer.signed_list
    return verify_head(signed.list_bytes, signed.signature, signed.public_key, keys=[public], previous=None)


async def test_a_server_without_a_key_has_no_proofs(tmp_path):
    async with live(tmp_path / "d") as server:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await proof_of(server)
        assert failure(refused)[0] == "NOT_FOUND" and "no signed list" in failure(refused)[1]


async def test_witnesses_sign_the_present_list_and_devices_get_it(tmp_path, publish, public):
    make_key(tmp_path / "witness.key")
    make_key(tmp_path / "stranger.key")
    witness, stranger = load_private_key(tmp_path / "witness.key"), load_private_key(tmp_path / "stranger.key")
    publish = replace(publish, witnesses=(tmp_path / "witness.key.pub",))
    async with live(tmp_path / "d", publish=publish) as server:
        await server.create(make_collection("one"))
        body = believed(await part_of(server), public).signed.list_bytes
        digest = sha256(body).digest()

        async def hand_in(digest, given):
            signed = pb.Cosignature(public_key=given.public_key, signature=given.signature)
            await server.collector.Cosign(pb.CosignRequest(list_digest=digest, cosignature=signed))

        good = cosign(witness, public, body)
        for given, about, code in (
            (cosign(stranger, public, body), digest, "PERMISSION_DENIED"),
            (good._replace(signature=bytes(64)), digest, "INVALID_ARGUMENT"),
            (good._replace(signature=b""), digest, "INVALID_ARGUMENT"),
            (cosign(witness, bytes(32), body), digest, "INVALID_ARGUMENT"),
            (cosign(witness, public, body + b"\0"), digest, "INVALID_ARGUMENT"),
            (good, bytes(32), "FAILED_PRECONDITION"),
            (good, b"", "FAILED_PRECONDITION"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await hand_in(about, given)
            assert failure(refused)[0] == code
        assert not (await part_of(server)).cosignatures
        for _ in range(2):
            await hand_in(digest, good)
        for answer in (await part_of(server), await part_of(server, 5), await proof_of(server)):
            (kept,) = answer.cosignatures
            assert seen_by(public, body, [Cosignature(kept.public_key, kept.signature)], [good.public_key])
        await server.create(make_collection("two"))
        assert not (await part_of(server)).cosignatures, "a signature is of one list"
