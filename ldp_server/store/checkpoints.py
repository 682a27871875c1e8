"""Checkpoints of additive state: the counts of a part of the log, in one file for each period of a collection.

    "HSCP" | version 3 | collection id (32) | period (8) | sequence (8) | reports (8) | batches (8) | tie (16)
    | recent ids (8) | length of the state (8) | recent ids (16 each, in order) | state | SHA-256 of everything before

It counts the blocks up to `sequence`, and the batches that were recent then, by their ids.

A checkpoint can always be computed again. If it is damaged, or belongs to a log that was since replaced by an older
backup, it is not used and the counts are built from the log. The tie of the last block, and the ids, tie it to this
very log.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldp_server.store.errors import translated

__all__ = [
    "Checkpoint",
    "checkpoint_path",
    "drop_checkpoint",
    "drop_other_checkpoints",
    "read_checkpoint",
    "write_checkpoint",
]

_MAGIC = b"HSCP\x03"
_HEAD = struct.Struct("<5s32sQQQQ16sQQ")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Counts of the blocks up to and including `sequence`, and of some recent batches."""

    collection_id: bytes
    period: int
    sequence: int
    reports: int
    batches: int
    tie: bytes
    recent: Sequence[bytes]
    """Ids of the counted batches that are not in those blocks."""
    state: bytes
    shard: int = 0
    """In which database of a store the batches are. It is in the file's name."""


def checkpoint_path(folder: Path, collection_id: bytes, period: int, shard: int = 0) -> Path:
    """Return the file of a period's checkpoint. A question without a schedule has period 0 only.

    Of a store of several databases, each has its own.
    """
    of_period = f"-{period}" if period or shard else ""
    return folder / f"{collection_id.hex()}{of_period}{f'-{shard}' if shard else ''}.state"


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Replace the period's checkpoint, all or nothing."""
    path = checkpoint_path(folder, checkpoint.collection_id, checkpoint.period, checkpoint.shard)
    head = _HEAD.pack(
        _MAGIC,
        checkpoint.collection_id,
        checkpoint.period,
        checkpoint.sequence,
        checkpoint.reports,
        checkpoint.batches,
        checkpoint.tie,
        len(checkpoint.recent),
        len(checkpoint.state),
    )
    head += b"".join(checkpoint.recent)
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


def read_checkpoint(folder: Path, collection_id: bytes, period: int = 0, shard: int = 0) -> Checkpoint | None:
    """The period's checkpoint, or None if there is no sound one."""
    try:
        data = checkpoint_path(folder, collection_id, period, shard).read_bytes()
    except OSError:
        return None
    if len(data) < _HEAD.size + 32:
        return None
    magic, held, number, sequence, reports, batches, tie, ids, length = _HEAD.unpack_from(data)
    start = _HEAD.size + 16 * ids
    if magic != _MAGIC or (held, number) != (collection_id, period) or len(data) != start + length + 32:
        return None
    if hashlib.sha256(memoryview(data)[:-32]).digest() != data[-32:]:
        return None
    recent = [data[place : place + 16] for place in range(_HEAD.size, start, 16)]
    return Checkpoint(collection_id, period, sequence, reports, batches, tie, recent, data[start:-32], shard)


def drop_checkpoint(folder: Path, collection_id: bytes, period: int, shard: int = 0) -> None:
    """Delete the period's checkpoint."""
    with contextlib.suppress(OSError):
        checkpoint_path(folder, collection_id, period, shard).unlink()


def drop_other_checkpoints(folder: Path, kept: Collection[bytes]) -> None:
    """Delete the checkpoints of all collections but these: counting may have written one while its was deleted."""
    names = {collection_id.hex() for collection_id in kept}
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix in {".state", ".draft"} and path.stem.partition("-")[0] not in names:
                path.unlink()
