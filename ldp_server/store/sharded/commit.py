"""A writer thread for each database. One that is away keeps nobody waiting but the batches that go to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ldp_client.errors import StorageError
from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store.commit import LINGER, Deliver, GroupCommit, RangeCheck, Ticket
from ldp_server.store.interface.writing import ReportLog
from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.sharded.routing import combined, split

__all__ = ["ShardedCommit"]


class ShardedCommit:
    """Takes tickets as `GroupCommit` does, and gives each to the writer thread of its database."""

    def __init__(
        self,
        logs: Sequence[ReportLog],
        check: RangeCheck,
        deliver: Deliver,
        shards_of: Callable[[int], int],
        *,
        linger: float = LINGER,
    ) -> None:
        """`shards_of` says over how many databases a collection is spread, by its number."""
        self._deliver = deliver
        self._shards_of = shards_of
        self._writers = [GroupCommit(log, check, self._delivered, log.counted_units, linger=linger) for log in logs]

    @property
    def failure(self) -> StorageError | None:
        """Why a writer thread stopped, if an error made one stop."""
        return next((one.failure for one in self._writers if one.failure is not None), None)

    def start(self) -> None:
        for one in self._writers:
            one.start()

    def stop(self) -> None:
        """Finish what is waiting, then end the threads. Blocks."""
        for one in self._writers:
            one.stop()

    def submit(self, ticket: Ticket) -> None:
        """Let a ticket wait for the next group of its database; a batch of units for those of several."""
        parts = split(ticket.submission, self._shards_of(ticket.submission.collection))
        if len(parts) == 1:
            self._writers[parts[0][0]].submit(ticket)
            return
        whole = _Whole(ticket, len(parts))
        for shard, part in parts:
            self._writers[shard].submit(_Part(part, whole))

    def _delivered(self, tickets: list[Ticket], seconds: float) -> None:
        """Pass on what is settled. Called on the threads of the writers."""
        ready = []
        for one in tickets:
            found = one.whole.settled_by(one) if isinstance(one, _Part) else one
            if found is not None:
                ready.append(found)
        if ready:
            self._deliver(ready, seconds)


class _Whole:
    """A ticket that was cut, and what became of its parts so far."""

    def __init__(self, ticket: Ticket, parts: int) -> None:
        self._ticket = ticket
        self._left = parts
        self._settled: list[Ticket] = []
        self._lock = threading.Lock()

    def settled_by(self, part: Ticket) -> Ticket | None:
        """Take a part that is settled; the whole ticket if it was the last one."""
        with self._lock:
            self._settled.append(part)
            self._left -= 1
            if self._left:
                return None
        ticket, parts = self._ticket, self._settled
        ticket.error = next((one.error for one in parts if one.error is not None), None)
        ticket.replayed += sum(one.replayed for one in parts)
        stored = [one for one in parts if one.outcome is AppendOutcome.STORED]
        ticket.reports = sum(one.reports for one in stored)
        if ticket.error is None:
            ticket.outcome = combined([one.outcome for one in parts if one.outcome is not None])
            refused = [one for one in parts if one.outcome not in {AppendOutcome.STORED, AppendOutcome.DUPLICATE}]
            ticket.dropped += sum(one.reports for one in refused) if stored else 0
        return ticket


class _Part(Ticket):
    """A part of a ticket, for one database."""

    __slots__ = ("whole",)

    def __init__(self, submission: Submission, whole: _Whole) -> None:
        super().__init__(submission, len(submission.units) // DIGEST_BYTES, lambda _: None)
        self.whole = whole
