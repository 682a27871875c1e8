"""Files that only their owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ldp_client.errors import InvalidSpec
from ldp_server.store.errors import translated

__all__ = ["new_private_file", "replaced_private_file"]


@contextmanager
def new_private_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file of mode 0600. It must not exist yet. If the block fails, the file is removed."""
    with translated(path):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise InvalidSpec(f"{path} exists already: give the name of a new file") from None
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def replaced_private_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file of mode 0600. When it is complete, it replaces the file of that name."""
    draft = path.with_name(path.name + ".draft")
    with translated(path):
        draft.unlink(missing_ok=True)
    with new_private_file(draft) as file:
        yield file
    with translated(path):
        draft.replace(path)
