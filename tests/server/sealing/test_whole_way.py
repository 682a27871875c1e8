"""The whole way: devices, a relay and a collection server, each as it ships, with a clock of the test's."""

import asyncio
import time
from contextlib import asynccontextmanager

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ldp_client import Client, Policy, PolicyRefused, Sending, Sources
from ldp_client.collection import Schedule
from ldp_client.testing import ManualClock
from ldp_server.config import PublishConfig, SealingConfig
from ldp_server.oracles import oracle_for, restore
from ldp_server.relay.config import ForwardConfig
from ldp_server.sealing.keys import new_key
from tests.client.operators import Operator
from tests.server.helpers import NOW, live, make_collection, until
from tests.server.relay.helpers import HOUR, live_relay

DEVICES = 6
FIRST = NOW // HOUR


class ThatDay(ManualClock):
    """The date is the test's; seconds pass as they do."""

    def monotonic(self):
        return time.monotonic()


def publishing(operator, folder):
    file = folder / "list.key"
    file.write_bytes(operator.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return PublishConfig(signing_key=file)


def report(folder, server, relay, collection_id, operator, seconds=60.0):
    """One device: it fetches the list and the question, reports once, and ends. Return its randomized report."""
    policy = Policy(max_epsilon="2", budget="2", period="30 days", lifetime="2", list_keys=[operator.public])
    with Client(
        f"127.0.0.1:{server.server.port}", storage=folder, policy=policy, tls=False, delay=0,
        sending=Sending(background=False), sources=Sources(clock=ThatDay(NOW)),
        relay=f"127.0.0.1:{relay.server.port}", relay_tls=False,
    ) as client:  # fmt: skip
        client.refresh()
        client.report(client.fetch(collection_id), 7)
        delivery = client.flush(seconds)
        with client._storage.reading() as (db, _):
            ((made,),) = db.execute("SELECT report FROM answers").fetchall()
        return delivery, made


@asynccontextmanager
async def through_a_relay(tmp_path):
    """An operator, a question that is answered through a relay, the collection server and the relay."""
    operator, keys = Operator(), tmp_path / "keys"
    new_key(keys, 90 * 86_400, NOW)
    collection = make_collection(
        smallest_batch=DEVICES, schedule=Schedule(HOUR, 100), opens=NOW - HOUR, closes=NOW + 9 * HOUR
    )
    config = {"sealing": SealingConfig(keys=keys), "publish": publishing(operator, tmp_path)}
    async with live(tmp_path / "d", **config) as server:
        await server.create(collection)
        forward = ForwardConfig(f"127.0.0.1:{server.server.port}", plaintext=True, collections=(collection.id.hex(),))
        async with live_relay(tmp_path, forward) as relay:
            yield operator, collection, server, relay


async def test_what_devices_report_is_counted_and_nobody_sees_who_said_it(tmp_path):
    async with through_a_relay(tmp_path) as (operator, collection, server, relay):
        work = [
            asyncio.to_thread(report, tmp_path / str(number), server, relay, collection.id, operator)
            for number in range(DEVICES)
        ]
        found = await asyncio.gather(*work)
        assert all(delivery.accepted == 1 for delivery, _ in found)
        assert not server.server.parts.waiting.stored
        server.server._clock.now = NOW + HOUR + 61
        await relay.at((FIRST + 1) * HOUR + 61)
        await until(lambda: sum(server.server.parts.waiting.stored.values()) > 0)
        expected = oracle_for(collection)
        expected.accumulate(b"".join(made for _, made in found))
        assert restore(collection, await server.counts(collection)).reports == DEVICES
        (batch,) = [
            one
            for period in server.server.parts.log.periods(1)
            for group in server.server.parts.log.read_all(period.number, 0)
            for one in group
        ]
        assert batch.payload == b"".join(sorted(made for _, made in found))


async def test_a_device_refuses_a_relay_that_promises_less_than_the_question(tmp_path):
    async with through_a_relay(tmp_path) as (operator, collection, server, relay):
        served = relay.server.parts.served.get(collection.id)
        object.__setattr__(served, "smallest_batch", DEVICES - 1)  # as a lying relay would state it
        delivery, _ = await asyncio.to_thread(report, tmp_path / "0", server, relay, collection.id, operator, 1.0)
        assert isinstance(delivery.error, PolicyRefused)
        assert delivery.waiting == 1
        assert relay.server.parts.log.bytes == 0
