"""The write-ahead log: moved into the database file beside the commits, and watched.

A second thread with a connection of its own moves most of it while the writer goes on committing. It uses PASSIVE
mode, which never waits for anybody. It can never catch up with a busy writer, and SQLite starts the log over only when
all of it was moved. So the writer itself moves the rest, in a short pass, once the log has grown past `limit` and the
thread has done most of the work. Without this thread some acknowledgements took a third of a second (measured).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from ldp_server.store.errors import Removed, StorageError, translated
from ldp_server.store.schema import BUSY_SECONDS, connect

__all__ = ["LogFiles", "WalMover"]

START = 16 << 20
LIMIT = 48 << 20
MOST = 3
"""How many times `limit` may have been written before the writer waits for the thread."""


class LogFiles:
    """The two files of an open connection. SQLite goes on writing to a file that was removed, and notices nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._opened = (_identity(self._path), _identity(self._wal))

    def check(self) -> None:
        """Raise `Removed` if log.db is another file than the one that was opened, `StorageError` if its -wal file is.

        A process that has a removed write-ahead log open can still move its contents to the database.
        """
        if _identity(self._path) != self._opened[0]:
            raise Removed(f"{self._path} was removed or replaced while it was in use: put it back, then start again")
        if _identity(self._wal) != self._opened[1]:
            raise StorageError(f"{self._wal} was removed or replaced while it was in use")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, and done at every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


class WalMover:
    """Counts how much was written, and moves it when it is time. The writer's thread calls `wrote` and `tend`."""

    def __init__(self, db: sqlite3.Connection, path: Path, start: int = START, limit: int = LIMIT) -> None:
        self._db = db
        self._path = path
        self._start = start
        self._limit = limit
        self._written = 0
        self._asked = threading.Event()
        self._moved = threading.Event()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def wrote(self, size: int) -> None:
        """Note that the write-ahead log grew by about `size` bytes."""
        self._written += size

    def tend(self) -> None:
        """After a commit: ask the thread for a pass, or move the rest, if it is time."""
        if self._busy and self._written >= MOST * self._limit:
            self._moved.wait()  # the thread gets no processor time: the file must not grow without bound
        if self._written < self._start or self._busy:
            return
        if self._written >= self._limit:
            self._finish()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="hearsay-wal", daemon=True)
            self._thread.start()
        self._busy = True
        self._moved.clear()
        self._asked.set()

    def empty(self) -> bool:
        """Move everything and cut the file off; False if it is in use, or too long to move at once."""
        if self._busy or self._written >= self._start:
            return False
        with translated(self._path):
            self._db.execute("PRAGMA busy_timeout = 0")  # the writer waits for no reader
            try:
                busy: int = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")
        if not busy:
            self._written = 0
        return not busy

    def _finish(self) -> None:
        with translated(self._path):
            busy, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # A reader of an old snapshot may keep the tail. Then the next try comes after as much again.
        self._written = 0 if not busy and pages == moved else self._start

    def _main(self) -> None:
        db = connect(self._path)
        try:
            while True:
                self._asked.wait()
                self._asked.clear()
                if self._closed:
                    return
                with contextlib.suppress(sqlite3.Error):  # the writer meets the same trouble, and reports it
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._written = max(self._written, self._limit)
                self._busy = False
                self._moved.set()
        finally:
            self._busy = False
            self._moved.set()
            db.close()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join()
