"""Each database has a copy of what the home says of a collection, and every append looks at the copy under its lock.

A change is made in the home first, then in the other databases, and the caller is told when all have it. From then on
no database takes what it forbids. Who is killed in between has told nobody that it is done. What then lies in the home
is caught up with by whoever asks again, and by the process that leads, twice a minute.
"""

from __future__ import annotations

from ldp_server.store.errors import StorageError
from ldp_server.store.postgres.connecting import Connection
from ldp_server.store.postgres.log import PostgresLog

__all__ = ["follow"]

_DECIDED = (
    "SELECT number, closed, deleted, oldest FROM hearsay.collections "
    "WHERE shards > %s AND (closed IS NOT NULL OR deleted IS NOT NULL OR oldest > 0)"
)
_COPIED = "SELECT number, closed, deleted, oldest FROM hearsay.collections WHERE number = ANY(%s)"
_COPY = (
    "UPDATE hearsay.collections SET closed = %s, deleted = %s, oldest = greatest(oldest, %s) WHERE number = %s "
    "RETURNING number"
)

Row = tuple[object, ...]


def follow(home: PostgresLog, other: PostgresLog, shard: int, *numbers: int) -> int:
    """Let a database take over what the home says of these collections, or of all; return how many were behind."""
    decided = {row[0]: row for row in home.transaction(lambda db: db.execute(_DECIDED.encode(), (shard,)).fetchall())}
    if numbers:
        decided = {number: decided[number] for number in numbers if number in decided}
    if not decided:
        return 0
    asked = (list(decided),)
    copies = {row[0]: row for row in other.transaction(lambda db: db.execute(_COPIED.encode(), asked).fetchall())}
    behind = [row for number, row in decided.items() if copies.get(number) != row]
    for row in behind:
        _take_over(other, row)
    return len(behind)


def _take_over(other: PostgresLog, row: Row) -> None:
    number, *decided = row

    def work(db: Connection) -> None:
        db.execute("SELECT pg_advisory_xact_lock(7900, %s)", (number,))  # waits for who is inside an append
        if db.execute(_COPY.encode(), (*decided, number)).fetchone() is None:
            raise StorageError(f"{other.name} lacks a collection that the first database has: `ldp-server doctor`")

    other.transaction(work)
