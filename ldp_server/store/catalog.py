"""The rows of `collections`: what the log knows of each collection. A number is given once and never again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ldp_server.store.errors import Corrupt, StorageError, translated
from ldp_server.store.log import KINDS, Admission, CollectionRecord, NewCollection

__all__ = ["Catalog"]

_SELECT = (
    "SELECT number, id, spec, public, admission, reports_per_token, created, closed, deleted, "
    "folded, folded_batches, folded_reports, generation FROM collections"
)


def _record(row: tuple[int, bytes, bytes, int, str, int, int, int, int, int, int, int, int]) -> CollectionRecord:
    number, id_, spec, public, kind, per_token, *rest = row
    numbers = (number, public, per_token, *rest)
    if not (
        all(type(one) is int or one is None for one in numbers)
        and isinstance(id_, bytes)
        and isinstance(spec, bytes)
        and kind in KINDS
    ):
        raise Corrupt("the row of a collection is damaged: restore a backup (docs/operating.md)")
    return CollectionRecord(number, id_, spec, bool(public), Admission(kind, per_token), *rest)


class Catalog:
    """Reads and changes the rows through the log's own connection; changes belong to the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def records(self) -> list[CollectionRecord]:
        """Every collection ever created here, deleted ones included, in the order of creation."""
        with translated(self._path):
            return [_record(row) for row in self._db.execute(f"{_SELECT} ORDER BY number")]

    def by_id(self, collection_id: bytes) -> CollectionRecord | None:
        with translated(self._path):
            row = self._db.execute(f"{_SELECT} WHERE id = ?", (collection_id,)).fetchone()
        return None if row is None else _record(row)

    def by_number(self, number: int) -> CollectionRecord | None:
        with translated(self._path):
            row = self._db.execute(f"{_SELECT} WHERE number = ?", (number,)).fetchone()
        return None if row is None else _record(row)

    def existing(self, number: int) -> CollectionRecord:
        """The record of a collection that is known to be there."""
        record = self.by_number(number)
        if record is None:
            raise StorageError(f"the row of collection {number} is not in {self._path}: restore a backup")
        return record

    def add(self, new: NewCollection) -> None:
        values = (new.id, new.spec, new.public, new.admission.kind, new.admission.reports_per_token, new.created)
        self._db.execute(
            "INSERT INTO collections (id, spec, public, admission, reports_per_token, created) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )

    def close(self, number: int, when: int) -> None:
        self._db.execute("UPDATE collections SET closed = coalesce(closed, ?) WHERE number = ?", (when, number))

    def delete(self, number: int, when: int) -> None:
        self._db.execute("UPDATE collections SET deleted = coalesce(deleted, ?) WHERE number = ?", (when, number))
