"""How many tokens each account got, in one SQLite file: a signature leaves after its row is on the disk.

A row is a hash of the account's name, under a key that lies in the same file, the period, and a hash of the request. A
request that was signed before is found by its hash, so a retry gets its answer again and is not counted again. The
hash of a request says nothing about the token: the request hides it perfectly.

Periods are counted from 1970, all of one length. Rows are kept for this period and the one before. Counts start anew
with each period, so around the change of a period an account may get twice as many within a short time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from ldp_server.store.errors import Corrupt, refuse_empty, replaced, translated
from ldp_server.store.schema import transaction
from ldp_server.store.wal import refuse_damaged

__all__ = ["Accounts", "OverLimit", "look_at_counts"]

_APPLICATION_ID = 0x48534953  # "HSIS"
_TABLES = (
    "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL) STRICT",
    "CREATE TABLE issued (account BLOB NOT NULL, period INTEGER NOT NULL, request BLOB NOT NULL, "
    "PRIMARY KEY (account, period, request)) STRICT, WITHOUT ROWID",
    "CREATE INDEX issued_by_period ON issued (period)",
)
_HASH_BYTES = 16
_BUSY_SECONDS = 15.0
LOSS = "all accounts begin anew"
_SLICE = 10_000
"""How many old rows go in one transaction."""


def look_at_counts(db: sqlite3.Connection, path: Path) -> tuple[int, int | None]:
    """Check the file's structure; return how many tokens it counts, and the newest period."""
    refuse_empty(path, LOSS)
    with replaced(path, LOSS), translated(path):
        if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise Corrupt(f"{path} is not a file of an issuer")
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise Corrupt(f"{path} is damaged: {found}")
        issued, newest = db.execute("SELECT count(*), max(period) FROM issued").fetchone()
    return int(issued), newest


class OverLimit(Exception):
    """The account has had its tokens of this period. More after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__("over the limit")
        self.seconds = seconds


class Accounts:
    """The counts of one issuer. Used by one thread at a time."""

    def __init__(self, path: Path, tokens: int, period: int, clock: Callable[[], float]) -> None:
        """`tokens` is how many an account gets in each `period` seconds."""
        self._path = path
        self._most = tokens
        self._period = period
        self._clock = clock
        refuse_empty(path, LOSS)
        refuse_damaged(path)
        with translated(path):
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            with replaced(path, LOSS):
                self._key = self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> bytes:
        with translated(self._path):
            self._path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA secure_delete = ON")
            application = self._db.execute("PRAGMA application_id").fetchone()[0]
            tables = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if application != _APPLICATION_ID and (application or tables):
                raise Corrupt(f"{self._path} is not a file of an issuer")
            if not tables:
                with transaction(self._db):
                    for statement in _TABLES:
                        self._db.execute(statement)
                    self._db.execute("INSERT INTO secret VALUES (1, ?)", (secrets.token_bytes(32),))
                    self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            return bytes(self._db.execute("SELECT key FROM secret").fetchone()[0])

    def grant(self, account: str, requests: Sequence[bytes]) -> int:
        """Count the requests that are new; return how many are. Raises `OverLimit` and counts nothing beyond it."""
        name = hmac.new(self._key, account.encode(), hashlib.sha256).digest()[:_HASH_BYTES]
        now = self._clock()
        period = int(now // self._period)
        hashes = {hashlib.sha256(request).digest()[:_HASH_BYTES] for request in requests}
        with translated(self._path), transaction(self._db):
            known = {
                row[0]
                for row in self._db.execute(
                    "SELECT request FROM issued WHERE account = ? AND period IN (?, ?)", (name, period, period - 1)
                )
            }
            new = hashes - known
            held = "SELECT count(*) FROM issued WHERE account = ? AND period = ?"
            (had,) = self._db.execute(held, (name, period)).fetchone()
            if new and had + len(new) > self._most:
                raise OverLimit((period + 1) * self._period - now)
            self._db.executemany("INSERT INTO issued VALUES (?, ?, ?)", [(name, period, one) for one in new])
        return len(new)

    def sweep(self) -> bool:
        """Delete a slice of what is older than the last period; False when nothing is left."""
        oldest = int(self._clock() // self._period) - 1
        with translated(self._path), transaction(self._db):
            gone = self._db.execute(
                "DELETE FROM issued WHERE (account, period, request) IN "
                "(SELECT account, period, request FROM issued WHERE period < ? LIMIT ?)",
                (oldest, _SLICE),
            ).rowcount
        return gone > 0

    def close(self) -> None:
        self._db.close()
