"""The collections a log knows, tombstones included. A number is given once and never again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ldp_server.store.errors import translated
from ldp_server.store.log import Admission, CollectionRecord

__all__ = ["Catalog"]

_SELECT = (
    "SELECT number, id, spec, public, admission, reports_per_token, created, closed, deleted, "
    "folded, folded_batches, folded_reports, generation FROM collections"
)


def _record(row: tuple[int, bytes, bytes, int, str, int, int, int, int, int, int, int, int]) -> CollectionRecord:
    number, id_, spec, public, kind, per_token, *rest = row
    return CollectionRecord(number, id_, spec, bool(public), Admission(kind, per_token), *rest)


class Catalog:
    """Rows of `collections`, through a connection that somebody else owns."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def records(self) -> list[CollectionRecord]:
        """Every collection ever created here, in the order of creation."""
        with translated(self._path):
            return [_record(row) for row in self._db.execute(f"{_SELECT} ORDER BY number")]

    def get(self, collection_id: bytes) -> CollectionRecord | None:
        """The collection with this id."""
        with translated(self._path):
            row = self._db.execute(f"{_SELECT} WHERE id = ?", (collection_id,)).fetchone()
        return None if row is None else _record(row)

    def by_number(self, number: int) -> CollectionRecord | None:
        """The collection with this number."""
        with translated(self._path):
            row = self._db.execute(f"{_SELECT} WHERE number = ?", (number,)).fetchone()
        return None if row is None else _record(row)

    def add(
        self, collection_id: bytes, spec: bytes, *, public: bool, admission: Admission, created: int
    ) -> CollectionRecord:
        """Enter a new collection. The caller has checked that the id is new and holds the transaction."""
        values = (collection_id, spec, public, admission.kind, admission.reports_per_token, created)
        self._db.execute(
            "INSERT INTO collections (id, spec, public, admission, reports_per_token, created) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )
        record = self.get(collection_id)
        if record is None:
            raise AssertionError("the row just inserted is there")
        return record

    def close(self, number: int, when: int) -> None:
        """Mark as closed by the operator."""
        self._db.execute("UPDATE collections SET closed = coalesce(closed, ?) WHERE number = ?", (when, number))

    def delete(self, number: int, when: int) -> None:
        """Leave a tombstone."""
        self._db.execute("UPDATE collections SET deleted = coalesce(deleted, ?) WHERE number = ?", (when, number))
