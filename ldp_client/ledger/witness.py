"""The witness: a small file beside the ledger that remembers how far the ledger had come.

A ledger alone cannot tell that it is an old copy of itself. So every transaction that changes the ledger adds one to
its `generation`, and after the commit the new number is written to the witness. A ledger whose generation is below its
witness's has been rolled back.

- The witness is written after the commit. A crash in between leaves it one behind, which is harmless.
- It has 64 records of 64 bytes. Generation g goes to record g % 64, with a check sum of its own. A torn write costs one
  record, and the largest valid one counts. Two processes that write in the wrong order write different records, so the
  largest number stays without any lock.
- It is not flushed to the disk for every report, which would double the cost of a report. The operating system flushes
  it within about half a minute. A crash of the app loses nothing; a power cut may leave the witness a little behind.

It cannot detect that both files were restored together (a whole backup, a snapshot of a virtual machine). Where the
platform has a place that backups do not reach, keep the witness there: `LedgerFiles(directory, witness=...)`.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ldp_client.errors import StorageError

__all__ = ["LedgerProgress", "Witness", "WitnessDamaged"]

_RECORDS = 64
_SIZE = 64
_LAYOUT = struct.Struct("<8s16sQ")
_MAGIC = b"hearsay1"
_WRITING = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class WitnessDamaged(StorageError):
    """The witness file exists, but no record in it is valid."""


class LedgerProgress(NamedTuple):
    """How far a ledger has come."""

    instance: bytes  # 16 random bytes, made with the ledger
    generation: int


def _encode(progress: LedgerProgress) -> bytes:
    body = _LAYOUT.pack(_MAGIC, progress.instance, progress.generation)
    return (body + blake2b(body, digest_size=16).digest()).ljust(_SIZE, b"\0")


def _decode(record: bytes) -> LedgerProgress | None:
    body, check = record[: _LAYOUT.size], record[_LAYOUT.size : _LAYOUT.size + 16]
    if len(record) != _SIZE or blake2b(body, digest_size=16).digest() != check:
        return None
    magic, instance, generation = _LAYOUT.unpack(body)
    return LedgerProgress(instance, generation) if magic == _MAGIC else None


class Witness:
    """The witness file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)  # converting a Path for every report would cost time

    def read(self) -> LedgerProgress | None:
        """Return the furthest valid record; None if there is no file."""
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

    def write(self, progress: LedgerProgress, *, durable: bool = False) -> None:
        """Write one record; the other records stay."""
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

    def replace(self, progress: LedgerProgress) -> None:
        """Replace all records by this one, for a reset."""
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            fresh.unlink(missing_ok=True)
            Witness(fresh).write(progress, durable=True)
            fresh.replace(self.path)
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}") from None
