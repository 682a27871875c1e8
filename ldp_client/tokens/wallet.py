"""The wallet: tokens that are fetched ahead of need, and wait on the device until a batch shows one.

The issuer knows who asks, and when. So nothing about asking may tell when, or whether, the device answers a question.
The wallet asks at times of its own: when the client starts, and then about once in `every`, at a random moment. It
never asks because a report was made or is due. A token can be used from a random moment within `rest` after it came.
Asked for in one call are tokens for any of the collections; the issuer cannot tell for which.

What the issuer does learn: that this account asks, and how many tokens it has taken. The wallet replaces tokens that
were shown, so the number follows the number of reports. Whether a device reports never depends on its item.

A request is stored before it is sent, and a retry sends the same bytes: an issuer counts it once. A token is deleted
from the wallet before it is shown, so that no two batches get the same one; a process that ends at this moment loses
it. The file is tokens.sqlite, beside the ledger. It frees no budget, and a damaged one is replaced by an empty one.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_client.clock import Clock
from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, LdpError, Stopped, StorageError, Unavailable, WrongType
from ldp_client.ledger.stopping import StopFile
from ldp_client.tokens.blind import WORDS, Blinding, IssuerKey, finalise, token_request

if TYPE_CHECKING:
    from ldp_client.collection import Collection

__all__ = ["MOST_REQUESTS", "Ask", "NoTokenYet", "UnlinkableTokens", "Wallet"]

logger = logging.getLogger("ldp_client")

Ask = Callable[[Sequence[bytes]], Sequence[bytes]]
"""Takes token requests to the issuer, as the user who is logged in, and brings its answers back in the same order."""

MOST_REQUESTS = 16
"""How many tokens are asked for at once."""
_BUSY_SECONDS = 15.0
_TABLES = """
CREATE TABLE IF NOT EXISTS asked (id INTEGER PRIMARY KEY, collection_id BLOB NOT NULL, key_id BLOB NOT NULL,
    nonce BLOB NOT NULL, salt BLOB NOT NULL, factor BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY, collection_id BLOB NOT NULL, key_id BLOB NOT NULL,
    usable REAL NOT NULL, token BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS shown (collection_id BLOB PRIMARY KEY, tokens INTEGER NOT NULL, missed INTEGER NOT NULL)
    WITHOUT ROWID;
"""


class NoTokenYet(Unavailable):
    """The wallet has no token for this collection that may be used now. It fetches one at a time of its own."""


@dataclass(frozen=True)
class UnlinkableTokens:
    """How a device gets unlinkable tokens, and for which collections.

    `ask`          takes requests to the issuer through the app's own back end, and brings the answers back
    `keys`         the issuer's public keys that this app trusts, the one to use first: PEM files or PEM text. An issuer
                   that uses a key for one person alone could link that person's tokens, so the keys ship with the app
    `collections`  those that ask for unlinkable tokens
    `ahead`        how many tokens to hold for each collection with a schedule; for the others it is one in all
    `rest`         a new token may be used from a random moment within this time
    `every`        about how often the wallet looks whether tokens are missing
    """

    ask: Ask = field(repr=False)
    keys: Sequence[IssuerKey | str | Path | bytes]
    collections: Sequence[Collection] = field(repr=False)
    ahead: int = 2
    rest: str = "1 hour"
    every: str = "1 day"

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise WrongType("ask: give a function that takes requests to the issuer")
        if isinstance(self.keys, str | bytes) or not self.keys:
            raise InvalidSpec("keys: give a list of the issuer's public keys that this app trusts")
        if not 1 <= self.ahead <= MOST_REQUESTS:
            raise InvalidSpec(f"ahead: from 1 to {MOST_REQUESTS} tokens")
        object.__setattr__(self, "keys", tuple(IssuerKey.of(key) for key in self.keys))
        for name in ("rest", "every"):
            parse_duration(getattr(self, name), name)


class Wallet:
    """The tokens of one device. Safe for threads and processes: each step is a transaction with its own connection."""

    def __init__(
        self,
        settings: UnlinkableTokens,
        directory: Path,
        clock: Clock,
        coins: Callable[[int], Sequence[int]],
    ) -> None:
        self._ask = settings.ask
        self._keys = {key.id: key for key in settings.keys if isinstance(key, IssuerKey)}
        self._first = next(iter(self._keys.values()))
        self._collections = {collection.id: collection for collection in settings.collections}
        self._ahead = settings.ahead
        self._rest = parse_duration(settings.rest, "rest")
        self._every = parse_duration(settings.every, "every")
        self._path = directory / "tokens.sqlite"
        self._stop = StopFile(directory)
        self._clock = clock
        self._coins = coins

    def __contains__(self, collection_id: object) -> bool:
        return collection_id in self._collections

    def __repr__(self) -> str:
        return f"Wallet({str(self._path)!r})"

    # -- showing

    def take(self, collection_id: bytes) -> bytes:
        """Take a token out of the wallet, for one batch. Raise NoTokenYet if none may be used now."""
        now = self._clock.time()
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO shown VALUES (?, 0, 0)", (collection_id,))
            row = db.execute(
                # A moment that is further away than `rest` was drawn before the clock was set back.
                "SELECT id, token FROM tokens WHERE collection_id = ?1 AND (usable <= ?2 OR usable > ?2 + ?3) LIMIT 1",
                (collection_id, now, self._rest),
            ).fetchone()
            if row is None:
                db.execute("UPDATE shown SET missed = 1 WHERE collection_id = ?", (collection_id,))
            else:
                db.execute("DELETE FROM tokens WHERE id = ?", (row[0],))
                db.execute("UPDATE shown SET tokens = tokens + 1, missed = 0 WHERE collection_id = ?", (collection_id,))
        if row is None:
            raise NoTokenYet("no unlinkable token may be used yet: the report waits for one")
        return bytes(row[1])

    def held(self) -> int:
        """Return how many tokens wait in the wallet."""
        if not self._path.exists():
            return 0
        with self._writing() as db:
            return int(db.execute("SELECT count(*) FROM tokens").fetchone()[0])

    # -- fetching

    def fill(self) -> int:
        """Ask for what is missing, as often as needed; return how many tokens the wallet holds.

        Raise Stopped while the user has stopped reports: then nothing is asked for.
        """
        while True:
            self._stop.refuse()
            with self._writing() as db:
                self._tidy(db)
                self._prepare(db)
                rows = db.execute(f"SELECT * FROM asked ORDER BY id LIMIT {MOST_REQUESTS}").fetchall()  # noqa: S608
            if not rows:
                return self.held()
            self._fetch([(row[0], Blinding(*row[1:])) for row in rows])

    def fill_quietly(self) -> float:
        """Fill, for the sender's thread. Return when to do it again, at a different time on every device."""
        uniform = self._coins(1)[0] / 2.0**64
        try:
            self.fill()
        except LdpError as error:
            if not isinstance(error, Stopped):
                logger.info("ldp_client: tokens were not fetched: %s", error)
            return min(self._every, 3600) * (0.5 + uniform)
        return self._every * (0.5 + uniform)

    def _fetch(self, asked: list[tuple[int, Blinding]]) -> None:
        requests = [token_request(blinding, self._keys[blinding.key_id]) for _, blinding in asked]
        try:
            answers = [bytes(answer) for answer in self._ask(requests)]
        except Exception as error:  # the app's own code; its words may hold anything
            raise Unavailable(f"the app's way to the issuer failed: {type(error).__name__}") from None
        if len(answers) != len(requests):
            raise Unavailable(f"{len(requests)} tokens were asked for, and {len(answers)} answers came")
        made: list[tuple[int, Blinding, bytes]] = []
        failure: Unavailable | None = None
        for (number, blinding), answer in zip(asked, answers, strict=True):
            try:
                made.append((number, blinding, finalise(blinding, self._keys[blinding.key_id], answer)))
            except Unavailable as error:
                failure = error
        now = self._clock.time()
        with self._writing() as db:
            for number, blinding, token in made:
                usable = now + self._rest * (self._coins(1)[0] / 2.0**64)
                if db.execute("DELETE FROM asked WHERE id = ? AND nonce = ?", (number, blinding.nonce)).rowcount:
                    row = (blinding.collection_id, blinding.key_id, usable, token)  # else another process was faster
                    db.execute("INSERT INTO tokens (collection_id, key_id, usable, token) VALUES (?, ?, ?, ?)", row)
        if failure is not None:
            raise failure

    def _tidy(self, db: sqlite3.Connection) -> None:
        """Forget what belongs to a key that is not trusted any more, or to a question that is over or gone."""
        now = self._clock.time()
        open_ones = {one.id for one in self._collections.values() if now < one.closes}
        for table in ("asked", "tokens"):
            known = db.execute(f"SELECT DISTINCT collection_id, key_id FROM {table}").fetchall()  # noqa: S608 - our names
            for name, key in known:
                if name not in open_ones or key not in self._keys:
                    db.execute(f"DELETE FROM {table} WHERE collection_id = ? AND key_id = ?", (name, key))  # noqa: S608

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Begin a token for each that is missing."""
        now = self._clock.time()
        for collection in self._collections.values():
            if now >= collection.closes:
                continue
            held = "SELECT count(*) FROM {} WHERE collection_id = ?"
            (waiting,) = db.execute(held.format("tokens"), (collection.id,)).fetchone()
            (asked,) = db.execute(held.format("asked"), (collection.id,)).fetchone()
            for _ in range(self._target(db, collection) - waiting - asked):
                begun = Blinding.draw(collection.id, self._first, self._coins(WORDS))
                db.execute("INSERT INTO asked VALUES (NULL, ?, ?, ?, ?, ?)", begun)

    def _target(self, db: sqlite3.Connection, collection: Collection) -> int:
        if collection.schedule is not None:
            return self._ahead
        row = db.execute("SELECT tokens, missed FROM shown WHERE collection_id = ?", (collection.id,)).fetchone()
        return 1 if row is None or row[0] == 0 or row[1] else 0

    # -- the file

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            db = self._open()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            finally:
                db.close()  # what was not committed is rolled back
        except sqlite3.Error as error:
            raise StorageError(f"{self._path}: {error}; no token was shown or fetched") from None

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror}; no token was shown or fetched") from None
        db = self._connect()
        try:
            db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            db.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
                raise
            logger.warning("ldp_client: %s is damaged: its tokens are lost, others will be fetched", self._path)
            self._path.unlink()
            db = self._connect()
            db.executescript(_TABLES)
        return db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        db.execute("PRAGMA secure_delete = ON")  # a hiding factor that is used up links nothing any more
        return db
