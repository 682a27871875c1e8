"""The additive state under every oracle: how many reports there were of each number.

A mechanism with too many different reports counts something else: every report then adds one to `each` of `cells`
cells, and a subclass says to which. A mechanism with far more different reports than were made would count zeros: while
it is smaller, the state is the reports themselves, sorted. Both forms hold the same, and are added up in the same way.

Counts are 32-bit integers while there are fewer than 2^32 reports, then 64-bit ones. Their bytes are a header that
names the version and the mechanism (with everything that gives its reports a meaning), then the counts. Version 2 is
the sorted reports, each as its distance from the one before. Which version is written depends on the number of reports
alone, so that equal counts have equal bytes.
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
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.set_selection import SetSelection
from ldp_server.arrays.packing import unpack

__all__ = ["Counts"]

_HEADER = struct.Struct("<8s16sQBI")
_MAGIC = b"LDPCNT01"
_SORTED = b"LDPCNT02"
_LIMIT32 = 1 << 32
_SMALLER = 4
"""Sorted reports are kept while they take at most a fourth of the counts: they are also sorted anew at times."""
_WAITING = 1 << 20
"""So many new reports are sorted in at once, or as many as there are already."""

Reports = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
Word = type[np.uint32] | type[np.uint64]


def _fingerprint(randomizer: Randomizer) -> bytes:
    """Sixteen bytes that differ where two mechanisms' counts must not be added up."""
    seed = getattr(randomizer, "seed", b"")
    text = f"{randomizer.name} {randomizer.epsilon} {randomizer.size} {sorted(randomizer.parameters().items())}"
    if isinstance(randomizer, SetSelection):
        text += f" {randomizer.most}"  # it is in the domain, and gives the elements their places
    if isinstance(randomizer, EveryField):
        text += f" {randomizer.record.sizes}"  # likewise
    return hashlib.sha256(text.encode() + b"\0" + seed).digest()[:16]


class Counts:
    """How often each report was seen."""

    def __init__(self, randomizer: Randomizer, cells: int | None = None, each: int = 1) -> None:
        self.randomizer = randomizer
        self.cells = randomizer.bound if cells is None else cells
        self.each = each
        self.total = 0
        self._type: Word = np.uint32 if self.cells < _LIMIT32 else np.uint64
        self._sparse = each == 1 and self.cells == randomizer.bound
        self._dense: npt.NDArray[np.uint32] | npt.NDArray[np.uint64] | None = None
        self._ordered: Reports = _as_type(np.empty(0, np.int64), self._type)
        self._new: list[Reports] = []
        if not self._stays_sparse(0):
            self.values  # noqa: B018 - from the first report on

    @property
    def values(self) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64]:
        """How many reports there were of each number. From now on, these counts are kept in memory."""
        if self._dense is None:
            self._dense = self._line(0, self.cells)
            self._ordered, self._new = _as_type(np.empty(0, np.int64), self._type), []
        return self._dense

    @values.setter
    def values(self, values: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]) -> None:
        self._dense, self._ordered, self._new = values, _as_type(np.empty(0, np.int64), self._type), []

    @property
    def nbytes(self) -> int:
        """The bytes of memory that the counts take."""
        if self._dense is not None:
            return int(self._dense.nbytes)
        return int(self._ordered.nbytes) + sum(int(part.nbytes) for part in self._new)

    @property
    def most_bytes(self) -> int:
        """The bytes of memory that they may take, whatever is reported (with fewer than 2^32 reports)."""
        return 4 * self.cells

    def line(self, start: int, end: int) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64]:
        """Return how many reports there were of the numbers from `start` to below `end`."""
        return self._line(start, end) if self._dense is None else self._dense[start:end]

    def sums(self, length: int) -> npt.NDArray[np.int64]:
        """Return how many reports there were of the first `length` numbers, of the next ones, and so on."""
        if self._dense is not None:
            return np.asarray(self._dense.reshape(-1, length).sum(axis=1, dtype=np.int64), np.int64)
        edges = np.arange(0, self.cells + 1, length, dtype=self._type)
        places: npt.NDArray[np.int64] = np.searchsorted(self._sorted(), edges)
        return np.asarray(places[1:] - places[:-1], np.int64)

    def add(self, payload: bytes) -> int:
        """Count the reports in a payload; `ServerRefused`, and nothing changed, if it is not one of this mechanism."""
        reports = unpack(payload, self.randomizer.report_bytes, self.randomizer.bound)
        self._make_room(len(reports))
        if self._dense is None:
            self._new.append(_as_type(reports, self._type))
            self._sort_in(max(_WAITING, len(self._ordered)))
        else:
            self._add(reports)
        self.total += len(reports)
        return len(reports)

    def _add(self, reports: npt.NDArray[np.unsignedinteger]) -> None:
        np.add.at(self.values, reports.astype(np.intp), self.values.dtype.type(1))

    def merge(self, other: Counts) -> None:
        if _fingerprint(self.randomizer) != _fingerprint(other.randomizer):
            raise InvalidSpec("counts of different mechanisms cannot be added")
        self._make_room(other.total)
        if self._dense is None and other._dense is None:
            self._new.append(other._sorted().copy())
            self._sort_in(max(_WAITING, len(self._ordered)))
        elif other._dense is None:
            numbers, counts = _runs(other._sorted())
            self.values[numbers] += counts.astype(self.values.dtype)
        else:
            self.values += other.values.astype(self.values.dtype, copy=False)
        self.total += other.total

    def adds_up(self, total: int) -> bool:
        """Whether these are the counts of so many reports."""
        return int(self.values.sum(dtype=np.uint64)) == total * self.each

    def _stays_sparse(self, total: int) -> bool:
        return self._sparse and total * np.dtype(self._type).itemsize * _SMALLER < 4 * self.cells

    def _make_room(self, more: int) -> None:
        if self._dense is None and not self._stays_sparse(self.total + more):
            self.values  # noqa: B018 - counts from here on
        if self.total + more >= _LIMIT32 and self.values.dtype == np.uint32:
            self.values = self.values.astype(np.uint64)

    def _sort_in(self, waiting: int) -> None:
        """Sort the new reports in if there are more than so many."""
        if sum(map(len, self._new)) > waiting:
            every = _as_type(np.concatenate([self._ordered, *self._new]), self._type)
            every.sort()
            self._ordered, self._new = every, []

    def _sorted(self) -> Reports:
        """The reports in their order, while there are no counts."""
        self._sort_in(0)
        return self._ordered

    def _line(self, start: int, end: int) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64]:
        ordered, out = self._sorted(), np.zeros(end - start, np.uint32)
        first, last = np.searchsorted(ordered, np.array([start, end], self._type))
        numbers, counts = _runs(ordered[first:last])
        out[numbers - start] = counts
        return out

    def to_bytes(self) -> bytes:
        """Write header and counts, deflated lightly: most counts of a young collection are small."""
        if self._stays_sparse(self.total):
            magic, raw, width = _SORTED, np.diff(self._as_reports(), prepend=self._type(0)), self._type().itemsize
        else:
            magic, raw, width = _MAGIC, self.values, self.values.dtype.itemsize
        body = zlib.compress(raw.astype(f"<u{width}", copy=False).tobytes(), 1)
        return _HEADER.pack(magic, _fingerprint(self.randomizer), self.total, width, zlib.crc32(body)) + body

    def _as_reports(self) -> Reports:
        """The sorted reports, also where they are counted."""
        if self._dense is None:
            return self._sorted()
        numbers = np.flatnonzero(self._dense)
        return _as_type(np.repeat(numbers, self._dense[numbers].astype(np.int64)), self._type)

    @classmethod
    def from_bytes(cls, randomizer: Randomizer, data: bytes) -> Self:
        """Read what `to_bytes` wrote; `ServerRefused(BAD_STATE)` if damaged or of another mechanism or version."""
        if len(data) < _HEADER.size:
            raise ServerRefused("BAD_STATE", "saved counts are cut short")
        magic, fingerprint, total, width, checksum = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if magic not in (_MAGIC, _SORTED) or fingerprint != _fingerprint(randomizer):
            raise ServerRefused("BAD_STATE", "saved counts are of another version or another mechanism")
        counts = cls(randomizer)
        sparse = magic == _SORTED
        fits = width == counts._type().itemsize and counts._stays_sparse(total) if sparse else width in (4, 8)
        if not fits or zlib.crc32(body) != checksum:
            raise ServerRefused("BAD_STATE", "saved counts are damaged")
        read = _inflated(body, total if sparse else counts.cells, width)
        if sparse:
            counts._take_reports(np.cumsum(read, dtype=np.uint64))
        else:
            counts.values = read.astype(np.uint32) if width == 4 else read.astype(np.uint64)
            if not counts.adds_up(total):
                raise ServerRefused("BAD_STATE", "saved counts do not add up")
        counts.total = total
        return counts

    def _take_reports(self, reports: npt.NDArray[np.uint64]) -> None:
        """Take saved reports for the state. Their distances were read: they must not have run over the end."""
        if len(reports) and (int(reports[-1]) >= self.cells or bool((np.diff(reports.view(np.int64)) < 0).any())):
            raise ServerRefused("BAD_STATE", "saved counts are out of range")
        self._ordered = _as_type(reports, self._type)


def _as_type(numbers: npt.NDArray[np.integer], word: Word) -> Reports:
    return numbers.astype(np.uint32) if word is np.uint32 else numbers.astype(np.uint64)


def _runs(ordered: Reports) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the different numbers of a sorted array, and how often each is there."""
    if not len(ordered):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[first].astype(np.int64), np.diff(first, append=len(ordered))


def _inflated(body: bytes, numbers: int, width: int) -> npt.NDArray[np.unsignedinteger]:
    """Return so many numbers, and never inflate more."""
    size = numbers * width
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(body, size + 1)
    except zlib.error:
        raise ServerRefused("BAD_STATE", "saved counts are damaged") from None
    if len(raw) != size:
        raise ServerRefused("BAD_STATE", "saved counts are damaged")
    return np.frombuffer(raw, f"<u{width}")
