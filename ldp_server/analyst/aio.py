"""The analyst's client for asyncio programs.

    async with AsyncAnalyst("stats.example.org:443", token=Path("alice.token")) as analyst:
        top, mean = await asyncio.gather(analyst.top("3fa9"), analyst.average("77c0"))

A task that is cancelled while it waits ends its call at the server, also a search for heavy hitters. Functions such as
`progress` are called in the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from ldp_client.errors import Cancelled
from ldp_client.protocol.v1 import analyst_pb2_grpc
from ldp_client.sending.target import Tls
from ldp_server.analyst.asking import Awaiting, Call, Pieces
from ldp_server.analyst.connection import Endpoint
from ldp_server.analyst.failures import is_connection_failure
from ldp_server.analyst.operations import Operations
from ldp_server.analyst.over_time import AcrossPeriods
from ldp_server.analyst.reaching import Reaching

__all__ = ["AsyncAnalyst", "AsyncConnection"]

T = TypeVar("T")


class AsyncConnection(Endpoint):
    """A channel of one event loop, opened when it is first needed, and again after a failure."""

    _channel: grpc.aio.Channel | None = None
    _stub: Any = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def call(self, method: str, request: Message, timeout: float) -> Any:
        """Make a call and wait for its answer. If the task is cancelled, the server cancels the call."""
        call = getattr(await self._open(), method)(request, metadata=self._metadata, timeout=timeout)
        try:
            return await call
        except grpc.RpcError as error:
            raise await self._failed(error, timeout, begun=False) from None
        except asyncio.CancelledError:
            _raise_if_closed()
            raise
        finally:
            call.cancel()

    async def stream(self, method: str, request: Message, timeout: float | None) -> AsyncGenerator[Any, None]:
        """Make a call and yield its answers. If the iteration ends early, the server cancels the call."""
        call = getattr(await self._open(), method)(request, metadata=self._metadata, timeout=timeout)
        begun = False
        try:
            async for piece in call:
                begun = True
                yield piece
        except grpc.RpcError as error:
            raise await self._failed(error, timeout, begun=begun) from None
        except asyncio.CancelledError:
            _raise_if_closed()
            raise
        finally:
            call.cancel()

    async def close(self) -> None:
        channel, self._channel, self._stub = self._channel, None, None
        if channel is not None and self._loop is asyncio.get_running_loop():
            await channel.close(None)

    async def _failed(self, error: grpc.RpcError, timeout: float | None, *, begun: bool) -> Exception:
        if is_connection_failure(error):
            await self.close()
        # The reason may take another look at the address, which waits.
        return await asyncio.to_thread(self._error, error, timeout, begun=begun)

    async def _open(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._stub is None or self._loop is not loop:
            credentials, options = self._channel_arguments()
            self._channel = (
                grpc.aio.insecure_channel(self.target, options)
                if credentials is None
                else grpc.aio.secure_channel(self.target, credentials, options)
            )
            self._loop = loop
            self._stub = analyst_pb2_grpc.AnalystStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        return self._stub


def _raise_if_closed() -> None:
    """Tell a call that ended with its connection from a task that was cancelled: gRPC raises the same for both."""
    task = asyncio.current_task()
    if task is not None and not task.cancelling():
        raise Cancelled("the connection was closed during the call") from None


class AsyncAnalyst(Reaching[AsyncConnection], AcrossPeriods, Operations, Awaiting):
    """Takes the arguments of ldp_server.analyst.Analyst and has the same methods, to be awaited.

    Many tasks of one event loop may share it.
    """

    def _connect(self, target: str, token: str | Path | None, tls: Tls | None) -> AsyncConnection:
        return AsyncConnection(target, token, tls)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the next call opens it again."""
        await self._connection.close()

    async def ask(self, asking: Call[T] | Pieces[T]) -> T:
        """Make a call and return its answer. The other methods do this."""
        limits = self._timeouts
        if isinstance(asking, Call):
            timeout = limits.long if asking.long else limits.call
            return asking.read(await self._connection.call(asking.method, asking.request, timeout))
        async with aclosing(self._connection.stream(asking.method, asking.request, limits.stream)) as pieces:
            async for piece in pieces:
                found = asking.take(piece)
                if found is not None:
                    return found
        return asking.end()
