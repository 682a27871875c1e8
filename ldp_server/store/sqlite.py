"""The report log on SQLite: the embedded default.

One `SqliteLog` writes, on the writer thread of commit.py. Any number of `SqliteReader`s read, in other threads and
processes: in WAL mode readers and the writer do not wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ldp_server.store import blocks, retention
from ldp_server.store.errors import Corrupt, InUse, Removed, StorageError, translated
from ldp_server.store.insert import insert_run, runs
from ldp_server.store.log import AppendOutcome, CollectionRecord, Fold, FoldPart, NewCollection, ReportLog, Submission
from ldp_server.store.reader import SqliteReader
from ldp_server.store.schema import PAGE
from ldp_server.store.wal import LogFiles, WalMover

__all__ = ["SqliteLog"]

T = TypeVar("T")


class SqliteLog(SqliteReader, ReportLog):
    """Writes log.db. Opening it checks the file and brings its schema up to date."""

    def __init__(self, path: Path) -> None:
        self._sealed: set[int] = set()
        super().__init__(path, writable=True)

    def _open(self) -> None:
        super()._open()
        self._wal = WalMover(self.db, self.path)
        self._recent: dict[int, tuple[int, int]] = {}
        self._sealed.update(record.number for record in self.records() if record.sealed)
        self._unlaid: set[int] = set()
        with suppress(Corrupt), translated(self.path):  # counting says which collections are damaged
            self._unlaid = blocks.unlaid(self.db)
        self._purged = False

    def close(self) -> None:
        with suppress(StorageError):  # after this the bytes of the file show no order of arrival, if it succeeds
            while self.lay_anew():
                pass
        self._wal.close()
        super().close()

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        outcomes = [AppendOutcome.SEALED] * len(submissions)
        recent: dict[int, tuple[int, int]] = {}

        def work(db: sqlite3.Connection) -> int:
            for places in runs(submissions):
                collection = submissions[places[0]].collection
                if collection in self._sealed:
                    continue
                count, size = recent[collection] if collection in recent else self._size(collection)
                for place, fate in zip(places, insert_run(db, [submissions[place] for place in places]), strict=True):
                    outcomes[place] = fate
                    if fate is AppendOutcome.STORED:
                        count, size = count + 1, size + len(submissions[place].payload)
                recent[collection] = count, size
            return sum(self._finish_full(db, collection, recent) for collection in list(recent))

        moved = self._transaction(work)
        self._recent.update(recent)  # only after the commit: what was rolled back is not there
        self._unlaid.update(recent)
        self._purged = False
        self._wal.wrote(sum(len(one.payload) for one in submissions) + moved + PAGE * _pages(len(submissions), recent))
        return outcomes

    def _size(self, collection: int) -> tuple[int, int]:
        """Counted once, because only this object writes."""
        if collection not in self._recent:
            self._recent[collection] = blocks.recent_size(self.db, collection)
        return self._recent[collection]

    def _finish_full(self, db: sqlite3.Connection, collection: int, recent: dict[int, tuple[int, int]]) -> int:
        """Finish a block if there is enough for one; return about how many bytes that writes."""
        count, size = recent[collection]
        if count < blocks.BLOCK and size < blocks.BLOCK_BYTES:
            return 0
        last = blocks.finish(db, collection, count)
        recent[collection] = 0, 0
        return size + PAGE * min(count, 1 + last // 200)

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
        self.finish(number)
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

    def finish(self, number: int) -> None:
        count, _ = self._size(number)
        if count:
            self._transaction(lambda db: blocks.finish(db, number, count))
            self._recent[number] = 0, 0
            self._purged = False

    def write_part(self, part: FoldPart) -> None:
        self._transaction(lambda db: retention.write_part(db, part))

    def fold(self, fold: Fold) -> CollectionRecord:
        self.seal(fold.collection)
        before = self._catalog.existing(fold.collection)

        def work(db: sqlite3.Connection) -> None:
            taken = blocks.last(db, fold.collection) + blocks.recent_size(db, fold.collection)[0]
            if before.generation is not None or not taken == blocks.last(db, fold.collection) == fold.sequence:
                raise StorageError("the collection changed while it was being compacted: compact it again")
            retention.put_in_force(db, fold)

        self._transaction(work)
        return self._catalog.existing(fold.collection)

    def sweep(self) -> bool:
        for record in self.records():
            if self._transaction(lambda db, record=record: retention.sweep_slice(db, record)):  # type: ignore[misc]
                self._purged = False
                self._recent.pop(record.number, None)
                return True
        with translated(self.path):
            return retention.give_back(self.db)

    def lay_anew(self) -> bool:
        if not self._unlaid:
            return False
        collection = next(iter(self._unlaid))
        with suppress(Corrupt):  # the other collections go on, and counting says that this one is damaged
            self._transaction(lambda db: blocks.lay_anew(db, collection))
        self._unlaid.remove(collection)
        self._wal.wrote(self._size(collection)[1])
        self._purged = False
        return True

    def purge(self) -> bool:
        self._purged = self._purged or self._wal.empty()
        return self._purged

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


def _pages(submissions: int, recent: dict[int, tuple[int, int]]) -> int:
    """About how many pages a group touches besides its payload: places and ids are random.

    A page holds some 200 ids or small rows, so there are no more pages than that to touch, and a few at the ends.
    """
    return min(submissions, sum(1 + count // 200 for count, _ in recent.values())) * 2 + 2 * len(recent) + 1
