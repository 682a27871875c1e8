"""Checkpoints of additive state: the counts up to a position of the log, in one file for each collection.

    "HSCP" | version 1 | collection id (32) | sequence (8) | reports (8) | batches (8) | batch id at sequence (16)
    | length (8) | state | SHA-256 of everything before

A checkpoint can always be computed again. If it is damaged, or belongs to a log that was since replaced by an older
backup, it is not used and the counts are built from the log. The batch id at the sequence ties it to this very log.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from ldp_server.store.errors import translated

__all__ = ["Checkpoint", "drop_checkpoint", "read_checkpoint", "write_checkpoint"]

_MAGIC = b"HSCP\x01"
_HEAD = struct.Struct("<5s32sQQQ16sQ")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Counts of everything up to and including `sequence`."""

    collection_id: bytes
    sequence: int
    reports: int
    batches: int
    batch_id: bytes
    state: bytes


def _path(folder: Path, collection_id: bytes) -> Path:
    return folder / f"{collection_id.hex()}.state"


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Replace the collection's checkpoint, all or nothing."""
    path = _path(folder, checkpoint.collection_id)
    head = _HEAD.pack(
        _MAGIC,
        checkpoint.collection_id,
        checkpoint.sequence,
        checkpoint.reports,
        checkpoint.batches,
        checkpoint.batch_id,
        len(checkpoint.state),
    )
    digest = hashlib.sha256(head)
    digest.update(checkpoint.state)
    draft = path.with_suffix(".draft")
    with translated(path):
        with draft.open("wb") as file:
            file.write(head)
            file.write(checkpoint.state)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path


def read_checkpoint(folder: Path, collection_id: bytes) -> Checkpoint | None:
    """The collection's checkpoint, or None if there is no sound one."""
    try:
        data = _path(folder, collection_id).read_bytes()
    except OSError:
        return None
    if len(data) < _HEAD.size + 32:
        return None
    magic, held, sequence, reports, batches, batch_id, length = _HEAD.unpack_from(data)
    if magic != _MAGIC or held != collection_id or len(data) != _HEAD.size + length + 32:
        return None
    if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
        return None
    return Checkpoint(collection_id, sequence, reports, batches, batch_id, data[_HEAD.size : -32])


def drop_checkpoint(folder: Path, collection_id: bytes) -> None:
    """Delete the collection's checkpoint."""
    with contextlib.suppress(OSError):
        _path(folder, collection_id).unlink()
