"""Every trouble with a file becomes the error that tells an operator what to do."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from ldp_server.store.errors import Corrupt, DiskFull, InUse, ReadOnly, StorageError, translated


def raised(error):
    with pytest.raises(StorageError) as caught, translated(Path("/d/log.db")):
        raise error
    assert caught.value.__cause__ is error
    assert "/d/log.db" in str(caught.value)
    return caught.value


def of_sqlite(code, name=None):
    error = sqlite3.OperationalError("words that say nothing")
    error.sqlite_errorcode = code
    if name:
        error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, DiskFull, "no space left"),
        (sqlite3.SQLITE_READONLY, ReadOnly, "cannot be written"),
        (sqlite3.SQLITE_PERM, ReadOnly, "cannot be written"),
        (sqlite3.SQLITE_AUTH, ReadOnly, "cannot be written"),
        (sqlite3.SQLITE_READONLY | 3 << 8, ReadOnly, "cannot be written"),
        (sqlite3.SQLITE_CORRUPT, Corrupt, "damaged"),
        (sqlite3.SQLITE_NOTADB, Corrupt, "damaged"),
        (sqlite3.SQLITE_FORMAT, Corrupt, "damaged"),
        (sqlite3.SQLITE_CANTOPEN, StorageError, "cannot be opened"),
        (sqlite3.SQLITE_BUSY, InUse, "being written by another process"),
        (sqlite3.SQLITE_LOCKED, InUse, "being written by another process"),
        (sqlite3.SQLITE_BUSY | 2 << 8, InUse, "being written by another process"),
        (sqlite3.SQLITE_IOERR, StorageError, "reported"),
    ],
)
def test_what_sqlite_says(code, kind, words):
    found = raised(of_sqlite(code))
    assert type(found) is kind
    assert words in str(found)


def test_an_error_of_sqlite_s_is_named():
    assert str(raised(of_sqlite(sqlite3.SQLITE_IOERR, "SQLITE_IOERR"))).endswith("reported SQLITE_IOERR")
    assert str(raised(sqlite3.InterfaceError("no code"))).endswith("reported InterfaceError")


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, DiskFull, "no space left"),
        (errno.EDQUOT, DiskFull, "no space left"),
        (errno.EFBIG, DiskFull, "no space left"),
        (errno.EROFS, ReadOnly, "read-only disk"),
        (errno.EACCES, ReadOnly, "cannot be written"),
        (errno.EIO, StorageError, "Input/output error"),
    ],
)
def test_what_the_system_says(number, kind, words):
    import os

    found = raised(OSError(number, os.strerror(number)))
    assert type(found) is kind
    assert words in str(found)


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError), translated(Path("/d")):
        raise ZeroDivisionError
    with translated(Path("/d")):
        pass
