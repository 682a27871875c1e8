"""The witness: a small file beside the ledger that remembers how far the ledger had come.

A ledger alone cannot tell that it is an old copy of itself. So every transaction that changes the ledger adds one to
its `generation`, and after the commit the new number is written to the witness. A ledger whose generation is below its
witness's, or below what this process has seen, has been rolled back.

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
from ldp_client.ledger.schema import Damaged, Recent, State

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


_NOTHING_SEEN = LedgerProgress(b"", 0)


class Witness:
    """The witness file at `path`, and the furthest progress of the ledger that this process has seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)  # converting a Path for every report would cost time
        self.seen = _NOTHING_SEEN
        self.recent: Recent | None = None
        """`State.recent` as of the last charge that is on the disk."""
        self.late = False
        """The file is behind `seen`: it must be written before the next charge."""

    # -- the file

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
        body = _LAYOUT.pack(_MAGIC, progress.instance, progress.generation)
        record = (body + blake2b(body, digest_size=16).digest()).ljust(_SIZE, b"\0")
        try:
            handle = os.open(self._name, _WRITING, 0o600)
            try:
                os.lseek(handle, (progress.generation % _RECORDS) * _SIZE, os.SEEK_SET)
                os.write(handle, record)
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

    # -- comparing

    def check(self, state: State, seen: LedgerProgress, *, alone: bool) -> None:
        """Refuse a state that is behind `seen`. `alone`: no other process can commit meanwhile."""
        if state.instance == seen.instance:
            if state.generation < seen.generation:
                raise Damaged("it is an older copy of itself")
        elif seen.instance:  # another process has reset the ledger
            self.recent = None
            if alone:
                self.compare(state, self.read())

    def compare(self, state: State, progress: LedgerProgress | None) -> None:
        """Refuse a state that does not fit what the file says."""
        if progress is None:
            if state.generation:
                raise Damaged("its witness is missing")
        elif progress.instance != state.instance:
            raise Damaged("its witness belongs to another ledger")
        elif state.generation < progress.generation:
            raise Damaged("it is an older copy of itself")

    # -- following the ledger

    def begin(self, state: State, progress: LedgerProgress | None, *, writes: bool) -> None:
        """Take note of a ledger that was opened and found sound. Only a writer brings a late witness up to date."""
        current = LedgerProgress(state.instance, state.generation)
        self._see(current)
        if progress is not None and progress.generation >= current.generation:
            return
        if writes:
            self.write(current, durable=True)
        else:
            self.late = True

    def catch_up(self) -> None:
        """Write a late witness, before a charge. If that fails, nothing may be charged."""
        self.write(self.seen, durable=True)
        self.late = False

    def after_charge(self, state: State) -> None:
        """Take note of a commit. If the file cannot be written the charge stands, and the next one has to wait."""
        self.recent = state.recent  # only now: time must not depend on what is not on the disk
        progress = LedgerProgress(state.instance, state.generation)
        self._see(progress)
        try:
            self.write(progress, durable=progress.generation == 1)
        except StorageError:
            self.late = True

    def forget(self) -> None:
        """Begin anew, after a reset."""
        self.seen = _NOTHING_SEEN

    def _see(self, progress: LedgerProgress) -> None:
        """Keep the furthest progress. Threads may report theirs in any order."""
        if progress.instance != self.seen.instance:
            self.recent = None
            self.seen = progress
        elif progress.generation > self.seen.generation:
            self.seen = progress


def _decode(record: bytes) -> LedgerProgress | None:
    body, check = record[: _LAYOUT.size], record[_LAYOUT.size : _LAYOUT.size + 16]
    if len(record) != _SIZE or blake2b(body, digest_size=16).digest() != check:
        return None
    magic, instance, generation = _LAYOUT.unpack(body)
    return LedgerProgress(instance, generation) if magic == _MAGIC else None
