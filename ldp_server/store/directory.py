"""The data directory: what lies in it, and the lock that keeps a second server out.

DIR/lock               held (flock) by the one serving process; its text is that process's number
DIR/log.db             collections, batches, folded counts, used admission tokens: all that cannot be computed again
DIR/access.db          analyst tokens, hashed
DIR/states/ID.state    checkpoints of counts; they may be deleted at any time
DIR/address            where the running server takes operators' calls
DIR/local.token        an analyst token for commands on this machine (mode 0600)
DIR/cosignatures.json  the witnesses' signatures of the present signed list
DIR/moved              the store to which everything was moved (ldp_server/moving); no server opens the log then
DIR/log.db.moving      a log that a move has not filled yet
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ldp_server.store.errors import InUse, StorageError, translated

__all__ = ["DataDirectory", "DirectoryLock", "Lockable", "is_held"]


class DataDirectory:
    """The paths of one data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / "lock"
        self.log = root / "log.db"
        self.access = root / "access.db"
        self.states = root / "states"
        self.address = root / "address"
        self.local_token = root / "local.token"
        self.cosignatures = root / "cosignatures.json"
        self.moved = root / "moved"
        self.moving = root / "log.db.moving"

    def _holds_log(self) -> bool:
        """Whether there is a log. SQLite would take a file without bytes for a new database."""
        with translated(self.log):
            return self.log.exists() and (not self.log.is_file() or self.log.stat().st_size > 0)

    def moved_to(self) -> str | None:
        """The name of the store to which everything was moved, if it was."""
        with translated(self.moved):
            return self.moved.read_text("utf-8").strip() if self.moved.exists() else None

    def refuse_moved(self) -> None:
        """Raise `StorageError` if everything was moved away."""
        target = self.moved_to()
        if target is not None:
            raise StorageError(
                f"everything in {self.root} was moved to {target}: serve that store. To serve this one all the same, "
                f"without what came there since, remove {self.moved}"
            )

    def create(self) -> Self:
        """Make what is missing, readable by its owner alone. No log is made beside the files of one that is gone."""
        with translated(self.root):
            unlogged, moving = self.access.exists() and not self._holds_log(), self.moving.exists()
        if unlogged:
            gone = "has no bytes" if self.log.exists() else "is missing"
            raise StorageError(
                f"{self.log} {gone}, though {self.access.name} is there: restore a backup (docs/operating.md), "
                f"or remove {self.access.name} to begin with an empty log"
            )
        if moving and not self.log.exists():
            raise StorageError(
                f"{self.root} is being filled by `ldp-server migrate`: run it again to the end, "
                f"or remove {self.moving.name} to begin with an empty log"
            )
        with translated(self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.states.mkdir(exist_ok=True, mode=0o700)
        return self

    def served(self) -> bool:
        """Whether a server runs on this directory."""
        return is_held(self.lock)

    def require(self) -> Self:
        """Raise `StorageError` if the directory holds no log."""
        if not self.log.is_file() or not self._holds_log():
            raise StorageError(f"{self.root} holds no Hearsay log: start it with `ldp-server serve` first")
        return self


def is_held(lock: Path) -> bool:
    """Whether a running server holds this lock, or its directory."""
    for path in (lock, lock.parent):
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            continue
        finally:
            os.close(handle)
    return False


class Lockable(Protocol):
    """A data directory with a file for its lock."""

    @property
    def lock(self) -> Path: ...


class DirectoryLock:
    """The exclusive right to serve a data directory. The kernel takes it back when the process ends, in any way.

    The directory itself is locked, too: somebody may remove the file, and a second server would make a new one.
    """

    def __init__(self, directory: Lockable) -> None:
        self._path = directory.lock
        self._handles: tuple[int, ...] = ()

    def acquire(self) -> Self:
        """Take the lock, or raise `InUse`."""
        with translated(self._path):
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        handles = (handle, os.open(self._path.parent, os.O_RDONLY))
        try:
            for one in handles:
                fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).strip()
            for one in handles:
                os.close(one)
            who = f"process {holder.decode()}" if holder.isdigit() else "another process"
            raise InUse(f"{self._path.parent} is being served by {who}") from error
        with contextlib.suppress(OSError):  # the number is for people; the lock holds without it, on a full disk too
            os.ftruncate(handle, 0)
            os.write(handle, b"%d\n" % os.getpid())
        self._handles = handles
        return self

    def release(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles = ()

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
