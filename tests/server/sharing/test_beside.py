"""What servers share besides batches: records of volunteers, witnesses' signatures, tokens that were used."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest

from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.trust.list_heads import cosign
from ldp_server.config import CollectorConfig, PublishConfig
from ldp_server.curator.engine import create_data_set
from ldp_server.curator.prices import DataSetBudget
from ldp_server.sealing.keys import new_key
from ldp_server.service.admission.key_files import load_private_key, load_public_key, make_key
from ldp_server.service.sharing import ANSWER, COLLECT
from ldp_server.store.engines import open_store
from tests.server.helpers import NOW, make_collection, until
from tests.server.sharing.helpers import shared
from tests.server.volunteers.test_whole_way import command, released_from, volunteering, withdrawing

PEOPLE = 12
VOLUNTEERS = CollectorConfig(volunteers=True)


async def known(server, collection):
    await until(lambda: server.server.parts.lifecycle.collections.get(collection.id) is not None)


@pytest.mark.long
async def test_volunteers_give_to_one_collector_and_withdraw_at_another(address, tmp_path, monkeypatch, capsys):
    """The whole way to a release, with two collectors that keep no files."""
    collection, keys = make_collection("Shared volunteers?"), tmp_path / "keys"
    (tmp_path / "q.ldp").write_text(collection.to_toml())
    (tmp_path / "items").write_text("7\n9\n")
    new_key(keys, 90 * 86_400, NOW)
    create_data_set(tmp_path / "home", "panel", DataSetBudget("pure", Fraction(2)), NOW)
    async with (
        shared(tmp_path / "a", address, ANSWER) as answer,
        shared(tmp_path / "c", address, COLLECT, collector=VOLUNTEERS) as first,
        shared(tmp_path / "d", address, COLLECT, collector=VOLUNTEERS) as second,
    ):
        await answer.create(collection)
        ports = [one.server.port for one in (first, second)]
        for one in (first, second):
            await known(one, collection)
        where = [tmp_path / f"device{k}" for k in range(PEOPLE + 2)]
        for k, folder in enumerate(where):
            item, epsilon = (7 if k % 3 else 9), ("1" if k == PEOPLE + 1 else "2")
            said = await asyncio.to_thread(volunteering, folder, ports[k % 2], keys, collection, item, epsilon)
            assert said == "given"
        assert await asyncio.to_thread(withdrawing, where[PEOPLE], ports[1], keys, collection) == "withdrawn"
        released_from(address, tmp_path, keys, lambda *words: command(monkeypatch, capsys, *words))
        assert await asyncio.to_thread(withdrawing, where[0], ports[1], keys, collection) == "used"
        assert await asyncio.to_thread(withdrawing, where[PEOPLE + 1], ports[0], keys, collection) == "withdrawn"
    which = ("--volunteers", address, "--collection", tmp_path / "q.ldp", "--json", "--yes")
    code, out, _ = command(monkeypatch, capsys, "forget", *which)
    assert (code, json.loads(out)["deleted"]) == (0, PEOPLE)
    assert {path.name for path in tmp_path.iterdir()}.isdisjoint({"c", "d"})


@pytest.fixture
def publish(tmp_path):
    for name in ("list.key", "witness.key", "stranger.key"):
        make_key(tmp_path / name)
    return PublishConfig(signing_key=tmp_path / "list.key", witnesses=(tmp_path / "witness.key.pub",))


async def listed(server):
    return await server.collector.ListCollections(pb.ListCollectionsRequest())


@pytest.mark.long
async def test_what_a_witness_signed_at_one_collector_is_shown_by_all(address, tmp_path, publish):
    one, two = make_collection("First of the list?"), make_collection("Second of the list?")
    witness = load_private_key(tmp_path / "witness.key")
    signer = load_public_key(tmp_path / "list.key.pub").public_bytes_raw()

    async def signed_at(server):
        given = (await listed(server)).signed_list
        mine = cosign(witness, signer, given.list_bytes)
        request = pb.CosignRequest(
            list_digest=sha256(given.list_bytes).digest(),
            cosignature=pb.Cosignature(public_key=mine.public_key, signature=mine.signature),
        )
        await server.collector.Cosign(request)

    async def shows(server):
        for _ in range(1000):
            answer = await listed(server)
            if answer.cosignatures:
                return answer
            await asyncio.sleep(0.01)
        pytest.fail("the signature never came")

    async with shared(tmp_path / "a", address, ANSWER, publish=publish) as answer:
        await answer.create(one)
        async with (
            shared(tmp_path / "c", address, COLLECT, publish=publish) as first,
            shared(tmp_path / "d", address, COLLECT, publish=publish) as second,
        ):
            assert not (await listed(second)).cosignatures
            await signed_at(first)
            assert await shows(second) == await shows(first)
            await answer.create(two)
            for server in (first, second):
                await known(server, two)
                assert not (await listed(server)).cosignatures  # it was a shorter list
            await signed_at(second)
            assert await shows(first) == await shows(second)
        async with shared(tmp_path / "e", address, COLLECT, publish=publish) as third:
            assert (await shows(third)).cosignatures[0].public_key == witness.public_key().public_bytes_raw()


async def test_signatures_that_somebody_put_into_the_database_are_checked(address, tmp_path, publish):
    """A row that no witness signed, and one of a key that is no witness, are shown by nobody."""
    from ldp_server.store.interface.store import CosignedList

    store = open_store(address, tmp_path)
    async with shared(tmp_path / "c", address, COLLECT, publish=publish) as server:
        publisher = server.server.parts.lifecycle.collections.publisher
        signed = (await listed(server)).signed_list
        stranger = cosign(load_private_key(tmp_path / "stranger.key"), signed.public_key, signed.list_bytes)
        witness = cosign(load_private_key(tmp_path / "witness.key"), signed.public_key, signed.list_bytes)
        rows = [CosignedList(*stranger[:1], 9, signed.list_bytes, stranger.signature),
                CosignedList(*witness[:1], 9, signed.list_bytes, stranger.signature)]  # fmt: skip
        seen = []
        take = publisher.take_cosignatures
        followed = server.server.parts.lifecycle.collections.surely_missing.__self__
        followed._take_signatures = lambda found: (take(found), seen.append(found))
        await asyncio.to_thread(store.keep_cosignatures, rows)
        await until(lambda: any(len(found) >= 2 for found in seen))
        assert not (await listed(server)).cosignatures
        longer = CosignedList(*witness[:1], 10, signed.list_bytes, witness.signature)
        await asyncio.to_thread(store.keep_cosignatures, [longer])
        await until(lambda: any(longer in found for found in seen))
        assert [one.signature for one in (await listed(server)).cosignatures] == [witness.signature]
        await asyncio.to_thread(store.keep_cosignatures, rows)  # of a shorter list: the newer one stays
        async with shared(tmp_path / "d", address, COLLECT, publish=publish) as other:
            for _ in range(1000):
                if (await listed(other)).cosignatures:
                    break
                await asyncio.sleep(0.01)
            assert [one.signature for one in (await listed(other)).cosignatures] == [witness.signature]


async def test_a_server_without_witnesses_takes_none(address, tmp_path, publish):
    async with shared(tmp_path / "c", address, COLLECT, publish=replace(publish, witnesses=())) as server:
        assert not (await listed(server)).cosignatures
