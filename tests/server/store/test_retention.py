"""Folding, sweeping, checkpoints, backup and restore: nothing lost, nothing counted twice, nothing that grows."""

import asyncio
import os
import shutil

import grpc
import pytest

from ldp_client.errors import StorageError
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.config import RetentionConfig
from ldp_server.oracles import oracle_for, restore
from ldp_server.store import SqliteReader, blocks
from ldp_server.store.checkpoints import read_checkpoint
from ldp_server.store.reader import backup
from ldp_server.worker.counts import CountsCache
from ldp_server.worker.period_counts import PeriodCounter
from tests.server.helpers import NOW, Clock, batch, live, make_collection, reason, taken


async def fill(server, collection, batches=30):
    oracle = oracle_for(collection)
    requests = [batch(collection, 20) for _ in range(batches)]
    async for response in server.collector.SubmitStream(iter(requests)):
        taken(response)
    for request in requests:
        oracle.accumulate(request.payload)
    return oracle, requests


def same(state, collection, oracle):
    return (restore(collection, state).counts.values == oracle.counts.values).all()


async def test_compaction_keeps_counts_and_drops_everything_else(tmp_path):
    async with live(tmp_path / "d") as server:
        collection, other = make_collection(), make_collection("other")
        await server.create(collection)
        await server.create(other)
        oracle, requests = await fill(server, collection)
        beside, _ = await fill(server, other)
        before = list((await server.call("Estimate", collection, all=pb.AllItems())).estimates)
        with pytest.raises(grpc.aio.AioRpcError) as early:
            await server.call("CompactCollection", collection)
        assert early.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await server.call("CloseCollection", collection)
        await server.call("CompactCollection", collection)
        await server.call("CompactCollection", collection)  # once more changes nothing
        await server.server.parts.compaction.sweep()
        db = server.server.parts.log.db
        assert db.execute("SELECT count(*) FROM batches WHERE collection = 1").fetchone()[0] == 0
        assert list((await server.call("Estimate", collection, all=pb.AllItems())).estimates) == before
        assert same(await server.counts(collection), collection, oracle)
        assert same(await server.counts(other), other, beside)
        found = await server.show(collection)
        assert (found.reports, found.batches, found.stored_bytes) == (600, 30, 0)
        assert reason(await server.collector.Submit(requests[0])) == "COLLECTION_CLOSED"
    shutil.rmtree(tmp_path / "d" / "states")  # derived: may go at any time
    async with live(tmp_path / "d") as server:
        assert same(await server.counts(collection), collection, oracle)
        assert reason(await server.collector.Submit(requests[0])) == "COLLECTION_CLOSED"
        with pytest.raises(grpc.aio.AioRpcError) as gone:
            async for _ in server.analyst.Export(
                pb.ExportRequest(collection_id=collection.id, kind=pb.REPORTS), metadata=server.auth
            ):
                pass
        assert gone.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_clock_that_goes_back_cannot_bring_a_compacted_window_to_life(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection = make_collection(opens=NOW, closes=NOW + 100)
        await server.create(collection)
        oracle, requests = await fill(server, collection)
        clock.now = NOW + 200
        await server.call("CompactCollection", collection)
        clock.now = NOW + 50
        for request in requests[:3]:
            assert reason(await server.collector.Submit(request)) == "WINDOW_CLOSED"
        assert same(await server.counts(collection), collection, oracle)


async def test_the_clock_compacts_only_after_a_while(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock, retention=RetentionConfig(compact_after="1 day")) as server:
        collection = make_collection(opens=NOW, closes=NOW + 100)
        await server.create(collection)
        background = server.server.parts.background
        for now, patience, expected in (
            (NOW + 160, 0.0, pb.ENDED),
            (NOW + 100 + 86_399, 0.0, pb.ENDED),
            (NOW + 100 + 86_400, 600.0, pb.ENDED),  # seen past its window for a moment only
            (NOW + 50, 0.0, pb.RUNNING),  # ... and rightly so: the clock was wrong
            (NOW + 100 + 86_400, 0.0, pb.COMPACTED),
        ):
            clock.now, background.schedule.patience = now, patience
            await background.once()
            assert (await server.show(collection)).info.state == expected, now


async def test_checkpoints_are_written_used_and_not_trusted_blindly(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 30)
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        oracle, _ = await fill(server, collection)
        await server.server.parts.background.once()
        states = tmp_path / "d" / "states"
        assert read_checkpoint(states, collection.id).sequence == 30
        more, _ = await fill(server, collection)
        oracle.merge(more)
        # A new child starts from the checkpoint and reads the tail only.
        log = SqliteReader(tmp_path / "d" / "log.db")
        cache = CountsCache(log, states, keep_bytes=1 << 20)
        read = []
        original = log.read

        def spy(number, after, **more):
            read.append(after)
            return original(number, after, **more)

        log.read = spy
        counts = cache.get(1)
        assert read == [30]
        assert (counts.oracle.counts.values == oracle.counts.values).all()
        cache.get(1)
        assert read == [30]  # nothing is new
        log.close()
    path = states / f"{collection.id.hex()}.state"
    good = path.read_bytes()
    for damaged in (b"", good[:50], good[:-1], good[:200] + bytes([good[200] ^ 1]) + good[201:], os.urandom(500)):
        path.write_bytes(damaged)
        async with live(tmp_path / "d") as server:
            assert same(await server.counts(collection), collection, oracle)


async def test_a_checkpoint_counts_recent_batches_once(tmp_path, monkeypatch):
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        oracle, _ = await fill(server, collection)
        await server.server.parts.background.once()
        states = tmp_path / "d" / "states"
        found = read_checkpoint(states, collection.id)
        assert (found.sequence, found.batches, found.reports, len(found.recent)) == (0, 30, 600, 30)
        more, _ = await fill(server, collection, 10)
        oracle.merge(more)
        log = SqliteReader(tmp_path / "d" / "log.db")
        counted = []
        monkeypatch.setattr(PeriodCounter, "_count", lambda self, counts, batches: counted.append(len(batches)))
        CountsCache(log, states, keep_bytes=1 << 20).get(1)
        assert counted == [10]
        monkeypatch.undo()
        await asyncio.wrap_future(server.server.parts.commit.run(lambda log: log.finish(1)))
        monkeypatch.setattr(PeriodCounter, "_count", lambda self, counts, batches: counted.append(len(batches)))
        CountsCache(log, states, keep_bytes=1 << 20).get(1)
        assert counted == [10, 10, 0]
        monkeypatch.undo()
        assert (CountsCache(log, states, keep_bytes=1 << 20).get(1).oracle.counts.values == oracle.counts.values).all()
        log.close()
        assert same(await server.counts(collection), collection, oracle)


@pytest.mark.parametrize("block", [10, 15, 1024])
@pytest.mark.thinned(1)
async def test_a_checkpoint_from_another_life_of_the_log_is_not_used(tmp_path, monkeypatch, block):
    """The log is replaced by an older backup and goes on differently: sequences are the same, batches are not."""
    monkeypatch.setattr(blocks, "BLOCK", block)
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        first, _ = await fill(server, collection, 10)
    backup(tmp_path / "d" / "log.db", tmp_path / "old.db")
    async with live(tmp_path / "d") as server:
        await fill(server, collection, 20)
        await server.server.parts.background.once()
    for name in ("log.db", "log.db-wal", "log.db-shm"):
        (tmp_path / "d" / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "old.db", tmp_path / "d" / "log.db")
    async with live(tmp_path / "d") as server:
        assert same(await server.counts(collection), collection, first)
        second, _ = await fill(server, collection, 20)  # again up to sequence 30
        first.merge(second)
        assert same(await server.counts(collection), collection, first)


async def test_a_backup_of_a_running_server_is_restored(tmp_path):
    collection = make_collection()
    async with live(tmp_path / "d") as server:
        await server.create(collection)
        oracle, requests = await fill(server, collection)
        backup(tmp_path / "d" / "log.db", tmp_path / "copy.db")
        assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
        late = batch(collection, 20)
        taken(await server.collector.Submit(late))
    with pytest.raises(StorageError, match="never overwrites"):
        backup(tmp_path / "d" / "log.db", tmp_path / "copy.db")
    (tmp_path / "new").mkdir()
    shutil.copy(tmp_path / "copy.db", tmp_path / "new" / "log.db")
    async with live(tmp_path / "new") as server:
        assert same(await server.counts(collection), collection, oracle)
        assert taken(await server.collector.Submit(requests[0])).duplicate
        assert not taken(await server.collector.Submit(late)).duplicate  # what came after the backup is sent again


@pytest.mark.long
async def test_space_is_given_back(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        requests = [batch(collection, 3000) for _ in range(1300)]
        async for response in server.collector.SubmitStream(iter(requests)):
            taken(response)
        db = server.server.parts.log.db
        before = db.execute("PRAGMA page_count").fetchone()[0]
        await server.call("DeleteCollection", collection)
        await server.server.parts.compaction.sweep()
        assert db.execute("PRAGMA page_count").fetchone()[0] < before // 2
        assert not (tmp_path / "d" / "states" / f"{collection.id.hex()}.state").exists()


def found_in(folder, secrets):
    """Which of these byte strings lie in any file of the data directory."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {secret for secret in secrets if any(secret in data for data in files)}


@pytest.mark.parametrize(("block", "ending"), [(1024, "delete"), (16, "delete"), (16, "compact")])
@pytest.mark.thinned(1)
async def test_no_file_holds_a_report_that_was_dropped(tmp_path, monkeypatch, block, ending):
    """Recent ones, ones in blocks, and pages that batches of another collection share."""
    monkeypatch.setattr(blocks, "BLOCK", block)
    async with live(tmp_path / "d") as server:
        collection, other = make_collection(), make_collection("other")
        await server.create(collection)
        await server.create(other)
        secrets, kept = set(), set()
        for _ in range(40):
            for asked, payloads in ((collection, secrets), (other, kept)):
                request = batch(asked, 30)
                payloads.add(request.payload)
                taken(await server.collector.Submit(request))
        background = server.server.parts.background
        await background.once()
        assert found_in(tmp_path / "d", secrets) == secrets
        state = tmp_path / "d" / "states" / f"{collection.id.hex()}.state"
        old = state.read_bytes()
        await server.call("CloseCollection", collection)
        await server.call("CompactCollection" if ending == "compact" else "DeleteCollection", collection)
        if ending == "delete":
            state.write_bytes(old)  # as a count that was under way would
        await background.once()
        assert found_in(tmp_path / "d", secrets) == set()
        assert found_in(tmp_path / "d", kept) == kept
        assert state.exists() == (ending == "compact")


async def test_a_compaction_that_fails_does_not_close_the_window(tmp_path):
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection = make_collection(opens=NOW, closes=NOW + 100)
        await server.create(collection)
        await fill(server, collection)
        clock.now = NOW + 200  # a clock that is wrong for a moment
        states = tmp_path / "d" / "states"
        states.rmdir()
        states.write_bytes(b"in the way")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.call("CompactCollection", collection)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        clock.now = NOW + 50
        taken(await server.collector.Submit(batch(collection)))
        assert (await server.show(collection)).reports == 601


class Race:
    """Streams of batches to two collections while the first of them ends."""

    def __init__(self, server, collection, other):
        self.server, self.collection, self.other = server, collection, other
        self.accepted, self.refused, self.beside = oracle_for(collection), set(), 0
        self.half_sent = asyncio.Event()

    async def send(self, tells):
        requests = [batch(self.other if i % 4 == 3 else self.collection, 3) for i in range(400)]
        by_id = {request.batch_id: request for request in requests}

        async def slowly():
            for i, request in enumerate(requests):
                if i > 150:
                    await asyncio.sleep(0.002)
                yield request

        async for response in self.server.collector.SubmitStream(slowly()):
            self.note(by_id[response.batch_id], response)
            if tells and response.batch_id == requests[150].batch_id:
                self.half_sent.set()

    def note(self, request, response):
        if response.WhichOneof("outcome") == "refusal":
            self.refused.add(reason(response))
        elif request.collection_id == self.other.id:
            self.beside += 3
        else:
            self.accepted.accumulate(request.payload)


@pytest.mark.parametrize("ending", ["close", "window"])
@pytest.mark.thinned(1)
async def test_compaction_under_load_counts_what_was_acknowledged(tmp_path, ending):
    """Batches race the end: whatever was accepted is in the counts, whatever was not is refused with a reason."""
    clock = Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        collection, other = make_collection(opens=NOW, closes=NOW + 100), make_collection("other")
        await server.create(collection)
        await server.create(other)
        race = Race(server, collection, other)

        async def end():
            await race.half_sent.wait()
            if ending == "close":
                await server.call("CloseCollection", collection)
            else:
                clock.now = NOW + 160
            await server.call("CompactCollection", collection)
            await server.server.parts.compaction.sweep()

        await asyncio.gather(end(), *(race.send(tells=i == 0) for i in range(3)))
        assert race.refused <= {"COLLECTION_CLOSED", "WINDOW_CLOSED"}
        assert reason(await server.collector.Submit(batch(collection))) in {"COLLECTION_CLOSED", "WINDOW_CLOSED"}
        assert same(await server.counts(collection), collection, race.accepted)
        assert (await server.show(other)).reports == race.beside == 900
