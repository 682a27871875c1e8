"""Arrays of uuids in PostgreSQL's binary form, made from 16-byte strings and back without an object for each."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

__all__ = ["Uuids", "register", "uuids", "uuids_of"]

_UUID, _UUIDS = 2950, 2951
_LENGTH = struct.pack("!i", 16)
_STEP = 20
_HEADER = struct.Struct("!iiIii")
_NULL = struct.pack("!i", -1)
_EMPTY = struct.pack("!iiI", 0, 0, _UUID)
_PLAIN = struct.pack("!ii", 1, 0)


class Uuids(bytes):
    """An array of uuids as it goes over the wire."""


class _UuidsDumper(Dumper):
    format = Format.BINARY
    oid = _UUIDS

    def dump(self, obj: Uuids) -> bytes:
        return bytes(obj)


def register(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Let a connection take `Uuids` as parameters."""
    connection.adapters.register_dumper(Uuids, _UuidsDumper)


def uuids(ids: Sequence[bytes]) -> Uuids:
    """Put 16-byte strings together to an array; an empty one becomes NULL."""
    if not ids:
        return Uuids(_EMPTY)
    if all(ids):
        return Uuids(_LENGTH.join([_HEADER.pack(1, 0, _UUID, len(ids), 1), *ids]))
    elements = [_LENGTH + one if one else _NULL for one in ids]
    return Uuids(_HEADER.pack(1, 1, _UUID, len(ids), 1) + b"".join(elements))


def uuids_of(data: bytes) -> list[bytes]:
    """The 16-byte strings of an array, as `array_send` gives it; NULL becomes an empty one."""
    if data[:8] != _PLAIN:
        return list(_with_nulls(data)) if data[:4] != _EMPTY[:4] else []
    return [data[start : start + 16] for start in range(_HEADER.size + 4, len(data), _STEP)]


def _with_nulls(data: bytes) -> Iterator[bytes]:
    start = _HEADER.size
    while start < len(data):
        is_null = data[start : start + 4] == _NULL
        yield b"" if is_null else data[start + 4 : start + 20]
        start += 4 if is_null else _STEP
