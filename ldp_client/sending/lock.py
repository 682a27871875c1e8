"""The sender's lock: of all threads and processes that share a storage, one sends at a time.

It is the operating system's lock on the file sending.lock, so it ends with its process however that ends, and nothing
in the ledger has to be written. Without it nothing would be counted twice, because the server knows every batch by its
id; but several processes would keep sending the same batches.

A process that is frozen while it sends delays the others until it goes on or ends.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ldp_client.errors import StorageError

__all__ = ["SendingLock"]

_POLL_SECONDS = 0.02

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _give_back(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _give_back(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)  # closing alone would not do while a forked child has a copy of the handle


class SendingLock:
    """The lock of one client. Each attempt opens the file anew, so the threads of a process exclude each other, too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: int | None = None

    def acquire(self, timeout: float, stopping: Callable[[], bool]) -> bool:
        """Take the lock within `timeout` seconds. False if another thread or process keeps it, or on `stopping`."""
        deadline = time.monotonic() + timeout
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                while not _take(handle):
                    if time.monotonic() >= deadline or stopping():
                        return False
                    time.sleep(_POLL_SECONDS)
                self._held = handle
                return True
            finally:
                if self._held != handle:
                    os.close(handle)
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror}; nothing was sent") from None

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            _give_back(held)
            os.close(held)

    def forked(self) -> None:
        """In a child process: close the copy of the parent's handle. The parent keeps its lock."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)
