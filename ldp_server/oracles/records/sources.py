"""What the counts of one table say about a table that is asked for.

A row of the asked table is a set of cells of the drawn one. Its estimate is the sum of theirs, and a report about the
drawn table is a draw of a few values, whose probabilities depend on whether its user is in the row:

    randomized response   its answer is in the row or not. Of m cells: P = p + (m-1) q for a user of the row, else m q
    subset selection      how many of the row's m cells its set holds. The cells are drawn without replacement: given
                          that the user's own cell is held, d - 1 of the k - 1 others, else d of them
    linear hash           for a row of one cell: it supports the cell or not, with p and s. The law of several depends
                          on where the other users are; their variance and skewness are read off the counts
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Record
from ldp_server.arrays.tables import values_of
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.randomized_response import RandomizedResponseOracle
from ldp_server.oracles.subset_selection import SubsetSelectionOracle

__all__ = ["AskedTable", "RowSpread", "Source"]

_MOST_WORK = 1 << 30


@dataclass(frozen=True)
class AskedTable:
    """A table that is asked for: its fields, and which values count. Without fields: who counts, and the others."""

    record: Record
    fields: tuple[int, ...]
    """Places in the record, in the order of the answer."""
    where: tuple[tuple[int, frozenset[int]], ...] = ()
    """A field, and the values of it that count."""

    @property
    def needed(self) -> frozenset[int]:
        """The fields that a drawn table must have."""
        return frozenset(self.fields) | {place for place, _ in self.where}

    @property
    def rows(self) -> int:
        return math.prod(self.record.sizes[place] for place in self.fields) if self.fields else 2

    def rows_of(self, places: tuple[int, ...]) -> npt.NDArray[np.intp]:
        """Return the row of each cell of a table with these fields; -1 where it does not count."""
        values = values_of(tuple(self.record.sizes[place] for place in places))
        rows, stride = np.zeros(values.shape[1], np.intp), 1
        for place in self.fields:
            rows += stride * values[places.index(place)]
            stride *= self.record.sizes[place]
        outside = np.zeros(values.shape[1], bool)
        for place, held in self.where:
            outside |= ~np.isin(values[places.index(place)], list(held))
        return np.where(outside, -1, rows) if self.fields else (~outside).astype(np.intp)


@dataclass(frozen=True)
class RowSpread:
    """Variance and third central moment of a row's estimate, given how many of its users drew the table."""

    variance: float
    third: float = 0.0


@dataclass(frozen=True)
class Source:
    """A drawn table with the counts of its reports, and the row of each of its cells."""

    oracle: FrequencyOracle
    rows: npt.NDArray[np.intp]
    count: int
    """How many rows there are."""

    @property
    def reports(self) -> int:
        return self.oracle.reports

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """How many cells each row has."""
        return np.bincount(self.rows[self.rows >= 0], minlength=self.count)

    def merged(self, chosen: npt.NDArray[np.intp]) -> Source:
        """Return the source with these rows as one, and without the others."""
        return Source(self.oracle, np.where(np.isin(self.rows, chosen), 0, -1), 1)

    def estimates(self) -> Floats:
        """Return how many of those who drew the table are in each row."""
        inside = self.rows >= 0
        found = np.bincount(self.rows[inside], self.oracle.estimate_all()[inside], self.count)
        return np.asarray(found, np.float64)

    def noise(self, row: int) -> float:
        """The variance for one report of a user elsewhere. It is a matter of the design, and of no answer."""
        p, q = self._chances()
        size = int(self.sizes[row])
        if isinstance(self.oracle, LinearHashOracle):
            return size * q * (1 - q) / (p - q) ** 2
        values, _, out = self.law(size)
        mean = float(out @ values)
        return float(out @ np.square(values)) - mean**2

    def spreads(self, holders: Floats) -> list[RowSpread]:
        """Return the spread of every row's estimate, with so many users of each row among those who drew the table."""
        sizes = self.sizes
        if isinstance(self.oracle, LinearHashOracle) and sizes.max(initial=0) > 1:
            return self._hashed(self.oracle, holders)
        found, n = [], self.reports
        laws = {int(size): self.law(int(size)) for size in np.unique(sizes)}
        for size, held in zip(sizes.tolist(), np.clip(holders, 0, n).tolist(), strict=True):
            values, inside, outside = laws[size]
            total = np.zeros(2)
            for users, law in ((held, inside), (n - held, outside)):
                moved = values - law @ values
                total += users * np.array([law @ np.square(moved), law @ moved**3])
            found.append(RowSpread(float(total[0]), float(total[1])))
        return found

    def _hashed(self, oracle: LinearHashOracle, holders: Floats) -> list[RowSpread]:
        if self.count * oracle.counts.cells > _MOST_WORK:
            raise InvalidSpec("this table adds up too many cells: ask for fewer fields, or for one slice after another")
        found = []
        order = np.argsort(self.rows, kind="stable")
        edges = np.searchsorted(self.rows[order], np.arange(self.count + 1))
        for row, held in enumerate(holders.tolist()):
            cells = order[edges[row] : edges[row + 1]].astype(np.uint64)
            share = np.full(len(cells), held / max(1, len(cells)))
            found.append(RowSpread(*oracle.sum_moments(cells, share)) if len(cells) else RowSpread(0.0))
        return found

    def has_law(self) -> bool:
        """Whether a report's law depends on nothing but whether its user is in the row."""
        return not isinstance(self.oracle, LinearHashOracle) or int(self.sizes.max(initial=0)) <= 1

    def _chances(self) -> tuple[float, float]:
        law = self.oracle.law
        if law is None:
            raise InvalidSpec(f"{self.oracle.randomizer.name} gives no tables of fields")
        return law.p, law.s

    def law(self, size: int) -> tuple[Floats, Floats, Floats]:
        """Return values of a report, and their probabilities for users of a row of so many cells and for others.

        The values are such that the mean is 1 for users of the row and 0 for others.
        """
        p, q = self._chances()
        if isinstance(self.oracle, SubsetSelectionOracle):
            return _subset_law(self.oracle, size, p, q)
        if isinstance(self.oracle, RandomizedResponseOracle):
            inside, outside = min(1.0, p + (size - 1) * q), min(1.0, size * q)
            if not size:
                inside = outside = 0.0
        else:
            inside, outside = (p, q) if size else (0.0, 0.0)
        values = (np.array([0.0, 1.0]) - outside) / (p - q)
        return values, np.array([1 - inside, inside]), np.array([1 - outside, outside])


def _subset_law(oracle: SubsetSelectionOracle, m: int, p: float, q: float) -> tuple[Floats, Floats, Floats]:
    """How many of m cells are in a set."""
    k, d = oracle.randomizer.size, int(oracle.randomizer.parameters()["d"])
    most = min(m, d) + 1
    held, missed = np.zeros(most), np.zeros(most)
    for j in range(most):
        if m:  # of a user whose cell is one of the m: it is in the set, or it is not
            held[j] = p * _drawn(k - 1, m - 1, d - 1, j - 1) + (1 - p) * _drawn(k - 1, m - 1, d, j)
        missed[j] = p * _drawn(k - 1, m, d - 1, j) + (1 - p) * _drawn(k - 1, m, d, j) if m < k else float(j == d)
    if not m:
        held = missed.copy()
    return np.asarray((np.arange(most) - m * q) / (p - q), np.float64), held, missed


def _drawn(cells: int, marked: int, chosen: int, found: int) -> float:
    """The probability that so many of `marked` cells are among `chosen` ones of all."""
    if not 0 <= found <= min(marked, chosen) or chosen - found > cells - marked:
        return 0.0
    return math.comb(marked, found) * math.comb(cells - marked, chosen - found) / math.comb(cells, chosen)
