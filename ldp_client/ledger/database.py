"""One SQLite file for ledger and outbox, so that a charge and the randomized bytes it paid for are one transaction.

    directory/ledger.sqlite   WAL mode, synchronous=FULL: what is committed survives a power cut
    directory/ledger.witness     how far the ledger had come (witness.py)

The file is believed only while everything fits; what does not fit raises StorageUntrusted, which counts as "budget
spent" until `reset`. It fits when

- ledger and witness are both there, or nothing was ever charged;
- they name the same instance, and the ledger's generation is not below the witness's, nor below what this process has
  seen itself;
- SQLite finds the file sound, every row passes its check sum and the running totals add up (schema.py): looked at in
  full when a process first opens the file; the state's row and the newest entry whenever somebody else has written.

One report is one transaction that adds one row, with the answer, its charge, the totals after it and the batch to be
sent; then one small write to the witness. Everything else waits for the sender (outbox.py).

Full, read-only or locked storage is a plain StorageError: nothing was changed, and the call may be tried again.
Not on network file systems: SQLite's write-ahead log needs memory that all processes share.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ldp_client.errors import InvalidSpec, StorageError, StorageUntrusted
from ldp_client.ledger import schema
from ldp_client.ledger.forks import leak
from ldp_client.ledger.repair import mend, set_aside
from ldp_client.ledger.schema import SCHEMA_VERSION, Damaged, Recent, State
from ldp_client.ledger.witness import Progress, Witness, WitnessDamaged

__all__ = ["Storage"]

_BUSY_SECONDS = 10.0
_TROUBLE = (sqlite3.Error, Damaged, WitnessDamaged)
_CHECKPOINT_PAGES = 2000
"""How long the write-ahead log grows (two megabytes, some 600 reports) before whoever commits folds it into the file.
From there on it is written over from its beginning, and a commit takes half as long as one that makes it longer."""
_PAGE_BYTES = 1024  # a report touches three pages: the fewer bytes, the shorter its commit


class _Link:
    """One connection with its lock, and the state as its last transaction left it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.file: tuple[int, int] | None = None
        self.known: State | None = None
        self._version = 0

    def state(self, db: sqlite3.Connection) -> State:
        """Return the state as this transaction finds it: as the last one left it, if nobody else wrote meanwhile.

        Then SQLite would give what it holds in memory, too. A transaction that does not end well is not remembered.
        """
        known, self.known = self.known, None  # until this one has come to its end
        (version,) = db.execute("PRAGMA data_version").fetchone()  # another one if another connection has committed
        if known is not None and version == self._version:
            return known.settled()
        self._version = version
        return schema.read_state(db)

    def drop(self) -> None:
        self.known = None
        db, self.db = self.db, None
        if db is not None:
            db.close()


class Storage:
    """The files in `directory`; safe for several threads and several processes."""

    def __init__(self, directory: str | Path, witness: str | Path | None = None) -> None:
        self.directory = _path(directory, "storage")
        self.path = self.directory / "ledger.sqlite"
        self._name = str(self.path)  # a Path would be worked out anew for every report
        self.witness = Witness(_path(witness, "witness") if witness else self.directory / "ledger.witness")
        self._front, self._back = _Link(), _Link()
        self._seen = Progress(b"", 0)  # how far this process knows that the ledger had come
        self._verified = False
        self._witness_late = False
        self._recent: Recent | None = None

    def __repr__(self) -> str:
        return f"Storage({str(self.directory)!r})"

    # -- transactions

    def charging(self, *, background: bool = False) -> AbstractContextManager[tuple[sqlite3.Connection, State]]:
        """One transaction that may charge: yields connection and state; a changed state is stored with the rest.

        `background` takes the second connection, so that `report` is not held up by this process's own sender.
        """
        return self._transaction(self._back if background else self._front, charges=True)

    @contextmanager
    def working(self) -> Iterator[sqlite3.Connection]:
        """One transaction of the sender, which charges nothing."""
        with self._transaction(self._back) as (db, _):
            yield db

    def reading(self) -> AbstractContextManager[tuple[sqlite3.Connection, State]]:
        """One consistent view."""
        return self._transaction(self._back, writes=False)

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Single look-ups beside this process's own sender."""
        with self._front.lock:
            try:
                yield self._open(self._front)
            except _TROUBLE as error:
                raise self._explained(error, self._front) from None

    @contextmanager
    def _transaction(
        self, link: _Link, *, writes: bool = True, charges: bool = False
    ) -> Iterator[tuple[sqlite3.Connection, State]]:
        with link.lock:
            try:
                db = self._open(link)
                seen = self._seen  # before the view is taken: others may go on meanwhile, and then know more than it
                db.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                try:
                    state = link.state(db)
                    self._check_course(state, seen, alone=writes)
                    state.recent = self._recent
                    if charges and self._witness_late:
                        self.witness.write(self._seen, durable=True)  # without a witness that can write, no charge
                        self._witness_late = False
                    yield db, state
                    if charges and state.grown:
                        state.generation += 1
                        if state.changed:
                            schema.write_state(db, state)
                    if writes:
                        db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                link.known = state
                if charges and state.grown:
                    self._recent = state.recent  # not before: only what is on disk keeps time from going back again
                    self._advance(Progress(state.instance, state.generation))
            except _TROUBLE as error:
                raise self._explained(error, link) from None

    def _advance(self, progress: Progress) -> None:
        self._look_ahead(progress)
        try:
            self.witness.write(progress, durable=progress.generation == 1)
        except StorageError:
            self._witness_late = True  # the charge stands; the next one has to wait for the witness

    # -- housekeeping

    def exists(self) -> bool:
        """Whether there is a ledger or a witness already, as far as this process may see."""
        try:
            return self.path.exists() or self.witness.path.exists()
        except OSError:
            return False  # whoever uses it will be told

    def close(self) -> None:
        """Close both connections; the next use opens them again."""
        with self._front.lock, self._back.lock:
            if self._front.db is not None and self._seen.generation:
                with contextlib.suppress(StorageError):  # the witness may lag; it must not keep an app from closing
                    self.witness.write(self._seen, durable=True)
            self._front.drop()
            self._back.drop()

    def hold(self) -> None:
        """Before a fork: wait until no transaction is under way and close the file, so that the child finds none open.

        SQLite keeps in memory which locks its process has on a file. A child would inherit that belief and not the
        locks, and whoever closes the file next would take itself for the last and delete the log that the child uses.
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
        """In a child process: forget everything of the parent's without touching it."""
        for link in (self._front, self._back):
            if link.db is not None:
                leak(link.db)  # even closing it would touch the parent's files
        self._front, self._back = _Link(), _Link()

    def problem(self) -> StorageError | None:
        """What is wrong with the storage, if anything."""
        try:
            with self.reading():
                return None
        except StorageError as error:
            return error

    # -- opening

    def _open(self, link: _Link) -> sqlite3.Connection:
        if link.db is not None:
            if _file(self._name) == link.file:
                return link.db
            link.drop()  # the file was replaced or removed under us: look at what is there now
            self._verified = False
        try:
            self._ensure_file()
        except OSError as error:
            raise StorageError(f"{self.directory}: {error.strerror}; nothing was charged or stored") from None
        file = _file(self._name)
        db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            self._ensure_tables(db)
            self._believe(db)
        except UnicodeDecodeError:  # sqlite3 stumbling over its own message about a damaged schema
            db.close()
            raise Damaged("it is damaged") from None
        except BaseException:
            db.close()
            raise
        link.db, link.file = db, file
        return db

    def _ensure_file(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.path.exists():
            return
        progress = self.witness.read()
        if progress is not None and progress.generation:
            raise self._untrusted("its file is missing")
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))  # SQLite's other files take over its mode

    def _ensure_tables(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            _wal(db)
            db.execute("BEGIN IMMEDIATE")
            try:
                version = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been first
                if version == 0:
                    self._create(db)
                    version = SCHEMA_VERSION
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        if version != SCHEMA_VERSION:
            raise StorageError(f"{self.path}: made by another version of this library (its schema is {version})")

    def _create(self, db: sqlite3.Connection) -> None:
        progress = self.witness.read()
        if progress is not None and progress.generation:
            raise self._untrusted("its file is empty")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StorageError(f"{self.path}: a database of something else")
        state = State(schema.new_instance(), 0, 0, 0, 0)
        schema.create(db, state)
        self.witness.replace(Progress(state.instance, 0))

    def _believe(self, db: sqlite3.Connection) -> None:
        progress, seen = self.witness.read(), self._seen  # before the state: they only ever lag behind it
        db.execute("BEGIN")
        try:
            if not self._verified:
                schema.verify(db)
            state = schema.read_state(db)
            self._check_course(state, seen, alone=False)
        finally:
            db.execute("ROLLBACK")
        self._compare(state, progress)
        self._verified = True
        self._look_ahead(Progress(state.instance, state.generation))
        if progress is None or progress.generation < state.generation:
            self.witness.write(Progress(state.instance, state.generation), durable=True)

    def _look_ahead(self, progress: Progress) -> None:
        """Remember how far the ledger has come; threads may say so in any order."""
        if progress.instance != self._seen.instance:
            self._recent = None
            self._seen = progress
        elif progress.generation > self._seen.generation:
            self._seen = progress

    def _check_course(self, state: State, seen: Progress, *, alone: bool) -> None:
        """Refuse a state that is behind what this process has seen. `alone`: nobody else can commit meanwhile."""
        if state.instance == seen.instance:
            if state.generation < seen.generation:
                raise self._untrusted("it is an older copy of itself")
        elif seen.instance:  # another process has reset the ledger
            self._recent = None
            if alone:
                self._compare(state, self.witness.read())

    def _compare(self, state: State, progress: Progress | None) -> None:
        if progress is None:
            if state.generation:
                raise self._untrusted("its witness is missing")
        elif progress.instance != state.instance:
            raise self._untrusted("its witness belongs to another ledger")
        elif state.generation < progress.generation:
            raise self._untrusted("it is an older copy of itself")

    # -- reset

    def reset(self, reason: str, now: int) -> str:
        """Believe the ledger again, or begin a new one if it cannot be read; return what was wrong.

        Everything that can still be read stays: answers stand and known charges still count. The ledger's time
        becomes `now`. Without a readable file the budget begins anew, and the old file is kept beside it.
        """
        if not reason.strip():
            raise ValueError("a reset needs a reason")
        with self._front.lock, self._back.lock:
            found = str(self.problem() or "nothing").replace(str(self.path), "").strip()
            found = found.split(";")[0]
            self._front.drop()
            self._back.drop()
            self._seen, self._verified = Progress(b"", 0), False
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
        with self.reading():
            pass  # makes the files anew
        self._front.drop()
        self._back.drop()
        mend(self.path, self.witness, reason, now, found)

    # -- errors

    def _explained(self, error: Exception, link: _Link) -> StorageError:
        if isinstance(error, WitnessDamaged):
            return self._untrusted("its witness is damaged")
        if not isinstance(error, sqlite3.Error):
            return self._untrusted(str(error))
        if schema.code(error) != sqlite3.SQLITE_BUSY:
            link.drop()  # a fresh start once the disk is well again
        if schema.is_damage(error):
            return self._untrusted("it is damaged")
        return StorageError(f"{self.path}: {error}; nothing was charged or stored")

    def _untrusted(self, problem: str) -> StorageUntrusted:
        return StorageUntrusted(
            f"the ledger {self.path} cannot be trusted: {problem}; its whole budget counts as spent until a reset "
            "(Client.reset, or ldp-client ledger --reset)"
        )


def _path(given: str | Path, name: str) -> Path:
    """Return the path that an app means."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:
        raise InvalidSpec(f"{name}: no home directory is known for {str(given)!r}") from None
    if not str(given) or "\0" in str(given):
        raise InvalidSpec(f"{name}: not a path")
    return path


def _wal(db: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite does not wait by itself for another process that does the same."""
    for attempt in range(50):
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if schema.code(error) != sqlite3.SQLITE_BUSY or attempt == 49:
                raise
            time.sleep(0.02)


def _file(path: str) -> tuple[int, int] | None:
    """Which file lies at `path`."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path's own stat is slower, and this is part of every report
    except OSError:
        return None
    return found.st_dev, found.st_ino
