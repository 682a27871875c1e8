"""The rows of `collections` and `periods`: what the log knows of each collection, and of each period of it.

A number of a collection is given once and never again. It is also the number of the collection's only period, where its
question has no schedule (period 0). The others get numbers at random, so that no number says which period had reports
first.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from pathlib import Path

from ldp_server.store.errors import Corrupt, StorageError, translated
from ldp_server.store.log import KINDS, Admission, CollectionRecord, NewCollection, PeriodRecord

__all__ = ["Catalog", "period_check"]

_DRAWN = 1 << 22
"""Numbers from here on are drawn for periods; numbers of collections are below. A position has room for 23 bits, and
the last number is left out: its places would end at 2^63, which is no integer of SQLite's."""
_DAMAGED = "the row of a collection is damaged: restore a backup (docs/operating.md)"

_SELECT = (
    "SELECT number, id, spec, public, admission, reports_per_token, created, closed, deleted, "
    "compacted, oldest, periods FROM collections"
)
_COLUMNS = (
    "p.number, p.collection, p.period, p.folded, p.folded_batches, p.folded_reports, p.generation, p.dropped, "
    "c.deleted IS NOT NULL, p.tag"
)
_PERIODS = f"SELECT {_COLUMNS} FROM periods p JOIN collections c ON c.number = p.collection"  # noqa: S608 - names
_OF_COLLECTION = (
    f"SELECT c.periods, c.deleted, {_COLUMNS} FROM collections c LEFT JOIN periods p ON p.collection = c.number "  # noqa: S608
    "WHERE c.number = ?"
)


Row = tuple[int, bytes, bytes, int, str, int, int, int | None, int | None, int, int, int]


def _record(row: Row) -> CollectionRecord:
    number, id_, spec, public, kind, per_token, created, closed, deleted, compacted, oldest, periods = row
    numbers = (number, public, per_token, created, closed, deleted, compacted, oldest, periods)
    if not (
        all(type(one) is int or one is None for one in numbers)
        and isinstance(id_, bytes)
        and isinstance(spec, bytes)
        and kind in KINDS
    ):
        raise Corrupt(_DAMAGED)
    admission = Admission(kind, per_token)
    times = (created, closed, deleted)
    return CollectionRecord(number, id_, spec, bool(public), admission, *times, bool(compacted), oldest, periods)


def period_check(number: int, collection: int, period: int) -> bytes:
    """A check sum: a bit that flips in a period's row must not make its reports those of another one."""
    return hashlib.sha256(b"%d %d %d" % (number, collection, period)).digest()[:8]


def _period(row: tuple[int, int, int, int, int, int, int | None, int, int, bytes]) -> PeriodRecord:
    *numbers, generation, dropped, deleted, tag = row
    known = (*numbers, dropped, deleted)
    if not all(type(one) is int for one in known) or not (generation is None or type(generation) is int):
        raise Corrupt(_DAMAGED)
    if tag != period_check(*numbers[:3]):
        raise Corrupt(_DAMAGED)
    number, collection, period, folded, batches, reports = numbers
    return PeriodRecord(number, collection, period, folded, batches, reports, generation, bool(dropped), bool(deleted))


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

    def periods(self, collection: int) -> list[PeriodRecord]:
        """The periods of a collection, oldest first. `Corrupt` if a row is missing."""
        with translated(self._path):
            found = self._db.execute(f"{_OF_COLLECTION} ORDER BY p.period", (collection,)).fetchall()
        rows = [row[2:] for row in found if row[2] is not None]
        if found and found[0][1] is None and len(rows) != found[0][0]:
            raise Corrupt("periods of a collection are missing: restore a backup (docs/operating.md)")
        return [_period(row) for row in rows]

    def all_periods(self) -> list[PeriodRecord]:
        """The periods of all collections."""
        with translated(self._path):
            return [_period(row) for row in self._db.execute(f"{_PERIODS} ORDER BY p.number").fetchall()]

    def period(self, number: int) -> PeriodRecord | None:
        with translated(self._path):
            row = self._db.execute(f"{_PERIODS} WHERE p.number = ?", (number,)).fetchone()
        return None if row is None else _period(row)

    def existing_period(self, number: int) -> PeriodRecord:
        """The record of a period that is known to be there."""
        record = self.period(number)
        if record is None:
            raise StorageError(f"the row of period {number} is not in {self._path}: restore a backup")
        return record

    def add(self, new: NewCollection) -> None:
        values = (new.id, new.spec, new.public, new.admission.kind, new.admission.reports_per_token, new.created)
        self._db.execute(
            "INSERT INTO collections (id, spec, public, admission, reports_per_token, created) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )

    def add_period(self, collection: int, period: int) -> int:
        """Enter a period and return its number."""
        while True:
            number = _DRAWN + secrets.randbelow(_DRAWN - 1) if period else collection
            row = (number, collection, period, period_check(number, collection, period))
            statement = "INSERT OR IGNORE INTO periods (number, collection, period, tag) VALUES (?, ?, ?, ?)"
            if self._db.execute(statement, row).rowcount:
                self._db.execute("UPDATE collections SET periods = periods + 1 WHERE number = ?", (collection,))
                return number
            if not period:
                raise Corrupt(_DAMAGED)

    def take_from(self, number: int, oldest: int) -> None:
        self._db.execute("UPDATE collections SET oldest = max(oldest, ?) WHERE number = ?", (oldest, number))

    def drop_period(self, number: int) -> None:
        self._db.execute("UPDATE periods SET dropped = 1 WHERE number = ?", (number,))

    def compact(self, number: int) -> None:
        self._db.execute("UPDATE collections SET compacted = 1 WHERE number = ?", (number,))

    def close(self, number: int, when: int) -> None:
        self._db.execute("UPDATE collections SET closed = coalesce(closed, ?) WHERE number = ?", (when, number))

    def delete(self, number: int, when: int) -> None:
        self._db.execute("UPDATE collections SET deleted = coalesce(deleted, ?) WHERE number = ?", (when, number))
