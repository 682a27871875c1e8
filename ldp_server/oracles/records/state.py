"""The additive state of a sampled table: the counts of each table, one after the other.

A table that is answered by subset selection has up to 2^63 different reports. As in subset_selection.py, its state is
how many sets hold each cell, so a report about it adds d counts. All other tables count reports.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_server.arrays.subsets import subsets
from ldp_server.oracles.shared.counts import Counts

__all__ = ["TableCounts"]

_CHUNK = 1 << 14


class TableCounts(Counts):
    """How many reports, or sets, there are of each cell of each table."""

    def __init__(self, randomizer: SampledTable) -> None:
        inner = [table.inner for table in randomizer.tables]
        self.sets = {j: (one.size, one.d) for j, one in enumerate(inner) if isinstance(one, SubsetSelection)}
        lengths = [one.size if j in self.sets else one.bound for j, one in enumerate(inner)]
        self.edges = np.array([0, *accumulate(lengths)], np.int64)
        """Where the counts of each table begin, and the end."""
        self._starts = np.array(randomizer.starts, np.uint64)
        super().__init__(randomizer, cells=int(self.edges[-1]), each=0 if self.sets else 1)

    def part(self, drawn: int) -> npt.NDArray[np.unsignedinteger]:
        """Return the counts of one table."""
        return self.values[self.edges[drawn] : self.edges[drawn + 1]]

    def drawn(self) -> npt.NDArray[np.int64]:
        """Return how many devices drew each table."""
        sums = np.add.reduceat(self.values, self.edges[:-1], dtype=np.int64)
        for j, (_, d) in self.sets.items():
            sums[j] //= d
        return sums

    def adds_up(self, total: int) -> bool:
        """Whether these are the counts of so many reports, and each table's a whole number of sets."""
        sums = np.add.reduceat(self.values, self.edges[:-1], dtype=np.int64)
        whole = all(sums[j] % d == 0 for j, (_, d) in self.sets.items())
        return whole and int(self.drawn().sum()) == total

    def _add(self, reports: npt.NDArray[np.unsignedinteger]) -> None:
        numbers = reports.astype(np.uint64)
        tables = np.searchsorted(self._starts, numbers, side="right") - 1
        own = numbers - self._starts[tables]
        plain = np.ones(len(numbers), bool)
        for j in self.sets.keys() & set(np.unique(tables).tolist()):
            mine = tables == j
            plain &= ~mine
            self._add_sets(j, own[mine])
        places = self.edges[tables[plain]] + own[plain].astype(np.int64)
        np.add.at(self.values, places, self.values.dtype.type(1))

    def _add_sets(self, drawn: int, ranks: npt.NDArray[np.uint64]) -> None:
        (cells, d), part = self.sets[drawn], self.part(drawn)
        for start in range(0, len(ranks), _CHUNK):
            some = ranks[start : start + _CHUNK]
            part += subsets(cells, np.full(len(some), d, np.intp), some).sum(axis=1, dtype=part.dtype)
