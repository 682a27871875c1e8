"""What lies in relay.db: a uniform permutation, nothing of the order of arrival, everything that was acknowledged."""

import os
import random
import shutil
import sqlite3
from hashlib import sha256

import pytest
from scipy.stats import chi2

from ldp_client.errors import StorageError
from ldp_server.relay.checks import look
from ldp_server.relay.store import RelayLog, released
from ldp_server.relay.store.held import BLOCK, DIGEST
from ldp_server.relay.store.schema import _TABLES
from ldp_server.store.errors import Corrupt, InUse
from ldp_server.store.log import AppendOutcome, Submission
from tests.server.relay.helpers import relayed

WIDTH = 64


def unit(tag):
    return b"\x01" + tag.to_bytes(8, "big") + os.urandom(WIDTH - 9)


def digest(sealed):
    return sha256(sealed).digest()[:DIGEST]


def submission(number, *units, period=0):
    return Submission(number, os.urandom(16), b"".join(map(digest, units)), b"".join(units), None, period)


@pytest.fixture
def log(tmp_path):
    store = RelayLog(tmp_path / "relay.db", lambda number, period: period)
    yield store
    store.close()


@pytest.fixture
def number(log):
    collection = relayed(3)
    return log.enter(collection.id, collection.spec_bytes).number


def positions(shuffle, runs, size):
    """How often unit i stood at place j of a release, over many releases through the store's own statements."""
    found = [[0] * size for _ in range(size)]
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in _TABLES:
        db.execute(statement)
    db.execute("INSERT INTO collections (number, id, spec) VALUES (1, x'01', x'02')")
    for _ in range(runs):
        db.execute("INSERT INTO groups VALUES (5, 1, 0, 0)")
        units = [unit(tag) for tag in range(size)]
        half = sorted(units[: size // 2], key=digest)
        db.execute("INSERT INTO blocks VALUES (9, 5, ?, ?)", (len(half), b"".join(half)))
        db.executemany("INSERT INTO recent VALUES (1, ?, 5, ?)", [(digest(one), one) for one in units[size // 2 :]])
        ended = released.end_round(db, 1, size, 0, final=False, shuffle=shuffle)
        assert ended.released == (size,)
        ((payload,),) = db.execute("DELETE FROM released RETURNING payload").fetchall()
        for place in range(size):
            found[int.from_bytes(payload[WIDTH * place + 1 : WIDTH * place + 9], "big")][place] += 1
    db.close()
    return found


def chi_square(found, runs):
    size = len(found)
    expected = runs / size
    value = sum((one - expected) ** 2 / expected for row in found for one in row)
    return chi2.sf(value, (size - 1) ** 2)


def naive(order):
    """The shuffle that swaps each place with any other: wrong on purpose."""
    for place in range(len(order)):
        other = random.randrange(len(order))
        order[place], order[other] = order[other], order[place]


@pytest.mark.long
def test_every_unit_is_at_every_place_equally_often():
    """Size 6, 800 releases, error rate 10^-6. A rotation and the naive shuffle are rejected."""
    runs, size = 800, 6
    assert chi_square(positions(released.system_shuffle, runs, size), runs) > 1e-6
    assert chi_square(positions(lambda order: order.append(order.pop(0)), 60, size), 60) < 1e-6
    found = [[0] * size for _ in range(size)]
    for _ in range(40_000):  # the naive one is nearly uniform, so it is judged without the store
        order = list(range(size))
        naive(order)
        for place, who in enumerate(order):
            found[who][place] += 1
    assert chi_square(found, 40_000) < 1e-6


def test_units_lie_in_the_order_of_their_digests_whatever_the_order_of_arrival(tmp_path, log, number):
    """Rows are written again in the order of the digests; the write-ahead log, which showed more, is cut off."""
    units = [unit(tag) for tag in range(60)]
    offsets = []
    for name, order in (("one", units), ("two", units[::-1]), ("three", random.sample(units, 60))):
        store = RelayLog(tmp_path / f"{name}.db", lambda number, period: period)
        collection = relayed(3)
        held = store.enter(collection.id, collection.spec_bytes).number
        for one in order:
            store.append([submission(held, one)])
        raw = (tmp_path / f"{name}.db-wal").read_bytes()
        came = sorted(units, key=raw.find)
        store.lay_anew()
        store.purge()
        assert (tmp_path / f"{name}.db-wal").stat().st_size == 0
        data = (tmp_path / f"{name}.db").read_bytes()
        assert all(data.count(one) == 1 for one in units)
        offsets.append(sorted(units, key=data.find))
        assert came == order  # before it is laid anew, the write-ahead log does show the order: the test can see it
        store.close()
    assert offsets[0] == offsets[1] == offsets[2]


def test_blocks_hold_units_in_the_order_of_their_digests(log, number):
    units = [unit(tag) for tag in range(BLOCK)]
    log.append([submission(number, one) for one in units])
    ((count, payload),) = log.db.execute("SELECT units, payload FROM blocks").fetchall()
    assert count == BLOCK
    assert payload == b"".join(sorted(units, key=digest))
    assert log.db.execute("SELECT count(*) FROM recent").fetchone()[0] == 0
    assert log.append([submission(number, units[5])]) == [AppendOutcome.DUPLICATE]
    assert log.standings()[0].held == BLOCK
    assert log.bytes == BLOCK * WIDTH


def test_no_column_holds_a_time_or_an_address(log, number):
    log.append([submission(number, unit(1), period=7)])
    columns = {
        row[0]: [column[1] for column in log.db.execute(f"PRAGMA table_info({row[0]})")]
        for row in log.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    }
    assert columns["recent"] == ["collection", "digest", "held_in", "sealed"]
    assert columns["groups"] == ["number", "collection", "round", "period"]
    assert columns["blocks"] == ["number", "held_in", "units", "payload"]
    assert columns["released"] == ["batch_id", "collection", "period", "units", "payload"]
    assert columns["sealing_keys"] == ["id"]
    others = {"collections", "seen", "trusted", "counter"}
    assert set(columns) == {"groups", "recent", "blocks", "released", "sealing_keys"} | others


def test_a_release_is_all_or_nothing(log, number, monkeypatch):
    units = [unit(tag) for tag in range(5)]
    log.append([submission(number, one) for one in units])

    def broken(order):
        raise RuntimeError("the process ends here")

    log._shuffle = broken
    with pytest.raises(RuntimeError):
        log.end_round(number, 3, 0, final=False, remember=4)
    assert log.outgoing() is None
    assert log.standings()[0].held == 5
    log._shuffle = released.system_shuffle
    monkeypatch.setattr(released, "_drop", broken)
    with pytest.raises((RuntimeError, TypeError)):
        log.end_round(number, 3, 0, final=False, remember=4)
    assert log.outgoing() is None
    monkeypatch.undo()
    assert log.end_round(number, 3, 0, final=False, remember=4).released == (5,)
    assert log.outgoing().units == 5


def test_what_was_held_and_released_is_there_after_opening_anew(tmp_path):
    collection = relayed(3)
    path = tmp_path / "relay.db"
    store = RelayLog(path, lambda number, period: period)
    number = store.enter(collection.id, collection.spec_bytes).number
    store.append([submission(number, unit(tag), period=tag // 4) for tag in range(8)])
    store.end_round(number, 3, 0, final=False, remember=4)
    waiting, size = store.outgoing(), store.bytes
    store.db.close()  # as after kill -9
    again = RelayLog(path, lambda number, period: period)
    assert again.outgoing() == waiting
    assert again.bytes == size
    assert again.standings()[0][3:] == (4, 4, 0, size, 1)
    again.forget(waiting.batch_id, len(waiting.payload))
    assert again.outgoing() is None
    again.recover()
    assert again.standings()[0].held == 4
    again.close()


def test_another_programs_file_is_refused(tmp_path):
    path = tmp_path / "relay.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(Corrupt, match="not a relay's database"):
        RelayLog(path, lambda number, period: 0)
    path.write_bytes(os.urandom(20_000))
    with pytest.raises(StorageError):
        RelayLog(path, lambda number, period: 0)


def test_one_relay_for_one_directory(tmp_path):
    from ldp_server.relay.assemble import RelayDirectory
    from ldp_server.relay.config import RelayConfig
    from ldp_server.store import DirectoryLock

    directory = RelayDirectory(RelayConfig(data=tmp_path / "d")).create()
    with DirectoryLock(directory), pytest.raises(InUse):
        DirectoryLock(directory).acquire()


@pytest.mark.parametrize("content", [b"", os.urandom(9000)])
def test_a_file_that_is_damaged_or_empty_is_not_a_new_one(tmp_path, content):
    """A relay has no backup: what is said must not send anybody to look for one."""
    path = tmp_path / "relay.db"
    path.write_bytes(content)
    for use in (lambda: RelayLog(path, lambda number, period: 0), lambda: look(path)):
        with pytest.raises(Corrupt, match="the reports that were held are lost") as found:
            use()
        assert "backup" not in str(found.value)
    assert path.read_bytes() == content


def test_what_a_killed_relay_left_is_looked_at_before_it_is_used(tmp_path):
    path, left = tmp_path / "relay.db", tmp_path / "left"
    left.mkdir()
    store = RelayLog(path, lambda number, period: period)
    collection = relayed()
    store.enter(collection.id, collection.spec_bytes)
    store.append([submission(1, unit(1)), submission(1, unit(2))])
    for name in ("relay.db", "relay.db-wal", "relay.db-shm"):
        shutil.copy2(tmp_path / name, left / name)
    store.close()
    os.truncate(left / "relay.db-wal", (left / "relay.db-wal").stat().st_size - 1)
    for use in (lambda: look(left / "relay.db"), lambda: RelayLog(left / "relay.db", lambda number, period: 0)):
        with pytest.raises(Corrupt, match=r"relay\.db-wal is damaged or cut off"):
            use()
