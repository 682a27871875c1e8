"""The stop: the user's own "no more". It is a small file beside the ledger.

While the file `stopped` lies in the storage directory, this device makes no report, sends nothing that waits, and
fetches no list and no collection. `Client.report` and the sender look for the file, before they look at anything else.
So a stop works with a ledger in any condition, for every program with this storage, and after a restart. Whether it is
there depends on the user alone and never on an item. Its contents are only the time, for the page that shows it: a file
that cannot be read is a stop, too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from ldp_client.errors import Stopped, StorageError

__all__ = ["StopFile", "StopView"]


class StopView(NamedTuple):
    """A stop, and since when it holds (seconds since 1970); None if that is not known."""

    since: int | None


class StopFile:
    """The stop of the storage in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "stopped"
        self.name = str(self._path)
        """While this path exists, the device is stopped."""

    def read(self) -> StopView | None:
        """Return the stop, if there is one."""
        if not os.path.lexists(self.name):
            return None
        try:
            with self._path.open("rb") as file:
                return StopView(int(file.read(32)))
        except FileNotFoundError:
            return StopView(None) if os.path.lexists(self.name) else None
        except (OSError, ValueError):
            return StopView(None)

    def refuse(self) -> None:
        """Raise Stopped if there is a stop."""
        if os.path.lexists(self.name):
            raise Stopped

    def put(self, now: int) -> None:
        """Stop, durably. A stop that is there already stays as it is."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not os.path.lexists(self.name):  # the directory's own name is that of a file
                raise StorageError(f"{self._path.parent}: not a directory; reports were not stopped") from None
            return
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror}; reports were not stopped") from None
        try:
            os.write(handle, b"%d\n" % now)
            os.fsync(handle)
        except OSError:
            pass  # the file is there, and that is what counts
        finally:
            os.close(handle)
        self._flush_directory()

    def remove(self) -> None:
        """End the stop."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{self._path}: {error.strerror}; reports are still stopped") from None
        self._flush_directory()

    def _flush_directory(self) -> None:
        with contextlib.suppress(OSError):  # not every system can
            handle = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
