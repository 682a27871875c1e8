"""Every mechanism the whole way: randomized, sealed, through a relay, opened, counted; with and without a schedule.

The batches come from a gateway, which is tested here, too: what it refuses, and that a retry sends the same seals.
"""

import asyncio
import os
from contextlib import suppress

import pytest

from ldp_client.coins import draw_words
from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, PolicyRefused
from ldp_client.mechanisms import MECHANISMS, REPRODUCTIONS
from ldp_client.protocol.sealing import SEALED_EXTRA
from ldp_client.sending.gateway import Gateway, seal_batch
from ldp_client.sending.transport import Accepted, Batch
from ldp_server.config import SealingConfig
from ldp_server.oracles import oracle_for, restore
from ldp_server.relay.config import ForwardConfig
from ldp_server.sealing.keys import SealingKey, load_keys, new_key
from tests.examples import COLLECTIONS
from tests.server.helpers import NOW, Clock, live, make_collection, until
from tests.server.relay.helpers import HOUR, live_relay, relayed

SMALLEST, REPORTS = 5, 8
WINDOW = {"opens": NOW - HOUR, "closes": NOW + 9 * HOUR, "smallest_batch": SMALLEST}


def with_a_relay(example, schedule):
    """A question like an example. Some parameters fit some seeds only: then another nonce makes another seed."""
    for nonce in range(100):
        with suppress(InvalidSpec):
            return Collection.create(
                "Sealed?", example.domain, example.randomizer.name, str(example.epsilon), schedule=schedule,
                parameters=example.randomizer.parameters(), nonce=nonce, **WINDOW,
            )  # fmt: skip
    raise AssertionError(example)


def questions():
    """Every example of every mechanism that a server takes, each with a relay; every second one with a schedule."""
    for number, one in enumerate(COLLECTIONS):
        if one.randomizer.name not in REPRODUCTIONS:
            yield with_a_relay(one, Schedule(HOUR, 100) if number % 2 else None)


def made(collection):
    """A batch of reports of the first items, as devices randomize them."""
    randomizer = collection.randomizer
    items = [index % randomizer.size for index in range(REPORTS)]
    reports = [randomizer.randomize(item, draw_words(randomizer.words)) for item in items]
    payload = b"".join(report.to_bytes(randomizer.report_bytes, "little") for report in reports)
    return Batch(collection.id, os.urandom(16), payload, period=NOW // HOUR if collection.schedule else 0)


def deliver(target, collection, key):
    """Seal a batch once and send it twice, as after a lost answer. Return what was in it."""
    batch = made(collection)
    sealed = seal_batch(batch, collection, key)
    assert len(sealed.payload) == REPORTS * (collection.randomizer.report_bytes + SEALED_EXTRA)
    for duplicate in (False, True):
        gateway = Gateway(target, tls=False, relay=collection)
        try:
            assert list(gateway.send([sealed], 60)) == [Accepted(batch.batch_id, REPORTS, duplicate)]
        finally:
            gateway.close()
    return batch.payload


@pytest.mark.long
async def test_every_mechanism_through_a_relay(tmp_path):
    asked, clock = list(questions()), Clock()
    assert {one.randomizer.name for one in asked} == set(MECHANISMS) - set(REPRODUCTIONS)
    new_key(tmp_path / "keys", 90 * 86_400, NOW)
    (key,) = load_keys(tmp_path / "keys")
    async with live(tmp_path / "d", clock=clock, sealing=SealingConfig(keys=tmp_path / "keys")) as server:
        for one in asked:
            await server.create(one, unlisted=True)
        target, ids = f"127.0.0.1:{server.server.port}", tuple(one.id.hex() for one in asked)
        forward = ForwardConfig(target, plaintext=True, collections=ids)
        async with live_relay(tmp_path, forward, clock=clock) as relay:
            door = f"127.0.0.1:{relay.server.port}"
            sent = [await asyncio.to_thread(deliver, door, one, key.public.public_key) for one in asked]
            clock.now = NOW + 9 * HOUR + 61
            await relay.server.parts.keeper.once()
            await until(lambda: relay.total("forwarded") == REPORTS * len(asked))
        for one, payload in zip(asked, sent, strict=True):
            expected = oracle_for(one)
            expected.accumulate(payload)
            assert restore(one, await server.counts(one)).to_bytes() == expected.to_bytes(), one


async def test_what_a_gateway_to_a_relay_refuses(tmp_path):
    collection, other = relayed(SMALLEST), relayed(SMALLEST, "another?")
    new_key(tmp_path / "keys", 90 * 86_400, NOW)
    (key,) = load_keys(tmp_path / "keys")
    public, direct = key.public.public_key, made(collection)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=tmp_path / "keys")) as server:
        await server.create(collection, unlisted=True)
        forward = ForwardConfig(f"127.0.0.1:{server.server.port}", plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward) as relay:
            door = f"127.0.0.1:{relay.server.port}"

            def send(*batches):
                gateway = Gateway(door, tls=False, relay=collection)
                try:
                    return list(gateway.send(batches, 60))
                finally:
                    gateway.close()

            sealed = seal_batch(direct, collection, public)
            for wrong in (
                direct,
                sealed._replace(collection_id=other.id),
                sealed._replace(payload=sealed.payload[:-1]),
            ):
                with pytest.raises(InvalidSpec, match="seal_batch"):
                    await asyncio.to_thread(send, wrong)
            (served,) = relay.server.parts.served
            object.__setattr__(served, "smallest_batch", SMALLEST - 1)  # as a lying relay would state it
            with pytest.raises(PolicyRefused, match="nothing was sent"):
                await asyncio.to_thread(send, sealed)
            assert relay.server.parts.log.bytes == 0


def test_what_cannot_be_sealed():
    collection, public = relayed(SMALLEST), SealingKey(bytes(range(32)), 1).public.public_key
    direct = made(collection)
    for wrong, more in [
        (direct._replace(collection_id=bytes(32)), ()),
        (direct, ([b"short"] * REPORTS,)),
        (direct, ([bytes(354)],)),
        (direct._replace(payload=direct.payload * 1000), ()),
    ]:
        with pytest.raises(InvalidSpec, match="seal_batch"):
            seal_batch(wrong, collection, public, *more)
    with pytest.raises(InvalidSpec, match="do not pass"):
        Gateway("127.0.0.1:1", tls=False, relay=make_collection())
    with pytest.raises(InvalidSpec, match="collector key"):
        seal_batch(direct, collection, bytes(32))
