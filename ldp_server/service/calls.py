"""One operator's call: who, what, how long, and how it ended, in one line of the log."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import grpc
from google.protobuf.message import Message

from ldp_client.errors import LdpError
from ldp_server.service.auth import Auth
from ldp_server.service.live import PREFIX
from ldp_server.service.logs import LOGGER, event
from ldp_server.service.metrics import Metrics
from ldp_server.service.wire import CallStatus, abort, status_of
from ldp_server.worker.client import Unsupported

__all__ = ["Call"]

Context = Any  # grpc.aio.ServicerContext of raw bytes: the stubs cannot say so


class Call:
    """One call: who, what, how long, and how it ended, in one line of the log."""

    def __init__(self, auth: Auth, metrics: Metrics, name: str, context: Context) -> None:
        self._auth = auth
        self._metrics = metrics
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
        prefix: str = getattr(request, "id_prefix", "")
        named: str = getattr(request, "collection_id", b"")[:32].hex() or (prefix if PREFIX.fullmatch(prefix) else "")
        self._collection = named[:12]

    async def __aenter__(self) -> Call:
        try:
            self._principal = await self._auth.principal(self._context)
        except LdpError as error:
            self._error = error
            await self.finish()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None:
            return False
        if isinstance(error, Unsupported):
            self._error = CallStatus(grpc.StatusCode.UNIMPLEMENTED, str(error))
        elif isinstance(error, LdpError):
            self._error = error
        elif isinstance(error, grpc.aio.UsageError | grpc.aio.InternalError):
            self._error = CallStatus(grpc.StatusCode.CANCELLED, "the caller has gone")
        elif isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError):
            self._metrics.failures.inc()
            event(logging.ERROR, "defect", call=self._id, method=self._name, error=type(error).__name__)
            LOGGER.error("traceback", exc_info=error)
            self._error = CallStatus(
                grpc.StatusCode.INTERNAL, f"the server met an error it did not expect ({self._id})"
            )
        else:
            return False
        return True

    async def finish(self) -> bytes:
        """Write the log's line; abort the call if it was refused."""
        status = None if self._error is None else status_of(self._error)
        fields: dict[str, object] = {"call": self._id, "method": self._name, "by": self._principal or "nobody"}
        if self._collection:
            fields["collection"] = self._collection
        fields["ms"] = round((time.perf_counter() - self._started) * 1000, 1)
        fields["status"] = "OK" if status is None else status.code.name
        if status is not None and self._principal:
            fields["reason"] = status.text
        event(logging.INFO, "analyst call", **fields)
        if status is not None:
            self._metrics.refused_calls.labels(status.code.name).inc()
            await abort(self._context, status)
        return self.response
