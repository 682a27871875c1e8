"""Copying a log as of one moment, while a server may be writing it.

The copy is written row by row and not page by page, so its pages keep nothing of the order in which batches came.
"""

from __future__ import annotations

import os
from pathlib import Path

from ldp_server.store.errors import StorageError, translated
from ldp_server.store.schema import connect

__all__ = ["backup"]


def backup(source: Path, target: Path) -> None:
    """Copy a log to a new file that only its owner can read (mode 0600)."""
    if target.exists():
        raise StorageError(f"{target} exists: a backup never overwrites a file")
    draft = target.with_name(target.name + ".draft")
    draft.unlink(missing_ok=True)
    origin = connect(source, read_only=True)
    try:
        with translated(target):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with translated(target):
            origin.execute("VACUUM INTO ?", (str(draft),))
            with draft.open("rb") as copy:
                os.fsync(copy.fileno())
            draft.replace(target)
    finally:
        origin.close()
        draft.unlink(missing_ok=True)
