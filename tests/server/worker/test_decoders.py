"""Processes for searches: kept for the next search, ended after a while, never shared, not kept when one was left."""

import asyncio
import contextlib

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.store import DataDirectory, SqliteLog
from ldp_server.worker.client import Worker
from ldp_server.worker.decoders import Decoders
from ldp_server.worker.messages import AskDecode
from tests.server.helpers import until


@pytest.fixture
def decoders(tmp_path):
    directory = DataDirectory(tmp_path / "d")
    directory.create()
    SqliteLog(directory.log).close()

    def made(kept):
        return Decoders(lambda: Worker(tmp_path / "d", memory_mb=4096, nice=0), kept)

    return made


async def search(worker):
    """A search that ends at once, with an error: there is no such collection."""
    with pytest.raises(InvalidSpec):
        async for _ in worker.decode(AskDecode(1, 10, 0.05, "weighed"), 60.0):
            pass
    return worker.pid


async def test_the_next_search_has_the_same_process_and_two_at_once_have_two(decoders):
    found = decoders(60.0)
    async with found.one() as worker:
        first = await search(worker)
    async with found.one() as worker, found.one() as other:
        assert await search(worker) == first
        assert await search(other) != first
    await found.close()
    assert worker.pid is None
    assert other.pid is None


async def test_a_process_without_work_is_ended(decoders):
    found = decoders(0.05)
    async with found.one() as worker:
        first = await search(worker)
    await until(lambda: worker.pid is None)
    async with found.one() as worker:
        assert await search(worker) != first
    await found.close()


async def test_a_search_that_was_left_takes_its_process_along(decoders):
    found = decoders(60.0)
    async with found.one() as worker:
        async with contextlib.aclosing(worker.decode(AskDecode(1, 10, 0.05, "weighed"), 60.0)) as answers:
            await anext(answers)
        assert worker.pid is None
    async with found.one() as other:
        assert other is not worker
    await found.close()


async def test_a_process_is_waited_for_although_the_call_that_ended_it_was_cancelled_twice(decoders):
    """Once by its caller, and once more while it waited for the end of the process."""
    found = decoders(60.0)
    async with found.one() as worker:
        await search(worker)
        process = worker._process
        ending = asyncio.create_task(worker._end())
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])
        assert ending.cancelled()
    assert process.returncode is not None
    await found.close()


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5])
async def test_a_caller_who_leaves_while_the_process_starts_loses_none(decoders, after):
    """The next one has the process that was started for the first."""
    found = decoders(60.0)
    async with found.one() as worker:
        leaving = asyncio.create_task(search(worker))
        for _ in range(1 + after):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        await search(worker)
        started = worker._process
    await found.close()
    assert started.returncode is not None
