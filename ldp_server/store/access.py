"""Analyst tokens in a file of their own, for the embedded store (interface/tokens.py says what a token is).

The commands write the file while the server runs. The server asks at every call whether the file has changed, so a
revoked token stops working at once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldp_server.store.errors import Corrupt, WrongVersion, translated
from ldp_server.store.interface.tokens import (
    LIFETIME,
    LONGEST_LIFETIME,
    ROLES,
    AccessTokens,
    AnalystToken,
    SteadyClock,
    TokenRow,
)
from ldp_server.store.schema import connect, transaction

__all__ = ["LIFETIME", "LONGEST_LIFETIME", "ROLES", "AccessFile", "AnalystToken", "SteadyClock", "count_tokens"]

_APPLICATION_ID = 0x48534143  # "HSAC"
_VERSION = 2
_TABLES = (
    "CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, created INTEGER NOT NULL, "
    "expires INTEGER NOT NULL, revoked INTEGER, local INTEGER NOT NULL, hash BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX names_in_use ON tokens (name) WHERE revoked IS NULL",
    "CREATE TABLE salt (salt BLOB NOT NULL) STRICT",
    "INSERT INTO salt VALUES (randomblob(16))",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_COLUMNS = "id, name, role, created, expires, revoked, local"
_SELECT = f"SELECT {_COLUMNS}, hash FROM tokens WHERE id = ?"  # noqa: S608 - our columns


class AccessFile(AccessTokens):
    """The tokens of one data directory."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self.clock = clock
        self._lock = threading.Lock()
        with _replaceable(path):
            self._db: sqlite3.Connection = connect(path)
            try:
                self._prepare()
                with translated(path):
                    path.chmod(0o600)
                    self._salt: bytes = self._db.execute("SELECT salt FROM salt").fetchone()[0]
                    self._header = path.open("rb", buffering=0)
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        with self._changing() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            application = db.execute("PRAGMA application_id").fetchone()[0]
            if version > _VERSION:
                raise WrongVersion(f"{self._path} has version {version}, this program knows {_VERSION}")
            if version and application != _APPLICATION_ID:
                raise Corrupt(f"{self._path} is not a file of analyst tokens")
            if 0 < version < _VERSION:
                raise WrongVersion(
                    f"{self._path} has version {version}, of an older program, and its tokens have no roles: "
                    "move the file away, start again, and make new tokens (ldp-server token create)"
                )
            if version == 0:
                for statement in _TABLES:
                    db.execute(statement)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction."""
        with self._lock, translated(self._path), transaction(self._db):
            yield self._db

    def close(self) -> None:
        self._db.close()
        self._header.close()  # last: closing a file ends the locks that SQLite has on it

    def changes(self) -> int | None:
        """A number that is another one after every change of the file by anybody; None if it cannot be told.

        It is SQLite's own count, in the header of the file. To read it takes a microsecond and waits for nobody, so the
        event loop may do it.
        """
        try:
            header = os.pread(self._header.fileno(), 10, 18)
        except OSError:
            return None
        by_journal = header[:2] == b"\1\1"  # with a write-ahead log, changes are not counted here
        return int.from_bytes(header[6:], "big") if by_journal and len(header) == 10 else None

    def create_local(self, lifetime: int) -> str:
        with self._changing() as db:
            db.execute("DELETE FROM tokens WHERE local AND expires <= ?", (int(self.clock()),))
        return self._add(f"local-{os.urandom(4).hex()}", ROLES[-1], lifetime, local=True)

    def drop_local(self) -> None:
        with self._changing() as db:
            db.execute("DELETE FROM tokens WHERE local")

    def _enter(self, row: TokenRow) -> bool:
        token = row.token
        values = (token.id, token.name, token.role, token.created, token.expires, None, token.local, row.hash)
        with self._changing() as db:
            gone = "UPDATE tokens SET revoked = expires WHERE name = ? AND revoked IS NULL AND expires <= ?"
            db.execute(gone, (token.name, token.created))
            try:
                db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            except sqlite3.IntegrityError:
                return False
        return True

    def _revoke(self, name: str, now: int) -> bool:
        with self._changing() as db:
            # What has expired stays expired: a revoked one is one that would still be valid.
            db.execute("UPDATE tokens SET revoked = min(?, expires) WHERE name = ? AND revoked IS NULL", (now, name))
            return db.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone() is not None

    def tokens(self) -> list[AnalystToken]:
        with translated(self._path):
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, name")  # noqa: S608 - our columns
            return [_token(row) for row in rows]

    def _row(self, id_: str) -> TokenRow | None:
        try:
            with self._lock:
                row: tuple[Any, ...] | None = self._db.execute(_SELECT, (id_,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        return None if row is None else TokenRow(_token(row[:-1]), row[-1])


def count_tokens(path: Path) -> int:
    """Look for damage in a file of tokens that may be in use; return how many it has."""
    with _replaceable(path), closing(connect(path, read_only=True)) as db, translated(path):
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise Corrupt(str(found))
        return int(db.execute("SELECT count(*) FROM tokens WHERE NOT local").fetchone()[0])


@contextmanager
def _replaceable(path: Path) -> Iterator[None]:
    """Say of a damaged file what to do: unlike the log, it can be made again."""
    try:
        yield
    except Corrupt as error:
        raise Corrupt(
            f"{path} is damaged or not a file of analyst tokens: move it away, start again, and make new tokens "
            "(ldp-server token create)"
        ) from error


def _token(row: tuple[Any, ...]) -> AnalystToken:
    return replace(AnalystToken(*row), local=bool(row[-1]))
