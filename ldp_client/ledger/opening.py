"""Opening the ledger's file: make it if it may be new, tell SQLite how to keep it, and check all of it.

A report passes through here only when the file is opened, or was replaced since (database.py).
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from ldp_client.errors import InvalidSpec, StorageError
from ldp_client.ledger import schema
from ldp_client.ledger.schema import SCHEMA_VERSION, Damaged, State
from ldp_client.ledger.witness import LedgerProgress, Witness

__all__ = ["NotMade", "Opening", "configure", "connect", "local_path", "prepare"]

_BUSY_SECONDS = 10.0
_CHECKPOINT_PAGES = 2000
"""Length of the write-ahead log (two megabytes, some 600 reports) at which a commit copies it into the file. From then
on SQLite writes over the log from its beginning, and a commit takes half as long as one that makes the log longer."""
_PAGE_BYTES = 1024  # a report touches four pages: the fewer bytes, the shorter its commit


class NotMade(Exception):
    """There is no ledger yet, and a reader makes none."""


class Opening:
    """Opens connections to the ledger at `path`."""

    def __init__(self, path: Path, witness: Witness) -> None:
        self._path = path
        self._witness = witness
        self.verified = False
        """This process has checked the whole file. False: the next opening does."""

    def connect(self, *, writes: bool = True) -> sqlite3.Connection:
        """Return a new connection to a ledger that was checked. Without `writes` nothing is made or changed."""
        db = connect(self._path)
        try:
            configure(db)
            self._ensure_tables(db, writes=writes)
            self._believe(db, writes=writes)
        except UnicodeDecodeError:  # sqlite3 cannot decode its own message about a damaged schema
            db.close()
            raise Damaged("it is damaged") from None
        except BaseException:
            db.close()
            raise
        return db

    def ensure_file(self, *, writes: bool) -> None:
        """Make an empty file if there is none and nothing was ever charged; NotMade without `writes`."""
        try:
            if writes:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._path.exists():
                return
            self._nothing_charged("its file is missing")
            if not writes:
                raise NotMade
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))  # SQLite's other files take over its mode
        except OSError as error:
            raise StorageError(f"{self._path.parent}: {error.strerror}; nothing was charged or stored") from None

    def _ensure_tables(self, db: sqlite3.Connection, *, writes: bool) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not writes:
            self._check_empty(db)
            raise NotMade
        if version == 0:
            prepare(db)
            db.execute("BEGIN IMMEDIATE")  # after an error `connect` closes the connection, and nothing was made
            version = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been first
            if version == 0:
                self._create(db)
                version = SCHEMA_VERSION
            db.execute("COMMIT")
        if version < SCHEMA_VERSION:
            version = schema.renew(db)
        if version != SCHEMA_VERSION:
            raise StorageError(f"{self._path}: made by another version of this library (its schema is {version})")

    def _create(self, db: sqlite3.Connection) -> None:
        self._check_empty(db)
        state = State(schema.new_instance(), 0, 0, 0, 0)
        schema.create(db, state)
        self._witness.replace(LedgerProgress(state.instance, 0))

    def _check_empty(self, db: sqlite3.Connection) -> None:
        self._nothing_charged("its file is empty")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StorageError(f"{self._path}: a database of something else; choose another directory")

    def _nothing_charged(self, otherwise: str) -> None:
        progress = self._witness.read()
        if progress is not None and progress.generation:
            raise Damaged(otherwise)

    def _believe(self, db: sqlite3.Connection, *, writes: bool) -> None:
        """Check everything before the ledger is trusted."""
        progress, seen = self._witness.read(), self._witness.seen  # before the state, which is never behind them
        db.execute("BEGIN")
        if not self.verified:
            schema.verify(db)
        state = schema.read_state(db)
        self._witness.check(state, seen, alone=False)
        db.execute("ROLLBACK")
        self._witness.compare(state, progress)
        self.verified = True
        self._witness.begin(state, progress, writes=writes)


def connect(path: Path) -> sqlite3.Connection:
    """Connect to the file; nothing is read yet. Any thread may use the connection, one at a time."""
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


def local_path(given: str | Path, name: str) -> Path:
    """Return the path that an app means, `~` expanded."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:
        raise InvalidSpec(f"{name}: no home directory is known for {str(given)!r}; write the whole path") from None
    if not str(given) or "\0" in str(given):
        raise InvalidSpec(f"{name}: not a path")
    return path
