"""The report log on SQLite: the embedded default.

One `SqliteLog` writes, on the writer thread of commit.py. Any number of `SqliteReader`s read, in other threads and
processes: in WAL mode readers and the writer do not wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ldp_server.store import blocks, retention
from ldp_server.store.catalog import Catalog
from ldp_server.store.errors import Corrupt, InUse, Removed, StorageError, translated
from ldp_server.store.insert import enter_units, insert_run, runs
from ldp_server.store.interface.writing import ReportLog
from ldp_server.store.log import (
    AppendOutcome,
    CollectionRecord,
    Fold,
    FoldPart,
    NewCollection,
    PeriodRecord,
    Submission,
)
from ldp_server.store.reader import SqliteReader
from ldp_server.store.schema import PAGE, transaction
from ldp_server.store.wal import LogFiles, WalMover, refuse_damaged

__all__ = ["SqliteLog"]

T = TypeVar("T")


class SqliteLog(SqliteReader, ReportLog):
    """Writes log.db. Opening it checks the file and brings its schema up to date."""

    def __init__(self, path: Path) -> None:
        self._sealed: set[int] = set()
        refuse_damaged(path)
        super().__init__(path, writable=True)

    def _open(self) -> None:
        super()._open()
        self._wal = WalMover(self.db, self.path)
        self._recent: dict[int, tuple[int, int]] = {}
        periods = self._catalog.all_periods()
        self._rows = {(one.collection, one.period): one for one in periods}
        self._folded = {one.number for one in periods if one.generation is not None}
        self._oldest: dict[int, int] = {record.number: record.oldest for record in self.records()}
        self._sealed.update(record.number for record in self.records() if record.sealed)
        self._to_sweep = {one.number for one in periods}
        self._over = set(self._sealed)
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
        owners: dict[int, int] = {}
        rows = _Rows(self._rows, {})
        touched = 0

        def work(db: sqlite3.Connection) -> int:
            for places in runs(submissions):
                first = submissions[places[0]]
                refused = self._refused(first)
                if refused is not None:
                    for place in places:
                        outcomes[place] = refused
                    continue
                row = rows.of(first.collection, first.period, self._catalog)
                count, size = recent[row.number] if row.number in recent else self._size(row.number)
                fates = insert_run(db, row.number, [submissions[place] for place in places])
                for place, fate in zip(places, fates, strict=True):
                    outcomes[place] = fate
                    if fate is AppendOutcome.STORED:
                        count, size = count + 1, size + len(submissions[place].payload)
                recent[row.number] = count, size
                owners[row.number] = row.collection
            nonlocal touched
            stored = [one for one, fate in zip(submissions, outcomes, strict=True) if fate is AppendOutcome.STORED]
            touched = enter_units(db, stored)
            return sum(self._finish_full(db, number, owner, recent) for number, owner in owners.items())

        moved = self._transaction(work)
        self._rows.update(rows.fresh)  # only after the commit: what was rolled back is not there
        self._recent.update(recent)
        self._unlaid.update(recent)
        self._purged = False
        pages = touched + _pages(len(submissions), recent)
        self._wal.wrote(sum(len(one.payload) for one in submissions) + moved + PAGE * pages)
        return outcomes

    def _refused(self, one: Submission) -> AppendOutcome | None:
        """Why nothing of this collection and period is taken, if nothing is."""
        if one.collection in self._sealed:
            return AppendOutcome.SEALED
        if one.period < self._oldest.get(one.collection, 0):
            return AppendOutcome.PERIOD_OVER
        row = self._rows.get((one.collection, one.period))
        return AppendOutcome.SEALED if row is not None and row.number in self._folded else None

    def _size(self, number: int) -> tuple[int, int]:
        """Counted once, because only this object writes."""
        if number not in self._recent:
            self._recent[number] = blocks.recent_size(self.db, number)
        return self._recent[number]

    def _finish_full(
        self, db: sqlite3.Connection, number: int, collection: int, recent: dict[int, tuple[int, int]]
    ) -> int:
        """Finish a block if there is enough for one; return about how many bytes that writes."""
        count, size = recent[number]
        if count < blocks.BLOCK and size < blocks.BLOCK_BYTES:
            return 0
        last = blocks.finish(db, number, collection, (count, size))
        recent[number] = 0, 0
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
        for period in self.periods(number):
            self.finish(period.number)
        return self._catalog.existing(number)

    def delete_collection(self, number: int, when: int) -> CollectionRecord:
        self._transaction(lambda _: self._catalog.delete(number, when))
        self.seal(number)
        self._over.add(number)
        self._to_sweep.update(period.number for period in self.periods(number))
        return self._catalog.existing(number)

    def seal(self, number: int) -> None:
        self._sealed.add(number)

    def unseal(self, number: int) -> None:
        record = self.record(number)
        if record is not None and not record.sealed:
            self._sealed.discard(number)

    def take_from(self, number: int, oldest: int) -> CollectionRecord:
        self._transaction(lambda _: self._catalog.take_from(number, oldest))
        record = self._catalog.existing(number)
        self._oldest[number] = record.oldest
        return record

    def finish(self, number: int) -> None:
        held = self._size(number)
        if held[0]:
            collection = self._catalog.existing_period(number).collection
            self._transaction(lambda db: blocks.finish(db, number, collection, held))
            self._recent[number] = 0, 0
            self._purged = False

    def lead(self) -> bool:
        return True  # no other one may write

    def gather(self) -> bool:
        return False  # done while appending

    def write_part(self, part: FoldPart) -> None:
        self._to_sweep.add(part.number)
        self._transaction(lambda db: retention.write_part(db, part))

    def fold(self, fold: Fold) -> PeriodRecord:
        number, before = fold.number, self._catalog.existing_period(fold.number)

        def work(db: sqlite3.Connection) -> None:
            taken = blocks.last(db, number) + blocks.recent_size(db, number)[0]
            if before.generation is not None or not taken == blocks.last(db, number) == fold.sequence:
                raise StorageError("the collection changed while it was being compacted: compact it again")
            retention.put_in_force(db, fold)

        self._transaction(work)
        self._folded.add(number)
        self._to_sweep.add(number)
        return self._catalog.existing_period(number)

    def drop_period(self, number: int) -> PeriodRecord:
        if self._catalog.existing_period(number).generation is None:
            raise StorageError("a period is folded before its counts are dropped")
        self._transaction(lambda _: self._catalog.drop_period(number))
        self._to_sweep.add(number)
        return self._catalog.existing_period(number)

    def compact(self, number: int) -> CollectionRecord:
        def work(_: sqlite3.Connection) -> None:
            if any(period.generation is None for period in self._catalog.periods(number)):
                raise StorageError("the collection changed while it was being compacted: compact it again")
            self._catalog.compact(number)

        self._transaction(work)
        self.seal(number)
        self._over.add(number)
        return self._catalog.existing(number)

    def sweep(self) -> bool:
        rows, free = self.db.total_changes, self._free_pages()
        found = self._sweep_slice()
        if found:  # rows and pages that are dropped are overwritten, and pages that are given back are moved
            pages = self.db.total_changes - rows + abs(self._free_pages() - free)
            self._wal.wrote(PAGE * pages)
        return found

    def _free_pages(self) -> int:
        with translated(self.path):
            free: int = self.db.execute("PRAGMA freelist_count").fetchone()[0]
        return free

    def _sweep_slice(self) -> bool:
        for number in sorted(self._to_sweep):
            period = self.period(number)
            if period is not None and self._transaction(lambda db, one=period: retention.sweep_slice(db, one)):  # type: ignore[misc]
                self._purged = False
                self._recent.pop(number, None)
                return True
            self._to_sweep.discard(number)
        for number in sorted(self._over):
            record = self._catalog.existing(number)
            if self._transaction(lambda db, one=record: retention.sweep_tokens(db, one)):  # type: ignore[misc]
                self._purged = False
                return True
            self._over.discard(number)
        with translated(self.path):
            return retention.give_back(self.db)

    def lay_anew(self) -> bool:
        if not self._unlaid:
            return False
        numbers = self._laid_together()
        try:
            self._transaction(lambda db: self._lay(db, numbers))
        except Corrupt:
            numbers = numbers[:1]
            with suppress(Corrupt):  # the other periods go on, and counting says that this one is damaged
                self._transaction(lambda db: self._lay(db, numbers))
        self._unlaid.difference_update(numbers)
        self._wal.wrote(sum(self._size(number)[1] for number in numbers))
        self._purged = False
        return True

    def _laid_together(self) -> list[int]:
        """Periods with recent batches, at least one: about as many as fill a block. One commit each would take long."""
        numbers: list[int] = []
        batches = size = 0
        for number in self._unlaid:
            count, held = self._size(number)
            batches, size = batches + count, size + held
            if numbers and (batches > blocks.BLOCK or size > blocks.BLOCK_BYTES):
                break
            numbers.append(number)
        return numbers

    def _lay(self, db: sqlite3.Connection, numbers: Sequence[int]) -> None:
        for number in numbers:
            blocks.lay_anew(db, number, self._catalog.existing_period(number).collection)

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
        with translated(self.path), transaction(self.db):
            result = work(self.db)
        self._files.check()
        return result


@dataclass
class _Rows:
    """The rows of periods, those of the transaction under way included."""

    known: dict[tuple[int, int], PeriodRecord]
    fresh: dict[tuple[int, int], PeriodRecord]

    def of(self, collection: int, period: int, catalog: Catalog) -> PeriodRecord:
        """The row of a period; it is entered if this is the period's first batch."""
        key = (collection, period)
        row = self.known.get(key) or self.fresh.get(key)
        if row is None:
            row = self.fresh[key] = catalog.existing_period(catalog.add_period(collection, period))
        return row


def _pages(submissions: int, recent: dict[int, tuple[int, int]]) -> int:
    """About how many pages a group touches besides its payload: places and ids are random.

    A page holds some 200 ids or small rows, so there are no more pages than that to touch, and a few at the ends.
    """
    return min(submissions, sum(1 + count // 200 for count, _ in recent.values())) * 2 + 2 * len(recent) + 1
