"""A frame: four bytes header length, eight bytes body length (little endian), a JSON header, a body of bytes.

Both ends are this program and trust each other. JSON cannot run code, unlike pickle, should one of them be confused.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import IO, Any

__all__ = ["read_frame", "read_frame_async", "write_frame"]

_SIZES = struct.Struct("<IQ")


def write_frame(header: dict[str, Any], body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    text = json.dumps(header).encode()
    return _SIZES.pack(len(text), len(body)) + text + body


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at the end of the stream."""
    sizes = stream.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    text, body = _SIZES.unpack(sizes)
    return json.loads(stream.read(text)), stream.read(body)


async def read_frame_async(stream: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """The next frame; raises IncompleteReadError at the end of the stream."""
    text, body = _SIZES.unpack(await stream.readexactly(_SIZES.size))
    return json.loads(await stream.readexactly(text)), await stream.readexactly(body)
