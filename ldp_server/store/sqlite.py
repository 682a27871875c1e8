"""The report log on SQLite: the embedded default.

One `SqliteLog` writes, on the writer thread of commit.py. Any number of `SqliteReader`s read, in other threads and
processes: in WAL mode readers and the writer do not wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ldp_server.store import retention
from ldp_server.store.catalog import Catalog
from ldp_server.store.damage import Row, check_rows
from ldp_server.store.errors import Corrupt, InUse, Removed, StorageError, translated
from ldp_server.store.insert import insert_run, runs
from ldp_server.store.log import (
    AppendOutcome,
    CollectionRecord,
    Fold,
    FoldPart,
    LogReader,
    NewCollection,
    ReportLog,
    StoredBatch,
    Submission,
)
from ldp_server.store.schema import PAGE, SEQUENCE_BITS, open_log
from ldp_server.store.wal import LogFiles, WalMover

__all__ = ["SqliteLog", "SqliteReader"]

T = TypeVar("T")
_MASK = (1 << SEQUENCE_BITS) - 1
_ROWS = 4096


def _positions(collection: int) -> tuple[int, int]:
    """The positions between which a collection's batches lie."""
    return collection << SEQUENCE_BITS, (collection + 1) << SEQUENCE_BITS


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

    def last(self, collection: int) -> int:
        with translated(self.path):
            newest = self.db.execute(
                "SELECT max(position) FROM batches WHERE position > ? AND position < ?", _positions(collection)
            ).fetchone()[0]
            folded = self.db.execute("SELECT folded FROM collections WHERE number = ?", (collection,)).fetchone()
        return max(newest & _MASK if newest else 0, folded[0] if folded else 0)

    def read(self, collection: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        """Each list is one short read transaction, so that the writer never waits."""
        low, high = _positions(collection)
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
                    if self._dropped(collection, rows, position):
                        return
                    check_rows(rows, position)
                    found.extend([StoredBatch(row[0] & _MASK, row[1], row[2]) for row in rows])
                    size += sum([len(row[2]) for row in rows])
                    position += len(rows)
                cursor.close()
            if not found:
                return
            yield found

    def _dropped(self, collection: int, rows: Sequence[Row], position: int) -> bool:
        """Whether rows are missing because the collection was deleted or compacted meanwhile."""
        if rows[0][0] == position + 1 and rows[-1][0] == position + len(rows):
            return False
        record = self.record(collection)
        return record is None or record.deleted is not None or record.folded > (position & _MASK)

    def holds(self, collection: int, sequence: int, batch_id: bytes) -> bool:
        with translated(self.path):
            row = self.db.execute(
                "SELECT batch_id FROM batches WHERE position = ?", ((collection << SEQUENCE_BITS) + sequence,)
            ).fetchone()
        return row is not None and row[0] == batch_id

    def folded_state(self, record: CollectionRecord) -> bytes | None:
        with translated(self.path):
            return retention.folded_state(self.db, record)

    def check(self) -> None:
        with translated(self.path):
            verdict = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise Corrupt(f"{self.path} is damaged: restore a backup (docs/operating.md)")

    def interrupt(self) -> None:
        self.db.interrupt()

    def digests(self, record: CollectionRecord) -> Iterator[tuple[StoredBatch, bytes]]:
        low, high = _positions(record.number)
        with translated(self.path):
            rows = self.db.execute(
                "SELECT position, batch_id, digest, payload FROM batches WHERE position > ? AND position < ? "
                "ORDER BY position",
                (low + record.folded, high),
            )
            for position, batch_id, digest, payload in rows:
                yield StoredBatch(position & _MASK, batch_id, payload), digest


class SqliteLog(SqliteReader, ReportLog):
    """Writes log.db. Opening it checks the file and brings its schema up to date."""

    def __init__(self, path: Path) -> None:
        self._last: dict[int, int] = {}
        self._sealed: set[int] = set()
        super().__init__(path, writable=True)

    def _open(self) -> None:
        super()._open()
        self._wal = WalMover(self.db, self.path)
        self._last.clear()
        self._sealed.update(record.number for record in self.records() if record.sealed)

    def close(self) -> None:
        self._wal.close()
        super().close()

    def last(self, collection: int) -> int:
        """Looked up once, because only this object writes."""
        if collection not in self._last:
            self._last[collection] = super().last(collection)
        return self._last[collection]

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        outcomes = [AppendOutcome.SEALED] * len(submissions)
        last: dict[int, int] = {}

        def work(db: sqlite3.Connection) -> None:
            for places in runs(submissions):
                collection = submissions[places[0]].collection
                if collection in self._sealed:
                    continue
                before = last[collection] if collection in last else self.last(collection)
                fates, last[collection] = insert_run(db, [submissions[place] for place in places], before)
                for place, fate in zip(places, fates, strict=True):
                    outcomes[place] = fate

        self._transaction(work)
        self._last.update(last)  # only now: a rolled-back sequence must not leave a gap that looks like a loss
        self._wal.wrote(sum(len(one.payload) for one in submissions) + PAGE * _pages(len(submissions), last))
        return outcomes

    def add(self, new: NewCollection) -> CollectionRecord:
        def work(_: sqlite3.Connection) -> CollectionRecord | None:
            self._catalog.add(new)
            return self._catalog.by_id(new.id)

        record = self._transaction(work)
        if record is None:
            raise AssertionError("the row just inserted is there")
        return record

    def close_collection(self, number: int, when: int) -> CollectionRecord:
        self._transaction(lambda _: self._catalog.close(number, when))
        self.seal(number)
        return self._catalog.existing(number)

    def delete_collection(self, number: int, when: int) -> CollectionRecord:
        self._transaction(lambda _: self._catalog.delete(number, when))
        self.seal(number)
        return self._catalog.existing(number)

    def seal(self, number: int) -> None:
        self._sealed.add(number)

    def unseal(self, number: int) -> None:
        record = self.record(number)
        if record is not None and not record.sealed:
            self._sealed.discard(number)

    def write_part(self, part: FoldPart) -> None:
        self._transaction(lambda db: retention.write_part(db, part))

    def fold(self, fold: Fold) -> CollectionRecord:
        self.seal(fold.collection)
        before = self._catalog.existing(fold.collection)

        def work(db: sqlite3.Connection) -> None:
            if before.generation is not None or self.last(fold.collection) != fold.sequence:
                raise StorageError("the collection changed while it was being compacted: compact it again")
            retention.put_in_force(db, fold)

        self._transaction(work)
        return self._catalog.existing(fold.collection)

    def sweep(self) -> bool:
        for record in self.records():
            if self._transaction(lambda db, record=record: retention.sweep_slice(db, record)):  # type: ignore[misc]
                return True
        with translated(self.path):
            return retention.give_back(self.db)

    def tend(self) -> None:
        self._wal.tend()

    def recover(self) -> None:
        """After a failed fsync the kernel may hold pages as clean that are not on the disk.

        Moving the whole write-ahead log writes them once more, and SQLite starts it over only when the database file is
        on the disk. If the log's file was removed, this connection is the last that can read it.
        """
        self._wal.close()
        try:
            self._files.check()
        except Removed:
            raise
        except StorageError:
            with translated(self.path):
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
            self._move_all()
        self.db.close()
        self._files = LogFiles(self.path)  # the connection that was tied to other files is over
        self._open()
        self._move_all()

    def _move_all(self) -> None:
        with translated(self.path):
            busy = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise InUse(f"{self.path} is being read by another process for long: it could not be made durable yet")

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one durable transaction, or leave everything as it was."""
        with translated(self.path):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                result = work(self.db)
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
        self._files.check()
        return result


def _pages(submissions: int, last: dict[int, int]) -> int:
    """About how many pages a group touches besides its payload: ids are random and fall anywhere in the index.

    A page of the index holds some 200 ids, so there are no more pages than that to touch, and a few at the ends.
    """
    return min(submissions, sum(1 + sequence // 200 for sequence in last.values())) + 2 * len(last) + 1
