"""Moves volunteers' records beside a store that is moved, so that what was given there can be withdrawn here.

Nobody gives, withdraws or uses a record of the old store from the moment when they are read until the old store is
closed. Then the old ones are deleted: a volunteer who withdraws means every copy.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec
from ldp_server.store.engines import SCHEMES
from ldp_server.store.errors import Corrupt, translated
from ldp_server.volunteers.kept import FILE, KeptRecords

__all__ = ["records_moved"]

MOVED = 1000
"""Records that are written in one statement or a few."""
Row = tuple[bytes, bytes, bytes, int | None]
"""Id of the collection, name, sealed record, when a release used it."""


class RecordsEnd(ABC):
    """The records of a store that is moved, or is filled."""

    name: str

    @abstractmethod
    def hold(self) -> None:
        """Keep everybody else from them until the end."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """All of them, in the order of collections and names."""

    @abstractmethod
    def replace(self, rows: Sequence[Row]) -> None:
        """Let these take the place of all that are there, durably."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""


class _KeptEnd(RecordsEnd):
    """Those of a data directory. Without a file there are none, and a file is made when there are some."""

    def __init__(self, data: Path) -> None:
        self.name, self._path = str(data), data / FILE
        self._db: sqlite3.Connection | None = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            KeptRecords(self._path).close()  # makes and checks it
            with translated(self._path):
                self._db = sqlite3.connect(self._path, isolation_level=None)
        return self._db

    def hold(self) -> None:
        if self._path.exists():
            with translated(self._path):
                self._open().execute("BEGIN EXCLUSIVE")

    def rows(self) -> list[Row]:
        if not self._path.exists():
            return []
        with translated(self._path):
            found = self._open().execute(
                "SELECT collection_id, name, sealed, used FROM records ORDER BY collection_id, name"
            )
            return found.fetchall()

    def replace(self, rows: Sequence[Row]) -> None:
        if not rows and not self._path.exists():
            return
        db = self._open()
        with translated(self._path):
            db.execute("PRAGMA secure_delete = ON")
            if not db.in_transaction:
                db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM records")
            db.executemany("INSERT INTO records VALUES (?, ?, ?, 0, ?)", rows)
            db.execute("COMMIT")

    def close(self) -> None:
        if self._db is not None:
            self._db.close()


class _SharedEnd(RecordsEnd):
    """Those of a database, by whoever owns it."""

    def __init__(self, address: str) -> None:
        from ldp_server.store.postgres.connecting import Destination  # noqa: PLC0415 - needs an extra

        self._destination = Destination(address)
        self.name = self._destination.name
        self._db = self._destination.open()
        self._destination.check_server(self._db, writes=True)
        self._db.execute("SET application_name = 'hearsay-migrate'")

    def hold(self) -> None:
        from ldp_server.store.postgres.failures import translated as told  # noqa: PLC0415

        with told(self.name):
            self._db.execute("SET lock_timeout = '30s'")
            self._db.execute("SELECT pg_advisory_lock(7907, 0)")

    def rows(self) -> list[Row]:
        from ldp_server.store.postgres.failures import translated as told  # noqa: PLC0415

        with told(self.name):
            if self._db.execute("SELECT to_regclass('hearsay.volunteers') IS NULL").fetchone() == (True,):
                return []  # an older schema, which had none
            found = self._db.execute(
                b"SELECT collection_id, name, sealed, used FROM hearsay.volunteers ORDER BY collection_id, name",
                binary=True,
            ).fetchall()
        return [(bytes(a), bytes(b), bytes(c), d) for a, b, c, d in found]  # type: ignore[call-overload, misc]

    def replace(self, rows: Sequence[Row]) -> None:
        from ldp_server.store.postgres.failures import translated as told  # noqa: PLC0415

        with told(self.name), self._db.transaction():
            self._db.execute("DELETE FROM hearsay.volunteers")
            with self._db.cursor() as cursor:
                for start in range(0, len(rows), MOVED):
                    cursor.executemany(
                        "INSERT INTO hearsay.volunteers (collection_id, name, sealed, used, laid) "
                        "VALUES (%s, %s, %s, %s, true)",
                        rows[start : start + MOVED],
                    )

    def close(self) -> None:
        self._db.close()


def _end(store: str) -> RecordsEnd:
    return _SharedEnd(store) if store.startswith(SCHEMES) else _KeptEnd(Path(store))


@contextmanager
def records_moved(old: str, new: str) -> Iterator[None]:
    """Copy and compare the records; the block closes the old store and opens the new one; then the old ones go.

    A store is a data directory or an address. If the block fails the old store still has them.
    """
    with closing(_end(old)) as source, closing(_end(new)) as target:
        source.hold()
        rows, there = source.rows(), target.rows()
        if not {row[:3] for row in there} <= {row[:3] for row in rows}:
            raise InvalidSpec(f"{target.name} holds volunteers' records of its own: name a store without any")
        target.replace(rows)
        if target.rows() != rows:
            raise Corrupt(f"{target.name} does not hold the volunteers' records of {source.name}: run this again")
        yield
        if rows:
            source.replace([])
