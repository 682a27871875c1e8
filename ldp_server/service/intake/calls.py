"""The methods Submit and SubmitStream, over raw bytes: one batch, or many on one call.

A batch that is refused is an answer, not an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import grpc

from ldp_client.errors import LdpError, ServerRefused
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, bounded_call, end_call
from ldp_server.service.intake.replies import answer, refusal
from ldp_server.service.intake.stream import Stream, StreamLimits
from ldp_server.service.intake.waiting import Offering
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.metrics import IntakeMetrics
from ldp_server.service.wire import Busy, CallStatus, Context, abort, parse
from ldp_server.store import Ticket

__all__ = ["IntakeCalls"]


class IntakeCalls:
    """The two methods, and the streams that are open."""

    def __init__(self, ingest: Offering, metrics: IntakeMetrics, limits: StreamLimits, bounds: Bounds) -> None:
        self._ingest = ingest
        self._metrics = metrics
        self._limits = limits
        self._bounds = bounds
        self._streams: set[Stream] = set()
        self._draining = False

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """The methods by their names on the wire."""
        return {
            "Submit": bounded_call(self.submit, self._bounds),
            "SubmitStream": grpc.stream_stream_rpc_method_handler(self.submit_stream),
        }

    def drain(self) -> None:
        """Read no more; what was read is still made durable and answered."""
        self._draining = True
        for stream in list(self._streams):
            stream.stop_reading()

    async def submit(self, data: bytes, peer: Peer, context: Context) -> bytes:
        """One batch."""
        future: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()

        def done(ticket: Ticket) -> None:
            if not future.done():
                future.set_result(ticket)

        try:
            request = parse(pb.SubmitRequest, data)
            if self._draining:
                raise CallStatus(grpc.StatusCode.UNAVAILABLE, "the server is stopping: send the batch again", 1.0)
            try:
                self._ingest.offer(request, peer, done)
            except ServerRefused as refused:
                self._metrics.refused_batches.labels(refused.reason).inc()
                return refusal(request.batch_id, refused)
            except Busy as busy:
                self._metrics.busy.labels(busy.why).inc()
                raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "not now", busy.seconds) from None
            return answer(await future)
        except LdpError as error:
            return await self.abort(context, error)
        except Exception as error:
            return await self.abort(context, self._defect("Submit", error))

    async def submit_stream(self, _: object, context: Context) -> None:
        """Many batches."""
        peer = self._bounds.peers.of(context)
        try:
            with self._bounds.places.take(peer):
                await self._serve(Stream(self._ingest, self._metrics, context, peer, self._limits), context)
        except CallStatus as status:
            await end_call(context, status, self._bounds)

    async def _serve(self, stream: Stream, context: Context) -> None:
        self._streams.add(stream)
        self._metrics.streams.inc()
        try:
            if self._draining:
                stream.stop_reading()
            error = await self._run(stream)
            if error is None and self._draining and not stream.ended:
                error = CallStatus(grpc.StatusCode.UNAVAILABLE, "the server is stopping: send the rest again", 1.0)
            if error is not None:
                self._note(error)
                await end_call(context, error, self._bounds)
        finally:
            self._streams.discard(stream)
            self._metrics.streams.dec()

    async def _run(self, stream: Stream) -> LdpError | None:
        try:
            return await stream.run()
        except Exception as error:
            return self._defect("SubmitStream", error)

    def _defect(self, method: str, error: Exception) -> LdpError:
        """Count and log a defect; the caller gets an id to quote, and may send the same bytes again."""
        self._metrics.failures.inc()
        call = os.urandom(6).hex()
        event(logging.ERROR, "defect", call=call, method=method, error=type(error).__name__)
        LOGGER.error("traceback", exc_info=error)
        return CallStatus(grpc.StatusCode.INTERNAL, f"the server met an unexpected error ({call})")

    async def abort(self, context: Context, error: LdpError) -> bytes:
        """End a call with an error; what is not a message is counted."""
        self._note(error)
        await abort(context, error)

    def _note(self, error: LdpError) -> None:
        if isinstance(error, CallStatus) and error.code is grpc.StatusCode.INVALID_ARGUMENT:
            self._metrics.malformed.inc()
