"""The analyst's client for asyncio, against a real server in a process of its own."""

import asyncio
import inspect
import io
from typing import assert_type

import pytest

from ldp_client.errors import Cancelled, InvalidSpec, ServerRefused, Unavailable
from ldp_server.analyst import Analyst, AsyncAnalyst, CollectionEstimates, Timeouts
from ldp_server.oracles import restore
from tests.server.analyst.conftest import HITTERS_USERS, deliver, word_collection, word_indexes
from tests.server.helpers import ServerProcess, make_collection


@pytest.fixture
async def aside(server):
    async with AsyncAnalyst.local(server.data) as analyst:
        yield analyst


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_have_the_same_methods_with_the_same_parameters():
    assert public(Analyst) == public(AsyncAnalyst)
    with Analyst("127.0.0.1:1") as blocking:
        awaited = AsyncAnalyst("127.0.0.1:1")
        for name in public(Analyst) - {"target", "ask"}:
            ours, theirs = getattr(blocking, name), getattr(awaited, name)
            assert inspect.signature(ours) == inspect.signature(theirs), name
            assert "self" not in inspect.signature(ours).parameters
            assert inspect.getdoc(ours) == inspect.getdoc(theirs) != None, name  # noqa: E711
    assert str(inspect.signature(blocking.top)).startswith("(which: 'Which', count: 'int' = 10, *, confidence")


async def test_it_has_the_answers_of_the_other(server, counted, aside):
    collection, oracle = counted
    with server.analyst() as analyst:
        questions = [
            lambda one: one.top(collection, 3),
            lambda one: one.estimate(collection, items=[3, None], together=True),
            lambda one: one.estimate(collection, every_item=True, threshold=100.0),
            lambda one: one.show(collection.id.hex()[:8]),
            lambda one: one.collections(),
        ]
        blocking = [ask(analyst) for ask in questions]
        assert analyst.top(collection, 3) == analyst.estimate(collection, top=3)
    assert await asyncio.gather(*(ask(aside) for ask in questions)) == blocking
    top = await aside.top(collection)
    assert_type(top, CollectionEstimates)
    assert top.statement == (await aside.show(collection)).statement != ()
    file = io.BytesIO()
    assert (await aside.export(collection, file)).reports == 4000
    assert (restore(collection, file.getvalue()).counts.values == oracle.counts.values).all()
    assert (await aside.status()).collections >= 1


async def test_the_life_of_a_collection(server, aside):
    collection = make_collection("An asynchronous life?")
    assert (await aside.create(collection)).state == "running"
    await asyncio.to_thread(deliver, server, collection, [1, 2, 3])
    assert (await aside.top(collection, 1)).reports == 3
    assert (await aside.close_collection(collection)).state == "closed"
    assert (await aside.delete_collection(collection)).deleted


async def test_errors_are_those_of_the_other(server, counted, aside):
    with pytest.raises(ServerRefused) as refused:
        await aside.average(counted[0])
    assert refused.value.reason == "FAILED_PRECONDITION"
    with pytest.raises(InvalidSpec, match="choose one"):
        await aside.estimate(counted[0], top=1, every_item=True)
    with pytest.raises(InvalidSpec, match="name a collection"):
        await aside.show("no")
    async with AsyncAnalyst("127.0.0.1:1", timeouts=Timeouts(call=30)) as nobody:
        with pytest.raises(Unavailable, match="nothing listens on"):
            await nobody.status()


@pytest.mark.long
async def test_a_search_tells_its_progress_and_ends_with_its_task(aside, hitters):
    told, begun = [], asyncio.Event()

    def progress(stage, share):
        told.append((stage, share))
        begun.set()

    for _ in range(2):  # the server allows one search at a time: the second finds the place free again
        begun.clear()
        task = asyncio.create_task(_soon(lambda: aside.heavy_hitters(hitters, progress=progress)))
        await begun.wait()
        assert (await aside.status()).collections  # others are answered meanwhile
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    found = await _soon(lambda: aside.heavy_hitters(hitters, progress=progress))
    assert {hitter.item for hitter in found.items} == {"tea", "mate"}
    assert len(told) > 4


async def test_a_function_that_fails_ends_the_search(aside, hitters):
    def stop(stage, share):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await _soon(lambda: aside.heavy_hitters(hitters, progress=stop))
    assert (await _soon(lambda: aside.heavy_hitters(hitters, limit=1))).items


async def _soon(ask):
    """Ask until the server has ended the search before; it needs a moment to notice that nobody waits for it."""
    for _ in range(600):
        try:
            return await ask()
        except Unavailable as error:
            assert "another" in str(error)
            await asyncio.sleep(0.1)
    raise AssertionError("the place was never free")


async def test_time_limits(aside, hitters, counted):
    with pytest.raises(Unavailable, match=r"did not answer within 0.001 seconds"):
        await _not_busy(lambda: aside.within(0.001).heavy_hitters(hitters))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await aside.heavy_hitters(hitters)
    assert (await aside.top(counted[0], 1)).reports == 4000
    for seconds in (0, -1, float("nan")):
        with pytest.raises(InvalidSpec, match="seconds"):
            aside.within(seconds)


async def _not_busy(ask):
    """Ask until the answer is another than that a search is running."""
    while True:
        try:
            return await ask()
        except Unavailable as error:
            if "another" not in str(error):
                raise
        await asyncio.sleep(0.1)


async def test_a_connection_that_is_closed_during_a_call(server, hitters):
    analyst, begun = AsyncAnalyst.local(server.data), asyncio.Event()
    task = asyncio.create_task(_not_busy(lambda: analyst.heavy_hitters(hitters, progress=lambda *_: begun.set())))
    await begun.wait()
    await analyst.close()
    with pytest.raises(Cancelled, match="closed during the call"):
        await task


def test_one_client_in_one_event_loop_after_the_other(server, counted):
    analyst = AsyncAnalyst.local(server.data)

    async def ask():
        return (await analyst.top(counted[0], 1)).reports

    assert [asyncio.run(ask()) for _ in range(2)] == [4000, 4000]


@pytest.mark.long
def test_a_server_that_goes_away_in_the_middle_of_a_search(tmp_path):
    """Both clients raise one error that says so, and go on when the server is there again."""
    with ServerProcess(tmp_path / "d") as server:
        collection = word_collection()
        server.create(collection)
        deliver(server, collection, word_indexes(collection), seed=11)
        with server.analyst() as analyst:
            blocking = _broken_off(server, lambda gone: analyst.heavy_hitters(collection, progress=gone))
            assert analyst.show(collection).reports == HITTERS_USERS

        async def search(gone):
            async with AsyncAnalyst.local(server.data) as analyst:
                await analyst.heavy_hitters(collection, progress=gone)

        awaited = _broken_off(server, lambda gone: asyncio.run(search(gone)))
    where = f"the server at {server.target} went away in the middle of its answer"
    assert str(awaited) == str(blocking) == f"{where}: ask again"


def _broken_off(server, search):
    """The error of a search whose server was killed at its first sign of progress."""
    for _ in range(10):  # on a busy machine the answer may have come before the server was dead
        try:
            search(lambda *_: server.kill())
        except Unavailable as error:
            return error
        finally:
            server.start()
    raise AssertionError("the answer always came first")


async def test_its_repr_holds_no_token(server):
    secret = (server.data / "local.token").read_text().strip()
    analyst = AsyncAnalyst(server.target, token=secret)
    assert secret[:20] not in repr(analyst) + repr(analyst._connection)
    assert repr(analyst) == f"AsyncAnalyst({server.target!r})"
