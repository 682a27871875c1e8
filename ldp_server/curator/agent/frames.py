"""What a curator and its key agent say to each other: frames of four bytes of length and a body.

    question   1 byte: 1 "which keys?"
               1 byte: 2 "open these" || collection id (32) || length of a record (4) || records
    answer     1 byte: 0 "no" || a reason as text
               1 byte: 1 "keys" || for each key its public half (32) || its end (8, seconds since 1970)
               1 byte: 2 "opened" || for each record its length (4; 0: not opened) || what it holds

Numbers are little-endian. A frame that is too long or has another form ends the connection.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from ldp_client.errors import ServerRefused
from ldp_client.protocol.sealing import CollectorKey

__all__ = [
    "KEYS",
    "MOST_BYTES",
    "NO",
    "OPEN",
    "OPENED",
    "Malformed",
    "keys_of",
    "opened_of",
    "read_frame",
    "records_of",
    "write_frame",
    "write_keys",
    "write_opened",
    "write_records",
]

NO, KEYS, OPENED = 0, 1, 2
OPEN = 2
MOST_BYTES = 4 << 20
"""Of a frame."""
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<32sI")
_KEY = struct.Struct("<32sQ")


class Malformed(ServerRefused):
    """A frame has another form."""

    def __init__(self) -> None:
        super().__init__("MALFORMED_FRAME", "what came over the agent's socket is no message of this version")


def write_frame(to: socket.socket, kind: int, body: bytes = b"") -> None:
    """Send one frame."""
    to.sendall(_LENGTH.pack(1 + len(body)) + bytes([kind]) + body)


def read_frame(of: socket.socket) -> tuple[int, bytes] | None:
    """Read one frame; None if the other side has ended before it. The length is judged before anything is read."""
    head = _exactly(of, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if not 1 <= length <= MOST_BYTES:
        raise Malformed
    body = _exactly(of, length)
    if body is None:
        raise Malformed
    return body[0], body[1:]


def _exactly(of: socket.socket, count: int) -> bytes | None:
    """Read so many bytes; None if there are none at all."""
    found = bytearray()
    while len(found) < count:
        piece = of.recv(min(count - len(found), 1 << 16))
        if not piece:
            if found:
                raise Malformed
            return None
        found += piece
    return bytes(found)


def write_records(collection_id: bytes, records: Sequence[bytes]) -> bytes:
    """The body of "open these"."""
    if len({len(one) for one in records}) != 1:
        raise AssertionError("records of a collection have one length")
    return _HEAD.pack(collection_id, len(records[0])) + b"".join(records)


def records_of(body: bytes) -> tuple[bytes, list[bytes]]:
    """The collection's id and the records of "open these"."""
    if len(body) < _HEAD.size:
        raise Malformed
    collection_id, length = _HEAD.unpack_from(body)
    rest = len(body) - _HEAD.size
    if length == 0 or rest == 0 or rest % length:
        raise Malformed
    return collection_id, [body[start : start + length] for start in range(_HEAD.size, len(body), length)]


def write_opened(texts: Sequence[bytes | None]) -> bytes:
    """The body of "opened"."""
    return b"".join(_LENGTH.pack(len(text or b"")) + (text or b"") for text in texts)


def opened_of(body: bytes, count: int) -> list[bytes | None]:
    """What so many records hold."""
    found: list[bytes | None] = []
    at = 0
    while at < len(body):
        if at + _LENGTH.size > len(body):
            raise Malformed
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        text = body[at : at + length]
        if len(text) != length:
            raise Malformed
        found.append(text or None)
        at += length
    if len(found) != count:
        raise Malformed
    return found


def write_keys(keys: Sequence[CollectorKey]) -> bytes:
    """The body of "keys"."""
    return b"".join(_KEY.pack(key.public_key, key.not_after) for key in keys)


def keys_of(body: bytes) -> list[CollectorKey]:
    """The public keys of an agent."""
    if len(body) % _KEY.size:
        raise Malformed
    return [CollectorKey(*found) for found in _KEY.iter_unpack(body)]
