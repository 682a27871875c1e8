"""Disks that are full, read-only or damaged: a clear error, nothing half written, what was acknowledged intact."""

import asyncio
import contextlib
import sqlite3
import subprocess

import grpc
import pytest

from ldp_client.protocol.v1 import collector_pb2_grpc
from ldp_server.store.errors import Removed
from tests.server.helpers import PATIENCE, ServerProcess, batch, cli, live, make_collection, taken


@contextlib.contextmanager
def small_disk(path, megabytes):
    """A file system of its own; skips where mounting is not allowed."""
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill_up(server, collection, most=4000):
    """Submit until the server says that it cannot; returns what it acknowledged and the refusal."""
    acknowledged = []
    with server.channel() as channel:
        stub = collector_pb2_grpc.CollectorStub(channel)
        for _ in range(most):
            request = batch(collection, 20_000)
            try:
                acknowledged.append((request, taken(stub.Submit(request, timeout=PATIENCE))))
            except grpc.RpcError as error:
                return acknowledged, request, error
    raise AssertionError("the disk never filled up")


def check_full(server, collection, make_room):
    acknowledged, refused, error = fill_up(server, collection)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "no space" in error.details()
    assert any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata())
    assert len(acknowledged) > 10
    make_room()
    with server.channel() as channel:
        stub = collector_pb2_grpc.CollectorStub(channel)
        assert not taken(stub.Submit(refused, timeout=PATIENCE)).duplicate  # it was not half kept
        assert all(taken(stub.Submit(request, timeout=PATIENCE)).duplicate for request, _ in acknowledged)
    assert server.reports(collection) == 20_000 * (len(acknowledged) + 1)
    assert server.stop() == 0
    log = server.log.read_text()
    assert "Traceback" not in log
    assert log.count("the disk is full: batches are told to come back later") == 1
    assert log.count("the log can be written again") == 1


def test_a_full_disk_refuses_for_now_and_goes_on_when_there_is_room(tmp_path):
    with small_disk(tmp_path / "disk", 24) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(12 << 20))
        server = ServerProcess(disk / "d")
        server.log = tmp_path / "server.log"
        with server:
            collection = make_collection()
            server.create(collection)
            check_full(server, collection, ballast.unlink)


def test_a_full_disk_at_the_start_is_an_error_with_its_exit_code(tmp_path):
    with small_disk(tmp_path / "disk", 4) as disk:
        with contextlib.suppress(OSError), (disk / "ballast").open("wb") as file:
            while True:
                file.write(bytes(4096))
        found = cli("serve", "--listen", "127.0.0.1:0", data=disk / "d")
        assert found.returncode == 3
        assert "no space" in found.stderr
        assert "Traceback" not in found.stderr


@pytest.mark.long
def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path):
    """Without a file system of its own: the kernel refuses to let the server's files grow."""
    server = ServerProcess(tmp_path / "d", file_limit=3 << 20)
    server.start()
    collection = make_collection()
    server.create(collection)
    acknowledged, _, error = fill_up(server, collection)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert server.stop() == 0
    with ServerProcess(tmp_path / "d") as again:
        assert again.reports(collection) == 20_000 * len(acknowledged)


def test_a_read_only_disk_is_an_error_with_its_exit_code(tmp_path):
    with small_disk(tmp_path / "disk", 16) as disk:
        with ServerProcess(disk / "d") as server:
            server.log = tmp_path / "server.log"
            server.create(make_collection())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        found = cli("serve", "--listen", "127.0.0.1:0", data=disk / "d")
        assert found.returncode == 3
        assert "read-only" in found.stderr or "cannot be written" in found.stderr
        assert "Traceback" not in found.stderr


@pytest.mark.parametrize("content", [b"this is not a database" * 1000, None])
def test_a_damaged_or_newer_file_is_an_error_with_its_exit_code(tmp_path, content):
    with ServerProcess(tmp_path / "d") as server:
        server.create(make_collection())
    for name in ("log.db-wal", "log.db-shm"):
        (tmp_path / "d" / name).unlink(missing_ok=True)
    path = tmp_path / "d" / "log.db"
    if content is None:
        import sqlite3

        db = sqlite3.connect(path)
        db.execute("PRAGMA user_version = 99")
        db.close()
    else:
        path.write_bytes(content)
    found = cli("serve", "--listen", "127.0.0.1:0", data=tmp_path / "d")
    assert found.returncode == 3
    assert ("newer" if content is None else "not a Hearsay database") in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert cli("doctor", data=tmp_path / "d").returncode == 1


async def test_a_server_whose_connection_cannot_write_any_more_opens_the_log_anew(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection)))
        commit = server.server.parts.commit
        await asyncio.wrap_future(commit.run(lambda log: log.db.execute("PRAGMA query_only = ON").fetchall()))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        await submitted(server, batch(collection))
        await server.create(make_collection("another"))
        assert server.server.failure is None
        assert (await server.show(collection)).reports == 2


async def test_a_server_waits_for_a_write_lock_of_another_program(tmp_path, monkeypatch):
    monkeypatch.setattr("ldp_server.store.schema.BUSY_SECONDS", 0.2)
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        other = sqlite3.connect(tmp_path / "d" / "log.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        other.execute("ROLLBACK")
        other.close()
        await submitted(server, batch(collection))
        assert server.server.failure is None
        assert (await server.show(collection)).reports == 1


async def test_a_removed_write_ahead_log_loses_nothing_that_was_acknowledged(tmp_path):
    """SQLite goes on writing into the removed file, so acknowledged batches would end with the server."""
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        taken(await server.collector.Submit(batch(collection)))
        assert (await server.show(collection)).reports == 1
        (tmp_path / "d" / "log.db-wal").unlink()
        again = batch(collection)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(again)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (await submitted(server, again)).duplicate  # it was rescued, and is counted once
        await submitted(server, batch(collection))
        assert (await server.show(collection)).reports == 3
    async with live(tmp_path / "d") as after:
        assert (await after.show(collection)).reports == 3


async def test_a_server_whose_log_was_replaced_stops_and_says_so(tmp_path):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        path = tmp_path / "d" / "log.db"
        path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await server.collector.Submit(batch(collection))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.wait_for(server.server.wait(), PATIENCE)
        assert isinstance(server.server.failure, Removed)
    found = cli("serve", "--listen", "127.0.0.1:0", data=tmp_path / "d")
    assert found.returncode == 3
    assert "log.db is missing" in found.stderr


async def submitted(server, request):
    """What became of a batch that a device sends again until it is taken."""
    for _ in range(200):
        try:
            return taken(await server.collector.Submit(request))
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            await asyncio.sleep(0.05)
    raise AssertionError("the server did not recover")
