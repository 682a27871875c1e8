"""The write-ahead log: moved into the database file beside the commits, and watched.

A second thread with a connection of its own moves most of it while the writer goes on committing. It uses PASSIVE
mode, which never waits for anybody. It can never catch up with a busy writer, and SQLite starts the log over only when
all of it was moved. So the writer itself moves the rest, in a short pass, once the log has grown past `limit` and the
thread has done most of the work. Without this thread some acknowledgements took a third of a second (measured).

After a process was killed, the write-ahead log is all there is of what was acknowledged last. SQLite reads it up to the
first page whose check sum is wrong, and forgets the rest without a word. So `refuse_damaged` looks at it before SQLite
does. How far the log had come is in the file -shm, which SQLite brings up to date after each fsync. What is written
there and is not in the log was acknowledged and is lost.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import threading
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ldp_server.store.errors import Corrupt, Removed, StorageError, translated
from ldp_server.store.schema import BUSY_SECONDS, connect

__all__ = ["LogFiles", "WalMover", "refuse_damaged"]

START = 16 << 20
LIMIT = 48 << 20
MOST = 3
"""How many times `limit` may have been written before the writer waits for the thread."""


_WAL_HEAD = struct.Struct(">6I")
"""Magic, version, page size, checkpoints, two words of salt. Then comes the check sum of these six, of 8 bytes."""
_MAGIC = 0x377F0682
"""One more if the check sums are about big-endian words."""
_FRAME_HEAD = 24
"""The page's number, the size of the database, the salt again (8), and the check sum (8)."""
_INDEX_HEAD = struct.Struct("=3I2BH2I2I8s2I")
_INDEX_VERSION = 3_007_000
_WORD = 0xFFFF_FFFF

Sum = tuple[int, int]


class _Promised(NamedTuple):
    """What the file -shm says of the write-ahead log."""

    salt: bytes
    frames: int
    """How many pages of it are committed."""
    moved: int
    """How many of them are in the database file."""


def refuse_damaged(path: Path) -> None:
    """Raise `Corrupt` if the write-ahead log of a database that nobody has open lacks what was committed.

    Call it before SQLite opens the file: SQLite then forgets how much there was.
    """
    wal, index = path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")
    with translated(wal):
        promised = _promised(index)
        try:
            with wal.open("rb") as log:
                sound = _holds(log, promised)
        except FileNotFoundError:
            sound = None
        if sound is None:  # nothing is in it: in its place the loss of power may have left an older -shm
            sound = promised is None or promised.frames <= promised.moved or not _since_start(index)
    if not sound:
        raise Corrupt(
            f"{wal} is damaged or cut off, and what was acknowledged last was in it: keep all files, and see "
            '"A damaged write-ahead log" in docs/operating.md'
        )


def _promised(index: Path) -> _Promised | None:
    """Read the head of the file -shm; None if there is none, or it is not sound."""
    size = _INDEX_HEAD.size
    try:
        with index.open("rb") as file:
            data = file.read(2 * size + 4)
    except (FileNotFoundError, IsADirectoryError):
        return None
    if len(data) < 2 * size + 4 or data[:size] != data[size : 2 * size]:
        return None
    found = _INDEX_HEAD.unpack(data[:size])
    sound = found[0] == _INDEX_VERSION and _sum(struct.unpack("=10I", data[:40]), (0, 0)) == found[-2:]
    return _Promised(found[-3], found[6], *struct.unpack("=I", data[2 * size :])) if sound else None


def _holds(log: BinaryIO, promised: _Promised | None) -> bool | None:
    """Whether all pages that are promised are in the log; None if the log is empty."""
    head = log.read(_WAL_HEAD.size + 8)
    after = log.read(1)
    if not after:
        return None
    magic, _, page = _WAL_HEAD.unpack_from(head)[:3]
    order = ">" if magic & 1 else "<"
    sums = _sum(struct.unpack(order + "6I", head[:24]), (0, 0))
    if magic & ~1 != _MAGIC or sums != struct.unpack(">2I", head[24:]):
        return False  # it is made durable before the first page
    if promised is None or promised.salt != head[16:24]:
        return True  # the -shm is of another time, so it says nothing
    log.seek(len(head))
    words = struct.Struct(f"{order}{2 + page // 4}I")
    for _ in range(promised.frames):
        frame = log.read(_FRAME_HEAD + page)
        if len(frame) < _FRAME_HEAD + page or frame[8:16] != promised.salt:
            return False
        sums = _sum(words.unpack(frame[:8] + frame[_FRAME_HEAD:]), sums)
        if sums != struct.unpack(">2I", frame[16:_FRAME_HEAD]):
            return False
    return True


def _sum(words: tuple[int, ...], before: Sum) -> Sum:
    """SQLite's check sum, which goes on from the one before."""
    first, second = before
    pairs = iter(words)
    for one in pairs:
        first = (first + one + second) & _WORD
        second = (second + next(pairs) + first) & _WORD
    return first, second


def _since_start(index: Path) -> bool:
    """Whether the file was written since the machine was started. A file that cannot be looked at was not."""
    try:
        started = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
        return index.stat().st_mtime > int(started.split()[1])
    except (OSError, StopIteration, ValueError):
        return False


class LogFiles:
    """The two files of an open connection. SQLite goes on writing to a file that was removed, and notices nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._opened = (_identity(self._path), _identity(self._wal))

    def check(self) -> None:
        """Raise `Removed` if log.db is another file than the one that was opened, `StorageError` if its -wal file is.

        A process that has a removed write-ahead log open can still move its contents to the database.
        """
        if _identity(self._path) != self._opened[0]:
            raise Removed(f"{self._path} was removed or replaced while it was in use: put it back, then start again")
        if _identity(self._wal) != self._opened[1]:
            raise StorageError(f"{self._wal} was removed or replaced while it was in use")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, and done at every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


class WalMover:
    """Counts how much was written, and moves it when it is time. The writer's thread calls `wrote` and `tend`."""

    def __init__(self, db: sqlite3.Connection, path: Path, start: int = START, limit: int = LIMIT) -> None:
        self._db = db
        self._path = path
        self._start = start
        self._limit = limit
        self._written = 0
        self._asked = threading.Event()
        self._moved = threading.Event()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def wrote(self, size: int) -> None:
        """Note that the write-ahead log grew by about `size` bytes."""
        self._written += size

    def tend(self) -> None:
        """After a commit: ask the thread for a pass, or move the rest, if it is time."""
        if self._busy and self._written >= MOST * self._limit:
            self._moved.wait()  # the thread gets no processor time: the file must not grow without bound
        if self._written < self._start or self._busy:
            return
        if self._written >= self._limit:
            self._finish()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="hearsay-wal", daemon=True)
            self._thread.start()
        self._busy = True
        self._moved.clear()
        self._asked.set()

    def empty(self) -> bool:
        """Move everything and cut the file off; False if it is in use, or too long to move at once."""
        if self._busy or self._written >= self._start:
            return False
        with translated(self._path):
            self._db.execute("PRAGMA busy_timeout = 0")  # the writer waits for no reader
            try:
                busy: int = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}")
        if not busy:
            self._written = 0
        return not busy

    def _finish(self) -> None:
        with translated(self._path):
            busy, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # A reader of an old snapshot may keep the tail. Then the next try comes after as much again.
        self._written = 0 if not busy and pages == moved else self._start

    def _main(self) -> None:
        db = connect(self._path)
        try:
            while True:
                self._asked.wait()
                self._asked.clear()
                if self._closed:
                    return
                with contextlib.suppress(sqlite3.Error):  # the writer meets the same trouble, and reports it
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._written = max(self._written, self._limit)
                self._busy = False
                self._moved.set()
        finally:
            self._busy = False
            self._moved.set()
            db.close()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join()
