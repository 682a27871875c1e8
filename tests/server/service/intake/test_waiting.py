"""What is received and not yet durable: how much fits, what is counted when it is settled, and who is let in next."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ldp_client.errors import ServerRefused
from ldp_server.service.intake.waiting import UnderWay
from ldp_server.service.metrics import IntakeMetrics
from ldp_server.store import AppendOutcome, Submission, Ticket
from ldp_server.store.errors import DiskFull

STORED, DUPLICATE = AppendOutcome.STORED, AppendOutcome.DUPLICATE


class Counting(UnderWay):
    """Notes what is counted, and in which order tickets are answered."""

    def __init__(self, limit):
        super().__init__(IntakeMetrics(), limit)
        self.counted, self.answered = [], []

    def _count_stored(self, number, batches, reports):
        self.counted.append(("stored", number, batches, reports))

    def _count_duplicate(self, number):
        self.counted.append(("duplicate", number))

    def _count_replayed(self, units):
        self.counted.append(("replayed", units))

    def value(self, name, **labels):
        return self._metrics.registry.get_sample_value(name, labels)

    def ticket(self, size=10, outcome=None, *, collection=1, reports=2, replayed=0, error=None):
        """A batch that was let in and is settled."""
        assert self.enter(size)
        payload = bytes(size)
        found = Ticket(Submission(collection, b"i" * 16, b"d" * 16, payload), reports, self.answered.append)
        found.outcome, found.replayed, found.error = outcome, replayed, error
        return found


def test_what_fits_is_counted_and_what_does_not_is_not():
    async def main():
        waiting = Counting(100)
        assert waiting.enter(60)
        assert waiting.enter(40), "exactly the limit fits"
        assert not waiting.enter(1)
        assert (waiting.bytes, waiting.batches) == (100, 2)
        assert waiting.enter(0)
        assert Counting(100).enter(101) is False

    asyncio.run(main())


def test_a_group_is_answered_and_counted_by_collection():
    async def main():
        waiting = Counting(1000)
        group = [
            waiting.ticket(10, STORED, collection=1, reports=2),
            waiting.ticket(20, STORED, collection=2, reports=3),
            waiting.ticket(30, STORED, collection=1, reports=5),
            waiting.ticket(40, DUPLICATE, collection=2),
            waiting.ticket(50, AppendOutcome.CONFLICT),
            waiting.ticket(60, AppendOutcome.TOKEN_USED),
            waiting.ticket(70, AppendOutcome.SEALED),
        ]
        waiting._arrive(group, 0.25)
        assert waiting.answered == group
        assert (waiting.bytes, waiting.batches) == (0, 0)
        assert sorted(waiting.counted) == [("duplicate", 2), ("stored", 1, 2, 7), ("stored", 2, 1, 3)]
        for reason in ("BATCH_ID_CONFLICT", "TOKEN_USED", "WINDOW_CLOSED"):
            assert waiting.value("hearsay_refused_batches_total", reason=reason) == 1
        assert waiting.value("hearsay_storage_errors_total") == 0

    asyncio.run(main())


def test_units_that_were_counted_before_are_noted():
    async def main():
        waiting = Counting(1000)
        waiting._arrive(
            [waiting.ticket(10, STORED, reports=1, replayed=4), waiting.ticket(10, DUPLICATE, replayed=2)], 0.0
        )
        assert ("replayed", 4) in waiting.counted and ("replayed", 2) in waiting.counted
        assert ("stored", 1, 1, 1) in waiting.counted

    asyncio.run(main())


def test_a_group_that_could_not_be_written_is_one_error_and_no_refusal():
    async def main():
        waiting = Counting(1000)
        full = DiskFull("no space left")
        waiting._arrive([waiting.ticket(10, error=full) for _ in range(3)], 0.0)
        assert len(waiting.answered) == 3
        assert waiting.counted == []
        assert waiting.value("hearsay_storage_errors_total") == 1
        assert waiting.bytes == 0

    asyncio.run(main())


def test_the_writer_thread_brings_a_group_back_to_the_loop():
    async def main():
        waiting, here = Counting(1000), threading.get_ident()
        group = [waiting.ticket(10, STORED)]
        group[0].done = lambda ticket: waiting.answered.append((ticket, threading.get_ident()))
        thread = threading.Thread(target=waiting.delivered, args=(group, 0.1))
        thread.start()
        thread.join()
        assert waiting.answered == [], "nothing happens on the writer's thread"
        await asyncio.sleep(0)
        assert waiting.answered == [(group[0], here)]
        return waiting

    waiting = asyncio.run(main())
    waiting.delivered([], 0.0)  # the loop has ended: nobody waits for an answer


def test_a_batch_that_is_settled_before_it_waited_leaves():
    async def main():
        waiting = Counting(100)
        one = waiting.ticket(30)
        one.refused = ServerRefused("WRONG_LENGTH", "x")
        waiting.leave(one)
        assert (waiting.bytes, waiting.batches, waiting.answered, waiting.counted) == (0, 0, [one], [])

    asyncio.run(main())


# -- who waits for room


def test_those_who_wait_are_let_in_when_there_is_room():
    async def main():
        waiting = Counting(100)
        large, small = waiting.ticket(90, STORED), waiting.ticket(10, STORED)
        let_in = []

        async def sender(name):
            await waiting.room(3600)
            let_in.append(name)

        tasks = [asyncio.create_task(sender(name)) for name in "abc"]
        await asyncio.sleep(0)
        assert let_in == []
        waiting.leave(small)
        await asyncio.gather(*tasks)
        assert let_in == ["a", "b", "c"], "below the limit all are let in, in their order; each asks again"
        waiting.leave(large)

    asyncio.run(main())


def test_nobody_is_let_in_while_it_is_full():
    async def main():
        waiting = Counting(100)
        first, _ = waiting.ticket(0, STORED), waiting.ticket(100, STORED)
        task = asyncio.create_task(waiting.room(3600))
        await asyncio.sleep(0)
        waiting.leave(first)
        await asyncio.sleep(0)
        assert not task.done(), "at the limit there is no room"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_wait_ends_after_its_time_and_is_not_let_in_later():
    async def main():
        waiting = Counting(100)
        full = waiting.ticket(100, STORED)
        assert await waiting.room(0.001) is None
        later = asyncio.create_task(waiting.room(3600))
        await asyncio.sleep(0)
        waiting.leave(full)
        await later
        assert not waiting._room

    asyncio.run(main())
