"""A table of a record's fields as an oracle: its cells are the indexes of the record of these fields.

It is made from whatever the collection's reports say about these fields together: drawn tables that have them all, all
parities of them, or the frequencies of whole records. It answers like any oracle of frequencies, so that everything
that is asked of items can be asked of cells: given ones, all, the largest, with verdicts and intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_client.protocol.domain import Record
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles import as_frequency, oracle_for
from ldp_server.oracles.base import Floats, FrequencyOracle, Oracle, TooFewReports, Unsupported
from ldp_server.oracles.laws.projection import below_simplex, norm_sub
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.looks.sums import ScoreSum
from ldp_server.oracles.looks.tables import LikelyPart, check_looked, row_sums
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.records.direct import Direct
from ldp_server.oracles.records.every_field import EveryFieldOracle
from ldp_server.oracles.records.parts import DrawnPart, Places
from ldp_server.oracles.records.pooled import MOST_POOLED, Pooled, Pooling, subsets
from ldp_server.oracles.records.products import ProductRows, ProductTables, product_rows
from ldp_server.oracles.records.sampled_table import SampledTableOracle
from ldp_server.oracles.records.sources import AskedTable, Source
from ldp_server.oracles.shared.product import ProductOracle
from ldp_server.oracles.subset_selection import SubsetSelectionOracle

__all__ = ["MOST_ROWS", "TABLES_OF", "FieldsView", "all_tables", "drawn_view", "likely_parts", "pooling", "table_view"]

MOST_ROWS = 1 << 20
MOST_CELLS = 1 << 18
"""Of the fields that are needed, where tables are pooled; a larger table is that of the drawn tables that have it."""
_NOBODY = "nobody was asked about these fields together yet: more users are needed"
_WHOLE: Final = (RandomizedResponseOracle, LinearHashOracle, SubsetSelectionOracle)
"""Oracles of whole records whose sums are tables."""
TABLES_OF: Final = (*_WHOLE, ProductOracle)
"""Oracles of whole records that give tables of any of the fields."""
Rows = Direct | Pooled | ProductRows


class FieldsView(FrequencyOracle):
    """Estimates of the cells of one table."""

    kind = Randomizer

    def __init__(self, base: Oracle, rows: Rows, asked: AskedTable, *, everybody: bool) -> None:
        super().__init__(base.randomizer)
        self._base, self._rows, self._asked = base, rows, asked
        self._everybody = everybody

    def set_counts(self, counts: object) -> None:
        """It has no counts of its own."""
        del counts
        self.judgement = None

    @property
    def randomizer(self) -> Randomizer:
        return self._base.randomizer

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
        """Return the nearest estimates of all cells that are possible; in a slice, they add up to n at most.

        Where tables are pooled, or every field is answered: the nearest of all tables of the question together, so that
        they agree (joint.py).
        """
        together = self._rows.possible() if isinstance(self._rows, Pooled) else None
        if isinstance(self._rows, ProductRows) and isinstance(self._base, EveryFieldOracle):
            together = self._rows.possible(all_tables(self._base, self._asked.record).possible)
        if together is not None:
            return together
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

    def look_sums(self, rows: Sequence[int]) -> list[ScoreSum]:
        """Return the sum of the scores of each of these rows, which gives intervals for every look."""
        check_looked(rows)
        if isinstance(self._rows, ProductRows):
            return self._rows.look_sums(rows)
        return list(row_sums(likely_parts(self._base, self._asked.record), self.reports, self._asked, rows))

    def look_ends(self, rows: Sequence[int], tail: float) -> tuple[Floats, Floats]:
        """Return intervals of these rows that are right at every number of reports; each end errs with `tail`."""
        low, high = np.array([one.ends(tail) for one in self.look_sums(rows)]).reshape(-1, 2).T
        return low, high

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
        return FieldsView(oracle, _of_tables(oracle, record, asked), asked, everybody=everybody)
    if isinstance(oracle, ProductOracle):
        lumps = isinstance(oracle, EveryFieldOracle)
        return FieldsView(
            oracle, product_rows(_answers(oracle, record), oracle.axes, asked, lumps=lumps), asked, everybody=everybody
        )
    if isinstance(oracle, _WHOLE) and oracle.can_list:
        rows = asked.rows_of(tuple(range(len(record.names))))
        return FieldsView(
            oracle, Direct(oracle.reports, (Source(oracle, rows, asked.rows),)), asked, everybody=everybody
        )
    raise Unsupported(f"{oracle.randomizer.name} gives no tables of fields: sampled-table does")


def drawn_view(oracle: Oracle, record: Record, asked: AskedTable) -> FieldsView:
    """Return the table out of the drawn tables that have all its fields, without what others say about parts of it.

    So two of these are independent if no drawn table has the fields of both.
    """
    if not isinstance(oracle, SampledTableOracle):
        return table_view(oracle, record, asked)
    if not any(not table.parity and asked.needed <= set(table.places) for table in oracle.tables):
        raise Unsupported(_unseen(oracle, record, tuple(sorted(asked.needed))))
    return FieldsView(oracle, _direct(oracle, record, asked), asked, everybody=not asked.where or not asked.fields)


def _answers(oracle: ProductOracle, record: Record) -> Floats:
    """The counts of the answers to all fields, with them as axes."""
    return np.asarray(oracle.counts.values, np.float64).reshape(record.sizes, order="F")


def all_tables(oracle: Oracle, record: Record) -> Pooling | ProductTables:
    """Return all tables of a question together."""
    if isinstance(oracle, ProductOracle):
        kept = oracle.tables
        if not isinstance(kept, ProductTables) or kept.sizes != record.sizes:
            kept = oracle.tables = ProductTables(oracle.reports, record.sizes, oracle.axes, _answers(oracle, record))
        return kept
    return pooling(oracle, record)


def pooling(oracle: Oracle, record: Record) -> Pooling:
    """Return what all tables that somebody drew say; of a sampled table it is kept until the counts change."""
    if not isinstance(oracle, SampledTableOracle):
        if not isinstance(oracle, _WHOLE) or not oracle.can_list or len(record.names) > MOST_POOLED:
            raise Unsupported(f"{oracle.randomizer.name} gives no tables of fields here: sampled-table does")
        everything = DrawnPart(tuple(range(len(record.names))), record.sizes, False, oracle)
        return Pooling(oracle.reports, record.sizes, (everything,))
    if oracle.pooling is None:
        drawn = oracle.counts.drawn()
        parts = tuple(_drawn_part(oracle, record, j) for j in range(len(oracle.tables)) if drawn[j])
        oracle.pooling = Pooling(oracle.reports, tuple(record.sizes), parts)
    return oracle.pooling


def likely_parts(oracle: Oracle, record: Record) -> list[LikelyPart]:
    """Return all tables that a device may draw, also those that nobody drew yet."""
    if not isinstance(oracle, SampledTableOracle):
        return [LikelyPart(one, 1.0) for one in pooling(oracle, record).parts]
    return [LikelyPart(_drawn_part(oracle, record, j), chance) for j, chance in enumerate(oracle.likely)]


def _drawn_part(oracle: SampledTableOracle, record: Record, drawn: int) -> DrawnPart:
    table = oracle.tables[drawn]
    sizes = tuple(record.sizes[place] for place in table.places)
    return DrawnPart(table.places, sizes, table.parity, _inner(oracle, drawn))


def _of_tables(oracle: SampledTableOracle, record: Record, asked: AskedTable) -> Direct | Pooled:
    needed = tuple(sorted(asked.needed))
    if not _asked_together(oracle, needed):
        raise Unsupported(_unseen(oracle, record, needed))
    pooled = pooling(oracle, record)
    cells = math.prod(record.sizes[place] for place in needed)
    if len(needed) > MOST_POOLED or cells > MOST_CELLS or len(oracle.tables) == 1:
        return _direct(oracle, record, asked)
    if not all(pooled.weights(subset).any() for subset in subsets(needed)):
        raise TooFewReports(_NOBODY)
    return Pooled(pooled, asked)


def _direct(oracle: SampledTableOracle, record: Record, asked: AskedTable) -> Direct:
    """Of the drawn tables that have all fields alone."""
    parts = [part for part in pooling(oracle, record).parts if not part.parity and asked.needed <= set(part.places)]
    if not parts:
        raise TooFewReports(_NOBODY)
    return Direct(oracle.reports, tuple(Source(part.oracle, asked.rows_of(part.places), asked.rows) for part in parts))


def _asked_together(oracle: SampledTableOracle, needed: Places) -> bool:
    """Whether devices are asked about these fields together: in one table, or by the parities of all their subsets."""
    if any(not table.parity and set(needed) <= set(table.places) for table in oracle.tables):
        return True
    known = {table.places for table in oracle.tables if table.parity}
    if needed not in known:
        return False
    return all(
        subset in known or any(not table.parity and set(subset) <= set(table.places) for table in oracle.tables)
        for subset in subsets(needed)
    )


def _inner(oracle: SampledTableOracle, drawn: int) -> FrequencyOracle:
    """The oracle of one table, with the counts of its reports."""
    table = oracle.tables[drawn]
    inner = as_frequency(oracle_for(table.inner))
    inner.counts.values = oracle.counts.part(drawn)
    inner.counts.total = int(oracle.counts.drawn()[drawn])
    return inner


def _unseen(oracle: SampledTableOracle, record: Record, needed: tuple[int, ...]) -> str:
    names = " and ".join(record.names[place] for place in needed)
    most = max(len(table.places) for table in oracle.tables)
    return (
        f"no device is asked about {names} together: ask for tables of at most {most} fields that one of the "
        f"{len(oracle.tables)} drawn tables has, or draft a question whose tables have these"
    )
