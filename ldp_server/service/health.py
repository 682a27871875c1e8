"""Health checks, with places of their own: who fills the others cannot make the server look dead."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer

from ldp_server.service.places import Room, one_call, read_one
from ldp_server.service.wire import CallStatus, Context, abort, parse

__all__ = ["health_handlers"]

WATCH_SECONDS = 3600.0


def health_handlers(health: HealthServicer, room: Room) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """The methods of grpc.health.v1.Health by their names."""

    async def check(data: bytes, context: Context) -> bytes:
        response = await health.Check(parse(health_pb2.HealthCheckRequest, data), context)
        return bytes(response.SerializeToString())

    async def watch(_: object, context: Context) -> None:
        try:
            with room.places.place(room.peers.of(context).address):
                request = parse(health_pb2.HealthCheckRequest, await read_one(context, room.seconds))
                async with asyncio.timeout(WATCH_SECONDS):
                    await health.Watch(request, context)
        except TimeoutError:
            await abort(context, CallStatus(grpc.StatusCode.UNAVAILABLE, "watched long enough: watch again", 1.0))
        except CallStatus as status:
            await abort(context, status)

    serialize = health_pb2.HealthCheckResponse.SerializeToString
    return {
        "Check": one_call(check, room),
        "Watch": grpc.stream_stream_rpc_method_handler(watch, None, serialize),
    }
