"""Counts of people who fulfil a condition on their fields, as rows of 0 and 1 over cells.

A condition names values of some fields: "age: 2..5; dark: yes" holds for who is 2 to 5 and said yes. `none` stands for
a field without an answer. A cell of a table is such a condition, too, and so is a range.

Two values of a field that no condition tells apart count as one. So a field with a hundred values and three conditions
has a few cells only. The matrix has a row for each query and a column for each combination that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems, Integers, Record
from ldp_server.answers.fields.conditions import read_condition
from ldp_server.curator import people
from ldp_server.curator.workloads.universe import Workload, indexes_of

__all__ = ["MOST_COLUMNS", "LinearQueries", "Query", "condition", "ranges_of", "table_queries"]

MOST_COLUMNS = 512
"""Combinations that the queries tell apart: a plan inverts a matrix of this size."""
_MOST_QUERIES = 20_000

Integer = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Query:
    """Who is counted: for each field that matters, the indexes of its values."""

    item: people.Record | FieldItems
    """The name of the query in an answer."""
    held: tuple[tuple[int, frozenset[int]], ...]
    """The numbers of the fields, and the indexes of their values."""


def condition(record: Record, text: str) -> Query:
    """Read a condition, such as "age: 2..5, 8; dark: yes"."""
    name, held = read_condition(record, text)
    return Query(name, tuple(sorted(held.items())))


def ranges_of(record: Record, name: str) -> list[Query]:
    """Return a query for each range of an integer field: all pairs of a first and a last value."""
    if name not in record.names or not isinstance(record.part([name]).fields[0].domain, Integers):
        raise InvalidSpec(f"--ranges: no field of whole numbers is named {name!r}")
    place = record.names.index(name)
    domain = record.fields[place].domain
    if domain.size * (domain.size - 1) // 2 > _MOST_QUERIES:
        raise InvalidSpec(f"the field {name!r} has more than {_MOST_QUERIES:,} ranges: make it coarser")
    return [
        Query(f"{name}: {domain.item(first)!s}..{domain.item(last)!s}", ((place, frozenset(range(first, last + 1))),))
        for first in range(1, domain.size)
        for last in range(first, domain.size)
    ]


def table_queries(record: Record, tables: Sequence[tuple[str, ...]]) -> list[Query]:
    """Return a query for each cell of each table."""
    if not tables:
        return []
    found, work = [], Workload(record, tuple(tables))
    for table, places in enumerate(work.places):
        for cell, item in enumerate(work.items(table)):
            left, held = cell, []
            for place in places:
                left, index = divmod(left, record.sizes[place])
                held.append((place, frozenset((index,))))
            found.append(Query(item, tuple(sorted(held))))
    return found


@dataclass(frozen=True)
class LinearQueries:
    """Queries about records, and the matrix of them."""

    record: Record
    queries: tuple[Query, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.queries) <= _MOST_QUERIES:
            raise InvalidSpec(f"give 1 to {_MOST_QUERIES:,} queries: --query, --ranges or --table")
        if self.columns > MOST_COLUMNS:
            raise InvalidSpec(
                f"these queries tell {self.columns:,} combinations of values apart, and a plan keeps at most "
                f"{MOST_COLUMNS}: leave queries or fields out, or ask for tables, fourier or mwem"
            )

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """For each field, the group of each of its values; values of a group are never told apart."""
        return tuple(self._groups(place) for place in range(len(self.record.sizes)))

    def _groups(self, place: int) -> tuple[int, ...]:
        sets = sorted({held for query in self.queries for at, held in query.held if at == place}, key=sorted)
        seen: dict[tuple[bool, ...], int] = {}
        marks = [tuple(value in held for held in sets) for value in range(self.record.sizes[place])]
        return tuple(seen.setdefault(mark, len(seen)) for mark in marks)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each field has."""
        return tuple(max(groups) + 1 for groups in self.groups)

    @property
    def columns(self) -> int:
        """How many combinations of groups there are."""
        return prod(self.sizes)

    @cached_property
    def matrix(self) -> Integer:
        """A row of 0 and 1 for each query; the first field's group moves fastest."""
        return np.array([self._row(query) for query in self.queries])

    def _row(self, query: Query) -> Integer:
        held = dict(query.held)
        row: Integer = np.ones(1, np.int64)
        for place, size in enumerate(self.sizes):
            one: Integer = np.ones(size, np.int64)
            if place in held:
                one[:] = 0
                one[[self.groups[place][value] for value in held[place]]] = 1
            row = np.kron(one, row)
        return row

    def counts(self, records: Sequence[people.Record]) -> Integer:
        """Return how many people are in each combination."""
        return np.bincount(self.columns_of(indexes_of(records)), minlength=self.columns)

    def columns_of(self, indexes: Integer) -> Integer:
        """Return the combination of groups that each cell of all fields is in."""
        found, step = np.zeros(len(indexes), np.int64), 1
        for place, size in enumerate(self.sizes):
            groups = np.array(self.groups[place])
            found += step * groups[indexes // self.record.strides[place] % self.record.sizes[place]]
            step *= size
        return found
