"""Places for calls: how many may be open at once, in all and from one address.

A call takes its place before a byte of its message is read. So an address that opens many calls and sends nothing, or
never finishes a message, is refused after its share, and the others still find places. Apps, operators and health
checks have places of their own: none of them can take another's. An operator's call takes one after it was admitted.

Memory: a call holds at most one message of the port's largest size besides what `Waiting` counts, so what unfinished
messages take is at most places times that size. Answers that are long are counted in bytes (`LongAnswers`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from ldp_server.service.admission import Peers
from ldp_server.service.wire import EOF, CallStatus, Context, abort

__all__ = ["LongAnswers", "Places", "Room", "one_call", "read_one", "write_one"]

_GONE = (grpc.aio.UsageError, grpc.aio.InternalError)


class Places:
    """At most `calls` at once, and at most `by_address` from one address."""

    def __init__(self, calls: int, by_address: int) -> None:
        self._calls = calls
        self._by_address = by_address
        self._held: Counter[str] = Counter()
        self.taken = 0

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Hold a place during the block; raises `CallStatus` (not now) if there is none."""
        if self.taken >= self._calls or self._held[address] >= self._by_address:
            raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many open calls: not now", 2.0)
        self._held[address] += 1
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._held[address] -= 1
            if not self._held[address]:
                del self._held[address]


class LongAnswers:
    """Bytes of answers that are being sent: `most` in all and a quarter of it to one address, or one answer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sending: Counter[str] = Counter()

    @contextmanager
    def sending(self, address: str, size: int) -> Iterator[None]:
        """Count an answer during the block; raises `CallStatus` (not now) if it does not fit."""
        total, own = self._sending.total(), self._sending[address]
        if (total and total + size > self._most) or (own and own + size > self._most // 4):
            raise CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many answers are being read: not now", 2.0)
        self._sending[address] += size
        try:
            yield
        finally:
            self._sending[address] -= size
            if not self._sending[address]:
                del self._sending[address]


async def read_one(context: Context, seconds: float) -> bytes:
    """Read a call's one message; raises `CallStatus` if it does not come in time."""
    try:
        data = await asyncio.wait_for(context.read(), seconds)
    except TimeoutError:
        raise CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "the message did not arrive in time", 1.0) from None
    except _GONE:
        raise CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone") from None
    if data is EOF:
        raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, "the call has no message")
    return bytes(data)


async def write_one(context: Context, data: bytes, seconds: float) -> None:
    """Send a call's one answer; raises `CallStatus` if the caller does not read it in time."""
    try:
        await asyncio.wait_for(context.write(data), seconds)
    except TimeoutError:
        raise CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "the answer was not read in time", 1.0) from None
    except _GONE:
        raise CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone") from None


@dataclass(frozen=True, slots=True)
class Room:
    """What one kind of callers has: places, bytes of answers, and seconds for a message to arrive or to be read."""

    places: Places
    answers: LongAnswers
    peers: Peers
    seconds: float


def one_call(method: Callable[[bytes, Context], Awaitable[bytes]], room: Room) -> grpc.RpcMethodHandler[Any, Any]:
    """Serve a method of one message and one answer. gRPC sees a stream, so that a place is taken before reading."""

    async def handler(_: object, context: Context) -> None:
        try:
            address = room.peers.of(context).address
            with room.places.place(address):
                response = await method(await read_one(context, room.seconds), context)
                with room.answers.sending(address, len(response)):
                    await write_one(context, response, room.seconds)
        except CallStatus as status:
            await abort(context, status)

    return grpc.stream_stream_rpc_method_handler(handler)
