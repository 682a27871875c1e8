"""Real clients, a real relay and a real collection server, in this process with one clock."""

import asyncio
from dataclasses import replace

import pytest

from ldp_client import Client, LedgerFiles, Policy, Sending, Sources
from ldp_client.collection import Schedule
from ldp_client.errors import PolicyRefused, Unavailable
from ldp_client.protocol.reasons import RELAY_SLACK_SECONDS
from ldp_client.protocol.sealing import seal
from ldp_client.testing import ManualClock
from ldp_server.config import SealingConfig
from ldp_server.relay.config import ForwardConfig
from ldp_server.sealing.keys import load_keys, new_key
from tests.server.helpers import NOW, Clock, live, payload, taken, tries, until
from tests.server.relay.helpers import HOUR, live_relay, relayed, request

LONG = 10_000 * 86_400


@pytest.fixture
def keys(tmp_path):
    new_key(tmp_path / "keys", LONG, NOW)
    return tmp_path / "keys"


def sealed(collection, key):
    return seal(payload(collection), collection.id, key.public.public_key)


async def test_the_last_period_arrives_although_the_window_is_over(tmp_path, keys):
    """The relay releases it a minute after the window; the server takes it for a week, and is away for two days."""
    closes = (NOW // HOUR + 1) * HOUR
    collection, clock = relayed(4, schedule=Schedule(HOUR, 1000), opens=NOW - 100_000, closes=closes), Clock()
    (key,) = load_keys(keys)
    async with live(tmp_path / "d", clock=clock, sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection, unlisted=True)
        target = f"127.0.0.1:{server.server.port}"
        forward = ForwardConfig(target, plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward, clock=clock) as relay:
            for _ in range(6):
                taken(await relay.send(collection, sealed(collection, key), period=NOW // HOUR))
            clock.now = closes + 2 * 86_400
            await relay.server.parts.keeper.once()
            await until(lambda: relay.total("forwarded") == 6)
        assert (await server.show(collection)).reports == 6
        clock.now = closes + RELAY_SLACK_SECONDS
        response = await server.collector.Submit(request(collection, sealed(collection, key), period=NOW // HOUR))
        assert response.refusal.reason


async def test_reports_of_a_merged_period_are_counted_in_the_later_one(tmp_path, keys):
    collection, clock = relayed(4, schedule=Schedule(HOUR, 1000), opens=NOW - 100_000, closes=NOW + 900_000), Clock()
    (key,) = load_keys(keys)
    first = NOW // HOUR
    async with live(tmp_path / "d", clock=clock, sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection, unlisted=True)
        target = f"127.0.0.1:{server.server.port}"
        forward = ForwardConfig(target, plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward, clock=clock) as relay:
            for _ in range(3):
                taken(await relay.send(collection, sealed(collection, key), period=first))
            await relay.at((first + 1) * HOUR + 61)
            for _ in range(3):
                taken(await relay.send(collection, sealed(collection, key), period=first + 1))
            await relay.at((first + 2) * HOUR + 61)
            await until(lambda: relay.total("forwarded") == 6)
        records = server.server.parts.log.periods(1)
        assert [(one.period) for one in records] == [first + 1]
        assert (await server.show(collection)).reports == 6


def device(folder, number, relay, server, collection, key):
    """An app's client on a device of its own."""
    policy = Policy(
        max_epsilon="2", budget="9", period="30 days", lifetime="12", collector_keys=[key.public.public_key.hex()]
    )
    return Client(
        server,
        tls=False,
        relay=f"127.0.0.1:{relay.server.port}",
        relay_tls=False,
        storage=LedgerFiles(folder / f"device{number}"),
        policy=policy,
        delay=0,
        sending=Sending(background=False),
        sources=Sources(clock=ManualClock(float(NOW))),
    )


async def test_clients_report_through_a_relay_and_refuse_one_that_lies_about_its_smallest_batch(tmp_path, keys):
    """Six devices answer; the seventh is told of a smaller batch than the question says, and sends nothing."""
    collection, clock = relayed(4, schedule=Schedule(HOUR, 1000), opens=NOW - 100_000, closes=NOW + 900_000), Clock()
    (key,) = load_keys(keys)
    async with live(tmp_path / "d", clock=clock, sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection, unlisted=True)
        target = f"127.0.0.1:{server.server.port}"
        forward = ForwardConfig(target, plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward, clock=clock) as relay:

            def answer(number):
                with device(tmp_path, number, relay, target, collection, key) as client:
                    client.report(collection, 7)
                    if number < 6:
                        return client.flush(60.0)
                    for _ in tries():  # an attempt has little time
                        delivery = client.flush(0.0)
                        if not isinstance(delivery.error, Unavailable):
                            break
                    return delivery

            for number in range(6):
                assert (await asyncio.to_thread(answer, number)).accepted == 1
            served = relay.server.parts.served
            (honest,) = served
            served._by_id[collection.id] = replace(honest, smallest_batch=3)
            refused = await asyncio.to_thread(answer, 6)
            assert isinstance(refused.error, PolicyRefused)
            assert refused.waiting == 1
            served._by_id[collection.id] = honest
            assert (await relay.standing(collection)).held == 6
            await relay.at((NOW // HOUR + 1) * HOUR + 61)
            await until(lambda: relay.total("forwarded") == 6)
        assert (await server.show(collection)).reports == 6
