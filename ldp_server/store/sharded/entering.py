"""A collection enters all databases, or none.

The home's row is what makes a collection. It is committed last, when every database over which the collection is spread
has a copy under the same number. So a batch never comes to a database that does not know its collection: that would be
told "closed", which is final.

What a killed process leaves is copies without a row in the home. Nobody uses them. A number is above all that any
database has seen, so no other collection gets theirs; whoever enters the same collection again finds the number and
goes on. A slow process that lost its lock on the home in between can commit nothing there, and finds the number taken
elsewhere: a copy is never replaced by one of another collection.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldp_server.store.errors import StorageError
from ldp_server.store.log import NewCollection
from ldp_server.store.postgres.connecting import Connection
from ldp_server.store.postgres.entering import enter, lock, newest
from ldp_server.store.postgres.log import PostgresLog

__all__ = ["enter_all"]

_NUMBER = "SELECT number FROM hearsay.collections WHERE id = %s"
_COPY_AGAIN = (
    "UPDATE hearsay.collections SET public = %s, admission = %s, reports_per_token = %s, created = %s, shards = %s "
    "WHERE number = %s"
)


def enter_all(logs: Sequence[PostgresLog], new: NewCollection) -> int:
    """Enter a collection that is spread over all of these databases, and return its number."""
    home, others = logs[0], logs[1:]

    def work(db: Connection) -> int:
        lock(db)
        if db.execute(_NUMBER.encode(), (new.id,)).fetchone() is not None:
            raise StorageError("this collection exists already")
        number = _number(db, others, new)
        for other in others:
            other.transaction(lambda there: _copy(there, new, number, len(logs), other.name))  # noqa: B023 - run at once
        enter(db, new, number, len(logs))
        return number

    return home.transaction(work)


def _number(db: Connection, others: Sequence[PostgresLog], new: NewCollection) -> int:
    """The number that an earlier attempt has left, or one above all others."""
    left, highest = set(), newest(db)
    for other in others:
        highest = max(highest, other.transaction(newest))
        row = other.transaction(lambda there: there.execute(_NUMBER.encode(), (new.id,)).fetchone())
        left |= {int(str(row[0]))} if row else set()
    if len(left) > 1:
        raise StorageError("this collection was entered twice at once, by halves: change its nonce and enter it anew")
    return left.pop() if left else highest + 1


def _copy(db: Connection, new: NewCollection, number: int, shards: int, name: str) -> None:
    lock(db)
    row = db.execute(_NUMBER.encode(), (new.id,)).fetchone()
    if row is None:
        enter(db, new, number, shards)
    elif row[0] == number:
        values = (new.public, new.admission.kind, new.admission.reports_per_token, new.created, shards, number)
        db.execute(_COPY_AGAIN.encode(), values)
    else:
        raise StorageError(f"another server enters collections in {name} at this moment: try again")
