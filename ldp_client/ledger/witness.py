"""The ledger's witness: a small file beside it that remembers how far the ledger had come.

A ledger alone cannot tell that it is an old copy of itself. So every transaction that changes it counts up a
`generation`, and once the transaction is durable the same number goes into this file. A ledger whose generation is
below its witness's has been rolled back.

- Written after the commit: a crash in between leaves the witness one behind, which accuses nobody.
- 64 records of 64 bytes, record `generation % 64`, each with its own check sum: a torn write costs one record and the
  largest valid one counts. Two processes that write in the wrong order overwrite different records, so the largest
  number stays without any lock.
- Not flushed to the disk on every report (that would double a report's cost): the operating system does it within
  about half a minute. A crash of the app loses nothing; a power cut may leave the witness a little behind.

What it cannot see: both files restored together (a whole backup, a virtual machine's snapshot). Keep the witness where
backups do not reach, with `Client(witness=...)`, where the platform has such a place.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ldp_client.errors import StorageError

__all__ = ["Progress", "Witness", "WitnessDamaged"]

_RECORDS = 64
_SIZE = 64
_LAYOUT = struct.Struct("<8s16sQ")
_MAGIC = b"hearsay1"
_WRITING = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class WitnessDamaged(StorageError):
    """The witness file is there, but no record in it is valid."""


class Progress(NamedTuple):
    """How far a ledger had come."""

    instance: bytes  # 16 random bytes, made with the ledger
    generation: int


def _encode(progress: Progress) -> bytes:
    body = _LAYOUT.pack(_MAGIC, progress.instance, progress.generation)
    return (body + blake2b(body, digest_size=16).digest()).ljust(_SIZE, b"\0")


def _decode(record: bytes) -> Progress | None:
    body, check = record[: _LAYOUT.size], record[_LAYOUT.size : _LAYOUT.size + 16]
    if len(record) != _SIZE or blake2b(body, digest_size=16).digest() != check:
        return None
    magic, instance, generation = _LAYOUT.unpack(body)
    return Progress(instance, generation) if magic == _MAGIC else None


class Witness:
    """The witness file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)  # a Path would be worked out anew for every report

    def read(self) -> Progress | None:
        """Return the furthest valid record, or None if there is no file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from None
        found = [_decode(data[start : start + _SIZE]) for start in range(0, min(len(data), _RECORDS * _SIZE), _SIZE)]
        valid = [progress for progress in found if progress is not None]
        if not valid:
            raise WitnessDamaged(f"{self.path}: no valid record")
        return max(valid, key=lambda progress: progress.generation)

    def write(self, progress: Progress, *, durable: bool = False) -> None:
        """Remember `progress`; leaves the other records alone."""
        try:
            handle = os.open(self._name, _WRITING, 0o600)
            try:
                os.lseek(handle, (progress.generation % _RECORDS) * _SIZE, os.SEEK_SET)
                os.write(handle, _encode(progress))
                if durable:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from None

    def replace(self, progress: Progress) -> None:
        """Forget all records and remember `progress` alone: for a reset."""
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            fresh.unlink(missing_ok=True)
            Witness(fresh).write(progress, durable=True)
            fresh.replace(self.path)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from None
