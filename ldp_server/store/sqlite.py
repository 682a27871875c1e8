"""The report log on SQLite: the embedded default.

One `SqliteLog` for writing (owned by the writer thread of commit.py), any number of read-only ones in other
threads and processes: in WAL mode readers never wait for the writer, nor it for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ldp_server.store.catalog import Catalog
from ldp_server.store.errors import Corrupt, translated
from ldp_server.store.insert import insert_run, runs
from ldp_server.store.log import AppendOutcome, ReportLog, StoredBatch, Submission
from ldp_server.store.schema import PAGE, SEQUENCE_BITS, open_log

__all__ = ["SqliteLog"]

T = TypeVar("T")
_MASK = (1 << SEQUENCE_BITS) - 1
_ROWS = 4096


class SqliteLog(ReportLog):
    """Batches in log.db. Opening one checks the file and brings its schema up to date."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.db: sqlite3.Connection = open_log(path, read_only=read_only)
        self.catalog = Catalog(self.db, path)
        self._last: dict[int, int] = {}
        self._sealed: set[int] = {record.number for record in self.catalog.records() if record.sealed}
        self.written = 0
        """About how many bytes the write-ahead log has grown since it was last moved into the file."""

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    def seal(self, collection: int) -> None:
        """From now on `append` refuses the collection's batches."""
        self._sealed.add(collection)

    def unseal(self, collection: int) -> None:
        """Take `seal` back, unless the catalog says that the collection takes nothing more."""
        record = self.catalog.by_number(collection)
        if record is not None and not record.sealed:
            self._sealed.discard(collection)

    def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
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

    def append(self, batches: Sequence[Submission]) -> list[AppendOutcome]:
        """Keep the batches, in one commit."""
        outcomes = [AppendOutcome.SEALED] * len(batches)
        last: dict[int, int] = {}

        def work(db: sqlite3.Connection) -> None:
            for places in runs(batches):
                collection = batches[places[0]].collection
                if collection in self._sealed:
                    continue
                before = last[collection] if collection in last else self.last(collection)
                fates, last[collection] = insert_run(db, [batches[place] for place in places], before)
                for place, fate in zip(places, fates, strict=True):
                    outcomes[place] = fate

        self.transaction(work)
        self._last.update(last)  # only now: a rolled-back sequence must not leave a gap that looks like a loss
        self.written += sum(len(batch.payload) for batch in batches) + PAGE * self._pages(len(batches), last)
        return outcomes

    @staticmethod
    def _pages(batches: int, last: dict[int, int]) -> int:
        """About how many pages a group touches besides its payload: ids are random, and fall anywhere in the index.

        A page of the index holds some 200 ids, so there are no more pages than that to touch; and a few at the ends.
        """
        return min(batches, sum(1 + sequence // 200 for sequence in last.values())) + 2 * len(last) + 1

    def last(self, collection: int) -> int:
        """The newest sequence of a collection."""
        if collection not in self._last:
            low, high = collection << SEQUENCE_BITS, (collection + 1) << SEQUENCE_BITS
            with translated(self.path):
                newest = self.db.execute(
                    "SELECT max(position) FROM batches WHERE position > ? AND position < ?", (low, high)
                ).fetchone()[0]
                folded = self.db.execute("SELECT folded FROM collections WHERE number = ?", (collection,)).fetchone()
            self._last[collection] = max(newest & _MASK if newest else 0, folded[0] if folded else 0)
        return self._last[collection]

    def forget_last(self, collection: int) -> None:
        """Look in the file for the newest sequence next time: another process is the writer."""
        self._last.pop(collection, None)

    def read(self, collection: int, after: int, *, max_bytes: int = 4_000_000) -> Iterator[list[StoredBatch]]:
        """Batches after a sequence. Each list is one short read transaction, so the writer is never held up."""
        low, high = collection << SEQUENCE_BITS, (collection + 1) << SEQUENCE_BITS
        position = low + after
        while True:
            found: list[StoredBatch] = []
            size = 0
            with translated(self.path):
                cursor = self.db.execute(
                    "SELECT position, batch_id, payload FROM batches WHERE position > ? AND position < ? "
                    "ORDER BY position LIMIT ?",
                    (position, high, max(1, min(_ROWS * 16, max_bytes))),
                )
                while size < max_bytes and (rows := cursor.fetchmany(256)):
                    found.extend([StoredBatch(row[0] & _MASK, row[1], row[2]) for row in rows])
                    size += sum([len(row[2]) for row in rows])
                cursor.close()
            if not found:
                return
            yield found
            position = low + found[-1].sequence

    def holds(self, collection: int, sequence: int, batch_id: bytes) -> bool:
        """Whether the batch with this sequence is the one with this id: ties a checkpoint to this very log."""
        with translated(self.path):
            row = self.db.execute(
                "SELECT batch_id FROM batches WHERE position = ?", ((collection << SEQUENCE_BITS) + sequence,)
            ).fetchone()
        return row is not None and row[0] == batch_id

    def check(self) -> None:
        """Raise `Corrupt` if SQLite finds the file's structure damaged."""
        with translated(self.path):
            verdict = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise Corrupt(f"{self.path} is damaged: restore a backup (docs/operating.md)")
