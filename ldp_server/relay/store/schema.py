"""The tables of relay.db."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ldp_server.store.errors import Corrupt, WrongVersion, translated
from ldp_server.store.schema import PAGE, connect

__all__ = ["MOST_AT_ONCE", "open_relay_log"]

_APPLICATION_ID = 0x4853524C  # "HSRL"
_VERSION = 1
_LATER = (
    "CREATE TABLE IF NOT EXISTS sealing_keys (id BLOB PRIMARY KEY) STRICT, WITHOUT ROWID",  # were on a signed list
)
"""Tables that files of earlier programs lack. Such a program does not mind them."""
MOST_AT_ONCE = 4096
"""How many rows `counter` has: the most units that one statement inserts."""

_TABLES = (
    """CREATE TABLE collections (
    number  INTEGER PRIMARY KEY,
    id      BLOB NOT NULL UNIQUE,
    spec    BLOB NOT NULL,
    short   INTEGER NOT NULL DEFAULT 0         -- how many rounds in a row ended with too few reports
    ) STRICT""",
    """CREATE TABLE groups (                   -- what was held together: at most a few rows for each collection
    number     INTEGER PRIMARY KEY,            -- random
    collection INTEGER NOT NULL,
    round      INTEGER NOT NULL,               -- the round after which it may go
    period     INTEGER NOT NULL                -- the period under which it goes
    ) STRICT""",
    """CREATE TABLE recent (                   -- units that are in no block yet
    collection INTEGER NOT NULL,
    digest     BLOB NOT NULL,                  -- the first 16 bytes of SHA-256(sealed)
    held_in    INTEGER NOT NULL,               -- the number of a group
    sealed     BLOB NOT NULL,
    PRIMARY KEY (collection, digest)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE blocks (
    number  INTEGER PRIMARY KEY,               -- random
    held_in INTEGER NOT NULL,
    units   INTEGER NOT NULL,
    payload BLOB NOT NULL                      -- its units in the order of their digests
    ) STRICT""",
    """CREATE TABLE seen (                     -- of units that are in a block, or have gone
    collection INTEGER NOT NULL,
    digest     BLOB NOT NULL,
    round      INTEGER NOT NULL,               -- after this round and some more the digest is forgotten
    PRIMARY KEY (collection, digest)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE released (                 -- batches that the collection server has not taken yet
    batch_id   BLOB PRIMARY KEY,               -- random
    collection INTEGER NOT NULL,
    period     INTEGER NOT NULL,
    units      INTEGER NOT NULL,
    payload    BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE trusted (                  -- the newest signed list
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    list_bytes BLOB NOT NULL,
    signer     BLOB NOT NULL,
    retired    BLOB NOT NULL,
    ids        BLOB NOT NULL
    ) STRICT""",
    "CREATE TABLE counter (i INTEGER PRIMARY KEY) STRICT",
    "INSERT INTO counter WITH RECURSIVE c(i) AS "
    "(SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 4095) SELECT i FROM c",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


def _version(db: sqlite3.Connection, path: Path) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = db.execute("PRAGMA application_id").fetchone()[0]
    empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if (application, empty) not in {(_APPLICATION_ID, False), (0, True)}:
        raise Corrupt(f"{path} is not a relay's database")
    if version > _VERSION:
        raise WrongVersion(f"{path} has schema version {version}, this program knows {_VERSION}: use a newer one")
    return version


def open_relay_log(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open relay.db in its durable mode; make its tables if the file is new."""
    db = connect(path, read_only=read_only)
    try:
        with translated(path):
            version = _version(db, path)
            if read_only:
                return db
            if version == 0:
                db.execute(f"PRAGMA page_size = {PAGE}")
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # done beside the commits, as in the collection server's log
            db.execute("PRAGMA journal_size_limit = 67108864")
            db.execute("PRAGMA secure_delete = ON")  # what has gone is overwritten
            db.execute("PRAGMA cache_size = -16384")
            db.execute("PRAGMA temp_store = MEMORY")
            if version == 0:
                db.execute("BEGIN IMMEDIATE")
                for statement in _TABLES:
                    db.execute(statement)
                db.execute("COMMIT")
            for statement in _LATER:
                db.execute(statement)
    except BaseException:
        db.close()
        raise
    return db
