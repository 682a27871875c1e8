"""The additive state under every oracle: how many reports there were of each number.

A mechanism with too many different reports counts something else: every report then adds one to `each` of `cells`
cells, and a subclass says to which. Counts are 32-bit integers while there are fewer than 2^32 reports, then 64-bit
ones. Their bytes are a header that names the version and the mechanism (with everything that gives its reports a
meaning), then the counts.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Self

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.packing import unpack

__all__ = ["Counts"]

_HEADER = struct.Struct("<8s16sQBI")
_MAGIC = b"LDPCNT01"
_ONE = np.uint32(1)
_LIMIT32 = 1 << 32


def _fingerprint(randomizer: Randomizer) -> bytes:
    """Sixteen bytes that differ where two mechanisms' counts must not be added up."""
    seed = getattr(randomizer, "seed", b"")
    text = f"{randomizer.name} {randomizer.epsilon} {randomizer.size} {sorted(randomizer.parameters().items())}"
    return hashlib.sha256(text.encode() + b"\0" + seed).digest()[:16]


class Counts:
    """How often each report was seen."""

    def __init__(self, randomizer: Randomizer, cells: int | None = None, each: int = 1) -> None:
        self.randomizer = randomizer
        self.cells = randomizer.bound if cells is None else cells
        self.each = each
        self.values: npt.NDArray[np.uint32] | npt.NDArray[np.uint64] = np.zeros(self.cells, np.uint32)
        self.total = 0

    def add(self, payload: bytes) -> int:
        """Count the reports in a payload; `ServerRefused`, and nothing changed, if it is not one of this mechanism."""
        reports = unpack(payload, self.randomizer.report_bytes, self.randomizer.bound)
        self._make_room(len(reports))
        self._add(reports)
        self.total += len(reports)
        return len(reports)

    def _add(self, reports: npt.NDArray[np.unsignedinteger]) -> None:
        np.add.at(self.values, reports.astype(np.intp), self.values.dtype.type(1))

    def merge(self, other: Counts) -> None:
        if _fingerprint(self.randomizer) != _fingerprint(other.randomizer):
            raise InvalidSpec("counts of different mechanisms cannot be added")
        self._make_room(other.total)
        self.values += other.values.astype(self.values.dtype, copy=False)
        self.total += other.total

    def _make_room(self, more: int) -> None:
        if self.total + more >= _LIMIT32 and self.values.dtype == np.uint32:
            self.values = self.values.astype(np.uint64)

    def to_bytes(self) -> bytes:
        """Write header and counts, deflated lightly: most counts of a young collection are small."""
        width = self.values.dtype.itemsize
        body = zlib.compress(self.values.astype(f"<u{width}", copy=False).tobytes(), 1)
        return _HEADER.pack(_MAGIC, _fingerprint(self.randomizer), self.total, width, zlib.crc32(body)) + body

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """Read what `to_bytes` wrote; `ServerRefused(BAD_STATE)` if damaged or of another mechanism or version."""
        if len(data) < _HEADER.size:
            raise ServerRefused("BAD_STATE", "saved counts are cut short")
        magic, fingerprint, total, width, checksum = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if magic != _MAGIC or fingerprint != _fingerprint(randomizer):
            raise ServerRefused("BAD_STATE", "saved counts are of another version or another mechanism")
        if width not in (4, 8) or zlib.crc32(body) != checksum:
            raise ServerRefused("BAD_STATE", "saved counts are damaged")
        counts = cls(randomizer)
        size = counts.cells * width
        inflate = zlib.decompressobj()
        try:
            raw = inflate.decompress(body, size + 1)
        except zlib.error:
            raise ServerRefused("BAD_STATE", "saved counts are damaged") from None
        if len(raw) != size:
            raise ServerRefused("BAD_STATE", "saved counts are damaged")
        read = np.frombuffer(raw, f"<u{width}")
        counts.values = read.astype(np.uint32) if width == 4 else read.astype(np.uint64)
        if int(counts.values.sum(dtype=np.uint64)) != total * counts.each:
            raise ServerRefused("BAD_STATE", "saved counts do not add up")
        counts.total = total
        return counts
