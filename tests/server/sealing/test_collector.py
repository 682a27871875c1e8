"""A running collection server takes batches of sealed reports, as a relay sends them."""

import os
from contextlib import suppress

import grpc
import pytest

from ldp_client.collection import Schedule
from ldp_client.protocol import sealing
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_client.protocol.reasons import RELAY_SLACK_SECONDS
from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_client.trust.signed_list import MAX_KEYS
from ldp_server.config import RetentionConfig, SealingConfig
from ldp_server.oracles import restore
from ldp_server.relay.store.released import _cut
from ldp_server.sealing.keys import KeyDirectory, load_keys, new_key, retire_key
from ldp_server.service.collector.unsealing import least_units
from ldp_server.service.metrics import Metrics
from tests.server.helpers import NOW, Clock, ServerProcess, live, make_collection, reason, send, taken, until

DAY = 86_400


def relayed(text="How many?", **more):
    return make_collection(text, count=2000, t=7, **{"smallest_batch": 2, **more})


@pytest.fixture
def keys(tmp_path):
    directory = tmp_path / "keys"
    new_key(directory, 30 * DAY, NOW)
    return directory


def seal(collection, value, key):
    report = value.to_bytes(collection.randomizer.report_bytes, "little")
    return sealing.seal(report, collection.id, key.public.public_key)


def request(collection, *units, **more):
    fields = {"collection_id": collection.id, "batch_id": os.urandom(16), "payload": b"".join(units), **more}
    return collector_pb2.SubmitRequest(**fields)


async def counts(server, collection):
    return restore(collection, await server.counts(collection)).reports


async def test_a_unit_counts_once_whatever_batch_it_comes_in(tmp_path, keys):
    collection, (key,) = relayed(), load_keys(keys)
    units = [seal(collection, value, key) for value in (1, 2, 3)]
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        first = taken(await server.collector.Submit(request(collection, *units[:2])))
        assert (first.reports, first.duplicate, first.dropped) == (2, False, 0)
        again = taken(await server.collector.Submit(request(collection, *units[:2])))
        assert (again.reports, again.duplicate) == (0, True)
        mixed, same = await send(server, [request(collection, *units), request(collection, units[2])])
        assert (taken(mixed).reports, taken(mixed).duplicate) == (1, False)
        assert (taken(same).reports, taken(same).duplicate) == (0, True)
        assert await counts(server, collection) == 3
        assert Metrics.by_label(server.server.metrics.dropped_units)["REPLAYED"] == 5


async def test_a_bad_unit_does_not_spoil_its_batch(tmp_path, keys):
    collection, (key,) = relayed(), load_keys(keys)
    good = [seal(collection, value, key) for value in (1, 2)]
    bad = bytearray(seal(collection, 3, key))
    bad[-1] ^= 1
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        answer = taken(await server.collector.Submit(request(collection, good[0], bytes(bad), good[1])))
        assert (answer.reports, answer.dropped) == (2, 1)
        assert reason(await server.collector.Submit(request(collection, bytes(bad)))) == "BAD_SEAL"
        assert await counts(server, collection) == 2
        assert Metrics.by_label(server.server.metrics.dropped_units)["BAD_SEAL"] == 2


async def test_plain_and_ragged_payloads_are_refused(tmp_path, keys):
    collection, (key,) = relayed(), load_keys(keys)
    unit = seal(collection, 1, key)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        for payload, why in (
            (bytes(2), "NOT_SEALED"),
            (unit[:-1], "SEALED_WRONG_LENGTH"),
            (unit + unit[:-1], "SEALED_WRONG_LENGTH"),
            (b"", "EMPTY_BATCH"),
        ):
            assert reason(await server.collector.Submit(request(collection, payload))) == why
        assert server.server.parts.waiting.bytes == 0


async def test_both_keys_of_an_overlap_are_on_the_list_and_open(tmp_path, keys):
    clock, collection = Clock(), relayed()
    (old,) = load_keys(keys)
    new = new_key(keys, 60 * DAY, NOW)
    config = SealingConfig(keys=keys, opens_after="10 days")
    async with live(tmp_path / "d", clock=clock, sealing=config) as server:
        await server.create(collection)
        assert [one.id for one in server.server.parts.collector._publisher._collector_keys()] == [old.id, new.id]
        answer = taken(
            await server.collector.Submit(request(collection, *(seal(collection, 1, k) for k in (old, new))))
        )
        assert answer.reports == 2
        clock.now = old.not_after + 10 * DAY - 1
        assert taken(await server.collector.Submit(request(collection, seal(collection, 1, old)))).reports == 1
        clock.now += 1
        answer = await server.collector.Submit(request(collection, seal(collection, 1, old)))
        assert reason(answer) == "SEAL_EXPIRED"
        assert [one.id for one in server.server.parts.collector._publisher._collector_keys()] == [new.id]


async def test_a_key_made_later_needs_no_restart_and_a_retired_one_opens_nothing(tmp_path, keys, monkeypatch):
    monkeypatch.setattr("ldp_server.sealing.keys._LOOK_SECONDS", 0.0)
    collection = relayed()
    (old,) = load_keys(keys)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        new = new_key(keys, 60 * DAY, NOW)
        assert taken(await server.collector.Submit(request(collection, seal(collection, 1, new)))).reports == 1
        retire_key(keys, old.id.hex())
        assert reason(await server.collector.Submit(request(collection, seal(collection, 1, old)))) == (
            "UNKNOWN_SEALING_KEY"
        )


async def test_what_a_collection_with_a_relay_needs(tmp_path, keys):
    async with live(tmp_path / "none") as server:
        with pytest.raises(grpc.aio.AioRpcError, match="ldp-server key new"):
            await server.create(relayed())
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        with pytest.raises(grpc.aio.AioRpcError):
            await server.create(relayed(), admission=3)


async def test_a_child_that_ends_asks_for_the_batch_again(tmp_path, keys):
    collection, (key,) = relayed(), load_keys(keys)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        unsealing = server.server.parts.collector._intake._ingest._unsealing
        one = request(collection, seal(collection, 1, key))
        await server.collector.Submit(one)
        (child,) = unsealing._pool.pids
        os.kill(child, 9)
        await until(lambda: not unsealing._pool.pids)
        assert taken(await server.collector.Submit(one)).duplicate
        assert server.server.parts.waiting.bytes == 0


async def test_what_is_stored_says_nothing_of_the_order_of_the_units(tmp_path, keys):
    """Two servers that got the same units in other orders hold the same payload and the same digests."""
    collection, (key,) = relayed(), load_keys(keys)
    units = [seal(collection, value, key) for value in (9, 2, 7, 4)]
    stored = []
    for number, order in enumerate((units, units[::-1])):
        async with live(tmp_path / str(number), sealing=SealingConfig(keys=keys)) as server:
            await server.create(collection)
            taken(await server.collector.Submit(request(collection, *order)))
            log = server.server.parts.log
            (batch,) = [one for group in log.read_all(1, 0) for one in group]
            digests = [sealing.unit_digest(unit) for unit in units]
            stored.append((batch.payload, log.counted_units(1, [*digests, bytes(16)]) == set(digests)))
    assert stored[0] == stored[1] == (bytes([2, 0, 4, 0, 7, 0, 9, 0]), True)


async def test_units_are_kept_until_the_collection_is_compacted_or_deleted(tmp_path, keys):
    clock, (key,) = Clock(), load_keys(keys)
    async with live(tmp_path / "d", clock=clock, sealing=SealingConfig(keys=keys)) as server:
        for number, text in enumerate(("compacted", "deleted"), 1):
            collection = relayed(text, opens=NOW, closes=NOW + 100)
            await server.create(collection)
            unit = seal(collection, 1, key)
            assert taken(await server.collector.Submit(request(collection, unit))).reports == 1
            log, digests = server.server.parts.log, [sealing.unit_digest(unit)]
            assert log.counted_units(number, digests) == set(digests)
            clock.now = NOW + 100 + RELAY_SLACK_SECONDS
            await server.call("CompactCollection" if text == "compacted" else "DeleteCollection", collection)
            await server.server.parts.compaction.sweep()
            assert log.counted_units(number, digests) == set()
            clock.now = NOW


async def test_a_unit_counts_once_whatever_period_a_relay_names(tmp_path, keys):
    """Also after the period in which it was counted is folded, and after a restart."""
    today, (key,) = NOW // DAY, load_keys(keys)
    collection = relayed(schedule=Schedule(DAY, 300), opens=NOW - 100 * DAY, closes=NOW + 100 * DAY)
    units = [seal(collection, value, key) for value in range(3)]
    parts = {"sealing": SealingConfig(keys=keys), "retention": RetentionConfig(fold_periods_after="2 days")}
    async with live(tmp_path / "d", **parts) as server:
        await server.create(collection)
        sent = await server.collector.Submit(request(collection, *units[:2], period=today - 4))
        assert taken(sent).reports == 2
        assert taken(await server.collector.Submit(request(collection, *units[:2], period=today))).duplicate
        background = server.server.parts.background
        background.schedule.patience = 0.0
        await background.once()
        await background.once()
        (first,) = server.server.parts.log.periods(1)
        assert first.generation is not None, "it is folded"
        again = taken(await server.collector.Submit(request(collection, *units, period=today)))
        assert (again.reports, again.duplicate) == (1, False)
        assert await counts(server, collection) == 3
    async with live(tmp_path / "d", **parts) as server:
        assert taken(await server.collector.Submit(request(collection, *units, period=today - 1))).duplicate
        assert await counts(server, collection) == 3


def test_kill_9_counts_no_unit_twice_and_loses_none_that_was_acknowledged(tmp_path, keys):
    """The server is killed while batches are on their way; then every unit is sent again, in other batches."""
    collection, (key,) = relayed(), load_keys(keys)
    file = tmp_path / "server.toml"
    file.write_text(f'[sealing]\nkeys = "{keys}"\nopens_after = "10000 days"\n')
    units = [seal(collection, value, key) for value in range(60)]
    with ServerProcess(tmp_path / "d", "--config", str(file)) as server:
        server.create(collection)
        for answers in (1, 4):
            batches = [request(collection, *units[start : start + 5]) for start in range(0, len(units), 5)]
            with server.channel() as channel:
                stub = collector_pb2_grpc.CollectorStub(channel)
                got = stub.SubmitStream(iter(batches), wait_for_ready=True)
                acknowledged = sum(taken(next(got)).reports for _ in range(answers))
                server.restart()
                with suppress(grpc.RpcError):
                    for answer in got:
                        acknowledged += taken(answer).reports
            assert server.reports(collection) >= acknowledged
        with server.channel() as channel:
            stub = collector_pb2_grpc.CollectorStub(channel)
            taken(stub.Submit(request(collection, *units[::-1]), wait_for_ready=True))
            assert taken(stub.Submit(request(collection, *units[::2]))).duplicate
        assert server.reports(collection) == len(units)


def test_a_list_has_at_most_four_keys(tmp_path, keys):
    for days in range(31, 37):
        new_key(keys, days * DAY, NOW)
    published = KeyDirectory(keys, DAY, Clock()).published()
    assert len(published) == MAX_KEYS
    assert published[-1].not_after == NOW + 36 * DAY


async def test_batches_that_no_honest_relay_sends_are_counted(tmp_path, keys):
    """A relay that lies about its smallest batch states what the spec says, and passes on fewer."""
    collection, (key,) = relayed(smallest_batch=3), load_keys(keys)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=keys)) as server:
        await server.create(collection)
        for units, small in ((3, 0), (2, 1), (4, 1), (1, 2)):
            sent = [seal(collection, value, key) for value in range(units)]
            assert taken(await server.collector.Submit(request(collection, *sent))).reports == units
            counted = server.server.metrics
            assert counted.total(counted.small_batches) == small


def test_the_least_that_an_honest_relay_sends():
    """A release that does not fit into one batch is cut into parts of about the same length."""
    for smallest in (2, 100, 2_000, 2_500, 60_000):
        collection = relayed(smallest_batch=smallest)
        length = sealing.sealed_bytes(collection.randomizer.report_bytes)
        least, most = least_units(collection, 0), MAX_PAYLOAD // length
        counts = {*range(smallest, smallest + 50), most, most + 1, 2 * most, 2 * most + 1, 3 * most + 1}
        parts = [len(part) for count in counts if count >= smallest for part in _cut(range(count), most)]
        assert 2 <= least <= smallest and min(parts) >= least
