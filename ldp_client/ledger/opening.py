"""Opening the ledger's file: make it if it may be new, and check everything before it is trusted."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ldp_client.errors import StorageError
from ldp_client.ledger import connection, schema
from ldp_client.ledger.connection import Link, file_at
from ldp_client.ledger.course import Course
from ldp_client.ledger.schema import SCHEMA_VERSION, Damaged, State
from ldp_client.ledger.witness import LedgerProgress

__all__ = ["Opening"]


class _NotMade(Exception):
    """There is no ledger yet, and a reader makes none."""


class Opening:
    """Opens connections to the ledger at `path`."""

    def __init__(self, path: Path, course: Course) -> None:
        self._path = path
        self._name = str(path)  # converting a Path for every report would cost time
        self._course = course
        self._verified = False

    def forget(self) -> None:
        """Check everything again at the next opening, after a reset."""
        self._course.forget()
        self._verified = False

    def open_to_read(self, link: Link) -> sqlite3.Connection | None:
        """Return the link's connection; None if there is no ledger yet. Makes and changes no file."""
        try:
            return self.open(link, writes=False)
        except _NotMade:
            return None

    def open(self, link: Link, *, writes: bool = True) -> sqlite3.Connection:
        """Return the link's connection, to the file that lies at the path now."""
        if link.db is not None:
            if file_at(self._name) == link.file:
                return link.db
            link.drop()  # the file was replaced or removed: look at what is there now
            self._verified = False
        self._ensure_file(writes=writes)
        file = file_at(self._name)
        db = connection.connect(self._path)
        try:
            connection.configure(db)
            self._ensure_tables(db, writes=writes)
            self._believe(db, writes=writes)
        except UnicodeDecodeError:  # sqlite3 cannot decode its own message about a damaged schema
            db.close()
            raise Damaged("it is damaged") from None
        except BaseException:
            db.close()
            raise
        link.db, link.file = db, file
        return db

    def _ensure_file(self, *, writes: bool) -> None:
        try:
            if writes:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._path.exists():
                return
            self._nothing_charged("its file is missing")
            if not writes:
                raise _NotMade
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))  # SQLite's other files take over its mode
        except OSError as error:
            raise StorageError(f"{self._path.parent}: {error.strerror}; nothing was charged or stored") from None

    def _ensure_tables(self, db: sqlite3.Connection, *, writes: bool) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not writes:
            self._check_empty(db)
            raise _NotMade
        if version == 0:
            connection.prepare(db)
            db.execute("BEGIN IMMEDIATE")
            try:
                version = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been first
                if version == 0:
                    self._create(db)
                    version = SCHEMA_VERSION
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        if version != SCHEMA_VERSION:
            raise StorageError(f"{self._path}: made by another version of this library (its schema is {version})")

    def _create(self, db: sqlite3.Connection) -> None:
        self._check_empty(db)
        state = State(schema.new_instance(), 0, 0, 0, 0)
        schema.create(db, state)
        self._course.witness.replace(LedgerProgress(state.instance, 0))

    def _check_empty(self, db: sqlite3.Connection) -> None:
        self._nothing_charged("its file is empty")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StorageError(f"{self._path}: a database of something else; choose another directory")

    def _nothing_charged(self, otherwise: str) -> None:
        progress = self._course.witness.read()
        if progress is not None and progress.generation:
            raise Damaged(otherwise)

    def _believe(self, db: sqlite3.Connection, *, writes: bool) -> None:
        """Check everything before the ledger is trusted."""
        progress, seen = self._course.witness.read(), self._course.seen  # before the state, which is never behind them
        db.execute("BEGIN")
        try:
            if not self._verified:
                schema.verify(db)
            state = schema.read_state(db)
            self._course.check(state, seen, alone=False)
        finally:
            db.execute("ROLLBACK")
        self._course.compare(state, progress)
        self._verified = True
        self._course.begin(state, progress, writes=writes)
