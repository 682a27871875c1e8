"""Units that wait: each is kept once, and nothing is kept of the order in which they came.

A unit is *recent* at first: a row in the order of its digest. When a group has `BLOCK` recent units, one transaction
moves them into a block, a single row with all of them in the order of their digests. What lasts until the release is
which block a unit is in. The bytes of a page show in which order its rows were written, so recent rows are written
again, in the order of their digests, when the store is laid anew.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence

from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.relay.store.schema import MOST_AT_ONCE
from ldp_server.store.log import AppendOutcome, Submission

__all__ = ["BLOCK", "add", "finish", "forget_recent", "lay_anew"]

BLOCK = 1024
DIGEST = DIGEST_BYTES

_RECENT = f"""
INSERT OR IGNORE INTO recent (collection, digest, held_in, sealed)
SELECT ?1, substr(?2, 1 + {DIGEST} * i, {DIGEST}), ?3, substr(?4, 1 + ?5 * i, ?5)
FROM counter WHERE i < ?6 AND NOT EXISTS
    (SELECT 1 FROM seen WHERE collection = ?1 AND digest = substr(?2, 1 + {DIGEST} * i, {DIGEST}))
"""  # noqa: S608 - a number


def add(db: sqlite3.Connection, group: int, run: Sequence[Submission]) -> tuple[list[AppendOutcome], int]:
    """Insert submissions of one group; return the outcome of each, and how many units were new.

    A submission of which at least one unit is new is `STORED`.
    """
    units = _units(run)
    if len(run) > 1:
        db.execute("SAVEPOINT run")
        if _insert(db, run[0].collection, group, units) == len(units):
            db.execute("RELEASE run")
            return [AppendOutcome.STORED] * len(run), len(units)
        db.execute("ROLLBACK TO run")
        db.execute("RELEASE run")
    new = [_insert(db, one.collection, group, _units([one])) for one in run]
    return [AppendOutcome.STORED if count else AppendOutcome.DUPLICATE for count in new], sum(new)


def _units(run: Sequence[Submission]) -> list[tuple[bytes, bytes]]:
    """Digests and units, in the order of the digests."""
    found = []
    for one in run:
        count = len(one.digest) // DIGEST
        width = len(one.payload) // count
        found += [
            (one.digest[DIGEST * i : DIGEST * i + DIGEST], one.payload[width * i : width * i + width])
            for i in range(count)
        ]
    return sorted(found)


def _insert(db: sqlite3.Connection, collection: int, group: int, units: Sequence[tuple[bytes, bytes]]) -> int:
    """Insert what is not known yet; return how many were new."""
    new = 0
    for start in range(0, len(units), MOST_AT_ONCE):
        part = units[start : start + MOST_AT_ONCE]
        digests, sealed = b"".join([one[0] for one in part]), b"".join([one[1] for one in part])
        values = (collection, digests, group, sealed, len(part[0][1]), len(part))
        new += db.execute(_RECENT, values).rowcount
    return new


def finish(db: sqlite3.Connection, collection: int, group: int, round_: int) -> int:
    """Move a group's recent units into a block; return about how many bytes that writes."""
    rows = db.execute(
        "SELECT digest, sealed FROM recent WHERE collection = ? AND held_in = ? ORDER BY digest", (collection, group)
    ).fetchall()
    payload = b"".join([row[1] for row in rows])
    row = (secrets.randbits(62), group, len(rows), payload)
    db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", row)
    forget_recent(db, collection, group, round_)
    return len(payload) + 64 * len(rows)


def forget_recent(db: sqlite3.Connection, collection: int, group: int, round_: int) -> None:
    """Drop a group's recent units, and remember their digests."""
    db.execute(
        "INSERT OR IGNORE INTO seen SELECT collection, digest, ?3 FROM recent "
        "WHERE collection = ?1 AND held_in = ?2 ORDER BY digest",
        (collection, group, round_),
    )
    db.execute("DELETE FROM recent WHERE collection = ? AND held_in = ?", (collection, group))


def lay_anew(db: sqlite3.Connection) -> None:
    """Write all recent units again, in the order of their digests."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS laid (collection, digest, held_in, sealed)")
    db.execute("INSERT INTO temp.laid SELECT * FROM main.recent")
    db.execute("DELETE FROM main.recent")
    db.execute("INSERT INTO main.recent SELECT * FROM temp.laid ORDER BY collection, digest")
    db.execute("DELETE FROM temp.laid")
