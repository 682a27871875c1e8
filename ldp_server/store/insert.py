"""Group commit's inner step: many batches into the tables with a handful of statements.

Every call into SQLite gives up the interpreter lock and has to win it back from the event loop, which is busy
exactly when there is much to insert: one call a batch would wait a thousand times for the lock. So batches of one
collection and one length go in with *one* statement: their ids, digests and payloads are three long byte strings,
and the statement cuts the i-th piece out of each with `substr`, i running over the table `counter`.

`INSERT OR IGNORE` leaves out ids that are there already. If as many rows went in as were sent, all were new: the
common case is over. If not, the run is rolled back and goes in again one by one, and each batch is told its fate.
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


def runs(batches: Sequence[Submission]) -> list[list[int]]:
    """The batches' places, split into runs of one collection and length, all with tokens or all without."""
    found: dict[tuple[int, int, bool], list[int]] = {}
    for place, batch in enumerate(batches):
        key = (batch.collection, len(batch.payload), batch.token_id is not None)
        found.setdefault(key, []).append(place)
    return [run[i : i + COUNTER] for run in found.values() for i in range(0, len(run), COUNTER)]


def insert_run(db: sqlite3.Connection, run: Sequence[Submission], sequence: int) -> tuple[list[AppendOutcome], int]:
    """Insert one run after `sequence`; return each batch's outcome and the last sequence taken."""
    if len(run) > 1:
        db.execute("SAVEPOINT run")
        if _insert_all(db, run, sequence):
            db.execute("RELEASE run")
            return [AppendOutcome.STORED] * len(run), sequence + len(run)
        db.execute("ROLLBACK TO run")
        db.execute("RELEASE run")
    outcomes = []
    for batch in run:
        outcome = _insert_one(db, batch, sequence + 1)
        sequence += outcome is AppendOutcome.STORED
        outcomes.append(outcome)
    return outcomes, sequence


def _insert_all(db: sqlite3.Connection, run: Sequence[Submission], sequence: int) -> bool:
    collection, count, length = run[0].collection, len(run), len(run[0].payload)
    ids = b"".join([batch.batch_id for batch in run])
    if run[0].token_id is not None:
        tokens = b"".join([batch.token_id or b"" for batch in run])
        if db.execute(_TOKENS, (collection, tokens, ids, count)).rowcount != count:
            return False
    digests = b"".join([batch.digest for batch in run])
    payloads = b"".join([batch.payload for batch in run])
    base = (collection << SEQUENCE_BITS) + sequence + 1
    values = (base, collection, ids, digests, payloads, length, count)
    return db.execute(_BATCHES, values).rowcount == count


def _insert_one(db: sqlite3.Connection, batch: Submission, sequence: int) -> AppendOutcome:
    held = db.execute(
        "SELECT digest FROM batches WHERE collection = ? AND batch_id = ?", (batch.collection, batch.batch_id)
    ).fetchone()
    if held is not None:
        return AppendOutcome.DUPLICATE if hmac.compare_digest(held[0], batch.digest) else AppendOutcome.CONFLICT
    if batch.token_id is not None:
        values = (batch.collection, batch.token_id, batch.batch_id)
        if db.execute("INSERT OR IGNORE INTO used_tokens VALUES (?, ?, ?)", values).rowcount != 1:
            return AppendOutcome.TOKEN_USED
    db.execute(
        "INSERT INTO batches (position, collection, batch_id, digest, payload) VALUES (?, ?, ?, ?, ?)",
        (
            (batch.collection << SEQUENCE_BITS) + sequence,
            batch.collection,
            batch.batch_id,
            batch.digest,
            batch.payload,
        ),
    )
    return AppendOutcome.STORED
