"""Sealed records in a data directory, for one collection server: DIR/volunteers.db."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.store.errors import Corrupt, WrongVersion, translated
from ldp_server.store.schema import connect, transaction
from ldp_server.volunteers import interface
from ldp_server.volunteers.interface import Given, SealedRecords, another_curator

__all__ = ["FILE", "KeptRecords"]

FILE = "volunteers.db"
LOCK = "volunteers.lock"
_PAUSE = 0.1
_APPLICATION_ID = 0x48535652  # "HSVR"
_VERSION = 1
_TABLES = (
    "CREATE TABLE records (collection_id BLOB NOT NULL, name BLOB NOT NULL, sealed BLOB NOT NULL, "
    "at INTEGER NOT NULL, used INTEGER, PRIMARY KEY (collection_id, name)) STRICT, WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


class KeptRecords(SealedRecords):
    """The sealed records in one data directory."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self._path, self._create = path, create
        if not create and not path.exists():
            raise InvalidSpec(f"{path} is not there: no volunteer's record was given to this server")
        self._lock = threading.Lock()
        with translated(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = connect(path)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self._create:
            raise Corrupt(f"{self._path} was truncated, or is no file of volunteers' records: restore a backup")
        if version == 0 and not self._db.execute("SELECT 1 FROM sqlite_schema").fetchone():
            with self._transaction():
                for statement in _TABLES:
                    self._db.execute(statement)
        elif self._db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise Corrupt(f"{self._path} holds no volunteers' records")
        elif version != _VERSION:
            raise WrongVersion(f"{self._path} has version {version}, and this program reads {_VERSION}")

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, translated(self._path), transaction(self._db):
            yield

    def give(self, collection_id: bytes, name: bytes, sealed: bytes, now: int) -> Given:
        with self._transaction():
            row = self._db.execute(
                "SELECT sealed FROM records WHERE collection_id = ? AND name = ?", (collection_id, name)
            ).fetchone()
            if row is None:
                self._db.execute("INSERT INTO records VALUES (?, ?, ?, ?, NULL)", (collection_id, name, sealed, now))
        return Given.KEPT if row is None or row[0] == sealed else Given.OTHER_RECORD

    def withdraw(self, collection_id: bytes, name: bytes) -> bool:
        key = (collection_id, name)
        with self._transaction():
            self._db.execute("DELETE FROM records WHERE collection_id = ? AND name = ? AND used IS NULL", key)
            left = self._db.execute("SELECT 1 FROM records WHERE collection_id = ? AND name = ?", key).fetchone()
        return left is None

    def take(self, collection_id: bytes, now: int) -> list[tuple[bytes, bytes]]:
        with self._transaction():
            self._db.execute(
                "UPDATE records SET used = ? WHERE collection_id = ? AND used IS NULL", (now, collection_id)
            )
            rows = self._db.execute(
                "SELECT name, sealed FROM records WHERE collection_id = ? ORDER BY name", (collection_id,)
            )
            return rows.fetchall()

    def fresh(self, collection_id: bytes) -> list[bytes]:
        with self._transaction():
            rows = self._db.execute(
                "SELECT name FROM records WHERE collection_id = ? AND used IS NULL", (collection_id,)
            )
            return [name for (name,) in rows]

    def used(self, collection_id: bytes) -> list[bytes]:
        with self._transaction():
            rows = self._db.execute(
                "SELECT name FROM records WHERE collection_id = ? AND used IS NOT NULL", (collection_id,)
            )
            return [name for (name,) in rows]

    @contextmanager
    def curating(self) -> Iterator[Callable[[], bool]]:
        """Hold a lock on a file beside the records. The system drops it if this process ends."""
        place = self._path.with_name(LOCK)
        with translated(place):
            handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _wait_for(handle, self._path)
            yield lambda: True
        finally:
            os.close(handle)

    def give_back(self, collection_id: bytes, names: Sequence[bytes]) -> None:
        with self._transaction():
            self._db.executemany(
                "UPDATE records SET used = NULL WHERE collection_id = ? AND name = ?",
                [(collection_id, name) for name in names],
            )

    def forget(self, collection_id: bytes) -> int:
        with self._transaction():
            self._db.execute("PRAGMA secure_delete = ON")
            return self._db.execute("DELETE FROM records WHERE collection_id = ?", (collection_id,)).rowcount


def _wait_for(handle: int, path: Path) -> None:
    ends = time.monotonic() + interface.CURATOR_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                raise another_curator(path) from None
            time.sleep(_PAUSE)
        else:
            return
