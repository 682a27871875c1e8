"""What the index of recent ids costs an append, and what other forms of it would.

Processor time of the PostgreSQL process that appends, which a busy machine changes less than a clock on the wall. Each
form has a database of its own, and they take turns. The last one has no index at all: it could not tell a batch that is
sent again, and is the bound of what a cheaper index could give.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psycopg

from benchmarks.row import Row, row
from ldp_server.private_postgres import PrivatePostgres
from ldp_server.store import Admission, NewCollection, ReportLog, Submission
from ldp_server.store.engines import open_store

__all__ = ["ids"]

_NO_KEY = "ALTER TABLE hearsay.recent_ids DROP CONSTRAINT recent_ids_pkey"
_NO_TOKENS = "DROP INDEX hearsay.recent_tokens"
FORMS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "without the index of tokens": (_NO_TOKENS,),
    "half-filled pages": ("ALTER INDEX hearsay.recent_ids_pkey SET (fillfactor = 50)",),
    "deduplicate_items off": ("ALTER INDEX hearsay.recent_ids_pkey SET (deduplicate_items = off)",),
    "the id alone as the key": (_NO_KEY, _NO_TOKENS, "ALTER TABLE hearsay.recent_ids ADD PRIMARY KEY (batch_id)"),
    "a hash index, which cannot be unique": (
        _NO_KEY,
        _NO_TOKENS,
        "CREATE INDEX ON hearsay.recent_ids USING hash (batch_id)",
    ),
    "no index at all": (_NO_KEY, _NO_TOKENS),
}
SHAPES = ((64, 150), (512, 40))
"""Batches of a group, and groups."""


def _prepared(server: PrivatePostgres, name: str, changes: tuple[str, ...], folder: Path) -> tuple[ReportLog, Path]:
    """A log in a database of this form, and where the system says how long its process has worked."""
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    store = open_store(server.address(name), folder)
    store.prepare()
    log = store.writer()
    with psycopg.connect(server.address(name), autocommit=True) as connection:
        for one in changes:
            connection.execute(one.encode())
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hearsay'"
        ).fetchall()
    return log, Path(f"/proc/{found[0][0]}/schedstat")


def _microseconds(log: ReportLog, worked: Path, group: int, groups: int) -> float:
    """Return the processor time of the server's process a batch."""
    number = log.add(NewCollection(os.urandom(32), b"benchmark", False, Admission(), 1)).number
    payload = os.urandom(4)
    digest = hashlib.sha256(payload).digest()[:16]
    before = 0
    for turn in range(groups + 2):
        if turn == 2:  # its plans are made, and its pages are there
            before = int(worked.read_text().split()[0])
        log.append([Submission(number, os.urandom(16), digest, payload) for _ in range(group)])
    return (int(worked.read_text().split()[0]) - before) / (group * groups) / 1000


def ids(
    server: PrivatePostgres, folder: Path, rounds: int, shapes: tuple[tuple[int, int], ...] = SHAPES
) -> Iterator[Row]:
    """All forms, in turns."""
    logs = [_prepared(server, f"ids{turn}", changes, folder) for turn, changes in enumerate(FORMS.values())]
    for group, groups in shapes:
        for log, worked in logs:
            _microseconds(log, worked, group, groups)  # the first round is not counted
        rows = [[_microseconds(*one, group, groups) for one in logs] for _ in range(rounds)]
        usual = median(turn[0] for turn in rows)
        yield row(f"PostgreSQL's processor time, single reports in groups of {group}", usual, "us/batch")
        for place, name in enumerate(FORMS):
            if place:
                ratio = median(turn[place] / turn[0] for turn in rows)
                yield row(f"the same with the index of ids: {name} / as it is, groups of {group}", ratio, "ratio")
    for log, _ in logs:
        log.close()
