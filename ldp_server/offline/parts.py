"""A recount: files of exported reports in parts, each counted by one task, and the counts of the parts added up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle

__all__ = ["FilePart", "count_part", "merged", "parts_of"]

PIECE = 8 << 20
"""Bytes that a task reads at a time. More would not stay in the processor's cache."""
LARGEST = 2 << 30
"""Bytes of a part, about: far more than the counts that it becomes."""


@dataclass(frozen=True)
class FilePart:
    """A range of a file. Its path must mean the same wherever the task runs."""

    spec: bytes
    path: str
    start: int
    length: int
    size: int
    """Of the whole file, as it was when the parts were made."""


def parts_of(collection: Collection, files: Sequence[Path], slots: int, largest: int = LARGEST) -> list[FilePart]:
    """Divide files into parts: at least one for each of `slots`, if there are as many reports."""
    width = collection.randomizer.report_bytes
    sizes = [_size(path, width) for path in files]
    if len({path.resolve() for path in files}) < len(files):
        raise InvalidSpec("a file is named twice: its reports would be counted twice")
    reports = sum(sizes) // width
    each = width * max(1, min(math.ceil(reports / max(1, slots)), largest // width))
    found = []
    for path, size in zip(files, sizes, strict=True):
        for start in range(0, size, each):
            found.append(FilePart(collection.spec_bytes, str(path.resolve()), start, min(each, size - start), size))
    return found


def _size(path: Path, width: int) -> int:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    if size % width:
        raise InvalidSpec(f"{path} has {size:,} bytes, and a report of its collection {width}: is it cut off?")
    return size


def count_part(part: FilePart) -> Oracle:
    """Count the reports of a part. It reads nothing but the file, and changes nothing."""
    collection = Collection.from_bytes(part.spec)
    oracle, left = oracle_for(collection), part.length
    piece = PIECE - PIECE % collection.randomizer.report_bytes
    try:
        with Path(part.path).open("rb") as file:
            if file.seek(0, 2) != part.size:
                raise InvalidSpec(f"{part.path} has changed since the recount began: begin again")
            file.seek(part.start)
            while left:
                data = file.read(min(piece, left))
                if not data:
                    raise InvalidSpec(f"{part.path} has become shorter since the recount began: begin again")
                oracle.accumulate(data)
                left -= len(data)
    except OSError as error:
        raise InvalidSpec(
            f"cannot read {part.path} where it is counted: {error.strerror}. All workers must see the same files"
        ) from None
    except InvalidSpec:
        raise
    except LdpError as error:
        raise InvalidSpec(f"{part.path} does not hold reports of this collection: {error}") from None
    return oracle


def merged(collection: Collection, counted: Iterable[Oracle]) -> Oracle:
    """Add up the counts of all parts, in whatever order they come."""
    total: Oracle | None = None
    for oracle in counted:
        if total is None:
            total = oracle
        else:
            total.merge(oracle)
    return oracle_for(collection) if total is None else total
