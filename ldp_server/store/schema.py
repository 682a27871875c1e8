"""The tables of log.db, their version, and migration from older versions.

A batch is `recent` at first, at a random place. When a period of a collection has enough of them for a block, they move
to `batches` in the order of their ids (blocks.py). There a batch's rowid is `number of the period's row << 40 |
sequence`. So the batches of one period lie together, block after block, and "everything after position p" is one range
scan that needs no second index. Inside a block nothing follows the order of arrival.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ldp_server.store.errors import Corrupt, ReadOnly, WrongVersion, translated

__all__ = [
    "APPLICATION_ID", "PAGE", "SEQUENCE_BITS", "VERSION", "connect", "migrate", "open_log", "transaction", "version_of",
]  # fmt: skip

APPLICATION_ID = 0x48534C47  # "HSLG"
SEQUENCE_BITS = 40
BUSY_SECONDS = 15.0
PAGE = 8192
"""Bytes of a page. Measured: half the CPU of 4096 for blobs of 3 kB."""

_TABLES = """
CREATE TABLE collections (
    number            INTEGER PRIMARY KEY,
    id                BLOB NOT NULL UNIQUE,
    spec              BLOB NOT NULL,           -- public; kept after deletion, because it proves the id
    public            INTEGER NOT NULL,
    admission         TEXT NOT NULL,
    reports_per_token INTEGER NOT NULL,
    created           INTEGER NOT NULL,
    closed            INTEGER,                 -- closed by the operator
    deleted           INTEGER,                 -- deleted by the operator: the id cannot be used again
    compacted         INTEGER NOT NULL DEFAULT 0,  -- all its reports are counts
    oldest            INTEGER NOT NULL DEFAULT 0,  -- the first period of which it takes reports
    periods           INTEGER NOT NULL DEFAULT 0   -- how many rows it has in the next table
) STRICT;

CREATE TABLE periods (                         -- those that had a batch; one, of period 0, without a schedule
    number         INTEGER PRIMARY KEY,        -- random; that of the collection for period 0
    collection     INTEGER NOT NULL,
    period         INTEGER NOT NULL,
    folded         INTEGER NOT NULL DEFAULT 0, -- the last sequence whose reports are in the folded counts
    folded_batches INTEGER NOT NULL DEFAULT 0,
    folded_reports INTEGER NOT NULL DEFAULT 0,
    generation     INTEGER,                    -- which rows of `folded_state` count
    folded_digest  BLOB,                       -- of the folded counts (retention.py)
    dropped        INTEGER NOT NULL DEFAULT 0, -- the folded counts too
    tag            BLOB NOT NULL,              -- a check sum of the first three columns (catalog.py)
    UNIQUE (collection, period)
) STRICT;

CREATE TABLE batches (
    position   INTEGER PRIMARY KEY,            -- the number of the period's row << 40 | sequence
    collection INTEGER NOT NULL,
    batch_id   BLOB NOT NULL,
    digest     BLOB NOT NULL,                  -- the first 16 bytes of SHA-256(payload)
    payload    BLOB NOT NULL,
    UNIQUE (collection, batch_id)
) STRICT;

CREATE TABLE blocks (
    number     INTEGER NOT NULL,               -- of the period's row
    last       INTEGER NOT NULL,               -- the sequence of its last batch
    tie        BLOB NOT NULL,                  -- random: ties a checkpoint of counts to this very block
    bytes      INTEGER NOT NULL,               -- of the payloads of its batches
    PRIMARY KEY (number, last)
) STRICT, WITHOUT ROWID;

CREATE TABLE recent (                          -- batches that are in no block yet
    place      INTEGER PRIMARY KEY,            -- the number of the period's row << 40 | a random number
    collection INTEGER NOT NULL,
    batch_id   BLOB NOT NULL,
    digest     BLOB NOT NULL,
    token_id   BLOB,
    payload    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX recent_ids ON recent (collection, batch_id);
CREATE UNIQUE INDEX recent_tokens ON recent (collection, token_id) WHERE token_id IS NOT NULL;

CREATE TABLE used_tokens (                     -- of batches that are in a block
    collection INTEGER NOT NULL,
    token_id   BLOB NOT NULL,
    PRIMARY KEY (collection, token_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE counted_units (                   -- sealed units whose reports are in a batch
    collection INTEGER NOT NULL,
    digest     BLOB NOT NULL,                  -- the first 16 bytes of SHA-256(sealed unit)
    PRIMARY KEY (collection, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE folded_state (
    number     INTEGER NOT NULL,               -- of the period's row
    generation INTEGER NOT NULL,
    part       INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (number, generation, part)
) STRICT;

-- 0, 1, ... 4095: lets one statement insert a whole group of batches (insert.py)
CREATE TABLE counter (i INTEGER PRIMARY KEY) STRICT;
INSERT INTO counter WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 4095) SELECT i FROM c;
"""

COUNTER = 4096
"""How many rows `counter` has: the most batches one insert statement takes."""


def _run(script: str) -> Callable[[sqlite3.Connection], None]:
    def step(db: sqlite3.Connection) -> None:
        for statement in script.split(";\n"):
            if statement.strip():
                db.execute(statement)

    return step


def _refuse_arrivals(db: sqlite3.Connection) -> None:
    """Versions 1 and 2 kept batches in the order of their arrival."""
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recent'").fetchone():
        raise WrongVersion(
            "log.db is of an older version, which kept batches in the order of arrival: export its counts with the "
            "program that wrote it, and start with an empty directory"
        )


_PERIODS = """
CREATE TABLE periods (number INTEGER PRIMARY KEY, collection INTEGER NOT NULL, period INTEGER NOT NULL,
    folded INTEGER NOT NULL DEFAULT 0, folded_batches INTEGER NOT NULL DEFAULT 0,
    folded_reports INTEGER NOT NULL DEFAULT 0, generation INTEGER, folded_digest BLOB,
    dropped INTEGER NOT NULL DEFAULT 0, tag BLOB NOT NULL, UNIQUE (collection, period)) STRICT;
CREATE TABLE new_collections (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, spec BLOB NOT NULL,
    public INTEGER NOT NULL, admission TEXT NOT NULL, reports_per_token INTEGER NOT NULL, created INTEGER NOT NULL,
    closed INTEGER, deleted INTEGER, compacted INTEGER NOT NULL DEFAULT 0, oldest INTEGER NOT NULL DEFAULT 0,
    periods INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE new_blocks (number INTEGER NOT NULL, last INTEGER NOT NULL, tie BLOB NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (number, last)) STRICT, WITHOUT ROWID;
INSERT INTO new_collections SELECT number, id, spec, public, admission, reports_per_token, created, closed, deleted,
    generation IS NOT NULL, 0, 1 FROM collections;
INSERT INTO new_blocks SELECT collection, last, tie, coalesce((SELECT sum(length(payload)) FROM batches
    WHERE position > (b.collection << 40) + coalesce((SELECT max(last) FROM blocks a WHERE a.collection = b.collection
    AND a.last < b.last), 0) AND position <= (b.collection << 40) + b.last), 0) FROM blocks b;
DROP TABLE blocks;
DROP TABLE collections;
ALTER TABLE new_collections RENAME TO collections;
ALTER TABLE new_blocks RENAME TO blocks;
ALTER TABLE folded_state RENAME COLUMN collection TO number;
"""


def _into_periods(db: sqlite3.Connection) -> None:
    """Version 3 knew no periods. All reports of a collection become those of period 0, which means "not known"."""
    if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'periods'").fetchone():
        return
    rows = db.execute(
        "SELECT number, number, 0, folded, folded_batches, folded_reports, generation, folded_digest FROM collections"
    ).fetchall()
    _run(_PERIODS)(db)
    tagged = [(*row, hashlib.sha256(b"%d %d %d" % row[:3]).digest()[:8]) for row in rows]
    db.executemany(
        "INSERT INTO periods (number, collection, period, folded, folded_batches, folded_reports, generation, "
        "folded_digest, tag) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        tagged,
    )


def _from_version_4(db: sqlite3.Connection) -> None:
    """Version 4 knew no sealed reports, and one kind of token."""
    db.execute("UPDATE collections SET admission = 'linkable-token' WHERE admission = 'token'")
    db.execute(
        "CREATE TABLE IF NOT EXISTS counted_units (collection INTEGER NOT NULL, digest BLOB NOT NULL, "
        "PRIMARY KEY (collection, digest)) STRICT, WITHOUT ROWID"
    )


MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    0: _run(_TABLES),
    1: _refuse_arrivals,
    2: _refuse_arrivals,
    3: _into_periods,
    4: _from_version_4,
}
"""From each version to the next one; 0 is an empty file."""

VERSION = max(MIGRATIONS) + 1


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection with explicit transactions, usable from whichever one thread owns it."""
    with translated(path):
        if not read_only and path.exists() and not os.access(path, os.W_OK):  # SQLite would open it to read
            raise ReadOnly(f"{path} cannot be written: check the disk, the owner and the mode")
        mode = "ro" if read_only else "rwc"
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
            cached_statements=64,
        )
        db.execute("PRAGMA foreign_keys = OFF")
        return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Do the block in one durable transaction, or leave everything as it was."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def version_of(db: sqlite3.Connection, path: Path, newest: int = VERSION) -> int:
    """The file's schema version, 0 if it is empty; raises if it is not a Hearsay database or a newer one."""
    with translated(path):
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if ((application, version) != (0, 0) and application != APPLICATION_ID) or (version == 0 and not empty):
        raise Corrupt(f"{path} is not a Hearsay database")
    if version > newest:
        raise WrongVersion(f"{path} has schema version {version}, this program knows up to {newest}: use a newer one")
    return version


def migrate(db: sqlite3.Connection, path: Path, migrations: dict[int, Callable[[sqlite3.Connection], None]]) -> int:
    """Bring the file to the newest version, each step in one transaction; return the version it had."""
    newest = max(migrations) + 1
    found = version = version_of(db, path, newest)
    while version < newest:
        with translated(path), transaction(db):
            migrations[version](db)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {version + 1}")
        version += 1
    return found


def open_log(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open log.db in its durable mode: WAL, and an fsync for every commit."""
    db = connect(path, read_only=read_only)
    try:
        version = version_of(db, path)
        if read_only:
            if version != VERSION:
                raise WrongVersion(f"{path} has schema version {version}, this program reads {VERSION}")
            return db
        with translated(path):
            if version == 0:
                db.execute(f"PRAGMA page_size = {PAGE}")
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # done beside the commits, not in them (wal.py)
            db.execute("PRAGMA journal_size_limit = 67108864")
            db.execute("PRAGMA secure_delete = ON")  # dropped rows are overwritten
            db.execute("PRAGMA cache_size = -16384")
            db.execute("PRAGMA temp_store = MEMORY")  # rows that are laid anew (blocks.py) go into no other file
        migrate(db, path, MIGRATIONS)
    except BaseException:
        db.close()
        raise
    return db
