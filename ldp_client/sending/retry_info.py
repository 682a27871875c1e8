"""Read how long a server asks a client to wait: google.rpc.RetryInfo in the trailing metadata of a failed call.

The real messages belong to a package that the client does not ship. `StatusDetails` and `RetryDelay` in collector.proto
have the same field numbers. Bytes that do not parse mean that the server asked for nothing.
"""

from __future__ import annotations

from typing import Any

__all__ = ["parse_retry_info", "retry_after"]

_KEY = "grpc-status-details-bin"
_TYPE = "type.googleapis.com/google.rpc.RetryInfo"
_MAX_BYTES = 16_384


def retry_after(error: Any) -> float | None:
    """Return the seconds that a failed gRPC call asks to wait; None if it asks for nothing."""
    trailing = error.trailing_metadata() if hasattr(error, "trailing_metadata") else None
    for key, value in trailing or ():
        if key == _KEY and isinstance(value, bytes):
            return parse_retry_info(value)
    return None


def parse_retry_info(status: bytes) -> float | None:
    """Return the delay in a serialised google.rpc.Status; None if there is none or the bytes are not sound."""
    from google.protobuf.message import DecodeError

    from ldp_client.protocol.v1 import collector_pb2

    if len(status) > _MAX_BYTES:
        return None
    try:
        for detail in collector_pb2.StatusDetails.FromString(status).details:
            if detail.type_url == _TYPE:
                delay = collector_pb2.RetryDelay.FromString(detail.value).retry_delay
                sound = 0 <= delay.seconds < 1 << 40 and 0 <= delay.nanos < 10**9
                return delay.seconds + delay.nanos / 1e9 if sound else None
    except DecodeError:
        pass
    return None
