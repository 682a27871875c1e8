"""Inserts a group of submissions with a few statements.

Every call into SQLite releases the interpreter lock and must take it back from the event loop, which is busy exactly
when there is much to insert. One call for each submission would wait for the lock a thousand times. So submissions of
one collection and one length (a run) are inserted by one statement: their ids, digests and payloads are three long byte
strings, and the statement cuts piece i out of each with `substr`, with i from the table `counter`.

`INSERT OR IGNORE` skips ids that are there already. If as many rows were inserted as were sent, all were new, which is
the common case. If not, the run is rolled back and inserted again one by one, which gives each its own outcome.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Sequence

from ldp_server.store.log import AppendOutcome, Submission
from ldp_server.store.schema import COUNTER, SEQUENCE_BITS

__all__ = ["insert_run", "runs"]

_BATCHES = """
INSERT OR IGNORE INTO batches (position, collection, batch_id, digest, payload)
SELECT ?1 + i, ?2, substr(?3, 1 + 16 * i, 16), substr(?4, 1 + 16 * i, 16), substr(?5, 1 + ?6 * i, ?6)
FROM counter WHERE i < ?7
"""
_TOKENS = """
INSERT OR IGNORE INTO used_tokens (collection, token_id, batch_id)
SELECT ?1, substr(?2, 1 + 16 * i, 16), substr(?3, 1 + 16 * i, 16) FROM counter WHERE i < ?4
"""


def runs(submissions: Sequence[Submission]) -> list[list[int]]:
    """The submissions' places, split into runs of one collection and length, all with tokens or all without."""
    found: dict[tuple[int, int, bool], list[int]] = {}
    for place, one in enumerate(submissions):
        key = (one.collection, len(one.payload), one.token_id is not None)
        found.setdefault(key, []).append(place)
    return [run[i : i + COUNTER] for run in found.values() for i in range(0, len(run), COUNTER)]


def insert_run(db: sqlite3.Connection, run: Sequence[Submission], sequence: int) -> tuple[list[AppendOutcome], int]:
    """Insert one run after `sequence`; return the outcomes and the last sequence taken."""
    if len(run) > 1:
        db.execute("SAVEPOINT run")
        if _insert_all(db, run, sequence):
            db.execute("RELEASE run")
            return [AppendOutcome.STORED] * len(run), sequence + len(run)
        db.execute("ROLLBACK TO run")
        db.execute("RELEASE run")
    outcomes = []
    for one in run:
        outcome = _insert_one(db, one, sequence + 1)
        sequence += outcome is AppendOutcome.STORED
        outcomes.append(outcome)
    return outcomes, sequence


def _insert_all(db: sqlite3.Connection, run: Sequence[Submission], sequence: int) -> bool:
    collection, count, length = run[0].collection, len(run), len(run[0].payload)
    ids = b"".join([one.batch_id for one in run])
    if run[0].token_id is not None:
        tokens = b"".join([one.token_id or b"" for one in run])
        if db.execute(_TOKENS, (collection, tokens, ids, count)).rowcount != count:
            return False
    digests = b"".join([one.digest for one in run])
    payloads = b"".join([one.payload for one in run])
    base = (collection << SEQUENCE_BITS) + sequence + 1
    values = (base, collection, ids, digests, payloads, length, count)
    return db.execute(_BATCHES, values).rowcount == count


def _insert_one(db: sqlite3.Connection, one: Submission, sequence: int) -> AppendOutcome:
    held = db.execute(
        "SELECT digest FROM batches WHERE collection = ? AND batch_id = ?", (one.collection, one.batch_id)
    ).fetchone()
    if held is not None:
        return AppendOutcome.DUPLICATE if hmac.compare_digest(held[0], one.digest) else AppendOutcome.CONFLICT
    if one.token_id is not None:
        values = (one.collection, one.token_id, one.batch_id)
        if db.execute("INSERT OR IGNORE INTO used_tokens VALUES (?, ?, ?)", values).rowcount != 1:
            return AppendOutcome.TOKEN_USED
    db.execute(
        "INSERT INTO batches (position, collection, batch_id, digest, payload) VALUES (?, ?, ?, ?, ?)",
        (
            (one.collection << SEQUENCE_BITS) + sequence,
            one.collection,
            one.batch_id,
            one.digest,
            one.payload,
        ),
    )
    return AppendOutcome.STORED
