"""One timer for many waits."""

import asyncio

import pytest

from ldp_server.service.admission import Deadlines


async def test_what_takes_too_long_ends_and_the_others_go_on():
    deadlines, slow, done = Deadlines(0.2), asyncio.Event(), []

    async def one(number):
        try:
            await deadlines.within(slow.wait() if number % 2 else asyncio.sleep(0))
            done.append(number)
            await deadlines.within(asyncio.sleep(0))  # the same task may wait again
        except TimeoutError:
            done.append(-number)

    await asyncio.gather(*(one(number) for number in range(1, 9)))
    assert sorted(done) == [-7, -5, -3, -1, 2, 4, 6, 8]
    assert not deadlines._waiting and not deadlines._late


async def test_a_task_that_somebody_else_ends_is_ended():
    deadlines = Deadlines(60)
    task = asyncio.create_task(deadlines.within(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines._waiting


async def test_an_error_and_an_answer_pass_through():
    deadlines = Deadlines(60)

    async def fails():
        raise ValueError("x")

    async def answers():
        return 7

    with pytest.raises(ValueError, match="x"):
        await deadlines.within(fails())
    assert await deadlines.within(answers()) == 7
    assert not deadlines._waiting


async def test_a_task_that_is_late_and_ended_by_somebody_else_is_ended():
    deadlines = Deadlines(0.05)
    begun = asyncio.Event()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(deadlines.within(stubborn()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
