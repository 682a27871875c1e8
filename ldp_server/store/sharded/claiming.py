"""Each of several databases says of itself which one it is, of how many, and to which others it belongs.

It is written by `ldp-server store prepare`, and every connection compares it (postgres/connecting.py). Databases can be
added at the end: collections that are made from then on are spread over all of them, and the others stay where they
are. A database that is alone becomes the home in the same way. None can be taken away, because batches are known by
their places: move the store instead (`ldp-server migrate`).

The new databases are written first and the home last. Who is killed in between does the same again.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from ldp_client.errors import InvalidSpec
from ldp_server.store.postgres.connecting import Connection

__all__ = ["claim"]

_CLAIM = "SELECT place, shards, family FROM hearsay.shard"
_WRITE = (
    "INSERT INTO hearsay.shard (place, shards, family) VALUES (%s, %s, %s) "
    "ON CONFLICT (single) DO UPDATE SET shards = excluded.shards"
)


def claim(opened: Sequence[tuple[Connection, str]]) -> None:
    """Write into each database, given with its name, which one it is; `InvalidSpec` if that cannot be."""
    rows = [_checked(db, name, place, len(opened)) for place, (db, name) in enumerate(opened)]
    families = {row[2] for row in rows if row is not None}
    if len(families) > 1:
        names = " and ".join(name for (_, name), row in zip(opened, rows, strict=True) if row is not None)
        raise InvalidSpec(f"{names} do not all belong to the same store: name those of one store, in their order")
    family = next(iter(families), None) or uuid.uuid4()
    for place, (db, _) in reversed(list(enumerate(opened))):
        db.execute(_WRITE.encode(), (place, len(opened), family))


def _checked(db: Connection, name: str, place: int, shards: int) -> tuple[object, ...] | None:
    """The claim of a database, if it fits."""
    row = db.execute(_CLAIM.encode()).fetchone()
    if row is None:
        used = db.execute("SELECT EXISTS (SELECT FROM hearsay.collections)").fetchone()
        if place and used is not None and used[0]:
            raise InvalidSpec(f"{name} holds collections of a store of its own: only the first database may")
        return None
    if row[0] != place:
        raise InvalidSpec(f"{name} is number {int(str(row[0])) + 1} of its store: name all databases in their order")
    if int(str(row[1])) > shards:
        raise InvalidSpec(f"{name} belongs to a store of {row[1]} databases, and {shards} are named: name all of them")
    return row
