"""SQLite in a data directory: one server, and any number of readers on its machine."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from ldp_server.store.access import AccessFile
from ldp_server.store.directory import DataDirectory, DirectoryLock
from ldp_server.store.interface.store import Changed, Store, StoreUsage
from ldp_server.store.reader import SqliteReader, backup
from ldp_server.store.sqlite import SqliteLog
from ldp_server.store.wal import refuse_damaged

__all__ = ["EmbeddedStore"]


class EmbeddedStore(Store):
    """The files of one data directory."""

    shared = False

    def __init__(self, data: Path) -> None:
        self._directory = DataDirectory(data)
        self.name = str(data)

    def serving(self) -> AbstractContextManager[object]:
        self._directory.create().refuse_moved()
        return DirectoryLock(self._directory)

    def prepare(self, *, roles: bool = False) -> None:
        """Opening the log for writing does it."""

    def require_rights(self, *, keeps: bool) -> None:
        """Whoever may write the files may do everything. Opening them says so."""

    def writer(self) -> SqliteLog:
        return SqliteLog(self._directory.log)

    def reader(self) -> SqliteReader:
        return SqliteReader(self._directory.log)

    def access(self, clock: Callable[[], float]) -> AccessFile:
        return AccessFile(self._directory.access, clock)

    def watch(self, changed: Changed) -> AbstractContextManager[object]:  # noqa: ARG002 - nobody else changes it
        return contextlib.nullcontext()

    def usage(self) -> StoreUsage:
        """Size of the database on disk, write-ahead log included."""
        used = 0
        for name in ("log.db", "log.db-wal"):
            with contextlib.suppress(OSError):
                used += os.stat(self._directory.root / name).st_size  # noqa: PTH116 - two names, one line
        return StoreUsage(used, shutil.disk_usage(self._directory.root).free)

    def backup(self, target: Path) -> None:
        if not self._directory.require().served():
            refuse_damaged(self._directory.log)
        backup(self._directory.log, target)

    def environment(self) -> Mapping[str, str]:
        return {"LDP_SERVER_STORE": ""}
