"""What a relay does with reports: it holds them, drops copies, passes enough of them on, and forgets them."""

import os

import grpc
import pytest

from ldp_client.collection import Schedule
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.v1 import relay_pb2
from ldp_server.config import AddressAdmission
from ldp_server.relay.config import HoldConfig, RelayLimits, RelayListen
from tests.server.helpers import NOW, reason, taken, until
from tests.server.relay.helpers import (
    HOUR,
    forward_to,
    live_relay,
    recording,
    relayed,
    request,
    unit,
    unit_bytes,
)

DAY = 86_400
HOURLY = Schedule(HOUR, 100_000)
FIRST = NOW // HOUR
"""The period in which tests begin."""


def after(period):
    """A moment after the end of a period, its minute included."""
    return (period + 1) * HOUR + 61


async def test_reports_are_held_until_their_period_is_over_and_there_are_enough(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for tag in range(5):
            assert taken(await relay.send(collection, unit(collection, tag), period=FIRST)).reports == 1
        await relay.at((FIRST + 1) * HOUR + 59)
        assert (await relay.standing(collection)).held == 5
        assert not collector.requests
        await relay.at(after(FIRST))
        await until(lambda: relay.total("forwarded") == 5)
        (tags,) = collector.tags(collection)
        assert sorted(tags) == [0, 1, 2, 3, 4]
        assert collector.requests[0].period == FIRST
        standing = await relay.standing(collection)
        assert (standing.held, standing.outgoing, standing.short) == (0, 0, 0)
        assert relay.server.parts.log.bytes == 0


async def test_a_period_with_too_few_goes_with_the_next_and_never_alone(tmp_path):
    collection = relayed(4, schedule=HOURLY)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for tag in range(3):
            await relay.send(collection, unit(collection, tag), period=FIRST)
        await relay.at(after(FIRST))
        standing = await relay.standing(collection)
        assert (standing.held, standing.short) == (3, 1)
        await relay.at(after(FIRST + 1))
        assert (await relay.standing(collection)).short == 2
        await relay.send(collection, unit(collection, 3), period=FIRST + 2)
        await relay.at(after(FIRST + 2))
        await until(lambda: relay.total("forwarded") == 4)
        (tags,) = collector.tags(collection)
        assert sorted(tags) == [0, 1, 2, 3]
        assert {one.period for one in collector.requests} == {FIRST + 2}
        assert relay.total("merged") == 3
        assert (await relay.standing(collection)).short == 0


async def test_late_reports_keep_their_period_if_they_are_enough_and_join_a_later_one_if_not(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    now = after(FIRST + 5)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        relay.clock.now = now
        for tag, back in enumerate([5, 5, 5, 3, 3, 0, 0, 0]):
            await relay.send(collection, unit(collection, tag), period=FIRST + 6 - back)
        await relay.at(after(FIRST + 6))
        await until(lambda: relay.total("forwarded") == 8)
        batches = {
            one.period: sorted(tags) for one, tags in zip(collector.requests, collector.tags(collection), strict=True)
        }
        assert batches == {FIRST + 1: [0, 1, 2], FIRST + 6: [3, 4, 5, 6, 7]}


async def test_without_a_schedule_rounds_are_the_relays_own_and_the_last_ends_with_the_window(tmp_path):
    closes = (NOW // DAY + 2) * DAY + 500
    collection = relayed(2, closes=closes)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for tag in range(2):
            await relay.send(collection, unit(collection, tag))
        await relay.at((NOW // DAY + 1) * DAY - 1)
        assert not collector.requests
        await relay.at((NOW // DAY + 1) * DAY)
        await until(lambda: relay.total("forwarded") == 2)
        relay.clock.now = closes + 59
        await relay.send(collection, unit(collection, 2), unit(collection, 3))
        await relay.at(closes + 59)
        assert (await relay.standing(collection)).held == 2
        await relay.at(closes + 60)
        await until(lambda: relay.total("forwarded") == 4)
        assert reason(await relay.send(collection, unit(collection))) == "WINDOW_CLOSED"


async def test_too_few_at_the_end_of_the_window_are_given_up_and_counted(tmp_path):
    collection = relayed(3, closes=NOW + 1000)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        await relay.send(collection, unit(collection), unit(collection))
        await relay.at(NOW + 1060)
        assert (await relay.standing(collection)).held == 2, "the clock must have said so for an hour"
        await relay.after_an_hour()
        standing = await relay.standing(collection)
        assert (standing.held, standing.outgoing) == (0, 0)
        assert relay.metrics.by_label(relay.metrics.given_up) == {"too few": 2, "refused": 0, "never taken": 0}
        assert not collector.requests


@pytest.mark.parametrize("far", [30 * 86_400, 400 * 86_400], ids=["in the window", "long after it"])
async def test_a_clock_that_was_far_ahead_deletes_nothing_and_holds_nothing_up(tmp_path, far):
    collection = relayed(3, schedule=HOURLY, opens=NOW - 1000, closes=NOW + 90 * 86_400)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        await relay.send(collection, unit(collection, 1), unit(collection, 2), period=FIRST)
        await relay.at(NOW + far)
        assert (await relay.standing(collection)).held == 2
        await relay.at(NOW + 1)
        await relay.after_an_hour()
        assert (await relay.standing(collection)).held == 2
        await relay.send(collection, unit(collection, 3), period=FIRST)
        assert not collector.requests
        await relay.at((FIRST + 1) * HOUR + 60)
        await until(lambda: relay.total("forwarded") == 3)
        assert [sorted(tags) for tags in collector.tags(collection)] == [[1, 2, 3]]
        assert relay.total("given_up") == 0


async def test_copies_are_dropped_in_one_batch_in_two_after_a_release_and_after_a_restart(tmp_path):
    collection = relayed(3, schedule=HOURLY)
    copy, others = unit(collection, 7), [unit(collection, tag) for tag in range(2)]
    async with recording(collection) as collector:
        forward = forward_to(collector, tmp_path)
        async with live_relay(tmp_path, forward) as relay:
            assert not taken(await relay.send(collection, copy, copy, period=FIRST)).duplicate
            assert taken(await relay.send(collection, copy, period=FIRST)).duplicate
            assert (await relay.standing(collection)).held == 1
        async with live_relay(tmp_path, forward) as relay:
            assert taken(await relay.send(collection, copy, period=FIRST)).duplicate
            assert not taken(await relay.send(collection, copy, *others, period=FIRST)).duplicate
            await relay.at(after(FIRST))
            await until(lambda: relay.total("forwarded") == 3)
            assert taken(await relay.send(collection, copy, period=FIRST)).duplicate
            await relay.at(after(FIRST + 1))
        clock = relay.clock
        async with live_relay(tmp_path, forward, clock=clock) as relay:
            assert taken(await relay.send(collection, copy, period=FIRST)).duplicate
            for later in range(2, 8):  # digests are forgotten in the end
                await relay.at(after(FIRST + later))
            assert not taken(await relay.send(collection, copy, period=FIRST)).duplicate
        (tags,) = collector.tags(collection)
        assert sorted(tags) == [0, 1, 7]


async def test_what_is_not_a_row_of_sealed_units_is_refused_and_counted(tmp_path):
    collection, other = relayed(3), relayed(3, "Nobody serves it?")
    width = unit_bytes(collection)
    too_many = MAX_PAYLOAD // width + 1
    cases = [
        (request(collection, unit(collection)[:-1]), "SEALED_WRONG_LENGTH"),
        (request(collection, unit(collection), b"\x01"), "SEALED_WRONG_LENGTH"),
        (request(collection, b"\x02" + unit(collection)[1:]), "NOT_SEALED"),
        (request(collection, unit(collection), b"\x00" * width), "NOT_SEALED"),
        (request(collection), "EMPTY_BATCH"),
        (request(collection, *[unit(collection)] * too_many), "BATCH_TOO_LARGE"),
        (request(other, unit(other)), "UNKNOWN_COLLECTION"),
        (request(collection, unit(collection), collection_id=b"short"), "BAD_COLLECTION_ID"),
        (request(collection, unit(collection), batch_id=b"short"), "BAD_BATCH_ID"),
        (request(collection, unit(collection), period=1), "WRONG_PERIOD"),
    ]
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for sent, expected in cases:
            assert reason(await relay.stub.Submit(sent)) == expected
        streamed = [reason(one) async for one in relay.stub.SubmitStream(iter(sent for sent, _ in cases))]
        assert streamed == [expected for _, expected in cases]
        with pytest.raises(grpc.aio.AioRpcError) as malformed:
            await relay.channel.unary_unary("/ldp.v1.Relay/Submit")(b"\xff\xff")
        assert malformed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        counted = relay.metrics.by_label(relay.metrics.refused_batches)
        assert (counted["SEALED_WRONG_LENGTH"], counted["NOT_SEALED"]) == (4, 4)
        assert sum(counted.values()) == 2 * len(cases)
        assert (await relay.standing(collection)).held == 0


async def test_the_clock_decides_as_it_does_at_the_collection_server(tmp_path):
    collection = relayed(3, schedule=HOURLY, opens=NOW, closes=NOW + 10 * HOUR)
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for now, period, expected in [
            (NOW - 61, FIRST, "NOT_YET_OPEN"),
            (NOW, FIRST - 1, "WRONG_PERIOD"),
            ((FIRST + 1) * HOUR - 61, FIRST + 1, "PERIOD_NOT_BEGUN"),
            (NOW + 10 * HOUR + 60, FIRST, "WINDOW_CLOSED"),
        ]:
            relay.clock.now = now
            assert reason(await relay.send(collection, unit(collection), period=period)) == expected
        relay.clock.now = (FIRST + 1) * HOUR - 60  # a device whose clock is a minute ahead
        taken(await relay.send(collection, *[unit(collection) for _ in range(3)], period=FIRST + 1))
        await relay.at(after(FIRST))
        assert (await relay.standing(collection)).held == 3  # its period has just begun


async def test_the_promise_is_the_specs_and_names_the_operator(tmp_path):
    collection = relayed(1234, schedule=HOURLY)
    listen = RelayListen(operator="Example Foundation")
    async with (
        recording(collection) as collector,
        live_relay(tmp_path, forward_to(collector, tmp_path), relay=listen) as relay,
    ):
        promise = await relay.stub.Promise(relay_pb2.PromiseRequest(collection_id=collection.id))
        assert (promise.collection_id, promise.smallest_batch) == (collection.id, 1234)
        assert (promise.period_seconds, promise.operator) == (HOUR, "Example Foundation")
        assert "1234 together or none" in promise.rule
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await relay.stub.Promise(relay_pb2.PromiseRequest(collection_id=os.urandom(32)))
        assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


async def test_what_is_held_is_bounded_and_so_is_what_one_address_sends(tmp_path):
    collection = relayed(3)
    limits = RelayLimits(held_bytes=10 * unit_bytes(collection))
    slow = AddressAdmission(reports_per_second=0.001, burst=4, limit_this_machine=True)
    async with recording(collection) as collector:
        forward = forward_to(collector, tmp_path)
        async with live_relay(tmp_path, forward, limits=limits) as relay:
            for _ in range(10):
                taken(await relay.send(collection, unit(collection)))
            with pytest.raises(grpc.aio.AioRpcError) as full:
                await relay.send(collection, unit(collection))
            assert full.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert relay.metrics.by_label(relay.metrics.busy)["full"] == 1
        async with live_relay(tmp_path, forward, admission=slow) as relay:
            for _ in range(4):
                taken(await relay.send(collection, unit(collection)))
            with pytest.raises(grpc.aio.AioRpcError) as fast:
                await relay.send(collection, unit(collection))
            assert fast.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert relay.metrics.by_label(relay.metrics.busy)["rate"] == 1


async def test_a_long_release_is_cut_into_batches_that_are_all_large_enough(tmp_path):
    collection = relayed(1500, schedule=HOURLY)
    most = MAX_PAYLOAD // unit_bytes(collection)
    count = most + 10
    async with recording(collection) as collector, live_relay(tmp_path, forward_to(collector, tmp_path)) as relay:
        for start in range(0, count, 500):
            units = [unit(collection, tag) for tag in range(start, min(start + 500, count))]
            await relay.send(collection, *units, period=FIRST)
        await relay.at(after(FIRST))
        await until(lambda: relay.total("forwarded") == count)
        tags = collector.tags(collection)
        assert len(tags) == 2
        assert all(len(part) >= 1500 for part in tags)
        assert sorted(tag for part in tags for tag in part) == list(range(count))


async def test_the_round_may_be_shorter(tmp_path):
    collection = relayed(2)
    hold = HoldConfig(round="10 seconds")
    async with (
        recording(collection) as collector,
        live_relay(tmp_path, forward_to(collector, tmp_path), hold=hold) as relay,
    ):
        await relay.send(collection, unit(collection), unit(collection))
        await relay.at(NOW + 10)
        await until(lambda: relay.total("forwarded") == 2)
