"""One open stream of batches: a reading task, a writing task, and a bounded queue between them.

Batches of one stream share commits; answers leave in the order of arrival. When the queue is full, or the server is,
the stream is not read, and its sender notices it as flow control.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import grpc

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import Peer
from ldp_server.service.collector.ingest import Ingest, answer, refusal
from ldp_server.service.metrics import Metrics
from ldp_server.service.wire import EOF, Busy, CallStatus, Context, parse
from ldp_server.store import Ticket

__all__ = ["Stream", "StreamLimits"]

_GONE = (grpc.aio.UsageError, grpc.aio.InternalError)
"""What gRPC raises when one reads from or writes to a call that has ended."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The most of one stream that may be read and not yet answered."""

    batches: int
    bytes: int


class Stream:
    """One open stream: a reading task, a writing task, and the queue between them."""

    def __init__(self, ingest: Ingest, metrics: Metrics, context: Context, limits: StreamLimits) -> None:
        self._ingest = ingest
        self._metrics = metrics
        self._context = context
        self._peer = Peer.of(context.peer(), context.auth_context())
        self._limits = limits
        self._queue: deque[Ticket | bytes] = deque()
        self._held = 0
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
            await asyncio.wait({self._reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():  # it ends first only when answers cannot be given any more
                return writer.result()
            error = None if self._reader.cancelled() else self._reader.result()
            self._read_all = True
            self._answers.set()
            return await writer or error
        finally:
            self._reader.cancel()
            writer.cancel()
            await asyncio.gather(self._reader, writer, return_exceptions=True)

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
                entry = await self._offer(parse(pb.SubmitRequest, data))
            except CallStatus as status:
                return status
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
                else:
                    await asyncio.sleep(min(busy.seconds, 5.0))
            else:
                self._held += len(request.payload)
                return ticket

    def _done(self, ticket: Ticket) -> None:
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
                    self._held -= len(entry.submission.payload)
                queue.popleft()
                self._room.set()
                try:
                    await context.write(response)
                except _GONE:
                    return None
            if self._read_all and not queue:
                return None
            self._answers.clear()
            if not (queue and _settled(queue[0])):
                await self._answers.wait()


def _settled(entry: Ticket | bytes) -> bool:
    return isinstance(entry, bytes) or entry.outcome is not None or entry.error is not None
