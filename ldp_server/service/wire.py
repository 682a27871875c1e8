"""Bytes to messages and errors to statuses, the same for every method.

Handlers get the raw bytes and parse them here. So bytes that are no message are an INVALID_ARGUMENT and a counter, and
not an exception in gRPC's own log. "Not now" is RESOURCE_EXHAUSTED or UNAVAILABLE with a google.rpc.RetryInfo.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from ldp_client.errors import InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server.store.errors import DiskFull

__all__ = ["EOF", "Busy", "CallStatus", "Context", "abort", "parse", "status_of"]

Context = Any  # grpc.aio.ServicerContext of raw bytes: the stubs have no type for it

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs lack it
"""What reading from a stream gives when the client is done."""

M = TypeVar("M", bound=Message)


class Busy(LdpError):
    """Not now: the same bytes may come again after `seconds`."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.why = why
        self.seconds = seconds


class CallStatus(LdpError):
    """A call that ends with a status other than OK."""

    def __init__(self, code: grpc.StatusCode, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.retry_after = retry_after


_CODES: dict[type[LdpError], grpc.StatusCode] = {
    InvalidSpec: grpc.StatusCode.INVALID_ARGUMENT,
    ServerRefused: grpc.StatusCode.INVALID_ARGUMENT,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}


def parse(kind: type[M], data: bytes) -> M:
    """The message in `data`."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise CallStatus(grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}") from None


def status_of(error: LdpError) -> CallStatus:
    """The status that tells a caller about an error."""
    if isinstance(error, CallStatus):
        return error
    if isinstance(error, StorageError):
        full = isinstance(error, DiskFull)
        text = "the server has no space left on its disk" if full else "the server cannot use its storage"
        return CallStatus(grpc.StatusCode.UNAVAILABLE, text, 30.0)
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return CallStatus(code, str(error), getattr(error, "retry_after", None))
    return CallStatus(grpc.StatusCode.INTERNAL, "the server met an unexpected error")


def _details(status: CallStatus) -> tuple[tuple[str, bytes], ...]:
    if status.retry_after is None:
        return ()
    message = status_pb2.Status(code=status.code.value[0], message=status.text)
    delay = Duration()
    delay.FromNanoseconds(max(1, int(status.retry_after * 1e9)))
    message.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return (("grpc-status-details-bin", message.SerializeToString()),)


async def abort(context: Context, error: LdpError) -> NoReturn:
    """End a call with the error's status."""
    status = status_of(error)
    await context.abort(status.code, status.text, _details(status))
    raise AssertionError("abort raises")
