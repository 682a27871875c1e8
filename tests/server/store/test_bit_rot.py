"""Bits that flip in log.db: the right estimate or a typed error in time, never a wrong number or an endless read."""

import random
import shutil
import sqlite3
import time

import grpc
import pytest

from ldp_client.errors import LdpError
from ldp_server.oracles import oracle_for
from ldp_server.service.metrics import Metrics
from ldp_server.service.structure import StructureCheck
from ldp_server.store import Admission, Fold, NewCollection, SqliteLog, SqliteReader, blocks, fold_parts
from ldp_server.store.damage import check_recent
from ldp_server.store.errors import Corrupt
from ldp_server.store.schema import SEQUENCE_BITS
from ldp_server.worker.counts import CountsCache
from tests.server.helpers import batch, live, make_collection, payload, send
from tests.server.store.test_sqlite import a_batch

FLIPS = 1000
SECONDS = 5.0


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """60 batches are two blocks and ten recent batches."""
    monkeypatch.setattr(blocks, "BLOCK", 25)


def write(path, collection, *, folded=False):
    """A log with 60 batches; returns the counts of all of them."""
    log = SqliteLog(path)
    number = log.add(NewCollection(collection.id, collection.spec_bytes, True, Admission(), 1)).number
    oracle = oracle_for(collection)
    for _ in range(60):
        data = payload(collection, 20)
        oracle.accumulate(data)
        log.append([a_batch(number, data)])
    if folded:
        log.finish(number)
        state = oracle.to_bytes()
        for part in fold_parts(number, 7, state):
            log.write_part(part)
        log.fold(Fold(number, 7, len(state), 60, batches=60, reports=1200))
    log.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    return oracle.to_bytes()


def counted(path, states):
    """The counts as the worker builds them, or None if it refuses with a typed error."""
    try:
        reader = SqliteReader(path)
    except LdpError:
        return None
    try:
        return CountsCache(reader, states, keep_bytes=1 << 30).get(1).oracle.to_bytes()
    except LdpError:
        return None
    finally:
        reader.close()


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.thinned(1)
def test_a_flipped_bit_never_changes_an_estimate(tmp_path, folded):
    """Bits all over the file, and one in ten of them in the last page of rows, where numbers and payloads lie."""
    path, states = tmp_path / "log.db", tmp_path / "states"
    states.mkdir()
    right = write(path, make_collection(), folded=folded)
    sound = path.read_bytes()
    assert counted(path, states) == right
    coins = random.Random(5)
    refused = 0
    for _ in range(FLIPS // (2 if folded else 1)):
        data = bytearray(sound)
        place = coins.randrange(len(data))
        data[place] ^= 1 << coins.randrange(8)
        path.write_bytes(data)
        started = time.monotonic()
        found = counted(path, states)
        assert time.monotonic() - started < SECONDS, place
        assert found is None or found == right, place
        refused += found is None
    assert refused > 5  # the bits that were flipped matter


@pytest.mark.parametrize(("was", "becomes"), [(50, 51), (50, 1 << 30), (30, 1000), (2, 0), (31, 29)])
def test_numbers_that_do_not_follow_each_other_are_refused(tmp_path, was, becomes):
    path = tmp_path / "log.db"
    write(path, make_collection())
    low = 1 << SEQUENCE_BITS
    db = sqlite3.connect(path)
    db.execute("DELETE FROM batches WHERE position = ?", (low + becomes,))
    db.execute("UPDATE batches SET position = ? WHERE position = ?", (low + becomes, low + was))
    db.commit()
    db.close()
    assert counted(path, tmp_path) is None


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM batches WHERE position & 0xffff = 50",  # the last of the last block
        "DELETE FROM batches WHERE position & 0xffff > 25",  # a whole block
        "DELETE FROM blocks WHERE last = 50",
        "UPDATE blocks SET last = 49 WHERE last = 50",
        "UPDATE blocks SET last = 51 WHERE last = 50",
        "UPDATE recent SET digest = zeroblob(16) WHERE place = (SELECT min(place) FROM recent)",
    ],
)
def test_what_a_block_or_a_recent_batch_has_lost_is_noticed(tmp_path, damage):
    path = tmp_path / "log.db"
    right = write(path, make_collection())
    assert counted(path, tmp_path) == right
    db = sqlite3.connect(path)
    assert db.execute(damage).rowcount > 0
    db.commit()
    db.close()
    reader = SqliteReader(path)
    with pytest.raises(Corrupt):
        CountsCache(reader, tmp_path, keep_bytes=1 << 30).get(1)
    reader.close()


@pytest.mark.parametrize("seen", ["place = place + 1", "batch_id = zeroblob(16)"])
def test_recent_rows_that_do_not_fit_their_index_are_refused(tmp_path, seen):
    """As bits that flip would have it: a row changes and its index does not."""
    path = tmp_path / "log.db"
    write(path, make_collection())
    reader = SqliteReader(path)
    rows = reader.db.execute("SELECT place, batch_id, payload, digest FROM recent").fetchall()
    index = [row[:2] for row in rows]
    reader.close()
    assert len(rows) == 10
    check_recent(rows, index)
    with pytest.raises(Corrupt, match="index"):
        check_recent(rows[1:], index)
    with pytest.raises(Corrupt, match="index"):
        check_recent(rows, index[1:])
    place, batch_id, *rest = rows[0]
    changed = (place + 1, batch_id) if "place" in seen else (place, bytes(16))
    with pytest.raises(Corrupt, match="index"):
        check_recent([(*changed, *rest), *rows[1:]], index)


async def test_damage_in_one_collection_is_said_and_the_others_go_on(tmp_path, caplog):
    first, second = make_collection("first"), make_collection("second")
    async with live(tmp_path / "d") as server:
        for collection in (first, second):
            await server.create(collection)
            await send(server, [batch(collection, 10) for _ in range(3)])
    db = sqlite3.connect(tmp_path / "d" / "log.db")
    db.execute("UPDATE recent SET payload = zeroblob(length(payload)) WHERE collection = 1")
    db.commit()
    db.close()
    shutil.rmtree(tmp_path / "d" / "states")
    async with live(tmp_path / "d") as server:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.show(first)
        assert refused.value.code() is grpc.StatusCode.DATA_LOSS
        assert "digest" in refused.value.details()
        assert (await server.show(second)).reports == 30
        await send(server, [batch(first), batch(second)])
        await server.server.parts.background.once()
        value = server.server.metrics.registry.get_sample_value
        assert value("hearsay_damage_total") == 2
        assert "a collection is damaged" in caplog.text
        assert (await server.show(second)).reports == 31


async def test_the_structure_is_looked_at_in_the_background(tmp_path, caplog):
    path = tmp_path / "log.db"
    write(path, make_collection())
    check = StructureCheck(lambda: SqliteReader(path), Metrics())
    await check.once()
    data = bytearray(path.read_bytes())
    data[5 * 8192 : 5 * 8192 + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(Corrupt):
        await check.once()
