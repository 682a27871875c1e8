"""Analyst tokens: who may ask, create and manage, and until when. Kept hashed, in a file of their own.

    hearsay_<8 bytes of id, hex>_<32 random bytes, base64url>

The secret has 256 bits of entropy, so a plain SHA-256 of it is as good as a slow hash. It is compared in constant
time, shown once when it is made, and never logged. The hash covers the id and a salt of this file, so that a row copied
from another server's file is worthless. The commands write the file while the server runs. The server asks at
every call whether the file has changed, so a revoked token stops working at once.

Every token has a role and a day on which it expires. A role includes the ones before it: `ask`, `create`, `manage`.
Among the tokens in use a name is unique. The name of a revoked or expired token may be given again: that is a new
token. A *local* token is the one that a running server leaves in its data directory. It is short-lived and renewed
(service/operators/local_token.py).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_server.store.errors import Corrupt, WrongVersion, translated
from ldp_server.store.schema import connect

__all__ = ["LIFETIME", "LONGEST_LIFETIME", "ROLES", "AccessFile", "AnalystToken", "SteadyClock"]

ROLES = ("ask", "create", "manage")
"""What a token allows. Each role includes the ones before it."""
LIFETIME = 90 * 86_400
"""After how many seconds a token expires, unless its maker says otherwise."""
LONGEST_LIFETIME = 3_650 * 86_400
_FORM = re.compile(r"hearsay_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
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


class SteadyClock:
    """Wall-clock time that never runs back while this process lives, so that no expired token comes back to life.

    A clock that is set forward is followed while it is ahead.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._start = wall() - steady()

    def __call__(self) -> float:
        return max(self._wall(), self._start + self._steady())


@dataclass(frozen=True, slots=True)
class AnalystToken:
    """What is known of a token; not its secret."""

    id: str
    name: str
    role: str
    created: int
    expires: int
    revoked: int | None
    local: bool

    def state(self, now: float) -> str:
        """active, expired or revoked."""
        if self.revoked is not None and self.revoked < self.expires:
            return "revoked"
        return "expired" if self.revoked is not None or now >= self.expires else "active"

    def may(self, role: str) -> bool:
        """Whether the token's role includes another one."""
        return self.role in ROLES and ROLES.index(role) <= ROLES.index(self.role)


class AccessFile:
    """The tokens of one data directory."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self.clock = clock
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
            self._header = path.open("rb", buffering=0)

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
        with self._lock, translated(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

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

    def create(self, name: str, role: str = "ask", lifetime: int = LIFETIME) -> str:
        """Make a token and return it: the only time it can be seen."""
        if not re.fullmatch(r"[A-Za-z0-9._@-]{1,64}", name):
            raise InvalidSpec("a token's name has 1 to 64 letters, digits or . _ @ -")
        if role not in ROLES:
            raise InvalidSpec(f"a token's role is one of {', '.join(ROLES)}, not {role!r}")
        if not 0 < lifetime <= LONGEST_LIFETIME:
            raise InvalidSpec(f"a token lives for at most {LONGEST_LIFETIME // 86_400} days: give --expires less")
        return self._add(name, role, lifetime, local=False)

    def create_local(self, lifetime: int) -> str:
        """Make a token for the owner of the data directory, who may do everything. Forget local ones that expired."""
        with self._changing() as db:
            db.execute("DELETE FROM tokens WHERE local AND expires <= ?", (int(self.clock()),))
        return self._add(f"local-{os.urandom(4).hex()}", ROLES[-1], lifetime, local=True)

    def drop_local(self) -> None:
        """Make all local tokens worthless, when the server stops."""
        with self._changing() as db:
            db.execute("DELETE FROM tokens WHERE local")

    def _add(self, name: str, role: str, lifetime: int, *, local: bool) -> str:
        id_, secret, now = os.urandom(8).hex(), os.urandom(32), int(self.clock())
        row = (id_, name, role, now, now + lifetime, None, local, self._hash(id_, secret))
        with self._changing() as db:
            gone = "UPDATE tokens SET revoked = expires WHERE name = ? AND revoked IS NULL AND expires <= ?"
            db.execute(gone, (name, now))
            try:
                db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise InvalidSpec(f"a token named {name} is in use: revoke it first, or take another name") from None
        return f"hearsay_{id_}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"

    def revoke(self, name: str) -> None:
        """Make a token worthless from now on. Revoking it again changes nothing."""
        now = int(self.clock())
        with self._changing() as db:
            # What has expired stays expired: a revoked one is one that would still be valid.
            db.execute("UPDATE tokens SET revoked = min(?, expires) WHERE name = ? AND revoked IS NULL", (now, name))
            known = db.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone()
        if known is None:
            raise InvalidSpec(f"there is no token named {name}")

    def tokens(self) -> list[AnalystToken]:
        """Every token ever made, revoked ones included. Of local ones, those that were valid a moment ago."""
        with translated(self._path):
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, name")  # noqa: S608 - our columns
            return [_token(row) for row in rows]

    def find(self, token: str) -> AnalystToken | None:
        """Whose token this is, also if it is revoked or expired; None if its secret is not one of this file."""
        form = _FORM.fullmatch(token)
        id_, text = form.groups() if form else ("", "A" * 43)
        secret = base64.urlsafe_b64decode(text + "=")
        row = self._row(id_)
        right = hmac.compare_digest(self._hash(id_, secret), bytes(32) if row is None else row[-1])
        return _token(row[:-1]) if row is not None and right else None

    def verify(self, token: str) -> AnalystToken | None:
        """Whose token this is; None if it is not a valid one of this server at this time."""
        found = self.find(token)
        return found if found is not None and found.state(self.clock()) == "active" else None

    def again(self, token: AnalystToken) -> AnalystToken | None:
        """What is known of a token now; None if its row is gone."""
        row = self._row(token.id)
        return None if row is None else _token(row[:-1])

    def _row(self, id_: str) -> tuple[Any, ...] | None:
        try:
            with self._lock:
                row: tuple[Any, ...] | None = self._db.execute(_SELECT, (id_,)).fetchone()
                return row
        except (sqlite3.Error, UnicodeDecodeError):
            return None

    def _hash(self, id_: str, secret: bytes) -> bytes:
        return hashlib.sha256(tags.ANALYST_TOKEN + self._salt + id_.encode() + secret).digest()


def _token(row: tuple[Any, ...]) -> AnalystToken:
    return replace(AnalystToken(*row), local=bool(row[-1]))
