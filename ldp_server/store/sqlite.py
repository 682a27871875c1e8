"""The report log on SQLite: the embedded default.

One `SqliteLog` writes, on the writer thread of commit.py. Any number of `SqliteReader`s read, in other threads and
processes: in WAL mode readers and the writer do not wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ldp_server.store import blocks, retention
from ldp_server.store.catalog import Catalog
from ldp_server.store.damage import Row, check_rows
from ldp_server.store.errors import Corrupt, StorageError, translated
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
from ldp_server.store.wal import WalMover

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
        self.db: sqlite3.Connection = open_log(path, read_only=not writable)
        self._catalog = Catalog(self.db, path)

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
            return blocks.last(self.db, collection)

    def count(self, collection: int) -> int:
        with self._snapshot() as db:
            return blocks.last(db, collection) + blocks.recent_size(db, collection)[0]

    def recent(self, collection: int, after: int) -> list[StoredBatch] | None:
        with self._snapshot() as db:
            newest, record = blocks.last(db, collection), self._catalog.by_number(collection)
            if record is None or record.deleted is not None:
                return []
            if newest < after:
                raise Corrupt("a collection has batches after its last block: restore a backup (docs/operating.md)")
            return blocks.recent(db, collection) if newest == after else None

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

    def tie(self, collection: int, sequence: int) -> bytes | None:
        with translated(self.path):
            return blocks.tie(self.db, collection, sequence)

    def known(self, collection: int, ids: Sequence[bytes]) -> bool:
        with translated(self.path):
            return blocks.known(self.db, collection, ids)

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


class SqliteLog(SqliteReader, ReportLog):
    """Writes log.db. Opening it checks the file and brings its schema up to date."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, writable=True)
        self._wal = WalMover(self.db, path)
        self._recent: dict[int, tuple[int, int]] = {}
        self._sealed: set[int] = {record.number for record in self.records() if record.sealed}
        self._unlaid: set[int] = set()
        with suppress(Corrupt), translated(path):  # counting says which collections are damaged
            self._unlaid = blocks.unlaid(self.db)
        self._purged = False

    def close(self) -> None:
        with suppress(StorageError):  # what the bytes show of the order goes, if it can
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
        self._recent.update(recent)  # only now: what was rolled back is not there
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
        return result


def _pages(submissions: int, recent: dict[int, tuple[int, int]]) -> int:
    """About how many pages a group touches besides its payload: places and ids are random.

    A page holds some 200 ids or small rows, so there are no more pages than that to touch, and a few at the ends.
    """
    return min(submissions, sum(1 + count // 200 for count, _ in recent.values())) * 2 + 2 * len(recent) + 1
