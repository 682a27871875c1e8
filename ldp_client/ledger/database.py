"""One SQLite file for ledger and outbox, so that a charge, the randomized bytes and their batch are one transaction.

    directory/ledger.sqlite    WAL mode, synchronous=FULL: a commit survives a power cut
    directory/ledger.witness   how far the ledger had come (witness.py)
    directory/sending.lock     held by the one process that is sending (sending/outbox.py)
    directory/stopped          lies there while the user has stopped reports (stopping.py)

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
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec, StorageError, StorageUntrusted
from ldp_client.ledger import schema
from ldp_client.ledger.forks import leak
from ldp_client.ledger.opening import NotMade, Opening, local_path
from ldp_client.ledger.repair import mend, set_aside
from ldp_client.ledger.schema import Damaged, State
from ldp_client.ledger.stopping import StopFile
from ldp_client.ledger.witness import Witness, WitnessDamaged

__all__ = ["Link", "Storage"]

_TROUBLE = (sqlite3.Error, Damaged, WitnessDamaged)


class Link:
    """One connection with its lock, and the state as its last transaction left it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.file: tuple[int, int] | None = None
        self.known: State | None = None
        self._version = 0

    def state(self, db: sqlite3.Connection) -> State:
        """Return the state as this transaction finds it.

        If no other connection has committed since, it is the state that the last transaction left. A transaction that
        does not end well leaves none.
        """
        known, self.known = self.known, None
        (version,) = db.execute("PRAGMA data_version").fetchone()  # changes when another connection commits
        if known is not None and version == self._version:
            return known.settled()
        self._version = version
        return schema.read_state(db)

    def drop(self) -> None:
        """Close the connection, if there is one."""
        self.known = None
        db, self.db = self.db, None
        if db is not None:
            db.close()

    def leak(self) -> None:
        """In a forked child: even closing the connection would touch the parent's files."""
        if self.db is not None:
            leak(self.db)


class Storage:
    """The files in `directory`; safe for several threads and several processes."""

    def __init__(self, directory: str | Path, witness: str | Path | None = None) -> None:
        self.directory = local_path(directory, "storage")
        self.path = self.directory / "ledger.sqlite"
        self._name = str(self.path)  # converting a Path for every report would cost time
        self.witness = Witness(local_path(witness, "witness") if witness else self.directory / "ledger.witness")
        self.stop = StopFile(self.directory)
        self._opening = Opening(self.path, self.witness)
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

    @contextmanager
    def _writing(self, link: Link, *, charges: bool) -> Iterator[tuple[sqlite3.Connection, State]]:
        witness = self.witness
        with link.lock:
            try:
                db = link.db
                if db is None or _file_at(self._name) != link.file:
                    db = self._open(link)
                seen = witness.seen  # read before the transaction begins: other threads may go on meanwhile
                db.execute("BEGIN IMMEDIATE")
                try:
                    state = link.state(db)
                    witness.check(state, seen, alone=True)
                    state.recent = witness.recent
                    if charges and witness.late:
                        witness.catch_up()
                    yield db, state
                    grown = charges and (state.changed or state.entered)
                    if grown:
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
                if grown:
                    witness.after_charge(state)
            except _TROUBLE as error:
                raise self._explained(error, link) from None

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, State]]:
        """One consistent view that cannot write. Before the first report it shows an empty ledger and makes no file."""
        link, witness = self._back, self.witness
        with link.lock:
            try:
                db = link.db
                if db is None or _file_at(self._name) != link.file:
                    db = self._open_to_read(link)
                if db is None:
                    with schema.blank() as view:
                        yield view
                    return
                seen = witness.seen
                db.execute("PRAGMA query_only = 1")
                try:
                    db.execute("BEGIN")
                    state = link.state(db)
                    witness.check(state, seen, alone=False)
                    state.recent = witness.recent
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
        link = self._front
        with link.lock:
            try:
                db = link.db
                if db is None or _file_at(self._name) != link.file:
                    db = self._open(link)
                yield db
            except _TROUBLE as error:
                raise self._explained(error, link) from None

    # -- opening and closing

    def _open(self, link: Link, *, writes: bool = True) -> sqlite3.Connection:
        """Connect to the file that lies at the path now. Raise NotMade if there is none and nothing is to be made."""
        if link.db is not None:
            link.drop()  # the file was replaced or removed: look at what is there now
            self._opening.verified = False
        self._opening.ensure_file(writes=writes)
        file = _file_at(self._name)  # before connecting: if another file replaces it now, the next use notices
        link.db = self._opening.connect(writes=writes)
        link.file = file
        return link.db

    def _open_to_read(self, link: Link) -> sqlite3.Connection | None:
        """Connect to the file; None if there is none yet. Makes and changes no file."""
        try:
            return self._open(link, writes=False)
        except NotMade:
            return None

    def exists(self) -> bool:
        """Return whether a ledger or a witness is there, as far as this process may see."""
        try:
            return self.path.exists() or self.witness.path.exists()
        except OSError:
            return False  # the next transaction says what is wrong

    def close(self) -> None:
        """Close both connections; the next use opens them again."""
        with self._front.lock, self._back.lock:
            if self._front.db is not None and self.witness.seen.generation:
                with contextlib.suppress(StorageError):  # a late witness must not keep an app from closing
                    self.witness.write(self.witness.seen, durable=True)
            self._drop()

    def _drop(self) -> None:
        self._front.drop()
        self._back.drop()

    def hold(self) -> None:
        """Before a fork: wait until no transaction is under way and close the file, so that the child finds none open.

        SQLite keeps in memory which locks its process has on a file. A child would inherit that memory but not the
        locks. The next process that closes the file would then find no lock, take itself for the last user, and delete
        the log that the child still uses.
        """
        self._front.lock.acquire()
        self._back.lock.acquire()
        for link in (self._front, self._back):
            if link.db is not None and not link.db.in_transaction:  # else this thread forks within a transaction
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
            found = str(self.problem() or "nothing").split(";")[0]
            found = found.replace(f" {self.path}", "").removeprefix(f"{self.path}: ")  # the path says nothing to a user
            self._drop()
            self.witness.forget()
            self._opening.verified = False
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


def _file_at(path: str) -> tuple[int, int] | None:
    """Return which file lies at `path`."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path's own stat is slower, and this is part of every report
    except OSError:
        return None
    return found.st_dev, found.st_ino
