"""What is moved: small pieces, in an order that both stores share, each with a digest over everything in it.

    COLLECTIONS  all their rows                         BLOCK    one block of a period, with its batches and its tie
    PERIODS      all their rows                         RECENT   the batches of a period that are in no block
    TOKENS       used tokens of a collection, in order  UNITS    counted sealed units of a collection, in order
    COUNTS       a part of a period's folded counts     ACCESS   analysts' tokens, and the salt of their hashes
    VOLUNTEERS   sealed records of volunteers, by collection and name; when they came is not moved

The numbers of collections and periods, the blocks and their ties stay what they are. So a checkpoint of counts fits the
new store as it fitted the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = ["RECORDS", "SLICE", "START", "Batches", "Key", "Piece", "PieceKind", "Tally", "digest_of"]

SLICE = 50_000
"""Used tokens or sealed units in a piece."""
RECORDS = 1_000
"""Volunteers' records in a piece."""

Value = None | int | str | bytes | Sequence["Value"]


class PieceKind(IntEnum):
    """Kinds of pieces, in the order in which they are moved."""

    COLLECTIONS = 1
    PERIODS = 2
    BLOCK = 3
    RECENT = 4
    TOKENS = 5
    UNITS = 6
    COUNTS = 7
    ACCESS = 8
    VOLUNTEERS = 9


class Key(NamedTuple):
    """The place of a piece. Keys grow from piece to piece."""

    kind: int
    owner: int
    """The number of a period's record or, of tokens and units, of a collection."""
    part: int


START = Key(0, 0, 0)


class Piece(NamedTuple):
    """A piece of a store."""

    key: Key
    values: tuple[Value, ...]

    def __repr__(self) -> str:
        return f"Piece({PieceKind(self.key.kind).name}, {self.key.owner}, {self.key.part})"

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return sum(_size(value) for value in self.values)


class Batches(NamedTuple):
    """Batches of a period, in the order of their ids."""

    ids: list[bytes]
    digests: list[bytes]
    payloads: list[bytes]
    tokens: list[bytes]
    """Of recent batches: the token of each, or empty."""


Tally = dict[str, int]
"""How much of everything a store holds, as its database counts it."""


def digest_of(piece: Piece) -> bytes:
    """Return the SHA-256 of a piece. Two pieces with another value, or another order, have another one."""
    found = hashlib.sha256(b"%d %d %d;" % piece.key)
    for value in piece.values:
        _feed(found, value)
    return found.digest()


def _feed(found: hashlib._Hash, value: Value) -> None:
    if value is None:
        found.update(b"n")
    elif isinstance(value, int):
        found.update(b"i%d;" % value)
    elif isinstance(value, str):
        text = value.encode()
        found.update(b"s%d:" % len(text) + text)
    elif isinstance(value, bytes):
        found.update(b"b%d:" % len(value))
        found.update(value)
    elif value and all(type(one) is bytes for one in value):
        found.update(b"l%d:" % len(value) + b",".join([b"%d" % length for length in _lengths(value)]) + b":")
        found.update(b"".join(value))  # type: ignore[arg-type]  # all are bytes
    else:
        found.update(b"t%d:" % len(value))
        for one in value:
            _feed(found, one)


def _lengths(values: Iterable[object]) -> list[int]:
    """The lengths of the values; one number if all are the same."""
    lengths = [len(one) for one in values]  # type: ignore[arg-type]  # all are bytes
    return lengths[:1] if len(set(lengths)) == 1 else lengths


def _size(value: Value) -> int:
    if isinstance(value, (bytes, str)):
        return len(value)
    if value is None or isinstance(value, int):
        return 8
    if isinstance(value, list) and value and type(value[0]) is bytes:
        return sum(map(len, value))  # all of a list are alike; a row is a tuple
    return sum(_size(one) for one in value)
