"""What readers share: an answer for who asks at the same time, and for who asks a moment later."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ldp_client.errors import Unavailable
from ldp_server.web import Site, WebSettings


def a_site():
    return Site(WebSettings(), lambda token: pytest.fail("no connection is needed here"))


class Question:
    """Counts how often it is asked, and answers when it is let."""

    def __init__(self, error=None):
        self.asked = 0
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.error = error

    def __call__(self):
        self.asked += 1
        self.begun.set()
        assert self.go_on.wait(60)
        if self.error is not None:
            raise self.error
        return self.asked


async def test_readers_who_ask_at_once_and_soon_after_share_an_answer():
    site, question = a_site(), Question()
    readers = [asyncio.create_task(site.ask_long("key", question)) for _ in range(10)]
    await asyncio.to_thread(question.begun.wait)
    question.go_on.set()
    assert await asyncio.gather(*readers) == [1] * 10
    assert await site.ask_long("key", question) == 1
    assert await site.ask_long("other", question) == 2


async def test_a_reader_who_leaves_ends_nobody_elses_question():
    site, question = a_site(), Question()
    first = asyncio.create_task(site.ask_long("key", question))
    await asyncio.to_thread(question.begun.wait)
    second = asyncio.create_task(site.ask_long("key", question))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    question.go_on.set()
    assert await second == 1


async def test_a_question_that_failed_is_asked_again():
    site, question = a_site(), Question(Unavailable("away"))
    question.go_on.set()
    for asked in (1, 2):
        with pytest.raises(Unavailable):
            await asyncio.gather(site.ask_long("key", question), site.ask_long("key", question))
        assert question.asked == asked
