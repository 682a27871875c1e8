"""Around every method: who calls, which collection, how long, and how it ended, in one line of the log."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from ldp_client.errors import LdpError
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.oracles.independence.result import NotIndependent
from ldp_server.service.admission import Peer
from ldp_server.service.bounded import Bounds, end_call, read_one, write_one
from ldp_server.service.live import PREFIX
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.metrics import Metrics
from ldp_server.service.operators.auth import NEEDS, Auth, Caller, needed
from ldp_server.service.wire import CallStatus, Context, abort, parse, status_of
from ldp_server.store import ROLES
from ldp_server.store.errors import Corrupt
from ldp_server.watch.spans import Span, Spans
from ldp_server.worker.messages import OverTime

__all__ = ["Calls", "role_of_caller"]

R = TypeVar("R", bound=Message)


_IDS = random.Random()  # names of calls; nothing depends on nobody guessing them
_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)


def role_of_caller() -> str:
    """What the caller of the present call may do; a named certificate may do everything."""
    caller = _caller.get()
    return ROLES[-1] if caller is None or caller.token is None else caller.token.role


_NO_ANSWER: dict[type[LdpError], grpc.StatusCode] = {
    Unsupported: grpc.StatusCode.FAILED_PRECONDITION,
    TooFewReports: grpc.StatusCode.FAILED_PRECONDITION,
    NotIndependent: grpc.StatusCode.FAILED_PRECONDITION,
    OverTime: grpc.StatusCode.ABORTED,
}
"""Why a question has no answer."""


def _status(error: LdpError) -> CallStatus:
    """The status that tells an analyst about an error."""
    for kind, code in _NO_ANSWER.items():
        if isinstance(error, kind):
            return CallStatus(code, str(error), getattr(error, "retry_after", None))
    return status_of(error)


class Calls:
    """Makes gRPC handlers of methods that take a message and give bytes."""

    def __init__(self, auth: Auth, metrics: Metrics, bounds: Bounds, spans: Spans | None = None) -> None:
        self._auth = auth
        self._metrics = metrics
        self._bounds = bounds
        self._spans = spans

    def one(self, name: str, kind: type[R], method: Callable[[R], Awaitable[bytes]]) -> grpc.RpcMethodHandler[Any, Any]:
        """A method with one answer."""
        role, title = NEEDS[name], f"analyst/{name}"

        async def handler(_: object, context: Context) -> None:
            with self._spans.span(title) if self._spans else contextlib.nullcontext() as span:
                async with _Call(self._auth, self._metrics, name, role, context, span) as call:
                    with self._place(call):
                        call.response = await method(await self._request(call, kind, context))
                response = await call.finish()
            try:
                await write_one(context, response, self._bounds)
            except CallStatus as status:
                await end_call(context, status, self._bounds)

        return grpc.stream_stream_rpc_method_handler(handler)

    def many(
        self, name: str, kind: type[R], method: Callable[[R], AsyncGenerator[bytes, None]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """A method that answers with a stream. Its caller's token must not be revoked before the last piece."""
        role, title = NEEDS[name], f"analyst/{name}"

        async def handler(_: object, context: Context) -> None:
            with self._spans.span(title) if self._spans else contextlib.nullcontext() as span:
                async with _Call(self._auth, self._metrics, name, role, context, span) as call:
                    with self._place(call):
                        request = await self._request(call, kind, context)
                        async with contextlib.aclosing(method(request)) as pieces:
                            async for piece in pieces:
                                await call.still()
                                await write_one(context, piece, self._bounds)
                await call.finish()

        return grpc.stream_stream_rpc_method_handler(handler)

    def _place(self, call: _Call) -> AbstractContextManager[None]:
        """A place for the call, counted by its caller's name. The message is read after the caller is known."""
        return self._bounds.places.take(_named(call.by))

    async def _request(self, call: _Call, kind: type[R], context: Context) -> R:
        request = parse(kind, await read_one(context, self._bounds))
        call.about(request)
        return request


@lru_cache(maxsize=1024)
def _named(by: str) -> Peer:
    return Peer(by, False, frozenset())


class _Call:
    """One call. It ends before its block if the caller is not known; errors of the block become its status."""

    def __init__(self, auth: Auth, metrics: Metrics, name: str, role: str, context: Context, span: Span | None) -> None:
        self._auth = auth
        self._metrics = metrics
        self._name = name
        self._context = context
        self._span = span
        self._id = f"{_IDS.getrandbits(48):012x}"
        self._started = time.perf_counter()
        self._role = role
        self._caller: Caller | None = None
        self._collection = ""
        self._error: LdpError | None = None
        self.response = b""

    def about(self, request: Message) -> None:
        """Note which collection it is about, and check the role that it needs for what it says."""
        prefix: str = getattr(request, "id_prefix", "")
        named: str = getattr(request, "collection_id", b"")[:32].hex() or (prefix if PREFIX.fullmatch(prefix) else "")
        self._collection = named[:12]
        if named and self._span:
            self._span.note(collection=self._collection)
        role = needed(request)
        if role != self._role:
            self._auth.require(self.known, role)

    async def still(self) -> None:
        """Check that the caller's token was not revoked meanwhile."""
        await self._auth.still(self.known)

    @property
    def known(self) -> Caller:
        """Who calls, once the block has begun."""
        if self._caller is None:
            raise RuntimeError("the block of a call runs for known callers only")
        return self._caller

    @property
    def by(self) -> str:
        """Who calls; empty before it is known."""
        return "" if self._caller is None else self._caller.name

    async def __aenter__(self) -> _Call:
        try:
            self._caller = await self._auth.caller(self._context)
            self._auth.admit(self._caller, self._role)
            _caller.set(self._caller)
        except LdpError as error:
            self._error = error
            await self.finish()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None:
            return False
        if isinstance(error, Corrupt):
            self._metrics.damage.inc()
            event(logging.ERROR, "damage", call=self._id, collection=self._collection, reason=str(error))
            self._error = CallStatus(grpc.StatusCode.DATA_LOSS, str(error))
        elif isinstance(error, LdpError):
            self._error = error
        elif isinstance(error, grpc.aio.UsageError | grpc.aio.InternalError):
            self._error = CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone")
        elif isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError):
            self._metrics.failures.inc()
            event(logging.ERROR, "defect", call=self._id, method=self._name, error=type(error).__name__)
            LOGGER.error("traceback", exc_info=error)
            self._error = CallStatus(grpc.StatusCode.INTERNAL, f"the server met an unexpected error ({self._id})")
        else:
            return False
        return True

    async def finish(self) -> bytes:
        """Write the log's line; abort the call if it failed."""
        status = None if self._error is None else _status(self._error)
        fields: dict[str, object] = {"call": self._id, "method": self._name, "by": self.by or "nobody"}
        if self._collection:
            fields["collection"] = self._collection
        fields["ms"] = round((time.perf_counter() - self._started) * 1000, 1)
        fields["status"] = ended = "OK" if status is None else status.code.name
        if self._span:
            self._span.note(status=ended)
        if status is not None and self._caller is not None:
            fields["reason"] = status.text
        event(logging.INFO, "analyst call", **fields)
        if status is not None:
            self._metrics.refused_calls.labels(status.code.name).inc()
            await abort(self._context, status)
        return self.response
