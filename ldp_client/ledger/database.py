"""One SQLite file for ledger and outbox, so that a charge, the randomized bytes and their batch are one transaction.

    directory/ledger.sqlite    WAL mode, synchronous=FULL: a commit survives a power cut
    directory/ledger.witness   how far the ledger had come (witness.py)
    directory/sending.lock     held by the one process that is sending (sending/lock.py)

The ledger is trusted only while everything fits. Otherwise StorageUntrusted is raised, which counts as "budget spent"
until `reset`. It fits when

- ledger and witness both exist, or nothing was ever charged;
- both name the same instance, and the ledger's generation is not below the witness's, nor below what this process has
  seen;
- SQLite finds the file sound, every row passes its check sum and the running totals add up (schema.py). A process
  checks this in full when it opens the file. Whenever another connection has written, it checks the row of `state` and
  the newest entry.

A report is one write transaction: an entry (the answer, its charge, the totals) and the batch to be sent. Then the
witness is written. Looking is a read-only transaction: it makes no file and changes none.

A full, read-only or locked disk is a plain StorageError: nothing was changed, and the call may be repeated.
Network file systems are not supported: SQLite's write-ahead log needs memory that all processes share.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ldp_client.clock import Clock
from ldp_client.errors import InvalidSpec, StorageError, StorageUntrusted
from ldp_client.ledger import schema
from ldp_client.ledger.connection import Link, local_path
from ldp_client.ledger.course import Course
from ldp_client.ledger.moment import note_progress
from ldp_client.ledger.opening import Opening
from ldp_client.ledger.repair import mend, set_aside
from ldp_client.ledger.schema import Damaged, State
from ldp_client.ledger.witness import Witness, WitnessDamaged

__all__ = ["Storage"]

_TROUBLE = (sqlite3.Error, Damaged, WitnessDamaged)


class Storage:
    """The files in `directory`; safe for several threads and several processes."""

    def __init__(self, directory: str | Path, witness: str | Path | None = None) -> None:
        self.directory = local_path(directory, "storage")
        self.path = self.directory / "ledger.sqlite"
        self.witness = Witness(local_path(witness, "witness") if witness else self.directory / "ledger.witness")
        self._course = Course(self.witness)
        self._opening = Opening(self.path, self._course)
        self._front, self._back = Link(), Link()

    def __repr__(self) -> str:
        return f"Storage({str(self.directory)!r})"

    # -- transactions

    def charging(self, *, background: bool = False) -> AbstractContextManager[tuple[sqlite3.Connection, State]]:
        """One transaction that may charge. It yields connection and state; a changed state is stored with the rest.

        `background` takes the second connection, so that `report` does not wait for this process's own sender.
        """
        return self._writing(self._back if background else self._front, charges=True)

    @contextmanager
    def working(self) -> Iterator[sqlite3.Connection]:
        """One write transaction of the sender, which charges nothing."""
        with self._writing(self._back, charges=False) as (db, _):
            yield db

    def note_time(self, clock: Clock, period: int) -> None:
        """Remember the time that has passed although nothing could be charged (moment.py)."""
        with contextlib.suppress(StorageError), self.charging(background=True) as (_, state):
            note_progress(state, clock, period)

    @contextmanager
    def _writing(self, link: Link, *, charges: bool) -> Iterator[tuple[sqlite3.Connection, State]]:
        course = self._course
        with link.lock:
            try:
                db = self._opening.open(link)
                seen = course.seen  # read before the transaction begins: other threads may go on meanwhile
                db.execute("BEGIN IMMEDIATE")
                try:
                    state = link.state(db)
                    course.check(state, seen, alone=True)
                    state.recent = course.recent
                    if charges:
                        course.before_charge()
                    yield db, state
                    if charges and state.grown:
                        state.generation += 1
                        if state.changed:
                            schema.write_state(db, state)
                    db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                link.known = state
                if not charges:
                    state.outbox = None  # the sender may have removed batches
                if charges and state.grown:
                    course.after_charge(state)
            except _TROUBLE as error:
                raise self._explained(error, link) from None

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """One consistent view that cannot write. Before the first report it shows an empty ledger and makes no file."""
        link, course = self._back, self._course
        with link.lock:
            try:
                db = self._opening.open_to_read(link)
                if db is None:
                    with schema.blank() as view:
                        yield view
                    return
                seen = course.seen
                db.execute("PRAGMA query_only = 1")
                try:
                    db.execute("BEGIN")
                    state = link.state(db)
                    course.check(state, seen, alone=False)
                    state.recent = course.recent
                    yield db, state
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    db.execute("PRAGMA query_only = 0")
                link.known = state
            except _TROUBLE as error:
                raise self._explained(error, link) from None

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Single look-ups that do not wait for this process's own sender."""
        with self._front.lock:
            try:
                yield self._opening.open(self._front)
            except _TROUBLE as error:
                raise self._explained(error, self._front) from None

    # -- housekeeping

    def exists(self) -> bool:
        """Return whether a ledger or a witness is there, as far as this process may see."""
        try:
            return self.path.exists() or self.witness.path.exists()
        except OSError:
            return False  # the next transaction says what is wrong

    def close(self) -> None:
        """Close both connections; the next use opens them again."""
        with self._front.lock, self._back.lock:
            if self._front.db is not None and self._course.seen.generation:
                with contextlib.suppress(StorageError):  # a late witness must not keep an app from closing
                    self.witness.write(self._course.seen, durable=True)
            self._drop()

    def _drop(self) -> None:
        self._front.drop()
        self._back.drop()

    def hold(self) -> None:
        """Before a fork: wait until no transaction is under way and close the file, so that the child finds none open.

        SQLite keeps in memory which locks its process has on a file. A child would inherit that memory but not the
        locks. Whoever closes the file next would then take itself for the last and delete the log that the child uses.
        """
        self._front.lock.acquire()
        self._back.lock.acquire()
        for link in (self._front, self._back):
            if link.db is not None and not link.db.in_transaction:  # in one: this thread forks amid its own
                with contextlib.suppress(sqlite3.Error):
                    link.drop()

    def let_go(self) -> None:
        """After a fork, in the parent."""
        self._back.lock.release()
        self._front.lock.release()

    def forked(self) -> None:
        """In a child process: forget the parent's connections without touching them."""
        for link in (self._front, self._back):
            link.leak()
        self._front, self._back = Link(), Link()

    def problem(self) -> StorageError | None:
        """Return what is wrong with the storage, if anything."""
        try:
            with self.reading():
                return None
        except StorageError as error:
            return error

    # -- reset

    def reset(self, reason: str, now: int) -> str:
        """Trust the ledger again, or begin a new one if it cannot be read; return what was wrong.

        Everything that can be read stays: answers stand and charges count. The ledger's time becomes `now`. If the file
        cannot be read, the budget begins anew and the old file is kept beside the new one.
        """
        if not reason.strip():
            raise InvalidSpec("a reset needs a reason: say why the ledger may be trusted again")
        with self._front.lock, self._back.lock:
            found = str(self.problem() or "nothing").replace(str(self.path), "").strip()
            found = found.split(";")[0]
            self._drop()
            self._opening.forget()
            try:
                self._repair(reason, now, found)
            except OSError as error:
                raise StorageError(f"{self.directory}: {error.strerror}") from None
            with self.reading():
                return found

    def _repair(self, reason: str, now: int, found: str) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if mend(self.path, self.witness, reason, now, found):
            return
        set_aside(self.path, now)
        self.witness.path.unlink(missing_ok=True)
        with self.working():
            pass  # makes the files anew
        self._drop()
        mend(self.path, self.witness, reason, now, found)

    # -- errors

    def _explained(self, error: Exception, link: Link) -> StorageError:
        if isinstance(error, WitnessDamaged):
            return self._untrusted("its witness is damaged")
        if not isinstance(error, sqlite3.Error):
            return self._untrusted(str(error))
        if schema.code(error) != sqlite3.SQLITE_BUSY:
            link.drop()  # the next use opens the file again
        if schema.is_damage(error):
            return self._untrusted("it is damaged")
        return StorageError(f"{self.path}: {error}; nothing was charged or stored")

    def _untrusted(self, problem: str) -> StorageUntrusted:
        return StorageUntrusted(
            f"the ledger {self.path} cannot be trusted: {problem}; its whole budget counts as spent until a reset "
            "(Client.reset, or ldp-client ledger --reset)"
        )
