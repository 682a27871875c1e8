"""One open stream of batches: a reading task, a writing task, and a bounded queue between them.

Batches of one stream share commits; answers leave in the order of arrival. When the queue is full, or the server is,
the stream is not read, and its sender notices it as flow control.

A stream on which nothing moves is ended. Its client opens another one when it has more to send; what was not answered
it sends again, and it counts once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import grpc

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import Peer
from ldp_server.service.intake.replies import answer, refusal
from ldp_server.service.intake.waiting import Offering
from ldp_server.service.metrics import IntakeMetrics
from ldp_server.service.wire import EOF, Busy, CallStatus, Context, parse
from ldp_server.store import Ticket

__all__ = ["Stream", "StreamLimits"]

_GONE = (grpc.aio.UsageError, grpc.aio.InternalError)
"""What gRPC raises when one reads from or writes to a call that has ended."""
_PATIENCE = 5.0
"""Seconds that a batch above the rate waits in its stream; a longer wait is the client's."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The most of one stream that may be read and not yet answered, and how long nothing may move."""

    batches: int
    bytes: int
    idle_seconds: float


class Stream:
    """One open stream: a reading task, a writing task, and the queue between them."""

    def __init__(
        self, ingest: Offering, metrics: IntakeMetrics, context: Context, peer: Peer, limits: StreamLimits
    ) -> None:
        self._ingest = ingest
        self._metrics = metrics
        self._context = context
        self._peer = peer
        self._limits = limits
        self._queue: deque[Ticket | bytes] = deque()
        self._held = 0
        self._moves = 0
        self._offering = False
        self._answers = asyncio.Event()
        self._room = asyncio.Event()
        self._read_all = False
        self._reader: asyncio.Task[LdpError | None] | None = None
        self._stopped = False
        self.ended = False
        """Whether the client said that it is done."""

    def stop_reading(self) -> None:
        """Take nothing more from the client."""
        self._stopped = True
        if self._reader is not None:
            self._reader.cancel()

    async def run(self) -> LdpError | None:
        """Read and answer until either side is done; return what was wrong, if anything."""
        self._reader = asyncio.create_task(self._read())
        writer = asyncio.create_task(self._write())
        if self._stopped:
            self._reader.cancel()
        try:
            if not await self._active({self._reader, writer}):
                return _idle()
            if writer.done():  # it ends first only when answers cannot be given any more
                return writer.result()
            error = None if self._reader.cancelled() else self._reader.result()
            self._read_all = True
            self._answers.set()
            return (writer.result() or error) if await self._active({writer}) else _idle()
        finally:
            self._reader.cancel()
            writer.cancel()
            await asyncio.gather(self._reader, writer, return_exceptions=True)

    async def _active(self, tasks: set[asyncio.Task[LdpError | None]]) -> bool:
        """Wait until one of the tasks is done; False if nothing moved for too long and the server owed nothing."""
        while True:
            before = self._moves
            done, _ = await asyncio.wait(tasks, timeout=self._limits.idle_seconds, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return True
            if before == self._moves and not self._owed:
                return False

    @property
    def _owed(self) -> bool:
        """Whether the client waits for this server: for the disk, or for room."""
        return self._offering or bool(self._queue and not _settled(self._queue[0]))

    async def _read(self) -> LdpError | None:
        context, queue = self._context, self._queue
        most, most_bytes = self._limits.batches, self._limits.bytes
        while True:
            try:
                data = await context.read()
            except _GONE:
                return None
            if data is EOF:
                self.ended = True
                return None
            try:
                self._offering = True
                entry = await self._offer(parse(pb.SubmitRequest, data))
            except CallStatus as status:
                return status
            finally:
                self._offering = False
            self._moves += 1
            queue.append(entry)
            if isinstance(entry, bytes):
                self._answers.set()
            while len(queue) >= most or self._held >= most_bytes:
                self._room.clear()
                await self._room.wait()

    async def _offer(self, request: pb.SubmitRequest) -> Ticket | bytes:
        """The ticket of a batch that waits for the disk, or the response that refuses it."""
        while True:
            try:
                ticket = self._ingest.offer(request, self._peer, self._done)
            except ServerRefused as refused:
                self._metrics.refused_batches.labels(refused.reason).inc()
                return refusal(request.batch_id, refused)
            except Busy as busy:
                self._metrics.busy.labels(busy.why).inc()
                if busy.why == "full":
                    await self._ingest.waiting.room(busy.seconds)
                elif busy.seconds > _PATIENCE:
                    raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "not now", busy.seconds) from None
                else:
                    await asyncio.sleep(busy.seconds)
            else:
                self._held += len(request.payload)
                return ticket

    def _done(self, ticket: Ticket) -> None:
        """The batch is on the disk, or refused: let go of its bytes even if its answer is never read."""
        self._held -= ticket.size
        ticket.submission = ticket.submission._replace(payload=b"", units=b"")
        self._room.set()
        if self._queue and self._queue[0] is ticket:
            self._answers.set()

    async def _write(self) -> LdpError | None:
        context, queue = self._context, self._queue
        while True:
            while queue and _settled(queue[0]):
                entry = queue[0]
                if isinstance(entry, bytes):
                    response = entry
                else:
                    try:
                        response = answer(entry)
                    except LdpError as error:
                        return error
                queue.popleft()
                self._room.set()
                try:
                    await context.write(response)
                except _GONE:
                    return None
                self._moves += 1
            if self._read_all and not queue:
                return None
            self._answers.clear()
            if not (queue and _settled(queue[0])):
                await self._answers.wait()


def _idle() -> CallStatus:
    return CallStatus(grpc.StatusCode.UNAVAILABLE, "the stream was idle: open another one", 0.1)


def _settled(entry: Ticket | bytes) -> bool:
    return isinstance(entry, bytes) or entry.settled
