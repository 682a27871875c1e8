"""Writing the log on PostgreSQL. Any number of these write at the same time, in any number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ldp_server.store.errors import StorageError
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
from ldp_server.store.postgres import laying, retention
from ldp_server.store.postgres.appending import Notices, append
from ldp_server.store.postgres.connecting import Connection, Destination
from ldp_server.store.postgres.entering import enter, lock, newest, tell
from ldp_server.store.postgres.failures import Again, Lost, translated
from ldp_server.store.postgres.reader import PostgresReader

__all__ = ["PostgresLog"]

T = TypeVar("T")

APPEND_TRIES = 3
"""How often a group is sent: the ids of its batches say what became of the attempts before."""
WORK_TRIES = 3
"""How often other work is done whose transaction the server broke off."""


class PostgresLog(PostgresReader, ReportLog):
    """Writes through one connection. What it is told with a `StorageError` is open, or did not happen."""

    def __init__(self, destination: Destination, *, patient: bool = False) -> None:
        self._sealed: set[int] = set()
        self._tidied = False
        self._leads: Connection | None = None
        """The connection that has the lock of whoever leads: the lock ends with it."""
        super().__init__(destination, writes=True, patient=patient)

    def _open(self) -> Connection:
        known = self._connection
        connection = super()._open()
        if connection is not known or not hasattr(self, "_notices"):
            self._notices = Notices()
            connection.add_notice_handler(self._notices.hear)
            for number in self._sealed:  # the locks of a lost connection are gone
                connection.execute("SELECT pg_advisory_lock(7902, %s)", (number,))
        return connection

    def append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        outcomes = [AppendOutcome.SEALED] * len(submissions)
        places = [place for place, one in enumerate(submissions) if one.collection not in self._sealed]
        if places:
            taken = self._append([submissions[place] for place in places])
            for place, outcome in zip(places, taken, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _append(self, submissions: Sequence[Submission]) -> list[AppendOutcome]:
        for left in reversed(range(APPEND_TRIES)):
            try:
                with translated(self.name):
                    outcomes = append(self._open(), submissions)
                self._notices.check()
            except Lost:
                self._drop()
                if not left:
                    raise
            except Again:
                if not left:
                    raise
            except StorageError:
                self._drop()  # whatever it is, no transaction stays open
                raise
            else:
                return outcomes
        raise AssertionError("APPEND_TRIES is above 0")

    def tend(self) -> None:
        """PostgreSQL keeps its own house."""

    def recover(self) -> None:
        self._drop()
        self._open()

    def add(self, new: NewCollection) -> CollectionRecord:
        def work(db: Connection) -> int:
            lock(db)
            number = newest(db) + 1
            enter(db, new, number, 1)
            return number

        return self._existing(self.transaction(work))

    def close_collection(self, number: int, when: int) -> CollectionRecord:
        self._note(number, "closed = coalesce(closed, %s)", when)
        for period in self.periods(number):
            self.finish(period.number)
        return self._existing(number)

    def delete_collection(self, number: int, when: int) -> CollectionRecord:
        self._note(number, "deleted = coalesce(deleted, %s)", when)
        return self._existing(number)

    def take_from(self, number: int, oldest: int) -> CollectionRecord:
        self._note(number, "oldest = greatest(oldest, %s)", oldest)
        return self._existing(number)

    def _note(self, number: int, change: str, value: object) -> None:
        """Change what appends look at: when this returns, every later append sees it."""

        def work(db: Connection) -> None:
            db.execute("SELECT pg_advisory_xact_lock(7900, %s)", (number,))
            statement = f"UPDATE hearsay.collections SET {change} WHERE number = %s"  # noqa: S608 - ours
            db.execute(statement.encode(), (value, number))
            tell(db, number)

        self.transaction(work)

    def seal(self, number: int) -> None:
        if number not in self._sealed:
            with self._working() as db:
                db.execute("SELECT pg_advisory_lock(7902, %s)", (number,))
            self._sealed.add(number)

    def unseal(self, number: int) -> None:
        if number in self._sealed:
            self._sealed.discard(number)
            with self._working() as db:
                db.execute("SELECT pg_advisory_unlock(7902, %s)", (number,))

    def finish(self, number: int) -> None:
        collection = self._existing_period(number).collection
        while self._lay(number, collection, wait=True):
            pass

    def lead(self) -> bool:
        with self._working() as db:
            if self._leads is not db:
                row = db.execute("SELECT pg_try_advisory_lock(7903, 0)").fetchone()
                self._leads = db if row is not None and row[0] else None
            return self._leads is db

    def gather(self) -> bool:
        with self._working() as db:
            full = laying.full_periods(db)
        done = [self._lay(number, collection, wait=False) for number, collection in full]
        return any(done)

    def _lay(self, number: int, collection: int, *, wait: bool) -> bool:
        """Lay a block; False if there was nothing to lay."""
        with self._working() as db:
            laid = laying.finish(db, number, collection, wait=wait)
        if laid is laying.Laid.IDS_LEFT:
            self._tidied = False
        return laid is not laying.Laid.NOTHING

    def lay_anew(self) -> bool:
        with self._working() as db:
            for number, collection in laying.scattered(db):
                laying.lay_anew(db, number, collection)
            db.execute("SELECT hearsay.lay_records_anew()")
        return False

    def purge(self) -> bool:
        return True  # what is left of rows that were deleted is PostgreSQL's to vacuum

    def write_part(self, part: FoldPart) -> None:
        self.transaction(lambda db: retention.write_part(db, part))

    def fold(self, fold: Fold) -> PeriodRecord:
        collection = self._existing_period(fold.number).collection
        self.transaction(lambda db: retention.put_in_force(db, fold, collection))
        return self._existing_period(fold.number)

    def drop_period(self, number: int) -> PeriodRecord:
        if self._existing_period(number).generation is None:
            raise StorageError("a period is folded before its counts are dropped")
        change = "UPDATE hearsay.periods SET dropped = true WHERE number = %s"
        self.transaction(lambda db: db.execute(change, (number,)))
        return self._existing_period(number)

    def compact(self, number: int) -> CollectionRecord:
        def work(db: Connection) -> None:
            db.execute("SELECT pg_advisory_xact_lock(7900, %s)", (number,))
            changed = db.execute(
                "UPDATE hearsay.collections SET compacted = true WHERE number = %s AND NOT EXISTS "
                "(SELECT FROM hearsay.periods p WHERE p.collection = %s AND p.generation IS NULL)",
                (number, number),
            )
            if changed.rowcount != 1:
                raise StorageError("the collection changed while it was being compacted: compact it again")
            tell(db, number)

        self.transaction(work)
        self.unseal(number)  # its row says so from now on
        return self._existing(number)

    def sweep(self) -> bool:
        if not self._tidied:
            with self._working() as db:
                laying.tidy(db)
            self._tidied = True
        return self.transaction(retention.sweep_one)

    def transaction(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one durable transaction, or leave everything as it was."""
        for left in reversed(range(WORK_TRIES)):
            try:
                with self._working() as db, db.transaction():
                    return work(db)
            except Again:
                if not left:
                    raise
        raise AssertionError("WORK_TRIES is above 0")

    @contextmanager
    def _working(self) -> Iterator[Connection]:
        """The connection, given up if it is lost or answers with a notice."""
        try:
            with translated(self.name):
                yield self._open()
            self._notices.check()
        except Lost:
            self._drop()
            raise
