"""Analyst tokens: who may create collections and read estimates. Kept hashed, in a file of their own.

    hearsay_<8 bytes of id, hex>_<32 random bytes, base64url>

The secret has 256 bits of entropy, so a plain SHA-256 of it is as good as a slow hash. It is compared in constant
time, shown once when it is made, and never logged. The hash covers the id and a salt of this file, so that a row copied
from another server's file is worthless. The commands write the file while the server runs. The server looks the id up
at every call, so a revoked token stops working at once.

Among the tokens that are not revoked a name is unique. A revoked name may be given again: that is a new token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_server.store.errors import Corrupt, WrongVersion, translated
from ldp_server.store.schema import connect

__all__ = ["AccessFile", "AnalystToken"]

_FORM = re.compile(r"hearsay_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_APPLICATION_ID = 0x48534143  # "HSAC"
_VERSION = 1
_TABLES = (
    "CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL, "
    "created INTEGER NOT NULL, expires INTEGER, revoked INTEGER) STRICT",
    "CREATE UNIQUE INDEX names_in_use ON tokens (name) WHERE revoked IS NULL",
    "CREATE TABLE salt (salt BLOB NOT NULL) STRICT",
    "INSERT INTO salt VALUES (randomblob(16))",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, slots=True)
class AnalystToken:
    """What is known of a token; not its secret."""

    id: str
    name: str
    created: int
    expires: int | None
    revoked: int | None


class AccessFile:
    """The tokens of one data directory."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._db: sqlite3.Connection = connect(path)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise
        with translated(path):
            path.chmod(0o600)
            self._salt: bytes = self._db.execute("SELECT salt FROM salt").fetchone()[0]

    def _prepare(self) -> None:
        with translated(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                version = self._db.execute("PRAGMA user_version").fetchone()[0]
                application = self._db.execute("PRAGMA application_id").fetchone()[0]
                if version > _VERSION:
                    raise WrongVersion(f"{self._path} has version {version}, this program knows {_VERSION}")
                if version and application != _APPLICATION_ID:
                    raise Corrupt(f"{self._path} is not a file of analyst tokens")
                if version == 0:
                    for statement in _TABLES:
                        self._db.execute(statement)
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close()

    def create(self, name: str, lifetime: int | None = None) -> str:
        """Make a token and return it: the only time it can be seen."""
        if not re.fullmatch(r"[A-Za-z0-9._@-]{1,64}", name):
            raise InvalidSpec("a token's name has 1 to 64 letters, digits or . _ @ -")
        id_, secret = os.urandom(8).hex(), os.urandom(32)
        now = int(self._clock())
        row = (id_, name, self._hash(id_, secret), now, None if lifetime is None else now + lifetime)
        with translated(self._path):
            try:
                self._db.execute("INSERT INTO tokens (id, name, hash, created, expires) VALUES (?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise InvalidSpec(f"a token named {name} is in use: revoke it first, or take another name") from None
        return f"hearsay_{id_}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"

    def revoke(self, name: str) -> None:
        """Make a token worthless from now on. Revoking it again changes nothing."""
        with translated(self._path):
            self._db.execute(
                "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (int(self._clock()), name)
            )
            known = self._db.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone()
        if known is None:
            raise InvalidSpec(f"there is no token named {name}")

    def tokens(self) -> list[AnalystToken]:
        """Every token ever made, revoked ones included."""
        with translated(self._path):
            rows = self._db.execute("SELECT id, name, created, expires, revoked FROM tokens ORDER BY created, name")
            return [AnalystToken(*row) for row in rows]

    def verify(self, token: str) -> AnalystToken | None:
        """Whose token this is; None if it is not a valid one of this server."""
        form = _FORM.fullmatch(token)
        id_, text = form.groups() if form else ("", "A" * 43)
        secret = base64.urlsafe_b64decode(text + "=")
        try:
            with self._lock:
                row = self._db.execute(
                    "SELECT id, name, created, expires, revoked, hash FROM tokens WHERE id = ?", (id_,)
                ).fetchone()
        except (sqlite3.Error, UnicodeDecodeError):
            return None
        right = hmac.compare_digest(self._hash(id_, secret), bytes(32) if row is None else row[5])
        if row is None or not right:
            return None
        found = AnalystToken(*row[:5])
        expired = found.expires is not None and self._clock() >= found.expires
        return None if expired or found.revoked is not None else found

    def _hash(self, id_: str, secret: bytes) -> bytes:
        return hashlib.sha256(tags.ANALYST_TOKEN + self._salt + id_.encode() + secret).digest()
