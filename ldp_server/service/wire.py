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

__all__ = ["EOF", "Refused", "abort", "parse", "refusal"]

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs lack it
"""What reading from a stream gives when the client is done."""

M = TypeVar("M", bound=Message)


class Refused(LdpError):
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
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"not a {kind.__name__}") from None


def refusal(error: LdpError) -> Refused:
    """The status that tells a caller about an error."""
    code = grpc.StatusCode
    if isinstance(error, Refused):
        return error
    if isinstance(error, InvalidSpec | ServerRefused):
        return Refused(code.INVALID_ARGUMENT, str(error))
    if isinstance(error, Unavailable):
        return Refused(code.UNAVAILABLE, str(error), error.retry_after)
    if isinstance(error, DiskFull):
        return Refused(code.UNAVAILABLE, "the server has no space left on its disk", 30.0)
    if isinstance(error, StorageError):
        return Refused(code.UNAVAILABLE, "the server cannot use its storage", 30.0)
    return Refused(code.INTERNAL, "the server met an error it did not expect")


def _details(refused: Refused) -> tuple[tuple[str, bytes], ...]:
    if refused.retry_after is None:
        return ()
    status = status_pb2.Status(code=refused.code.value[0], message=refused.text)
    delay = Duration()
    delay.FromNanoseconds(max(1, int(refused.retry_after * 1e9)))
    status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return (("grpc-status-details-bin", status.SerializeToString()),)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: LdpError) -> NoReturn:
    """End a call with the error's status."""
    refused = refusal(error)
    await context.abort(refused.code, refused.text, _details(refused))
    raise AssertionError("abort raises")
