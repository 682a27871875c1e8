"""A table of a record's fields as an oracle: its cells are the indexes of the record of these fields.

It is made from whatever the collection's reports say about these fields together: drawn tables that have them all, all
parities of them, or the frequencies of whole records. It answers like any oracle of frequencies, so that everything
that is asked of items can be asked of cells: given ones, all, the largest, with verdicts and intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.domain import Record
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import as_frequency, oracle_for
from ldp_server.oracles.base import Floats, FrequencyOracle, Oracle, TooFewReports, Unsupported
from ldp_server.oracles.laws.projection import below_simplex, norm_sub
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.records.direct import Direct
from ldp_server.oracles.records.parities import Parities, ParityCounts
from ldp_server.oracles.records.sources import AskedTable, Source
from ldp_server.oracles.sampled_table import SampledTableOracle
from ldp_server.oracles.subset_selection import SubsetSelectionOracle

__all__ = ["MOST_ROWS", "TABLES_OF", "FieldsView", "table_view"]

MOST_ROWS = 1 << 20
TABLES_OF: Final = (RandomizedResponseOracle, LinearHashOracle, SubsetSelectionOracle)
"""Oracles of whole records whose sums are tables."""


class FieldsView(FrequencyOracle):
    """Estimates of the cells of one table."""

    kind = Randomizer

    def __init__(self, base: Oracle, rows: Direct | Parities, *, everybody: bool) -> None:
        super().__init__(base.randomizer)
        self._base, self._rows = base, rows
        self._everybody = everybody

    def set_counts(self, counts: object) -> None:
        """It has no counts of its own."""
        del counts
        self.judgement = None

    @property
    def randomizer(self) -> Randomizer:
        return self._base.randomizer

    @property
    def made_of(self) -> Direct | Parities:
        """What its rows are estimated from."""
        return self._rows

    @property
    def reports(self) -> int:
        return self._base.reports

    @property
    def listed(self) -> int:
        return self._rows.count

    @property
    def can_list(self) -> bool:
        return True

    def estimate(self, indexes: Indexes) -> Floats:
        return np.asarray(self._rows.raw[indexes.astype(np.intp)])

    def estimate_all(self) -> Floats:
        return self._rows.raw.copy()

    def possible(self, raw: Floats) -> Floats:
        """Return the nearest estimates of all cells that are possible; in a slice, they add up to n at most."""
        return (norm_sub if self._everybody else below_simplex)(raw, float(self.reports))

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the variance of the first cell's estimate, with so many users in it."""
        f = np.atleast_1d(np.asarray(frequencies, np.float64))
        first = self._rows.merged(np.zeros(1, np.intp))
        found = np.array([float(first.errors(np.array([one]))[0]) ** 2 for one in f.ravel()])
        return found.reshape(np.shape(frequencies))

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        places = indexes.astype(np.intp)
        held = self._rows.raw.copy()
        held[places] = estimates
        return np.asarray(self._rows.errors(held)[places])

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return those of these cells; the estimates are the view's own."""
        del estimates
        low, high = self._rows.intervals(tail)
        return low[indexes.astype(np.intp)], high[indexes.astype(np.intp)]

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum of the estimates of these cells, with all their covariances."""
        if self._is_everybody(indexes):
            return 0.0
        merged = self._rows.merged(indexes.astype(np.intp))
        return float(merged.errors(np.array([float(np.sum(frequencies))]))[0]) ** 2

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return that of the sum of these cells; the estimates are the view's own."""
        del estimates
        if self._is_everybody(indexes):
            return float(self.reports), float(self.reports)
        low, high = self._rows.merged(indexes.astype(np.intp)).intervals(tail)
        return float(low[0]), float(high[0])

    def _is_everybody(self, indexes: Indexes) -> bool:
        return self._everybody and len(indexes) == self._rows.count


def table_view(oracle: Oracle, record: Record, asked: AskedTable) -> FieldsView:
    """Return the table that is asked for; `Unsupported` says what the devices were asked instead."""
    if not oracle.reports:
        raise TooFewReports("this collection has no reports yet")
    if asked.rows > MOST_ROWS:
        raise Unsupported(f"a table has at most {MOST_ROWS} cells here: ask for fewer fields")
    everybody = not asked.where or not asked.fields
    if isinstance(oracle, SampledTableOracle):
        return FieldsView(oracle, _of_tables(oracle, record, asked), everybody=everybody)
    if isinstance(oracle, TABLES_OF) and oracle.can_list:
        rows = asked.rows_of(tuple(range(len(record.names))))
        return FieldsView(oracle, Direct(oracle.reports, (Source(oracle, rows, asked.rows),)), everybody=everybody)
    raise Unsupported(f"{oracle.randomizer.name} gives no tables of fields: sampled-table does")


def _of_tables(oracle: SampledTableOracle, record: Record, asked: AskedTable) -> Direct | Parities:
    needed = tuple(sorted(asked.needed))
    direct = [
        (j, table) for j, table in enumerate(oracle.tables) if not table.parity and asked.needed <= set(table.places)
    ]
    parities = _parities(oracle, needed)
    if not direct and not parities:
        raise Unsupported(_unseen(oracle, record, needed))
    sources = []
    for j, table in direct:
        inner = _inner(oracle, j)
        if inner.reports:
            sources.append(Source(inner, asked.rows_of(table.places), asked.rows))
    if sources:
        return Direct(oracle.reports, tuple(sources))
    if direct or not all(one.reports for one in parities):
        raise TooFewReports("nobody was asked about these fields together yet: more users are needed")
    return Parities(oracle.reports, len(needed), tuple(parities), asked.rows_of(needed), asked.rows)


def _inner(oracle: SampledTableOracle, drawn: int) -> FrequencyOracle:
    """The oracle of one table, with the counts of its reports."""
    table = oracle.tables[drawn]
    inner = as_frequency(oracle_for(table.inner))
    inner.counts.values = oracle.counts.part(drawn)
    inner.counts.total = int(oracle.counts.drawn()[drawn])
    return inner


def _parities(oracle: SampledTableOracle, needed: tuple[int, ...]) -> list[ParityCounts]:
    """The parities of all non-empty subsets of these fields, or nothing if one of them is never drawn."""
    known = {table.places: j for j, table in enumerate(oracle.tables) if table.parity or _is_bit(oracle, j)}
    found = []
    for subset in _subsets(needed):
        j = known.get(subset)
        if j is None:
            return []
        even, odd = (int(one) for one in oracle.counts.part(j))
        mask = sum(1 << needed.index(place) for place in subset)
        found.append(ParityCounts(mask, even, odd, oracle.told))
    return found


def _is_bit(oracle: SampledTableOracle, drawn: int) -> bool:
    """Whether a table of one field is answered like a parity."""
    inner = oracle.tables[drawn].inner
    return isinstance(inner, RandomizedResponse) and inner.size == 2


def _subsets(places: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(places) + 1):
        yield from combinations(places, size)


def _unseen(oracle: SampledTableOracle, record: Record, needed: tuple[int, ...]) -> str:
    names = " and ".join(record.names[place] for place in needed)
    most = max(len(table.places) for table in oracle.tables)
    return (
        f"no device is asked about {names} together: ask for tables of at most {most} fields that one of the "
        f"{len(oracle.tables)} drawn tables has, or draft a question whose tables have these"
    )
