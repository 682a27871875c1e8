"""Health checks and reflection, in places of their own: filling all other places cannot make the server look dead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer

from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, bounded_call, end_call, read_one
from ldp_server.service.wire import CallStatus, Context, parse

__all__ = ["DrainingHealth", "health_methods", "reflection_methods"]

_WATCH_SECONDS = 3600.0
_SAID = frozenset({health_pb2.HealthCheckResponse.NOT_SERVING, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN})
"""What need not be said again when the server drains."""


class DrainingHealth(HealthServicer):  # type: ignore[misc]  # grpcio has no types
    """Health that also tells when the server began to drain. A watch ends then: the server would wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.draining = asyncio.Event()

    async def enter_graceful_shutdown(self) -> None:
        await super().enter_graceful_shutdown()
        self.draining.set()


class _Watcher:
    """Who watches, and what it was told last."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.last: object = None
        self.writing = asyncio.Lock()
        """A message that is being written must not be cut off: it would be written twice."""

    async def write(self, response: health_pb2.HealthCheckResponse) -> None:
        async with self.writing:
            await self._context.write(response)
            self.last = response.status


async def _watch(health: DrainingHealth, request: health_pb2.HealthCheckRequest, context: Context) -> CallStatus:
    """Tell of changes until the server drains or the time is over; say why it ended."""
    watcher = _Watcher(context)
    works = [asyncio.ensure_future(work) for work in (health.Watch(request, watcher), health.draining.wait())]
    try:
        await asyncio.wait(works, timeout=_WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        async with watcher.writing:
            for work in works:
                work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
    if health.draining.is_set() and watcher.last not in _SAID:
        await context.write(health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING))
    return CallStatus(grpc.StatusCode.UNAVAILABLE, "watch again", 1.0)


def health_methods(health: DrainingHealth, bounds: Bounds) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """The methods of grpc.health.v1.Health by their names."""

    async def check(data: bytes, _: Peer, context: Context) -> bytes:
        response = await health.Check(parse(health_pb2.HealthCheckRequest, data), context)
        return bytes(response.SerializeToString())

    async def watch(_: object, context: Context) -> None:
        try:
            with bounds.places.take(bounds.peers.of(context)):
                request = parse(health_pb2.HealthCheckRequest, await read_one(context, bounds))
                await end_call(context, await _watch(health, request, context), bounds)
        except CallStatus as status:
            await end_call(context, status, bounds)

    serialize = health_pb2.HealthCheckResponse.SerializeToString
    return {
        "Check": bounded_call(check, bounds),
        "Watch": grpc.stream_stream_rpc_method_handler(watch, None, serialize),
    }


def reflection_methods(names: Sequence[str], bounds: Bounds) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """The method of grpc.reflection.v1alpha.ServerReflection, for a limited time."""
    servicer = ReflectionServicer(names)

    async def info(requests: Any, context: Context) -> None:
        try:
            with bounds.places.take(bounds.peers.of(context)):
                async with asyncio.timeout(bounds.deadlines.seconds):
                    async for answer in servicer.ServerReflectionInfo(requests, context):
                        await context.write(answer)
        except TimeoutError:
            await end_call(context, CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "open for too long"), bounds)
        except CallStatus as status:
            await end_call(context, status, bounds)

    read = reflection_pb2.ServerReflectionRequest.FromString
    serialize = reflection_pb2.ServerReflectionResponse.SerializeToString
    return {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(info, read, serialize)}
