"""Inserts a group of submissions with a few statements.

Every call into SQLite releases the interpreter lock and must take it back from the event loop, which is busy exactly
when there is much to insert. One call for each submission would wait for the lock a thousand times. So submissions of
one period and one length (a run) are inserted by one statement: their ids, digests and payloads are three long byte
strings, and the statement cuts piece i out of each with `substr`, with i from the table `counter`.

`INSERT OR IGNORE` skips ids that are there already. If as many rows were inserted as were sent, all were new, which is
the common case. If not, the run is rolled back and inserted again one by one, which gives each its own outcome.

Of sealed reports, the digest of each unit is stored in the transaction of the batch that holds its report. A relay may
send a unit again in another batch, after a failure or on purpose. Then its digest is here, and its report is not
counted again. The digests of a collection stay until it is compacted or deleted. They are written in their own order,
so that a transaction touches each page of their table once.
"""

from __future__ import annotations

import hmac
import secrets
import sqlite3
from collections.abc import Iterator, Sequence

from ldp_client.protocol.sealing import DIGEST_BYTES
from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.schema import COUNTER, SEQUENCE_BITS

__all__ = ["counted_units", "enter_units", "insert_run", "runs"]

_PLACES = (1 << 39) - 1
LARGE = 1024
"""From this length on, a run's batches lie side by side at one random place. Each at a place of its own would touch a
page for every batch (measured: 2.5 times the CPU). So large batches show, until they are laid anew (blocks.py), which
of them were written together."""

_RECENT = f"""
INSERT OR IGNORE INTO recent (place, collection, batch_id, digest, token_id, payload)
SELECT ?1 + coalesce(?8 + i, random() & {_PLACES}), ?2, substr(?3, 1 + 16 * i, 16), substr(?4, 1 + 16 * i, 16),
substr(?9, 1 + 16 * i, 16), substr(?5, 1 + ?6 * i, ?6)
FROM counter WHERE i < ?7
AND NOT EXISTS (SELECT 1 FROM batches WHERE collection = ?2 AND batch_id = substr(?3, 1 + 16 * i, 16))
AND (?9 IS NULL OR NOT EXISTS
    (SELECT 1 FROM used_tokens WHERE collection = ?2 AND token_id = substr(?9, 1 + 16 * i, 16)))
"""  # noqa: S608 - a number

_COUNTED = (
    "SELECT substr(?2, 1 + ?4 * i, ?4) FROM counter WHERE i < ?3 AND EXISTS "
    "(SELECT 1 FROM counted_units WHERE collection = ?1 AND digest = substr(?2, 1 + ?4 * i, ?4))"
)
_ENTER = "INSERT INTO counted_units SELECT ?1, substr(?2, 1 + ?4 * i, ?4) FROM counter WHERE i < ?3"


def runs(submissions: Sequence[Submission]) -> list[list[int]]:
    """The submissions' places, split into runs of one period and length, all with tokens or all without.

    A run is in the order of its ids, so that its rows say nothing of the order in which they came.
    """
    found: dict[tuple[int, int, int, bool], list[int]] = {}
    for place, one in sorted(enumerate(submissions), key=lambda pair: pair[1].batch_id):
        key = (one.collection, one.period, len(one.payload), one.token_id is not None)
        found.setdefault(key, []).append(place)
    return [run[i : i + COUNTER] for run in found.values() for i in range(0, len(run), COUNTER)]


def insert_run(db: sqlite3.Connection, number: int, run: Sequence[Submission]) -> list[AppendOutcome]:
    """Insert one run among the recent batches of the period whose row has this number, and return the outcomes."""
    if len(run) > 1:
        db.execute("SAVEPOINT run")
        if _insert_all(db, number, run):
            db.execute("RELEASE run")
            return [AppendOutcome.STORED] * len(run)
        db.execute("ROLLBACK TO run")
        db.execute("RELEASE run")
    return [_insert_one(db, number, one) for one in run]


def _insert_all(db: sqlite3.Connection, number: int, run: Sequence[Submission]) -> bool:
    collection, count, length = run[0].collection, len(run), len(run[0].payload)
    tokens = None if run[0].token_id is None else b"".join([one.token_id or b"" for one in run])
    start = None if length < LARGE else secrets.randbits(38)
    values = (
        number << SEQUENCE_BITS,
        collection,
        b"".join([one.batch_id for one in run]),
        b"".join([one.digest for one in run]),
        b"".join([one.payload for one in run]),
        length,
        count,
        start,
        tokens,
    )
    return db.execute(_RECENT, values).rowcount == count


def _insert_one(db: sqlite3.Connection, number: int, one: Submission) -> AppendOutcome:
    for table, key in (("batches", "position"), ("recent", "place")):
        known = f"SELECT digest, {key} >> {SEQUENCE_BITS} FROM {table} WHERE collection = ? AND batch_id = ?"  # noqa: S608 - two names
        held = db.execute(known, (one.collection, one.batch_id)).fetchone()
        if held is not None:
            same = hmac.compare_digest(held[0], one.digest) and held[1] == number
            return AppendOutcome.DUPLICATE if same else AppendOutcome.CONFLICT
    if one.token_id is not None:
        for table in ("used_tokens", "recent"):
            used = f"SELECT 1 FROM {table} WHERE collection = ? AND token_id = ?"  # noqa: S608 - one of two names
            if db.execute(used, (one.collection, one.token_id)).fetchone():
                return AppendOutcome.TOKEN_USED
    while True:
        place = (number << SEQUENCE_BITS) + secrets.randbits(39)
        row = (place, one.collection, one.batch_id, one.digest, one.token_id, one.payload)
        if db.execute("INSERT OR IGNORE INTO recent VALUES (?, ?, ?, ?, ?, ?)", row).rowcount == 1:
            return AppendOutcome.STORED  # else the place was taken


def counted_units(db: sqlite3.Connection, collection: int, digests: Sequence[bytes]) -> set[bytes]:
    """Those of these digests whose units are in a batch of the collection already."""
    found: set[bytes] = set()
    for some in _chunks(sorted(digests)):
        found.update(row[0] for row in db.execute(_COUNTED, (collection, b"".join(some), len(some), DIGEST_BYTES)))
    return found


def enter_units(db: sqlite3.Connection, submissions: Sequence[Submission]) -> int:
    """Enter the units of submissions that are stored; return at most how many pages that touches."""
    entered = 0
    for collection in {one.collection for one in submissions if one.units}:
        joined = b"".join(one.units for one in submissions if one.collection == collection)
        digests = sorted(joined[start : start + DIGEST_BYTES] for start in range(0, len(joined), DIGEST_BYTES))
        for some in _chunks(digests):
            db.execute(_ENTER, (collection, b"".join(some), len(some), DIGEST_BYTES))
        entered += len(digests)
    return min(entered, db.execute("PRAGMA page_count").fetchone()[0]) if entered else 0


def _chunks(digests: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (digests[start : start + COUNTER] for start in range(0, len(digests), COUNTER))
