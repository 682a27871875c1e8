"""Read how long a server wants to be left alone: google.rpc.RetryInfo in the trailing metadata of a failed call.

    grpc-status-details-bin = Status { 3: repeated Any { 1: type_url, 2: value } };  RetryInfo { 1: Duration }

The messages are part of a package that the client does not ship, and these few fields are quickly read. Bytes that do
not parse mean that nothing was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["parse_retry_info", "retry_after"]

_KEY = "grpc-status-details-bin"
_TYPE = b"type.googleapis.com/google.rpc.RetryInfo"
_MAX_BYTES = 16_384


def retry_after(error: Any) -> float | None:
    """Return the seconds that a failed gRPC call asks to wait, if it does."""
    trailing = error.trailing_metadata() if hasattr(error, "trailing_metadata") else None
    for key, value in trailing or ():
        if key == _KEY and isinstance(value, bytes):
            return parse_retry_info(value)
    return None


def parse_retry_info(status: bytes) -> float | None:
    """Return the delay in a serialised google.rpc.Status; None if there is none or the bytes are not sound."""
    try:
        for detail in _fields(status[:_MAX_BYTES], 3):
            found = dict(_numbered(detail))
            if found.get(1) == _TYPE and isinstance(found.get(2), bytes):
                return _duration(found[2])
    except (IndexError, ValueError):
        pass
    return None


def _duration(info: Any) -> float | None:
    for delay in _fields(info, 1):
        found = dict(_numbered(delay))
        seconds, nanos = found.get(1, 0), found.get(2, 0)
        if isinstance(seconds, int) and isinstance(nanos, int) and 0 <= seconds < 1 << 40 and 0 <= nanos < 10**9:
            return seconds + nanos / 1e9
    return None


def _fields(data: bytes, number: int) -> Iterator[bytes]:
    return (value for found, value in _numbered(data) if found == number and isinstance(value, bytes))


def _numbered(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a protobuf message: varints as int, everything else as bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("not a field")
        if at + length > len(data):
            raise ValueError("cut short")
        yield tag >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError("a number without an end")
