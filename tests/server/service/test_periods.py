"""Periods of a schedule: what the server takes, how it keeps periods apart, and what retention leaves of them."""

import os
import sqlite3
from dataclasses import replace

import grpc
import pytest

from ldp_client.collection import Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.config import Config, RetentionConfig
from ldp_server.doctor import examine
from ldp_server.oracles import oracle_for
from ldp_server.store import Admission, AppendOutcome, NewCollection, SqliteLog, blocks
from ldp_server.store.reader import backup
from tests.server.helpers import NOW, Clock, batch, live, make_collection, payload, reason, send, taken
from tests.server.store.test_sqlite import a_batch

DAY = 86_400
TODAY = NOW // DAY
SCHEDULE = Schedule(DAY, 100)


def daily(text="How many each day?", **changes):
    """A question of a period a day, whose window begins ten days ago, in the middle of a day."""
    window = {"opens": NOW - 10 * DAY, "closes": NOW + 10 * DAY, **changes}
    return make_collection(text, schedule=SCHEDULE, **window)


async def test_a_window_of_more_periods_than_the_limit_is_refused(tmp_path):
    """A sender could make a row of each: 28,800 periods of a minute in 20 days, and 20 of a day."""
    often = make_collection("Each minute?", schedule=Schedule(60, 10), opens=NOW, closes=NOW + 20 * DAY)
    few, many = (make_collection("Each day?", schedule=SCHEDULE, opens=0, closes=days * DAY) for days in (20, 21))
    async with live(tmp_path / "a") as server:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.create(often)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "periods of 60 seconds, and this server takes at most 10,000" in refused.value.details()
        assert "limits.periods" in refused.value.details() and "\n" not in refused.value.details()
    async with live(tmp_path / "b", limits=replace(Config().limits, periods=20)) as server:
        await server.create(few)
        with pytest.raises(grpc.aio.AioRpcError, match="21 periods of 86,400 seconds"):
            await server.create(many)
    with pytest.raises(InvalidSpec, match=r"limits\.periods must be above 0"):
        Config(limits=replace(Config().limits, periods=0))


def asked(first, last=None, *, moments=False):
    return pb.AskedPeriods(first=first, last=first if last is None else last, moments=moments)


async def counts(server, collection, periods=None, kind=pb.COUNTS):
    request = pb.ExportRequest(collection_id=collection.id, kind=kind, periods=periods)
    pieces = [piece async for piece in server.analyst.Export(request, metadata=server.auth)]
    return b"".join(piece.data for piece in pieces), pieces[0].periods


async def lines(server, collection, periods=None):
    request = pb.ListPeriodsRequest(collection_id=collection.id, periods=periods)
    return (await server.analyst.ListPeriods(request, metadata=server.auth)).periods


async def fill(server, collection, sizes):
    """Send batches of each period, in a stream that mixes them; return an oracle for each period, and the batches."""
    oracles = {period: oracle_for(collection) for period in sizes}
    requests = [
        batch(collection, 1 + i % 3, period=period)
        for i in range(max(sizes.values()))
        for period in sizes
        if i < sizes[period]
    ]
    for response in await send(server, requests):
        taken(response)
    for request in requests:
        oracles[request.period].accumulate(request.payload)
    return oracles, requests


def added(*oracles):
    total = oracle_for(oracles[0].randomizer)
    for one in oracles:
        total.merge(one)
    return total.to_bytes()


async def refused(call):
    with pytest.raises(grpc.aio.AioRpcError) as found:
        await call
    assert "\n" not in found.value.details()
    return found.value.code().name, found.value.details()


async def test_which_periods_are_taken(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        once, often = make_collection(), daily()
        for collection in (once, often):
            await server.create(collection)
        assert reason(await server.collector.Submit(batch(once, period=TODAY))) == "WRONG_PERIOD"
        first, last = often.periods
        for period in (0, first - 1, last + 1, 1 << 63):
            assert reason(await server.collector.Submit(batch(often, period=period))) == "WRONG_PERIOD", period
        for period in (first, TODAY - 1, TODAY):
            taken(await server.collector.Submit(batch(often, period=period)))
        tomorrow = batch(often, period=TODAY + 1)
        clock.now = (TODAY + 1) * DAY - 61
        assert reason(await server.collector.Submit(tomorrow)) == "PERIOD_NOT_BEGUN"
        clock.now += 1
        taken(await server.collector.Submit(tomorrow))
        clock.now = often.closes + 59  # late: of any period of the window
        taken(await server.collector.Submit(batch(often, period=first)))
        taken(await server.collector.Submit(batch(often, period=last)))
        clock.now += 1
        assert reason(await server.collector.Submit(batch(often, period=last))) == "WINDOW_CLOSED"
        assert [line.period for line in await lines(server, often)] == [first, TODAY - 1, TODAY, TODAY + 1, last]


@pytest.mark.parametrize("block", [5, 1024])
async def test_a_batch_id_is_for_one_payload_and_one_period(tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK", block)
    async with live(tmp_path / "d") as server:
        collection = daily()
        await server.create(collection)
        requests = [batch(collection, period=TODAY - i % 2) for i in range(10)]
        for response in await send(server, requests):
            assert not taken(response).duplicate
        for response in await send(server, requests):
            assert taken(response).duplicate
        moved = []
        for one in requests:
            moved.append(type(one)())
            moved[-1].CopyFrom(one)
            moved[-1].period -= 1
        assert {reason(response) for response in await send(server, moved)} == {"BATCH_ID_CONFLICT"}
        twice = [batch(collection, period=TODAY)] * 2
        twice.append(batch(collection, period=TODAY - 1, batch_id=twice[0].batch_id, payload=twice[0].payload))
        first, again, other = await send(server, twice)
        assert (taken(first).duplicate, taken(again).duplicate, reason(other)) == (False, True, "BATCH_ID_CONFLICT")
        assert sum(line.batches for line in await lines(server, collection)) == 11


@pytest.mark.parametrize("block", [4, 1024])
@pytest.mark.thinned(1)
async def test_periods_are_counted_apart_and_together(tmp_path, monkeypatch, block):
    monkeypatch.setattr(blocks, "BLOCK", block)
    collection = daily()
    first = collection.periods[0]
    sizes = {first: 3, TODAY - 3: 11, TODAY - 1: 8, TODAY: 1}
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        oracles, _ = await fill(server, collection, sizes)
        await server.server.parts.background.once()
    for _ in ("from checkpoints", "from the log"):
        async with live(tmp_path / "d") as server:
            for period, oracle in oracles.items():
                data, span = await counts(server, collection, asked(period))
                assert data == oracle.to_bytes()
                assert (span.first, span.last, span.begins, span.ends) == (
                    period, period, period * DAY, (period + 1) * DAY
                )  # fmt: skip
                noon = asked(period * DAY + DAY // 2, moments=True)
                assert (await counts(server, collection, noon))[0] == data
            data, span = await counts(server, collection, asked(TODAY - 4, TODAY - 1))
            assert data == added(oracles[TODAY - 3], oracles[TODAY - 1])
            assert (span.first, span.last) == (TODAY - 3, TODAY - 1)  # what there is
            data, span = await counts(server, collection)
            assert data == added(*oracles.values())
            assert (span.first, span.last) == (first, TODAY)
            found = await lines(server, collection)
            assert [(one.period, one.batches, one.reports, one.state) for one in found] == [
                (period, size, oracles[period].reports, "held") for period, size in sizes.items()
            ]
            assert (await server.show(collection)).reports == sum(oracle.reports for oracle in oracles.values())
            reports, span = await counts(server, collection, asked(TODAY - 1), pb.REPORTS)
            again = oracle_for(collection)
            again.accumulate(reports)
            assert again.to_bytes() == oracles[TODAY - 1].to_bytes()
            assert span.first == TODAY - 1
        for file in (tmp_path / "d" / "states").iterdir():
            file.unlink()


async def test_a_period_that_is_unknown_or_empty_is_one_clear_line(tmp_path):
    async with live(tmp_path / "d") as server:
        once, often = make_collection(), daily()
        for collection in (once, often):
            await server.create(collection)
        await fill(server, often, {TODAY: 2})
        requests = {
            "Estimate": pb.EstimateRequest(top=pb.TopItems(count=1)),
            "Numbers": pb.NumbersRequest(average=pb.AverageQuestion()),
            "Attributes": pb.AttributesRequest(),
            "ListPeriods": pb.ListPeriodsRequest(),
        }
        for method, request in requests.items():
            for collection, periods, code, words in (
                (once, asked(TODAY), "INVALID_ARGUMENT", "has no schedule"),
                (
                    often,
                    asked(TODAY - 1),
                    "FAILED_PRECONDITION",
                    f"there are no reports in period {TODAY - 1} (2027-01-14 to",
                ),
                (often, asked(TODAY + 400), "INVALID_ARGUMENT", "is not of this question: its window has periods"),
                (often, asked(0, 5), "INVALID_ARGUMENT", "is not of this question"),
                (often, asked(TODAY, TODAY - 1), "INVALID_ARGUMENT", "lies after its last one"),
                (often, asked(1 << 63, (1 << 64) - 1), "INVALID_ARGUMENT", "is not of this question"),
            ):
                request.collection_id = collection.id
                request.periods.CopyFrom(periods)
                call = getattr(server.analyst, method)(request, metadata=server.auth)
                found = await refused(call)
                assert found[0] == code and words in found[1], (method, found)
        for kind in (pb.COUNTS, pb.REPORTS):
            code, words = await refused(counts(server, often, asked(TODAY - 1), kind))
            assert (code, "no reports in period" in words) == ("FAILED_PRECONDITION", True)
        assert (await refused(lines(server, once)))[0] == "INVALID_ARGUMENT"


async def test_a_token_is_for_one_period_only(tmp_path):
    """A token that was used in one period is used up in the others, also after the first one is folded."""
    tokens = [os.urandom(16) for _ in range(2)]
    collection, log = daily(), SqliteLog(tmp_path / "log.db")
    number = log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission("linkable-token"), 1)).number
    for token in tokens:
        assert log.append([a_batch(number, token=token)._replace(period=7)]) == [AppendOutcome.STORED]
    log.finish(log.periods(number)[0].number)
    later = [a_batch(number, token=token)._replace(period=8) for token in (*tokens, os.urandom(16))]
    assert [outcome.name for outcome in log.append(later)] == ["TOKEN_USED", "TOKEN_USED", "STORED"]
    log.close()


async def test_compaction_folds_every_period(tmp_path):
    collection = daily()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        oracles, requests = await fill(server, collection, {TODAY - 2: 9, TODAY: 4})
        await server.call("CloseCollection", collection)
        await server.call("CompactCollection", collection)
        await server.server.parts.compaction.sweep()
        db = server.server.parts.log.db
        assert [db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("batches", "recent")] == [0, 0]
        assert [line.state for line in await lines(server, collection)] == ["folded", "folded"]
        assert (await server.show(collection)).info.state == pb.COMPACTED
    for file in (tmp_path / "d" / "states").iterdir():
        file.unlink()
    assert all(one.verdict != "wrong" for one in examine(tmp_path / "d", None, deep=True))
    async with live(tmp_path / "d") as server:
        for period, oracle in oracles.items():
            assert (await counts(server, collection, asked(period)))[0] == oracle.to_bytes()
        assert (await counts(server, collection))[0] == added(*oracles.values())
        assert reason(await server.collector.Submit(requests[0])) == "COLLECTION_CLOSED"
        code, words = await refused(counts(server, collection, asked(TODAY), pb.REPORTS))
        assert (code, "export counts" in words) == ("FAILED_PRECONDITION", True)


async def test_retention_folds_and_then_drops_old_periods_of_a_running_collection(tmp_path):
    clock = Clock()
    retention = RetentionConfig(fold_periods_after="2 days", drop_periods_after="4 days")
    collection = daily()
    first = collection.periods[0]
    async with live(tmp_path / "d", clock=clock, retention=retention) as server:
        await server.create(collection)
        sizes = {first: 3, TODAY - 4: 5, TODAY - 3: 4, TODAY - 2: 2, TODAY: 6}
        oracles, requests = await fill(server, collection, sizes)
        background = server.server.parts.background
        await background.once()
        assert {line.state for line in await lines(server, collection)} == {"held"}  # not before it is sure of the time
        background.schedule.patience = 0.0
        clock.now = (TODAY + 400) * DAY
        background.schedule.patience = 600.0
        await background.once()
        clock.now = NOW  # a clock that was wrong for a moment does no harm
        background.schedule.patience = 0.0
        await background.once()
        assert [line.state for line in await lines(server, collection)] == [
            "dropped",
            "folded",
            "folded",
            "held",
            "held",
        ]
        assert [line.reports for line in await lines(server, collection)] == [oracles[one].reports for one in sizes]
        for period in (TODAY - 4, TODAY - 3, TODAY - 2, TODAY):
            assert (await counts(server, collection, asked(period)))[0] == oracles[period].to_bytes()
        code, words = await refused(counts(server, collection, asked(first)))
        assert (code, words.startswith("its counts were dropped in period")) == ("FAILED_PRECONDITION", True)
        kept = [oracles[period] for period in sizes if period != first]
        data, span = await counts(server, collection)
        assert (data, span.first) == (added(*kept), TODAY - 4)
        await sent_again(server, requests, TODAY - 2)
        await server.server.parts.compaction.sweep()
        held = server.server.parts.log.db.execute("SELECT count(*) FROM recent").fetchone()[0]
        assert held == sizes[TODAY - 2] + sizes[TODAY]
    await restored_elsewhere(tmp_path, clock, collection, requests[0], added(*kept))


async def sent_again(server, requests, oldest):
    """What was taken before is refused, too, once its id is gone."""
    for request in requests:
        response = await server.collector.Submit(request)
        if request.period < oldest:
            assert reason(response) == "PERIOD_OVER"
        else:
            assert taken(response).duplicate


async def restored_elsewhere(tmp_path, clock, collection, old, counted):
    """The decision lasts, whatever the settings of the server are that has the backup."""
    backup(tmp_path / "d" / "log.db", tmp_path / "copy.db")
    (tmp_path / "e").mkdir(mode=0o700)
    (tmp_path / "copy.db").rename(tmp_path / "e" / "log.db")
    assert all(one.verdict != "wrong" for one in examine(tmp_path / "e", None, deep=True))
    async with live(tmp_path / "e", clock=clock) as server:
        assert reason(await server.collector.Submit(old)) == "PERIOD_OVER"
        assert (await counts(server, collection))[0] == counted
        assert [line.state for line in await lines(server, collection)] == [
            "dropped",
            "folded",
            "folded",
            "held",
            "held",
        ]


async def test_a_batch_that_waits_while_its_period_is_retired_is_refused_for_good(tmp_path):
    """The service's check came before; the log's comes after."""
    collection, log = daily(), SqliteLog(tmp_path / "log.db")
    number = log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission(), 1)).number
    log.append([a_batch(number, payload(collection))._replace(period=period) for period in (7, 8)])
    assert log.take_from(number, 8).oldest == 8
    assert log.take_from(number, 5).oldest == 8
    late = [a_batch(number, payload(collection))._replace(period=period) for period in (7, 8)]
    assert log.append(late) == [AppendOutcome.PERIOD_OVER, AppendOutcome.STORED]
    log.close()
    again = SqliteLog(tmp_path / "log.db")
    assert again.append(late) == [AppendOutcome.PERIOD_OVER, AppendOutcome.DUPLICATE]
    again.close()


async def test_a_deleted_collection_leaves_no_period(tmp_path):
    collection = daily()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        await fill(server, collection, {TODAY - 2: 9, TODAY: 4})
        await server.server.parts.background.once()
        assert len(list((tmp_path / "d" / "states").iterdir())) == 2
        await server.call("DeleteCollection", collection)
        await server.server.parts.compaction.sweep()
        db = server.server.parts.log.db
        for table in ("batches", "recent", "periods", "blocks", "folded_state"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
        assert list((tmp_path / "d" / "states").iterdir()) == []
        assert (await refused(lines(server, collection)))[0] == "NOT_FOUND"


async def test_a_row_of_a_period_that_is_lost_or_changed_is_noticed(tmp_path):
    collection = daily()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        await fill(server, collection, {TODAY - 2: 9, TODAY: 4})
    sound = (tmp_path / "d" / "log.db").read_bytes()
    for damage in (
        f"DELETE FROM periods WHERE period = {TODAY}",
        f"UPDATE periods SET period = {TODAY - 1} WHERE period = {TODAY}",
        "UPDATE recent SET place = place + (1 << 40) WHERE place = (SELECT min(place) FROM recent)",
    ):
        (tmp_path / "d" / "log.db").write_bytes(sound)
        db = sqlite3.connect(tmp_path / "d" / "log.db")
        assert db.execute(damage).rowcount == 1
        db.commit()
        db.close()
        assert any(one.verdict == "wrong" for one in examine(tmp_path / "d", None)), damage
