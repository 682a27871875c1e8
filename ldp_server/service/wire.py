"""Bytes to messages and errors to statuses, the same for every method.

Handlers get the raw bytes and parse them here: what is no message at all is then an INVALID_ARGUMENT and a counter,
and not an exception in somebody's log. "Not now" is RESOURCE_EXHAUSTED or UNAVAILABLE with a RetryInfo, as
google.rpc defines it.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from ldp_client.errors import InvalidSpec, LdpError, ServerRefused, Unavailable
from ldp_server.store.errors import DiskFull, StorageError

__all__ = ["EOF", "CallStatus", "abort", "parse", "status_of"]

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs lack it
"""What reading from a stream gives when the client is done."""

M = TypeVar("M", bound=Message)


class CallStatus(LdpError):
    """A call that ends with a status other than OK."""

    def __init__(self, code: grpc.StatusCode, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.retry_after = retry_after


def parse(kind: type[M], data: bytes) -> M:
    """The message in `data`."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}") from None


def status_of(error: LdpError) -> CallStatus:
    """The status that tells a caller about an error."""
    code = grpc.StatusCode
    if isinstance(error, CallStatus):
        return error
    if isinstance(error, InvalidSpec | ServerRefused):
        return CallStatus(code.INVALID_ARGUMENT, str(error))
    if isinstance(error, Unavailable):
        return CallStatus(code.UNAVAILABLE, str(error), error.retry_after)
    if isinstance(error, DiskFull):
        return CallStatus(code.UNAVAILABLE, "the server has no space left on its disk", 30.0)
    if isinstance(error, StorageError):
        return CallStatus(code.UNAVAILABLE, "the server cannot use its storage", 30.0)
    return CallStatus(code.INTERNAL, "the server met an error it did not expect")


def _details(status: CallStatus) -> tuple[tuple[str, bytes], ...]:
    if status.retry_after is None:
        return ()
    message = status_pb2.Status(code=status.code.value[0], message=status.text)
    delay = Duration()
    delay.FromNanoseconds(max(1, int(status.retry_after * 1e9)))
    message.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return (("grpc-status-details-bin", message.SerializeToString()),)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: LdpError) -> NoReturn:
    """End a call with the error's status."""
    status = status_of(error)
    await context.abort(status.code, status.text, _details(status))
    raise AssertionError("abort raises")
