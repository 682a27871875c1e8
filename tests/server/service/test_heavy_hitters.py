"""Heavy hitters through the server: progress, the same list as the decoder's own, cancelling, one at a time."""

import asyncio
import math
import zlib

import grpc
import numpy as np
import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Strings
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server import heavy_hitters as hitters
from ldp_server.answers.wire import from_wire
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.config import LimitsConfig
from ldp_server.heavy_hitters import planner
from ldp_server.oracles import oracle_for
from simulator.crowd import simulate
from tests.server.helpers import NOW, batch, cli, live, taken, until

USERS = 24_000


@pytest.fixture(scope="module")
def case():
    """A crowd of whom a third hold one word, a quarter another, and the others a word each."""
    domain, epsilon = Strings(4), "4"
    chosen = planner.plan(USERS, domain, epsilon)
    collection = planner.create("Which word?", domain, epsilon, chosen, opens=0, closes=1 << 33)
    coins = np.random.default_rng(3)
    held = [b"tea", b"mate", *(coins.bytes(4) for _ in range(USERS * 5 // 12))]
    items = [held[0]] * (USERS // 3) + [held[1]] * (USERS // 4) + held[2:]
    payloads, oracle = [], oracle_for(collection)
    for reports in simulate(collection.randomizer, index_items(domain, items), seed=11):
        for start in range(0, len(reports), 5000):
            data = pack(reports[start : start + 5000], collection.randomizer.report_bytes)
            oracle.accumulate(data)
            payloads.append(data)
    return collection, payloads, hitters.decode(collection, oracle)


async def fill(server, case):
    collection, payloads, _ = case
    await server.create(collection)
    requests = [batch(collection, payload=payload) for payload in payloads]
    async for response in server.collector.SubmitStream(iter(requests)):
        taken(response)


async def test_the_list_is_the_decoder_s(tmp_path, case):
    collection, _, expected = case
    assert {hitter.item for hitter in expected.items} == {"tea", "mate"}
    async with live(tmp_path / "d") as server:
        await fill(server, case)
        assert (await server.show(collection)).decodes_heavy_hitters
        events = []
        ask = pb.HeavyHittersRequest(collection_id=collection.id)
        async for event in server.analyst.HeavyHitters(ask, metadata=server.auth):
            events.append(event)
        assert [e.WhichOneof("event") for e in events[:-1]] == ["progress"] * (len(events) - 1)
        assert len(events) > 3
        result = events[-1].result
        assert result.reports == expected.reports
        assert [hitter.item for hitter in from_wire(hitters.HeavyHitters, result).items] == [
            hitter.item for hitter in expected.items
        ]
        assert [row.estimate for row in result.items] == pytest.approx([h.estimate for h in expected.items])
        assert [row.low for row in result.items] == pytest.approx([h.low for h in expected.items])
        assert tuple(result.guarantee) == expected.guarantee
        assert not result.too_few_reports
        assert (result.beta, result.threshold_all) == (hitters.BETA, expected.threshold_all)
        limited = [
            event
            async for event in server.analyst.HeavyHitters(
                pb.HeavyHittersRequest(collection_id=collection.id, limit=1), metadata=server.auth
            )
        ]
        assert len(limited[-1].result.items) == 1
        given = pb.GivenItems(items=[pb.Item(text="tea"), pb.Item(text="none")])
        assert (await server.call("Estimate", collection, given=given)).estimates[0] > USERS / 4


async def asked(server, collection, **more):
    ask = pb.HeavyHittersRequest(collection_id=collection.id, **more)
    events = [event async for event in server.analyst.HeavyHitters(ask, metadata=server.auth)]
    return [row.item.text for row in events[-1].result.items], events[-1].result


async def test_a_search_begins_with_the_last_list(tmp_path, case):
    """The server remembers it until the collection is deleted. Without a schedule it has to be asked for."""
    collection, _, expected = case
    async with live(tmp_path / "d") as server:
        await fill(server, case)
        names = [hitter.item for hitter in expected.items]
        for beginning, start, items in (
            (pb.LAST, (), 0),  # there is none yet
            (pb.BEGINNING_UNSPECIFIED, (), 0),
            (pb.BLANK, (), 0),
            (pb.LAST, (), 2),
            (pb.BEGINNING_UNSPECIFIED, (pb.Item(text="tea"), pb.Item(text="milk"), pb.Item(text="too long")), 2),
        ):
            found, result = await asked(server, collection, beginning=beginning, start=start)
            assert (found, result.began_with) == (names, items)
            assert result.threshold == pytest.approx(expected.threshold)
            assert any("began with 2 known items" in line for line in result.guarantee) == (items == 2)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asked(server, collection, beginning=pb.LAST, start=[pb.Item(text="tea")])
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asked(server, collection, start=[pb.Item(integer="7")])
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        lists = server.server.parts.queries.last_lists
        assert lists.bytes > 0
        await server.call("DeleteCollection", collection)
        assert lists.bytes == 0


@pytest.mark.long
async def test_beta_is_asked_for(tmp_path, case):
    collection, _, expected = case
    async with live(tmp_path / "d") as server:
        await fill(server, case)
        ask = pb.HeavyHittersRequest(collection_id=collection.id, beta=0.001)
        events = [event async for event in server.analyst.HeavyHitters(ask, metadata=server.auth)]
        found = from_wire(hitters.HeavyHitters, events[-1].result)
        assert (found.beta, found.false_items) == (0.001, 0.0005)
        assert found.threshold_all > expected.threshold_all
        for beta in (-1.0, 1.0, math.nan, 1e-300):
            ask = pb.HeavyHittersRequest(collection_id=collection.id, beta=beta)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                async for _ in server.analyst.HeavyHitters(ask, metadata=server.auth):
                    pass
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "from 1e-06 to below 1" in refused.value.details()


@pytest.mark.long
async def test_cancelling_ends_the_decode_and_frees_its_place(tmp_path, case):
    collection, _, _ = case
    async with live(tmp_path / "d") as server:
        await fill(server, case)
        ask = pb.HeavyHittersRequest(collection_id=collection.id)
        first = server.analyst.HeavyHitters(ask, metadata=server.auth)
        await first.read()
        with pytest.raises(grpc.aio.AioRpcError) as second:
            async for _ in server.analyst.HeavyHitters(ask, metadata=server.auth):
                pass
        assert second.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        taken(await server.collector.Submit(batch(collection)))
        assert (await server.show(collection)).reports == USERS + 1  # others are answered meanwhile
        first.cancel()
        await until(lambda: not server.server.parts.queries.decodes.locked())
        for _ in range(2):
            events = [event async for event in server.analyst.HeavyHitters(ask, metadata=server.auth)]
            assert events[-1].WhichOneof("event") == "result"


async def test_a_decode_that_takes_too_long_is_ended_and_frees_its_place(tmp_path, case):
    collection, _, _ = case
    async with live(tmp_path / "d", limits=LimitsConfig(decode_seconds=0.01)) as server:
        await fill(server, case)
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                async for _ in server.analyst.HeavyHitters(
                    pb.HeavyHittersRequest(collection_id=collection.id), metadata=server.auth
                ):
                    pass
            assert ended.value.code() is grpc.StatusCode.ABORTED
            assert "limits.decode_seconds" in ended.value.details()
        assert (await server.show(collection)).reports == USERS


async def test_too_few_users_is_an_answer(tmp_path, case):
    collection, _, _ = case
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        ask = pb.HeavyHittersRequest(collection_id=collection.id)
        for _ in range(2):
            events = [event async for event in server.analyst.HeavyHitters(ask, metadata=server.auth)]
            result = events[-1].result
            assert not result.items
            assert result.too_few_reports
            assert result.users_needed > 0
            assert "Not enough users" in result.guarantee[0]
            taken(await server.collector.Submit(batch(collection, 3)))


@pytest.mark.long
async def test_on_the_command_line(tmp_path, case):
    import json

    from tests.server.helpers import ServerProcess

    collection, payloads, expected = case
    with ServerProcess(tmp_path / "d") as server:
        server.create(collection)
        async with grpc.aio.insecure_channel(server.target) as channel:
            from ldp_client.protocol.v1 import collector_pb2_grpc

            stub = collector_pb2_grpc.CollectorStub(channel)
            for payload in payloads:
                taken(await stub.Submit(batch(collection, payload=payload)))
        name = collection.id.hex()
        found = await asyncio.to_thread(cli, "heavy-hitters", name, "--json", data=tmp_path / "d")
        result = json.loads(found.stdout)
        assert [row["item"] for row in result["items"]] == [{"text": h.item} for h in expected.items]
        assert result["threshold"] < USERS
        shown = await asyncio.to_thread(cli, "heavy-hitters", name, data=tmp_path / "d")
        assert "tea" in shown.stdout
        assert "with probability 95%" in shown.stdout


@pytest.fixture(scope="module")
def days():
    """A question of a period a day, and reports of three days: on the last one fewer users hold what is known."""
    domain, users, today = Strings(8), 60_000, NOW // 86_400
    chosen = planner.plan(users, domain, "2")
    rare = round(0.9 * d_opt(users, 2.0, domain.size))
    collection = Collection.create(
        "Which word each day?", domain, chosen.mechanism, "2", parameters=chosen.parameters,
        opens=(today - 5) * 86_400, closes=(today + 5) * 86_400, schedule=Schedule(86_400, 10),
    )  # fmt: skip
    payloads = {}
    for day, held in ((today - 2, 3 * rare), (today - 1, rare), (today, rare)):
        coins = np.random.default_rng(day)
        items = [b"tea"] * held + [b"mate"] * (4 * rare) + [coins.bytes(8) for _ in range(users - held - 4 * rare)]
        reports = np.concatenate(list(simulate(collection.randomizer, index_items(domain, items), seed=day % 1000)))
        step = 200_000 // collection.randomizer.report_bytes
        payloads[day] = [
            pack(reports[first : first + step], collection.randomizer.report_bytes) for first in range(0, users, step)
        ]
    return collection, payloads


async def test_the_list_of_earlier_periods_is_the_dictionary(tmp_path, days):
    """By itself, of what the server found before; items that lasted are listed from lower frequencies."""
    collection, payloads = days
    first, second, third = payloads
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        requests = [batch(collection, payload=one, period=day) for day, lot in payloads.items() for one in lot]
        async for response in server.collector.SubmitStream(iter(requests)):
            taken(response)

        def of(day, **more):
            return asked(server, collection, periods=pb.AskedPeriods(first=day, last=day), **more)

        names, alone = await of(second)
        assert "tea" not in names and not alone.HasField("dictionary"), "nothing earlier was found yet"
        names, before = await of(first)
        assert set(names) == {"tea", "mate"} and not before.HasField("dictionary")
        names, found = await of(second)
        assert found.dictionary.candidates == 2
        assert found.dictionary.earlier.startswith(f"period {first} (")
        assert found.guarantee[-1].startswith(f"The dictionary is the list that this server found for period {first} ")
        assert "tea" in names and next(row for row in found.items if row.item.text == "tea").candidate
        names, without = await of(second, dictionary_source=pb.NO_DICTIONARY)
        assert "tea" not in names and not without.HasField("dictionary")
        names, given = await of(third, dictionary=zlib.compress(b"milk"))
        assert (given.dictionary.candidates, given.dictionary.earlier) == (1, "")
        _, every = await asked(server, collection)
        assert not every.HasField("dictionary"), "all reports have no earlier ones"
        _, longer = await of(third, exploratory=True)
        assert longer.exploratory and longer.dictionary.candidates >= 1
        with pytest.raises(grpc.aio.AioRpcError, match="name the periods"):
            await asked(server, collection, dictionary_source=pb.EARLIER_LIST)
