"""Sealed records on PostgreSQL, for all collection servers that share it.

Servers give and withdraw through two functions, so that their user needs no right to read a record. The curator's user
needs the role hearsay_curator. Every statement can be sent again: what an attempt without an answer has done, the next
one finds done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from ldp_server.store.errors import StorageError
from ldp_server.store.postgres.appending import Notices
from ldp_server.store.postgres.connecting import Connection, Destination, ShardPlace
from ldp_server.store.postgres.failures import Again, Lost, translated
from ldp_server.volunteers import interface
from ldp_server.volunteers.interface import Given, SealedRecords, another_curator

__all__ = ["SharedRecords"]

TRIES = 3
_LOCK = "SELECT pg_advisory_xact_lock_shared(7907, 0)"
"""Nobody writes the rows again meanwhile."""
_TAKE = (
    "WITH taken AS (UPDATE hearsay.volunteers SET used = coalesce(used, %s) WHERE collection_id = %s "
    "RETURNING name, sealed) SELECT name, sealed FROM taken ORDER BY name"
)
_HELD = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 7908 AND objid = 0 "
    "AND pid = pg_backend_pid() AND granted)"
)
"""Whether this session is the one curator (7908) at work."""
_PAUSE = 0.1
_GIVE_BACK = "UPDATE hearsay.volunteers SET used = NULL WHERE collection_id = %s AND name = ANY(%s)"


class SharedRecords(SealedRecords):
    """The sealed records of one database."""

    def __init__(self, address: str, place: ShardPlace = ShardPlace()) -> None:  # noqa: B008 - it never changes
        """`place` says which one of several databases it is."""
        self._destination = Destination(address, place)
        self._lock = threading.Lock()
        self._notices = Notices()
        self._connection: Connection | None = None
        with self._lock, translated(self._destination.name):
            self._open()

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._notices = Notices()
            self._connection = self._destination.connect(writes=True)
            self._connection.add_notice_handler(self._notices.hear)
        return self._connection

    def _ask(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction; a second time if its outcome is open."""
        with self._lock:
            for left in reversed(range(TRIES)):
                try:
                    with translated(self._destination.name):
                        db = self._open()
                        with db.transaction():
                            db.execute(_LOCK.encode())
                            cursor = db.execute(query.encode(), values, binary=True)
                            found = cursor.fetchall() if cursor.description else [(cursor.rowcount,)]
                    self._notices.check()
                except (Lost, Again):
                    self._drop()
                    if not left:
                        raise
                except StorageError:
                    self._drop()
                    raise
                else:
                    return found
        raise AssertionError("TRIES is above 0")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        with self._lock:
            self._drop()

    def give(self, collection_id: bytes, name: bytes, sealed: bytes, now: int) -> Given:  # noqa: ARG002 - no time is kept
        rows = self._ask("SELECT hearsay.give_1(%s, %s, %s)", (collection_id, name, sealed))
        return Given(rows[0][0])

    def withdraw(self, collection_id: bytes, name: bytes) -> bool:
        return bool(self._ask("SELECT hearsay.withdraw_1(%s, %s)", (collection_id, name))[0][0])

    def take(self, collection_id: bytes, now: int) -> list[tuple[bytes, bytes]]:
        return [(bytes(name), bytes(sealed)) for name, sealed in self._ask(_TAKE, (now, collection_id))]

    def fresh(self, collection_id: bytes) -> list[bytes]:
        rows = self._ask(
            "SELECT name FROM hearsay.volunteers WHERE collection_id = %s AND used IS NULL", (collection_id,)
        )
        return [bytes(name) for (name,) in rows]

    def used(self, collection_id: bytes) -> list[bytes]:
        rows = self._ask(
            "SELECT name FROM hearsay.volunteers WHERE collection_id = %s AND used IS NOT NULL", (collection_id,)
        )
        return [bytes(name) for (name,) in rows]

    @contextmanager
    def curating(self) -> Iterator[Callable[[], bool]]:
        """Hold an advisory lock in a session of its own. If that session ends, another curator may have begun."""
        with translated(self._destination.name):
            session = self._destination.connect(writes=True)
        with closing(session):
            ends = time.monotonic() + interface.CURATOR_SECONDS
            while not self._locked(session, "SELECT pg_try_advisory_lock(7908, 0)"):
                if time.monotonic() >= ends:
                    raise another_curator(self._destination.name)
                time.sleep(_PAUSE)
            yield lambda: self._locked(session, _HELD)

    def _locked(self, session: Connection, question: str) -> bool:
        try:
            with translated(self._destination.name):
                row = session.execute(question.encode()).fetchone()
        except StorageError:
            return False
        return row is not None and bool(row[0])

    def give_back(self, collection_id: bytes, names: Sequence[bytes]) -> None:
        self._ask(_GIVE_BACK, (collection_id, list(names)))

    def forget(self, collection_id: bytes) -> int:
        return int(self._ask("DELETE FROM hearsay.volunteers WHERE collection_id = %s", (collection_id,))[0][0])
