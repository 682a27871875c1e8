"""Files that hold what only the operator may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

__all__ = ["create_private"]


def create_private(path: Path) -> BinaryIO:
    """Create a file with mode 0600 for writing, whatever the umask; raises FileExistsError if there is one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(handle, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "wb")
