"""One operator's call: who, what, how long, and how it ended, in one line of the log."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Protocol

import grpc
from google.protobuf.message import Message

from ldp_client.errors import LdpError
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.wire import Refused, abort, refusal
from ldp_server.worker.client import Unsupported

__all__ = ["Call", "Desk"]

Context = Any  # grpc.aio.ServicerContext of raw bytes: the stubs cannot say so


class Desk(Protocol):
    """What a call needs of the service that takes it."""

    async def principal(self, context: Context) -> str:
        """Who is calling."""

    def refused(self, code: grpc.StatusCode) -> None:
        """Count a refused call."""

    def failed(self) -> None:
        """Count a defect."""


class Call:
    """One call: who, what, how long, and how it ended, in one line of the log."""

    def __init__(self, desk: Desk, name: str, context: Context) -> None:
        self._desk = desk
        self._name = name
        self._context = context
        self._id = os.urandom(6).hex()
        self._started = time.perf_counter()
        self._principal = ""
        self._collection = ""
        self._error: LdpError | None = None
        self.response = b""

    def about(self, request: Message) -> None:
        """Note which collection it is about."""
        self._collection = getattr(request, "collection_id", b"")[:32].hex()[:12]

    async def __aenter__(self) -> Call:
        try:
            self._principal = await self._desk.principal(self._context)
        except LdpError as error:
            self._error = error
            await self.finish()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None:
            return False
        if isinstance(error, Unsupported):
            self._error = Refused(grpc.StatusCode.UNIMPLEMENTED, str(error))
        elif isinstance(error, LdpError):
            self._error = error
        elif isinstance(error, grpc.aio.UsageError | grpc.aio.InternalError):
            self._error = Refused(grpc.StatusCode.CANCELLED, "the caller has gone")
        elif isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError):
            self._desk.failed()
            event(logging.ERROR, "defect", call=self._id, method=self._name, error=type(error).__name__)
            LOGGER.error("traceback", exc_info=error)
            self._error = Refused(grpc.StatusCode.INTERNAL, f"the server met an error it did not expect ({self._id})")
        else:
            return False
        return True

    async def finish(self) -> bytes:
        """Write the log's line; abort the call if it was refused."""
        refused = None if self._error is None else refusal(self._error)
        fields: dict[str, object] = {"call": self._id, "method": self._name, "by": self._principal or "nobody"}
        if self._collection:
            fields["collection"] = self._collection
        fields["ms"] = round((time.perf_counter() - self._started) * 1000, 1)
        fields["status"] = "OK" if refused is None else refused.code.name
        if refused is not None and self._principal:
            fields["reason"] = refused.text
        event(logging.INFO, "analyst call", **fields)
        if refused is not None:
            self._desk.refused(refused.code)
            await abort(self._context, refused)
        return self.response
