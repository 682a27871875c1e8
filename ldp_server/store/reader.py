"""Reading the log on SQLite, and copying it while a server may be writing it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ldp_server.store import blocks, retention
from ldp_server.store.catalog import Catalog
from ldp_server.store.damage import Row, check_rows
from ldp_server.store.errors import Corrupt, Removed, StorageError, translated
from ldp_server.store.insert import counted_units
from ldp_server.store.interface.reading import LogReader
from ldp_server.store.log import CollectionRecord, PeriodRecord, StoredBatch
from ldp_server.store.schema import SEQUENCE_BITS, connect, open_log
from ldp_server.store.wal import LogFiles

__all__ = ["SqliteReader", "backup"]

_MASK = (1 << SEQUENCE_BITS) - 1
_ROWS = 4096


def _positions(number: int) -> tuple[int, int]:
    """The positions between which the batches of a period lie."""
    return number << SEQUENCE_BITS, (number + 1) << SEQUENCE_BITS


class SqliteReader(LogReader):
    """Reads log.db. It sees what was durable when a method was called."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        self.path = path
        self._writable = writable
        self._open()

    def _open(self) -> None:
        self.db: sqlite3.Connection = open_log(self.path, read_only=not self._writable)
        self._catalog = Catalog(self.db, self.path)
        self._files = LogFiles(self.path)

    def renew(self) -> None:
        try:
            self._files.check()
        except Removed:
            raise
        except StorageError:
            self.db.close()
            self._open()

    def close(self) -> None:
        self.db.close()

    def records(self) -> list[CollectionRecord]:
        return self._catalog.records()

    def record(self, number: int) -> CollectionRecord | None:
        return self._catalog.by_number(number)

    def record_of(self, collection_id: bytes) -> CollectionRecord | None:
        return self._catalog.by_id(collection_id)

    def periods(self, collection: int) -> list[PeriodRecord]:
        return self._catalog.periods(collection)

    def period(self, number: int) -> PeriodRecord | None:
        return self._catalog.period(number)

    def last(self, number: int) -> int:
        with translated(self.path):
            return blocks.last(self.db, number)

    def count(self, number: int) -> int:
        with self._snapshot() as db:
            return blocks.last(db, number) + blocks.recent_size(db, number)[0]

    def held_bytes(self, number: int) -> int:
        with self._snapshot() as db:
            return blocks.held_bytes(db, number)

    def recent(self, number: int, after: int) -> list[StoredBatch] | None:
        with self._snapshot() as db:
            newest, record = blocks.last(db, number), self._catalog.period(number)
            if record is None or record.deleted:
                return []
            if newest < after:
                raise Corrupt("a collection has batches after its last block: restore a backup (docs/operating.md)")
            return blocks.recent(db, number, record.collection) if newest == after else None

    def check_recent(self, collection: int) -> None:
        with self._snapshot() as db:
            record = self._catalog.by_number(collection)
            if record is not None and record.deleted is None:
                numbers = [period.number for period in self._catalog.periods(collection)]
                blocks.check_all_recent(db, collection, numbers)

    def read(self, number: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        """Each list is one short read transaction, so that the writer never waits."""
        low, high = _positions(number)
        position = low + after
        while True:
            found: list[StoredBatch] = []
            size = 0
            with translated(self.path):
                cursor = self.db.execute(
                    "SELECT position, batch_id, payload, digest FROM batches WHERE position > ? AND position < ? "
                    "ORDER BY position LIMIT ?",
                    (position, high, max(1, min(_ROWS * 16, max_bytes))),
                )
                while size < max_bytes and (rows := cursor.fetchmany(256)):
                    if self._dropped(number, rows, position):
                        return
                    check_rows(rows, position)
                    found.extend([StoredBatch(row[0] & _MASK, row[1], row[2]) for row in rows])
                    size += sum([len(row[2]) for row in rows])
                    position += len(rows)
                cursor.close()
            if not found:
                return
            yield found

    def _dropped(self, number: int, rows: Sequence[Row], position: int) -> bool:
        """Whether rows are missing because the collection was deleted, or the period folded, meanwhile."""
        if rows[0][0] == position + 1 and rows[-1][0] == position + len(rows):
            return False
        record = self.period(number)
        return record is None or record.deleted or record.folded > (position & _MASK)

    def tie(self, number: int, sequence: int) -> bytes | None:
        with translated(self.path):
            return blocks.tie(self.db, number, sequence)

    def known(self, record: PeriodRecord, ids: Sequence[bytes]) -> bool:
        with translated(self.path):
            return blocks.known(self.db, record.number, record.collection, ids)

    def counted_units(self, collection: int, digests: Sequence[bytes]) -> set[bytes]:
        with translated(self.path):
            return counted_units(self.db, collection, digests)

    def folded_state(self, record: PeriodRecord) -> bytes | None:
        with translated(self.path):
            return retention.folded_state(self.db, record)

    def check(self) -> None:
        with translated(self.path):
            verdict = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise Corrupt(f"{self.path} is damaged: restore a backup (docs/operating.md)")

    def interrupt(self) -> None:
        self.db.interrupt()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """One read transaction: the writer may put recent batches into a block at any time."""
        with translated(self.path):
            self.db.execute("BEGIN")
            try:
                yield self.db
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")


def backup(source: Path, target: Path) -> None:
    """Copy a log to a new file that only its owner can read (mode 0600).

    The copy is written row by row and not page by page, so its pages keep nothing of the order in which batches came.
    """
    if target.exists():
        raise StorageError(f"{target} exists: a backup never overwrites a file")
    draft = target.with_name(target.name + ".draft")
    draft.unlink(missing_ok=True)
    origin = connect(source, read_only=True)
    try:
        with translated(target):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with translated(target):
            origin.execute("VACUUM INTO ?", (str(draft),))
            with draft.open("rb") as copy:
                os.fsync(copy.fileno())
            draft.replace(target)
    finally:
        origin.close()
        draft.unlink(missing_ok=True)
