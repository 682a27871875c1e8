"""Answers that are given again: only while nothing has changed, and only for a moment."""

import asyncio

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.worker.remembered import RememberedAnswers
from tests.server.analyst.conftest import deliver
from tests.server.helpers import ServerProcess, make_collection


class Sources:
    """A version and a clock that the test sets, and a count of what is computed."""

    def __init__(self, most_bytes=100):
        self.version, self.now, self.computed = 0, 0.0, []
        self.answers = RememberedAnswers(lambda number: self.version, clock=lambda: self.now, most_bytes=most_bytes)

    async def ask(self, question="q", answer=b"answer"):
        async def compute():
            await asyncio.sleep(0)
            self.computed.append(question)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return await self.answers.answer(1, question, compute)


@pytest.fixture
def sources():
    return Sources()


async def test_an_answer_is_computed_once_while_nothing_changes(sources):
    assert await asyncio.gather(*(sources.ask() for _ in range(5))) == [b"answer"] * 5
    assert sources.computed == ["q"]
    await sources.ask("other")
    assert sources.computed == ["q", "other"]


async def test_a_change_and_a_second_end_it(sources):
    await sources.ask()
    sources.version = 1
    await sources.ask()
    sources.now = 0.99
    await sources.ask()
    assert len(sources.computed) == 2
    sources.now = 1.0
    await sources.ask()
    assert len(sources.computed) == 3


async def test_what_changes_while_it_is_computed_makes_it_old(sources):
    async def compute():
        sources.version += 1
        return b"%d" % sources.version

    assert await sources.answers.answer(1, "q", compute) == b"1"
    assert await sources.answers.answer(1, "q", compute) == b"2"


async def test_an_error_is_not_remembered(sources):
    for _ in range(2):
        with pytest.raises(InvalidSpec):
            await sources.ask(answer=InvalidSpec("no"))
    assert len(sources.computed) == 2
    assert sources.answers.bytes == len(sources.answers._places) == 0


async def test_who_waits_goes_on_when_the_first_is_cancelled(sources):
    begun = asyncio.Event()

    async def endless():
        begun.set()
        await asyncio.Event().wait()

    first = asyncio.create_task(sources.answers.answer(1, "q", endless))
    await begun.wait()
    second = asyncio.create_task(sources.ask())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == b"answer"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_the_oldest_answers_make_room(sources):
    for number in range(30):
        await sources.ask(number, b"ten bytes!")
        assert sources.answers.bytes <= 100
    assert sources.answers.bytes == sum(len(place.answer) for place in sources.answers._places.values()) == 100
    await sources.ask(29)
    assert sources.computed == list(range(30))
    await sources.ask(0)
    assert sources.computed[-1] == 0
    await sources.ask("long", b"x" * 1000)
    assert sources.answers.bytes <= 100


def test_every_acknowledged_batch_is_in_the_next_answer(tmp_path):
    """The same question again and again, between reports: no answer is older than the last acknowledgement."""
    collection = make_collection("How many now?")
    with ServerProcess(tmp_path / "d") as server, server.analyst() as analyst:
        analyst.create(collection)
        for sent in range(1, 21):
            deliver(server, collection, np.ones(10, int), seed=sent)
            assert analyst.top(collection, 1).reports == 10 * sent
            assert analyst.top(collection, 1).reports == 10 * sent
        analyst.close_collection(collection)
        assert analyst.top(collection, 1).about.state == "closed"
        analyst.delete_collection(collection)
        with pytest.raises(Exception, match="deleted") as gone:
            analyst.top(collection, 1)
        assert not isinstance(gone.value, Unavailable)
