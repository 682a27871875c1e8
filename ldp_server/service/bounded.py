"""A call of one message and one answer, in places of its own.

gRPC reads the message of such a call before the handler sees the call, and keeps an answer until it is read. So these
calls are served as streams: the handler takes a place, reads one message in a limited time, and sends one answer in a
limited time. On the wire there is no difference. A caller that does not take its answer loses its connection, because
gRPC has no other way to let go of what it holds for a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from ldp_client.errors import LdpError
from ldp_server.config import CallLimits
from ldp_server.service.admission import Connections, Deadlines, Peer, Peers, Places
from ldp_server.service.metrics import IntakeMetrics
from ldp_server.service.wire import EOF, CallStatus, Context, abort

__all__ = ["AllBounds", "Bounds", "bounded_call", "end_call", "read_one", "write_one"]

_GONE = (grpc.aio.UsageError, grpc.aio.InternalError)
_FAREWELL = 5.0
"""Seconds that a caller has for the status of a call that ends."""


_OPERATORS, _OPERATORS_SHARE = 100, 50
_HEALTH, _HEALTH_SHARE, _HEALTH_SECONDS = 64, 16, 10.0
_OPERATORS_SECONDS = 120.0
_ANY_SIZE = 1 << 40
"""Answers to operators are not counted: they had to show who they are."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one kind of callers has: places for calls, bytes of answers, seconds for a message to arrive or be read."""

    places: Places
    answers: Places
    peers: Peers
    connections: Connections
    deadlines: Deadlines
    """How long a message may take to arrive or to be read."""


@dataclass(frozen=True, slots=True)
class AllBounds:
    """Apps, operators and health checks have places of their own: none of them can take another's."""

    apps: Bounds
    operators: Bounds
    """Their shares are counted by who they are, not by address."""
    health: Bounds

    @classmethod
    def of(cls, limits: CallLimits, peers: Peers, metrics: IntakeMetrics) -> AllBounds:
        """The bounds that the configuration sets."""
        connections = Connections(peers, limits.connections_by_address, metrics.ended_connections.inc)
        busy = metrics.busy.labels("places").inc
        answers = Places(limits.answer_bytes, limits.answer_bytes // 4, metrics.busy.labels("answers").inc)
        any_size = Places(_ANY_SIZE, _ANY_SIZE)
        apps, operators, health = (
            Places(limits.calls, limits.calls_by_address, busy),
            Places(_OPERATORS, _OPERATORS_SHARE),
            Places(_HEALTH, _HEALTH_SHARE),
        )
        return cls(
            Bounds(apps, answers, peers, connections, Deadlines(limits.idle_seconds)),
            Bounds(operators, any_size, peers, connections, Deadlines(_OPERATORS_SECONDS)),
            Bounds(health, any_size, peers, connections, Deadlines(_HEALTH_SECONDS)),
        )


async def read_one(context: Context, bounds: Bounds) -> bytes:
    """Read a call's one message; raises `CallStatus` if it does not come in time."""
    try:
        data = await bounds.deadlines.within(context.read())
    except TimeoutError:
        raise CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "the message did not arrive in time", 1.0) from None
    except _GONE:
        raise CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone") from None
    if data is EOF:
        raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, "the call has no message")
    return bytes(data)


async def write_one(context: Context, data: bytes, bounds: Bounds) -> None:
    """Send an answer; a caller that does not read it in time loses its connection."""
    try:
        await bounds.deadlines.within(context.write(data))
    except TimeoutError:
        bounds.connections.end(context.peer())
        raise CallStatus(grpc.StatusCode.CANCELLED, "the answer was not read in time") from None
    except _GONE:
        raise CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone") from None


async def end_call(context: Context, error: LdpError, bounds: Bounds) -> None:
    """End a call with the error's status; a caller that does not even read this loses its connection."""
    try:
        async with asyncio.timeout(_FAREWELL):
            await abort(context, error)
    except TimeoutError:
        bounds.connections.end(context.peer())


def bounded_call(
    method: Callable[[bytes, Peer, Context], Awaitable[bytes]], bounds: Bounds
) -> grpc.RpcMethodHandler[Any, Any]:
    """Serve a method of one message and one answer."""

    async def handler(_: object, context: Context) -> None:
        peer = bounds.peers.of(context)
        try:
            with bounds.places.take(peer):
                response = await method(await read_one(context, bounds), peer, context)
                with bounds.answers.take(peer, len(response)):
                    await write_one(context, response, bounds)
        except CallStatus as status:
            await end_call(context, status, bounds)

    return grpc.stream_stream_rpc_method_handler(handler)
