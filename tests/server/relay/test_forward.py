"""What the collection server is shown, and what becomes of a release that does not arrive at once."""

import asyncio
import os
import re

import grpc
import pytest

from ldp_client.collection import Schedule
from ldp_server.relay.config import HoldConfig
from tests.server.helpers import Clock, until
from tests.server.relay.helpers import HOUR, forward_to, live_relay, recording, relayed, request, unit
from tests.server.relay.test_relay import FIRST, after

HOURLY = Schedule(HOUR, 100_000)


@pytest.fixture(autouse=True)
def _quick_attempts(monkeypatch):
    monkeypatch.setattr("ldp_server.relay.forward._FIRST", 0.02)
    monkeypatch.setattr("ldp_server.relay.forward._LONGEST", 0.05)


async def hold(relay, collection, count, start=0):
    for tag in range(start, start + count):
        await relay.send(collection, unit(collection, tag), period=FIRST)


async def test_the_collector_sees_no_address_no_time_no_order_and_no_id_of_a_device(tmp_path):
    collection = relayed(40, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        sent = [request(collection, unit(collection, tag), period=FIRST) for tag in range(64)]
        devices = (*tuple(("x-device", str(tag)) for tag in range(3)), ("x-forwarded-for", "203.0.113.77"))
        for one in sent:
            await relay.stub.Submit(one, metadata=devices)
        await relay.at(after(FIRST))
        await until(lambda: relay.total("forwarded") == 64)
        (tags,) = collector.tags(collection)
        assert sorted(tags) == list(range(64))
        assert tags != sorted(tags)  # a permutation leaves 64 in order with probability 1 in 10^89
        (arrived,) = collector.requests
        assert arrived.batch_id not in {one.batch_id for one in sent}
        assert {field.name for field, _ in arrived.ListFields()} == {"collection_id", "batch_id", "payload", "period"}
        (headers,) = collector.seen_of_callers
        assert "203.0.113.77" not in headers
        assert "x-device" not in headers
        assert set(re.findall(r"key='([^']*)'", headers)) <= {"user-agent", "grpc-accept-encoding", "accept-encoding"}


async def test_an_answer_that_is_lost_costs_nothing_and_counts_once(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        collector.lose_answers = 3
        await hold(relay, collection, 3)
        await relay.at(after(FIRST))
        await until(lambda: relay.total("forwarded") == 3)
        assert len(collector.requests) == 4
        assert len({one.SerializeToString() for one in collector.requests}) == 1
        assert relay.total("away") == 3


async def test_a_release_that_was_interrupted_goes_on_with_the_same_set_and_the_same_ids(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    async with recording(collection) as collector:
        forward = forward_to(collector, tmp_path)
        collector.fail = grpc.StatusCode.UNAVAILABLE
        async with live_relay(tmp_path, forward) as relay:
            await hold(relay, collection, 5)
            await relay.at(after(FIRST))
            await asyncio.wait_for(collector.arrived.wait(), 60)
            await hold(relay, collection, 3, start=5)  # of the same period, but after the release
        before = {one.batch_id: one.payload for one in collector.requests}
        collector.fail = None
        async with live_relay(tmp_path, forward, clock=Clock(after(FIRST))) as relay:
            await until(lambda: relay.total("forwarded") == 5)
            assert (await relay.standing(collection)).held == 3
        assert {one.batch_id: one.payload for one in collector.batches.values()} == before
        assert sorted(collector.tags(collection)[0]) == [0, 1, 2, 3, 4]


async def test_a_collector_that_is_away_for_long_gets_all_when_it_is_back(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        collector.fail = grpc.StatusCode.UNAVAILABLE
        for period in range(FIRST, FIRST + 15):
            relay.clock.now = period * HOUR + 100
            for tag in range(3):
                await relay.send(collection, unit(collection, 3 * (period - FIRST) + tag), period=period)
            await relay.at(after(period))
        await until(lambda: relay.total("away") >= 3)
        assert (await relay.standing(collection)).outgoing == 45
        collector.fail = None
        await until(lambda: relay.total("forwarded") == 45)
        tags = collector.tags(collection)
        assert sorted(tag for part in tags for tag in part) == list(range(45))
        assert [len(part) for part in tags] == [3] * 15


async def test_later_is_waited_for_and_a_final_refusal_is_given_up(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        collector.refuse = "WINDOW_CLOSED"
        await hold(relay, collection, 3)
        await relay.at(after(FIRST))
        await until(lambda: len(collector.requests) >= 3)
        assert (await relay.standing(collection)).outgoing == 3
        collector.refuse = "COLLECTION_DELETED"
        await until(lambda: relay.metrics.by_label(relay.metrics.given_up)["refused"] == 3)
        assert (await relay.standing(collection)).outgoing == 0


@pytest.mark.parametrize("answer", ["no answer", "later"])
async def test_what_nobody_takes_is_given_up_long_after_the_window_and_not_before(tmp_path, answer):
    closes = after(FIRST) + 100
    collection = relayed(3, schedule=HOURLY, closes=closes)
    keep = HoldConfig(give_up_after="10 days")
    async with (
        recording(collection) as collector,
        live_relay(tmp_path, forward_to(collector, tmp_path), hold=keep) as relay,
    ):
        if answer == "later":
            collector.refuse = "WINDOW_CLOSED"
        else:
            collector.fail = grpc.StatusCode.UNAVAILABLE
        await hold(relay, collection, 3)
        await relay.at(closes + 10 * 86_400)
        seen = len(collector.requests)
        await until(lambda: len(collector.requests) >= seen + 3)
        assert (await relay.standing(collection)).outgoing == 3
        await relay.at(closes + 10 * 86_400 + 1)
        seen = len(collector.requests)
        await until(lambda: len(collector.requests) >= seen + 2)
        assert (await relay.standing(collection)).outgoing == 3, "the clock must have said so for an hour"
        await relay.after_an_hour()
        await until(lambda: relay.metrics.by_label(relay.metrics.given_up)["never taken"] == 3)
        assert (await relay.standing(collection)).outgoing == 0


async def test_one_collection_that_must_wait_does_not_hold_up_another(tmp_path):
    stuck, free = relayed(2, schedule=HOURLY), relayed(2, "Another?", schedule=HOURLY)
    async with recording(stuck, free) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        collector.stuck = stuck.id
        for collection in (stuck, free):
            await hold(relay, collection, 2)
        await relay.at(after(FIRST))
        await until(lambda: relay.total("forwarded") == 2)
        assert collector.units(free)
        assert not collector.units(stuck)


def test_random_ids_have_a_predecessor():
    from ldp_server.relay.forward import _before

    assert _before(bytes(15) + b"\x01") == bytes(16)
    assert _before(b"\x01" + bytes(15)) == b"\x00" + b"\xff" * 15
    one = os.urandom(15) + b"\x07"
    assert _before(one) < one
