"""One connection to the ledger's file, and what SQLite needs to be told when the file is opened."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_client.ledger import schema
from ldp_client.ledger.forks import leak
from ldp_client.ledger.schema import State

__all__ = ["Link", "configure", "connect", "file_at", "local_path", "prepare"]

_BUSY_SECONDS = 10.0
_CHECKPOINT_PAGES = 2000
"""Length of the write-ahead log (two megabytes, some 600 reports) at which a commit copies it into the file. From then
on SQLite writes over the log from its beginning, and a commit takes half as long as one that makes the log longer."""
_PAGE_BYTES = 1024  # a report touches four pages: the fewer bytes, the shorter its commit


class Link:
    """One connection with its lock, and the state as its last transaction left it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.file: tuple[int, int] | None = None
        self.known: State | None = None
        self._version = 0

    def state(self, db: sqlite3.Connection) -> State:
        """Return the state as this transaction finds it.

        If no other connection has committed since, it is the state that the last transaction left. A transaction that
        does not end well leaves none.
        """
        known, self.known = self.known, None
        (version,) = db.execute("PRAGMA data_version").fetchone()  # changes when another connection commits
        if known is not None and version == self._version:
            return known.settled()
        self._version = version
        return schema.read_state(db)

    def drop(self) -> None:
        self.known = None
        db, self.db = self.db, None
        if db is not None:
            db.close()

    def leak(self) -> None:
        """In a forked child: even closing the connection would touch the parent's files."""
        if self.db is not None:
            leak(self.db)


def connect(path: Path) -> sqlite3.Connection:
    """Connect to the file; nothing is read yet."""
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def configure(db: sqlite3.Connection) -> None:
    """Set what holds for this connection: a commit is on the disk when it returns."""
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")


def prepare(db: sqlite3.Connection) -> None:
    """Set up a new file: small pages and the write-ahead log."""
    db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    for attempt in range(50):  # SQLite does not itself wait for another process that does the same
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if schema.code(error) != sqlite3.SQLITE_BUSY or attempt == 49:
                raise
            time.sleep(0.02)


def file_at(path: str) -> tuple[int, int] | None:
    """Return which file lies at `path`."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path's own stat is slower, and this is part of every report
    except OSError:
        return None
    return found.st_dev, found.st_ino


def local_path(given: str | Path, name: str) -> Path:
    """Return the path that an app means, `~` expanded."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:
        raise InvalidSpec(f"{name}: no home directory is known for {str(given)!r}; write the whole path") from None
    if not str(given) or "\0" in str(given):
        raise InvalidSpec(f"{name}: not a path")
    return path
