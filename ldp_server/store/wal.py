"""Moving the write-ahead log into the database file, beside the commits and not inside them.

A second thread with a connection of its own moves most of it while the writer goes on committing (PASSIVE never
waits for anybody). It can never catch up with a busy writer, and only a log that was moved *completely* is started
over; so the writer adds a short pass of its own once the log has grown past `LIMIT` and the thread has done the
bulk. Measured without this: a stall of a third of a second in the middle of somebody's acknowledgement.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading

from ldp_server.store.errors import translated
from ldp_server.store.schema import connect
from ldp_server.store.sqlite import SqliteLog

__all__ = ["Checkpointer"]

START = 16 << 20
LIMIT = 48 << 20


class Checkpointer:
    """Watches how much was written; called by the writer thread after each commit."""

    def __init__(self, log: SqliteLog, start: int = START, limit: int = LIMIT) -> None:
        self._log = log
        self._start = start
        self._limit = limit
        self._asked = threading.Event()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def after_commit(self) -> None:
        """Ask the thread for a pass, or do the last bit, when it is time."""
        written = self._log.written
        if written < self._start or self._busy:
            return
        if written >= self._limit:
            self._finish()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="hearsay-checkpoint", daemon=True)
            self._thread.start()
        self._busy = True
        self._asked.set()

    def _finish(self) -> None:
        with translated(self._log.path):
            busy, pages, moved = self._log.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # A reader in the middle of an old snapshot may keep the tail: try again after as much again.
        self._log.written = 0 if not busy and pages == moved else self._start

    def _main(self) -> None:
        db = connect(self._log.path)
        try:
            while True:
                self._asked.wait()
                self._asked.clear()
                if self._closed:
                    return
                with contextlib.suppress(sqlite3.Error):  # the writer meets the same trouble, and can say so
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._log.written = max(self._log.written, self._limit)
                self._busy = False
        finally:
            db.close()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join()
