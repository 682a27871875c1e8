"""The row of a new collection."""

from __future__ import annotations

from ldp_server.store.log import NewCollection
from ldp_server.store.postgres.connecting import Connection

__all__ = ["CHANGED", "enter", "lock", "newest", "tell"]

CHANGED = "hearsay_catalogue"
"""The channel on which changes of collections are told."""
_ENTER = (
    "INSERT INTO hearsay.collections (number, id, spec, public, admission, reports_per_token, created, shards) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
)


def lock(db: Connection) -> None:
    """Let one process at a time enter collections, until the transaction ends: numbers are in the order of commits."""
    db.execute("SELECT pg_advisory_xact_lock(7905, 0)")


def newest(db: Connection) -> int:
    """Return the highest number of a collection; 0 if there is none."""
    row = db.execute("SELECT coalesce(max(number), 0) FROM hearsay.collections").fetchone()
    return int(str(row[0])) if row else 0


def enter(db: Connection, new: NewCollection, number: int, shards: int) -> None:
    """Enter a collection, and tell the other servers when the transaction is over."""
    admission = (new.admission.kind, new.admission.reports_per_token)
    db.execute(_ENTER.encode(), (number, new.id, new.spec, new.public, *admission, new.created, shards))
    db.execute("SELECT hearsay.add_partitions(%s)", (number,))
    tell(db, number)


def tell(db: Connection, number: int) -> None:
    """Tell the other servers that a collection has changed, when the transaction is over."""
    db.execute("SELECT pg_notify(%s, %s)", (CHANGED, str(number)))
