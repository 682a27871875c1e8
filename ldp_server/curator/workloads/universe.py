"""The cells of all fields together, the tables that are wanted, and the way from columns of text to cells.

The fields are those of a domain of records (ldp_client/protocol/domain.py), each with its `none`: a value that is not
listed counts as `none`, as on a device. So a table of volunteers has the same cells as the table that a collection of
records gives, and the two can be merged. Which fields and tables there are is public, and chosen before any record is
looked at.

A person's record is the index of the cell that the person is in. The mechanisms here run on these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems, Record
from ldp_server.answers.fields.conditions import text_indexes
from ldp_server.curator import people

__all__ = ["MOST_CELLS", "Cells", "Workload", "encoded", "indexes_of", "pairs"]

MOST_CELLS = 1 << 20
"""Of all fields together: a release keeps a number for each."""
_MOST_RELEASED = 1 << 20

Cells = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Workload:
    """Tables of some fields of people's records."""

    record: Record
    tables: tuple[tuple[str, ...], ...]
    """The names of the fields of each table."""

    def __post_init__(self) -> None:
        if not self.tables or len({frozenset(one) for one in self.tables}) != len(self.tables):
            raise InvalidSpec("give at least one table, and each set of fields once")
        for table in self.tables:
            if not table or len(set(table)) != len(table):
                raise InvalidSpec("a table names at least one field, and each field once")
            self.record.part(table)
        if sum(self.lengths) > _MOST_RELEASED:
            raise InvalidSpec(f"the tables have more than {_MOST_RELEASED:,} cells together: ask for fewer or smaller")

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the fields of each table."""
        return tuple(tuple(self.record.names.index(name) for name in table) for table in self.tables)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many cells each table has."""
        return tuple(prod(self.record.sizes[place] for place in table) for table in self.places)

    def of_cells(self, table: int, counts: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Add up the counts of all cells to those of a table; its first field's index moves fastest."""
        places = self.places[table]
        shaped = counts.reshape(self.record.sizes, order="F")
        others = tuple(axis for axis in range(shaped.ndim) if axis not in places)
        kept = sorted(places)
        found = shaped.sum(axis=others).transpose([kept.index(place) for place in places])
        return np.asarray(found.ravel(order="F"))

    def spread(self, table: int, values: Cells) -> Cells:
        """Return what each cell of all fields gets if each cell of a table has a value. It broadcasts."""
        places = self.places[table]
        shaped = values.reshape([self.record.sizes[place] for place in places], order="F")
        shaped = shaped.transpose(np.argsort(places))
        kept = sorted(places)
        return shaped.reshape([size if axis in kept else 1 for axis, size in enumerate(self.record.sizes)])

    def histogram(self, records: Sequence[people.Record]) -> npt.NDArray[np.int64]:
        """Return how many people are in each cell of all fields; None is the cell in which nobody has an answer."""
        if self.record.size > MOST_CELLS:
            raise InvalidSpec(
                f"these fields have {self.record.size:,} cells together, and a release of this kind keeps at most "
                f"{MOST_CELLS:,}: leave fields out, or make them coarser"
            )
        return np.bincount(indexes_of(records), minlength=self.record.size)

    def counted(self, table: int, records: Sequence[people.Record]) -> npt.NDArray[np.int64]:
        """Return how many people are in each cell of one table, also where all fields together have too many cells."""
        found, stride = np.zeros(len(records), np.int64), 1
        indexes = indexes_of(records)
        for place in self.places[table]:
            size = self.record.sizes[place]
            found += indexes // self.record.strides[place] % size * stride
            stride *= size
        return np.bincount(found, minlength=self.lengths[table])

    def every_count(self, records: Sequence[people.Record]) -> list[npt.NDArray[np.int64]]:
        """Return how many people are in each cell of each table; with fewer cells in all than people from one list."""
        tables = range(len(self.tables))
        if self.record.size > min(MOST_CELLS, len(records)):
            return [self.counted(table, records) for table in tables]
        cells = self.histogram(records)
        return [np.asarray(self.of_cells(table, cells), np.int64) for table in tables]

    def items(self, table: int) -> list[FieldItems]:
        """Return what each cell of a table holds, with `none` as None."""
        part = self.record.part(self.tables[table])
        nothing = FieldItems({one.name: one.domain.item(0) for one in part.fields})  # type: ignore[misc]  # text, int, bool
        return [part.item(index) or nothing for index in range(part.size)]


def encoded(record: Record, columns: Sequence[Sequence[people.Record]]) -> list[people.Record]:
    """Return the index of each person's record, from one column of text for each field."""
    total = np.zeros(len(columns[0]), np.int64)
    for field, stride, column in zip(record.fields, record.strides, columns, strict=False):
        known = text_indexes(field.domain)
        total += stride * np.fromiter((known.get(one, 0) for one in column), np.int64, len(column))
    return [*total.tolist()]


def pairs(record: Record) -> tuple[tuple[str, ...], ...]:
    """Return all pairs of fields; the field itself where there is one alone."""
    return tuple(combinations(record.names, min(2, len(record.names))))


def indexes_of(records: Sequence[people.Record]) -> npt.NDArray[np.int64]:
    """Return the index of each record; None is the cell in which nobody has an answer."""
    try:
        return np.asarray(records, np.int64)
    except TypeError:
        return np.array([one or 0 for one in records], np.int64)
