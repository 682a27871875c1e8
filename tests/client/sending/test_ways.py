"""Sealed reports on their way to a relay: what is sent, to whom, on which connection, and what a retry sends."""

from __future__ import annotations

import os
import sqlite3

import pytest

from ldp_client import Client, InvalidSpec, Policy, PolicyRefused, Unavailable, WrongType
from ldp_client.protocol import sealing
from ldp_client.protocol.sealing import CollectorKey
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.sending.outbox import WaitingBatch
from ldp_client.sending.transport import Batch
from ldp_client.sending.ways import SWITCH_SECONDS, choose_key
from ldp_client.testing import FakeCollector, RepeatableCoins
from tests.client.conftest import NOW, make
from tests.client.operators import Operator
from tests.vectors import independent

PRIVATE = [bytes([number]) * 32 for number in (1, 2, 3)]
PUBLIC = [independent.X25519PrivateKey.from_private_bytes(one).public_key().public_bytes_raw() for one in PRIVATE]
DAY = 86_400


class FakeRelay(FakeCollector):
    """A relay in memory: it promises, keeps sealed units as they come, and counts connections."""

    def __init__(self, promises=100):
        super().__init__()
        self.promises = promises
        self.connections = 0
        self.refused_keys = {}

    def promise(self, collection_id, timeout):
        if self.down:
            raise Unavailable("the fake relay is down")
        self.connections += 1
        return self.promises

    def _take(self, batch):
        self.refuses = self.refused_keys.get(sealing.key_id_of(batch.payload))
        return super()._take(batch)

    def payloads(self):
        return [batch.payload for call in self.calls for batch in call]


def relayed(nonce=0, **more):
    return make(nonce, **({"smallest_batch": 100} | more))


@pytest.fixture
def relay():
    return FakeRelay()


@pytest.fixture
def pinned():
    return Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12", collector_keys=[PUBLIC[0].hex()])


@pytest.fixture
def sealing_client(open_client, relay, pinned):
    return lambda **more: open_client(**({"relay": relay, "policy": pinned, "delay": 0} | more))


def on_list(*keys):
    return [collector_pb2.CollectorKey(public_key=key.public_key, not_after=key.not_after) for key in keys]


def opened(payload, collection, private=PRIVATE[0]):
    return independent.open_sealed(payload, collection.id, private)


def test_a_report_goes_sealed_to_the_relay_and_to_nobody_else(sealing_client, relay, collector):
    client, collection = sealing_client(), relayed()
    client.report(collection, "abc")
    with client._storage.reading() as (db, _):
        ((report,),) = db.execute("SELECT report FROM answers").fetchall()
    assert client.flush().accepted == 1
    (payload,) = relay.payloads()
    assert opened(payload, collection) == report
    assert len(payload) == len(report) + 57
    assert collector.calls == []
    (batch,) = relay.received.values()
    assert (batch.collection_id, batch.token) == (collection.id, None)


def test_other_collections_take_the_direct_way_as_before(sealing_client, relay, collector):
    client = sealing_client()
    client.report(relayed(1), "a")
    client.report(make(2), "b")
    client.report(make(3), "c")
    assert client.flush().accepted == 3
    assert (len(relay.received), len(collector.received)) == (1, 2)


def test_each_relayed_collection_has_a_connection_of_its_own(sealing_client, relay):
    client = sealing_client()
    for nonce in range(3):
        client.report(relayed(nonce), "a")
    assert client.flush().accepted == 3
    assert relay.connections == 3
    assert all(len({batch.collection_id for batch in call}) == 1 for call in relay.calls)


@pytest.mark.parametrize("item", [None, "", "a", "abc", "z" * 40])
def test_the_length_does_not_depend_on_the_item(sealing_client, relay, item):
    client, collection = sealing_client(), relayed()
    client.report(collection, item)
    client.flush()
    (payload,) = relay.payloads()
    assert len(payload) == sealing.sealed_bytes(collection.randomizer.report_bytes)


def test_a_retry_sends_the_same_sealed_bytes_also_after_a_new_start(sealing_client, relay):
    client, collection = sealing_client(), relayed()
    client.report(collection, "a")
    relay.loses_answers = True
    for _ in range(3):
        assert client.flush(0.0).waiting == 1
    client.close()
    relay.loses_answers = False
    again = sealing_client()
    assert again.flush().accepted == 1
    assert len(set(relay.payloads())) == 1
    assert len(relay.payloads()) >= 4
    assert len(relay.received) == 1


def test_nothing_is_sealed_while_nobody_answers(sealing_client, relay):
    client = sealing_client()
    client.report(relayed(), "a")
    relay.down = True
    assert client.flush(0.0).waiting == 1
    with client._storage.reading() as (db, _):
        assert db.execute("SELECT sealed FROM outbox").fetchall() == [(None,)]


@pytest.mark.parametrize("reason", ["SEAL_EXPIRED", "UNKNOWN_SEALING_KEY"])
def test_a_key_that_is_refused_at_once_is_replaced(sealing_client, relay, reason, clock):
    two = Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12", collector_keys=PUBLIC[:2])
    client, collection = sealing_client(policy=two), relayed()
    first, second = sorted(PUBLIC[:2])
    relay.refused_keys = {sealing.key_id(first): reason}
    client.report(collection, "a")
    delivery = client.flush()
    assert (delivery.accepted, delivery.refused, delivery.later, delivery.waiting) == (0, 0, 1, 1)
    clock.advance(30 * DAY)
    assert client.flush().accepted == 1
    assert [sealing.key_id_of(one) for one in relay.payloads()] == [sealing.key_id(first), sealing.key_id(second)]
    secrets = [PRIVATE[PUBLIC.index(key)] for key in (first, second)]
    plain = [opened(one, collection, secret) for one, secret in zip(relay.payloads(), secrets, strict=True)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize(("reason", "left"), [("SEAL_EXPIRED", 0), ("UNKNOWN_SEALING_KEY", 1)])
def test_after_an_answer_that_was_lost_a_report_is_never_sealed_anew(sealing_client, relay, reason, left, clock):
    """The relay may have counted it. So a refusal later on proves nothing."""
    two = Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12", collector_keys=PUBLIC[:2])
    client = sealing_client(policy=two)
    client.report(relayed(), "a")
    relay.loses_answers = True
    client.flush(0.0)
    relay.loses_answers = False
    relay.received.clear()
    relay.refused_keys = {sealing.key_id(min(PUBLIC[:2])): reason}
    assert client.flush().waiting == left
    clock.advance(30 * DAY)
    client.flush()
    assert len(set(relay.payloads())) == 1
    assert client.outbox().waiting == left


def test_a_refusal_for_another_reason_keeps_the_report_for_a_new_seal(sealing_client, relay, clock):
    client, collection = sealing_client(), relayed()
    client.report(collection, "a")
    relay.refused_keys = {sealing.key_id(PUBLIC[0]): "UNKNOWN_COLLECTION"}
    assert client.flush().later == 1
    relay.refused_keys = {}
    clock.advance(30 * DAY)
    assert client.flush().accepted == 1
    first, second = relay.payloads()
    assert first != second
    assert opened(first, collection) == opened(second, collection)


@pytest.mark.parametrize("promises", [0, 2, 99])
def test_a_relay_that_promises_less_gets_nothing(sealing_client, relay, promises):
    relay.promises = promises
    client = sealing_client()
    client.report(relayed(), "a")
    delivery = client.flush(0.0)
    assert isinstance(delivery.error, PolicyRefused)
    assert "at least 100" in str(delivery.error).replace("asks for 100", "at least 100")
    assert (delivery.waiting, relay.calls) == (1, [])
    relay.promises = 100
    assert client.flush().accepted == 1


def test_a_relay_that_is_down_does_not_hold_up_the_others(sealing_client, relay, collector):
    relay.down = True
    client = sealing_client()
    for nonce in range(4):
        client.report(relayed(nonce) if nonce % 2 else make(nonce), "a")
    delivery = client.flush(0.0)
    assert (delivery.accepted, delivery.waiting) == (2, 2)
    assert isinstance(delivery.error, Unavailable)
    relay.down = False
    assert client.flush().accepted == 2


def test_a_collector_that_is_down_does_not_hold_up_the_relay(sealing_client, relay, collector):
    collector.down = True
    client = sealing_client()
    client.report(relayed(1), "a")
    client.report(make(2), "a")
    delivery = client.flush(0.0)
    assert (delivery.accepted, delivery.waiting, len(relay.received)) == (1, 1, 1)


def test_what_a_client_without_relay_or_key_refuses(open_client, pinned, relay):
    plain = open_client(policy=pinned)
    with pytest.raises(PolicyRefused, match="relay="):
        plain.report(relayed(), "a")
    assert plain.outbox().waiting == 0
    keyless = open_client(relay=relay, storage=plain._storage.directory.parent / "other")
    with pytest.raises(PolicyRefused, match="collector_keys"):
        keyless.report(relayed(), "a")


@pytest.mark.parametrize(("relay", "error"), [("http://x", InvalidSpec), (5, WrongType), ("x:0", InvalidSpec)])
def test_a_wrong_relay_shows_at_once(tmp_path, pinned, relay, error):
    with pytest.raises(error):
        Client(FakeCollector(), storage=tmp_path, policy=pinned, relay=relay)


def test_an_option_that_does_not_exist_is_a_mistake(tmp_path, pinned):
    with pytest.raises(TypeError, match="relais"):
        Client(FakeCollector(), storage=tmp_path, policy=pinned, relais="x")


def test_keys_come_from_the_signed_list_and_a_list_without_a_live_one_waits(open_client, collector, relay, clock):
    operator = Operator()
    policy = Policy(max_epsilon="1", budget="9", period="30 days", lifetime="12", list_keys=[operator.public])
    collection = relayed()
    collector.collections[collection.id] = collection
    client = open_client(policy=policy, relay=relay, delay=0)
    ended = CollectorKey(PUBLIC[0], NOW - 1)
    collector.public = operator.sign([collection], collector_keys=on_list(ended))
    client.refresh()
    client.report(collection, "a")
    delivery = client.flush(0.0)
    assert "no live key" in str(delivery.error)
    assert relay.calls == []
    collector.public = operator.sign(
        [collection], collector_keys=on_list(ended, CollectorKey(PUBLIC[1], NOW + 30 * DAY))
    )
    client.refresh()
    assert client.flush().accepted == 1
    assert opened(relay.payloads()[0], collection, PRIVATE[1])


def test_devices_change_keys_at_the_same_moment():
    old, new = CollectorKey(PUBLIC[0], NOW), CollectorKey(PUBLIC[1], NOW + 90 * DAY)
    for before, key in ((SWITCH_SECONDS + 1, old), (SWITCH_SECONDS, new), (1, new), (-1, new)):
        assert choose_key((new, old), NOW - before) == key
        assert choose_key((old, new), NOW - before) == key
    assert choose_key((old,), NOW - 1) == old
    assert choose_key((old, new), NOW - 2 * DAY, frozenset([old.id])) == new
    assert choose_key((old,), NOW - 2 * DAY, frozenset([old.id])) == old
    for keys in ((), (old,)):
        with pytest.raises(Unavailable):
            choose_key(keys, NOW)


def test_a_ledger_of_the_version_before_gets_the_new_columns(sealing_client, relay):
    client = sealing_client()
    client.report(relayed(1), "a")
    client.flush()
    client.close()
    with sqlite3.connect(client._storage.path) as db:
        db.execute("ALTER TABLE outbox DROP COLUMN smallest")
        db.execute("ALTER TABLE outbox DROP COLUMN sealed")
        db.execute("PRAGMA user_version = 5")
    db.close()
    again = sealing_client(coins=RepeatableCoins(b"others"))
    assert again.outbox().counters["accepted"] == 1
    again.report(relayed(2), "a")
    assert again.flush().accepted == 1


def test_nothing_prints_a_report_or_its_seal():
    sealed = os.urandom(60)
    waiting = WaitingBatch(1, Batch(bytes(32), bytes(16), b"\x07\x08"), NOW, 100, sealed)
    assert "2 bytes" in repr(waiting)
    assert repr(sealed)[2:-1] not in repr(waiting)
