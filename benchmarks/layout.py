"""What somebody learns of the order of arrival who holds the bytes of log.db and log.db-wal, and needs no SQLite.

A page of SQLite's file grows from its end towards its beginning, so the offsets of its cells tell in which order they
were written. Pages are taken from the end of the file, so their numbers tell too. The write-ahead log holds the pages
of one transaction after the other. A batch is found by its id, which the attacker takes from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["from_pages", "from_wal", "matches"]

_LEAVES = {10: 8, 13: 8}
"""Pages of an index and of a table without children, and the length of their headers."""
_WAL_HEAD, _FRAME_HEAD = 32, 24

Owners = dict[bytes, tuple[int, int]]
"""Batch id: number of the question, number of the device."""
Order = Sequence[bytes]


def matches(order: Order, owners: Owners) -> int:
    """How many devices are paired if the k-th answer to one question and the k-th to the other are of one device."""
    sides: dict[int, list[int]] = {}
    for batch_id in order:
        question, device = owners[batch_id]
        sides.setdefault(question, []).append(device)
    if len(sides) != 2:
        return 0
    first, second = sides.values()
    return sum(one == other for one, other in zip(first, second, strict=False))


def from_pages(log: Path, owners: Owners) -> int:
    """The most pairs that some reading of the pages of log.db gives."""
    data = log.read_bytes()
    size = int.from_bytes(data[16:18], "big") or 65536
    pages = [data[start : start + size] for start in range(0, len(data), size)]
    return max(matches(reading(kind, pages, owners), owners) for kind in _LEAVES for reading in (_in_order, _in_parts))


def from_wal(wal: Path, owners: Owners) -> int:
    """The most pairs that the order of first appearance in the write-ahead log gives.

    Its beginning may have been overwritten. So answers that follow each other are paired too.
    """
    data = wal.read_bytes() if wal.exists() else b""
    if len(data) < _WAL_HEAD:
        return 0
    size: int = struct.unpack_from(">I", data, 8)[0]
    starts = range(_WAL_HEAD, len(data) - size - _FRAME_HEAD + 1, size + _FRAME_HEAD)
    frames = [data[start + _FRAME_HEAD : start + _FRAME_HEAD + size] for start in starts]
    orders = [_in_order(kind, frames, owners) for kind in _LEAVES]
    return max(max(matches(order, owners), _neighbours(order, owners)) for order in orders)


def _neighbours(order: Order, owners: Owners) -> int:
    """How many devices are paired if answers to two questions that follow each other are of one device."""
    pairs, place = 0, 0
    while place + 1 < len(order):
        first, second = owners[order[place]], owners[order[place + 1]]
        pairs += first[1] == second[1]
        place += 2 if first[0] != second[0] else 1
    return pairs


def _in_order(kind: int, pages: Sequence[bytes], owners: Owners) -> Order:
    """Page after page, and in each from the end."""
    seen: dict[bytes, None] = {}
    for page in pages:
        for batch_id in _written(kind, page, owners):
            seen.setdefault(batch_id)
    return list(seen)


def _in_parts(kind: int, pages: Sequence[bytes], owners: Owners) -> Order:
    """By the place within the page, as if each page held batches of the whole time."""
    seen: dict[bytes, float] = {}
    for page in pages:
        for question in (0, 1):
            found = [one for one in _written(kind, page, owners) if owners[one][0] == question]
            for place, batch_id in enumerate(found):
                seen.setdefault(batch_id, (place + 0.5) / len(found))
    return sorted(seen, key=seen.__getitem__)


def _written(kind: int, page: bytes, owners: Owners) -> Iterator[bytes]:
    """The ids in a page, in the order in which their cells were written."""
    if not page or page[0] != kind:
        return
    count = int.from_bytes(page[3:5], "big")
    head = _LEAVES[kind]
    starts = sorted((int.from_bytes(page[head + 2 * i : head + 2 * i + 2], "big") for i in range(count)), reverse=True)
    ends = [len(page), *starts]
    find = _finder(owners)
    for start, end in zip(starts, ends, strict=False):
        batch_id = find(page[start:end])
        if batch_id is not None:
            yield batch_id


def _finder(owners: Owners) -> Callable[[bytes], bytes | None]:
    def find(cell: bytes) -> bytes | None:
        for start in range(min(len(cell) - 15, 64)):
            if cell[start : start + 16] in owners:
                return cell[start : start + 16]
        return None

    return find
