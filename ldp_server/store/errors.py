"""What can be wrong with a data directory, as errors that tell an operator what to do.

    StorageError (ldp_client.errors)
    |-- DiskFull         no space left: what was acknowledged is kept, nothing new is taken until there is room
    |-- ReadOnly         the disk or the file may not be written
    |-- Corrupt          the file is damaged, or is not a Hearsay database
    |-- WrongVersion     written by another version of the schema
    |-- InUse            another process holds the data directory, or a write lock on the file
    `-- Removed          the file was removed or replaced while it was in use

`FINAL` are those that trying again does not mend. For all others the writer thread tries again (commit.py).

`translated` turns what SQLite raised into one of them. Nothing above the store sees a `sqlite3.Error`.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldp_client.errors import StorageError

__all__ = [
    "FINAL",
    "Corrupt",
    "DiskFull",
    "InUse",
    "ReadOnly",
    "Removed",
    "StorageError",
    "WrongVersion",
    "refuse_empty",
    "replaced",
    "translated",
]


class DiskFull(StorageError):
    """No space left. The store works again once there is room."""


class ReadOnly(StorageError):
    """The directory, the file or the disk refuses writes."""


class Corrupt(StorageError):
    """The file is damaged, or is not a Hearsay database: restore a backup."""


class WrongVersion(StorageError):
    """The schema is not one this version can read or migrate."""


class InUse(StorageError):
    """Another process holds the data directory, or a write lock on the file."""


class Removed(StorageError):
    """The file that was opened is no longer the one of this name: what is written to it would be lost."""


FINAL = (Corrupt, WrongVersion, Removed)
"""Errors that trying again does not mend."""


def _translate(error: sqlite3.Error, path: Path) -> StorageError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return DiskFull(f"no space left for {path}: free some, nothing acknowledged was lost")
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return ReadOnly(f"{path} cannot be written: check the disk, the owner and the mode")
    flipped = code is None and "decode to UTF-8" in str(error)  # a text in the database; the driver gives it no code
    if flipped or primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}:
        return Corrupt(f"{path} is damaged or not a Hearsay database: restore a backup (docs/operating.md)")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{path} cannot be opened: check that the directory exists and who owns it")
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return InUse(f"{path} is being written by another process")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StorageError(f"{path}: the database reported {name}")


def refuse_empty(path: Path, loss: str) -> None:
    """Raise `Corrupt` if a database has no bytes. SQLite would take it for a new one. `loss` says what is lost."""
    with translated(path):
        if path.is_file() and not path.stat().st_size:
            raise Corrupt(f"{path} has no bytes: it was cut off. Put the file back, or remove it to go on: {loss}")


@contextmanager
def replaced(path: Path, loss: str) -> Iterator[None]:
    """Of a file that has no backup, say that it is damaged and what is lost with it."""
    try:
        yield
    except Corrupt as error:
        if not isinstance(error.__cause__, sqlite3.Error):
            raise
        raise Corrupt(f"{path} is damaged: keep it, move it away, and start again: {loss}") from error


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise a `StorageError` in place of any `sqlite3.Error` or `OSError` of the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:  # a text in the database whose bits flipped
        raise Corrupt(f"{path} is damaged: restore a backup (docs/operating.md)") from error
    except PermissionError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise DiskFull(f"no space left for {path}: free some, nothing acknowledged was lost") from error
        if error.errno == errno.EROFS:
            raise ReadOnly(f"{path} is on a read-only disk") from error
        raise StorageError(f"{path}: {error.strerror}") from error
