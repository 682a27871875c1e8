r"""A table that is asked for, where every device answers about all fields, each field with randomness of its own.

The table of probabilities of any fields A is the Kronecker product of those of the fields, A_i, and what the reports
say of the other fields is left out by adding them up: nothing is lost by that, as the answers are independent given the
record. With M_i the inverse of A_i', a row of one set of values P_i of each field is estimated by adding up

    g(y) = product over i of g_i(y_i),   g_i = sum of the lines of M_i in P_i,

over the reports. E[g] is 1 for a user of the row and 0 for any other. All means of g^p are products too, so the moments
of all rows follow from a few multiplications along the fields (shared/product.py has the formulas).

**Intervals.** Up to 64 cells: from the law of the sum (laws/tables). Where the answers are those of randomized
response, whether the answer to a field is in P_i depends only on whether the truth is. So a row of w fields has a law
of 2^w patterns, whatever the number of cells, and its interval comes from that law, up to 6 fields and 2^15 patterns of
all rows. Otherwise from a normal law with the sum's skewness, which needs some hundreds of users.

**Every look.** A score g is known from its report alone. Its largest and least value, and the largest mean square over
the cells of a row and over all others, are products, or the largest of a few (looks/sums.py).

**All tables together** (`ProductTables`), for synthetic records and for tables that agree: those of every two fields,
and the nearest ones that are possible together (joint.py). An estimated effect of the fields S is the product of the
centred M_i, added up over the reports. For users spread evenly its free numbers have together the variance n times the
product of the mean squares of these. For randomized response with p - q = d it is n/(s d^2) for each free number of one
field of s elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.skewed import Jumps, skewed_intervals
from ldp_server.oracles.laws.tables.intervals import TableIntervals
from ldp_server.oracles.looks.sums import ScoreSum
from ldp_server.oracles.records.parts import Places, centred, marginal
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.together.joint import MOST_JOINT, all_possible
from ldp_server.oracles.shared.axis_table import AxisTable
from ldp_server.oracles.shared.product import SMALL_PRODUCT, Moments, jumps_of, jumps_of_products, set_law, through

__all__ = ["ProductRows", "ProductTables", "product_rows"]

_MOST_LINES = 1 << 15
"""Patterns of all rows: with more, the intervals are those of a skewed normal law."""


@dataclass(frozen=True)
class _Side:
    """A field of the asked table: whether each of its values has rows of its own, and which values count."""

    axis: AxisTable
    asked: bool
    held: Floats
    """1 for the values that count."""

    @cached_property
    def values(self) -> Floats:
        """g_i, a line for each value that has rows of its own, or one line."""
        if not self.asked:
            return (self.held @ self.axis.inverse)[None, :]
        return self.axis.inverse if self.held.all() else self.axis.inverse * self.held[:, None]

    @property
    def picked(self) -> Floats:
        """P_i: the values that each line counts."""
        return np.diag(self.held) if self.asked else self.held[None, :]

    @property
    def cells(self) -> Floats:
        """How many values each line counts."""
        return self.held if self.asked else self.held.sum(keepdims=True)

    def means(self, line: int, power: int) -> Floats:
        """E[g_i^power] of the holders of each value, for a line."""
        return np.asarray(self.axis.table @ self.values[line] ** power)

    def own(self, power: int) -> Floats:
        """The same of the holders of a line's only value; 1 where a line counts several."""
        if not self.asked:
            return np.ones(1)
        return np.where(self.held > 0, self.axis.squares if power == 2 else self.axis.cubes, 0.0)

    def several(self, power: int) -> Floats | None:
        """For a line of several values: their means, and 0 for the others."""
        return None if self.asked else (self.means(0, power) * self.held)[None, :]

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the largest E[g_i^2] over all holders, for each line."""
        if not self.asked:
            found = self.means(0, 2)
            return found.min(keepdims=True), found.max(keepdims=True)
        least, most = np.minimum(self.axis.least, self.axis.squares), np.maximum(self.axis.most, self.axis.squares)
        return np.where(self.held > 0, least, 0.0), np.where(self.held > 0, most, 0.0)


def product_rows(counts: Floats, axes: Sequence[AxisTable], asked: AskedTable, *, lumps: bool) -> ProductRows:
    """Return the rows of an asked table; `counts` has an axis for each field, and `lumps` says: randomized response."""
    sizes, where = asked.record.sizes, dict(asked.where)
    everything = {place for place, held in asked.where if place not in asked.fields and len(held) == sizes[place]}
    places = tuple(sorted(asked.needed - everything))
    sides = []
    for place in places:
        held = np.zeros(sizes[place])
        held[sorted(where.get(place, range(sizes[place])))] = 1.0
        sides.append(_Side(axes[place], place in asked.fields, held))
    kept = marginal(counts, tuple(range(counts.ndim)), places).astype(np.float64)
    return ProductRows(asked, places, tuple(sides), kept, lumps)


@dataclass(frozen=True)
class ProductRows:
    """The rows of an asked table."""

    asked: AskedTable
    places: Places
    """The fields that matter, in ascending order."""
    sides: tuple[_Side, ...]
    counts: Floats
    """Of the answers to these fields, an axis for each."""
    lumps: bool
    """Whether an answer's being in a set of values depends only on whether the truth is."""
    merged_rows: npt.NDArray[np.intp] | None = None
    """The rows that count as one; None: each by itself."""

    @property
    def users(self) -> int:
        return int(self.counts.sum())

    @property
    def count(self) -> int:
        return self.asked.rows if self.merged_rows is None else 1

    def merged(self, chosen: npt.NDArray[np.intp]) -> ProductRows:
        """Return the same with these rows as one, and without the others."""
        return replace(self, merged_rows=chosen)

    def _in_order(self, table: Floats) -> Floats:
        """An array with the lines of each field along its axis, as the asked table's rows."""
        first = [self.places.index(place) for place in self.asked.fields]
        rest = [axis for axis in range(table.ndim) if axis not in first]
        return np.asarray(table.transpose(first + rest).ravel(order="F"))

    def _product(self, lines: Sequence[Floats]) -> Floats:
        """The product of a number for each line of each field, for the rows."""
        return self._in_order(reduce(np.multiply.outer, lines, np.ones(())))

    @cached_property
    def _seen(self) -> Floats:
        """Where users are taken to be: every cell has a few."""
        found = through(self.counts, [side.axis.inverse for side in self.sides])
        return np.asarray(np.maximum(found, 0.0) + 1e-9 * self.users)

    @cached_property
    def _cells(self) -> Floats:
        """How many cells each row has."""
        return self._product([side.cells for side in self.sides])

    @cached_property
    def _plain(self) -> Floats:
        """The estimates of the rows; without asked fields, of those who are asked for."""
        return self._in_order(through(self.counts, [side.values for side in self.sides]))

    @cached_property
    def raw(self) -> Floats:
        rows = self._plain if self.asked.fields else np.array([self.users - self._plain[0], self._plain[0]])
        return rows if self.merged_rows is None else np.array([rows[self.merged_rows].sum()])

    @property
    def _others(self) -> bool:
        """Whether the only row is everybody but those who are asked for."""
        return not self.asked.fields and self.merged_rows is not None and self.merged_rows.tolist() == [0]

    @property
    def _one(self) -> bool:
        """Whether the rows are those who are asked for, and everybody else."""
        return not self.asked.fields and (self.merged_rows is None or len(self.merged_rows) == 1)

    def errors(self, holders: Floats) -> Floats:
        """Return the standard errors, with so many users in each row."""
        if self._one:  # those who are asked for and all others have one error
            inside = self.users - holders if self._others else holders[-1:]
            return np.repeat(np.sqrt(np.maximum(self._moments(inside)[0], 0.0)), len(holders))
        return np.sqrt(np.maximum(self._moments(holders)[0], 0.0))

    @cached_property
    def _moments(self) -> Moments:
        """The moments of the rows, or of the merged ones."""
        if self.merged_rows is not None and not self._one:
            return self._of_a_set()
        below = through(self._seen, [None if side.asked else side.picked for side in self.sides])
        sums, held = [], []
        for power in (2, 3):
            sums.append(self._in_order(through(self.counts, [side.values**power for side in self.sides])))
            several = through(self._seen, [side.several(power) for side in self.sides])
            held.append(self._in_order(several / below) * self._product([side.own(power) for side in self.sides]))
        least, most = (self._product([side.ends[end] for side in self.sides]) for end in (0, 1))
        empty = self._cells == 0
        own = np.where(empty, 1.0, held[0]), np.where(empty, 1.0, held[1])
        return set_law(float(self.users), own, (sums[0], sums[1]), self._plain, (least, most))

    @cached_property
    def _mask(self) -> Floats:
        """1 for the cells of the merged rows."""
        chosen = np.zeros(self.asked.rows)
        chosen[self.merged_rows] = 1.0
        if not self.asked.fields:
            inside = reduce(np.multiply.outer, [side.held for side in self.sides], np.ones(()))
            return np.asarray(chosen[0] * (1 - inside) + chosen[1] * inside)
        table = chosen.reshape([self.asked.record.sizes[place] for place in self.asked.fields], order="F")
        order = [self.asked.fields.index(place) for place in self.places if place in self.asked.fields]
        wide = [len(side.held) if side.asked else 1 for side in self.sides]
        return reduce(np.multiply.outer, [side.held for side in self.sides], np.ones(())) * table.transpose(
            order
        ).reshape(wide)

    def _of_a_set(self) -> Moments:
        """The moments of any set of cells."""
        mask, tables = self._mask, [side.axis.table for side in self.sides]
        values = through(mask, [side.axis.inverse.T for side in self.sides])
        means = [through(values**power, tables) for power in (2, 3)]
        inside, outside = self._seen * mask, means[0][mask == 0]
        if not mask.any() or not outside.size:
            return lambda holders: (np.zeros(len(holders)), np.zeros(len(holders)))
        held = [np.array([float((inside * one).sum() / inside.sum())]) for one in means]
        sums = [np.array([float((values**power * self.counts).sum())]) for power in (2, 3)]
        ends = np.array([outside.min()]), np.array([outside.max()])
        return set_law(float(self.users), (held[0], held[1]), (sums[0], sums[1]), self.raw, ends)

    def _jumps(self) -> Jumps:
        """What one report may add to each row, or to the merged ones."""
        if self.merged_rows is not None and not self._one:
            values = through(self._mask, [side.axis.inverse.T for side in self.sides])
            return jumps_of(values, self._mask, [side.axis.table for side in self.sides], float(self.users))
        ends = []
        for side in self.sides:
            squares = np.array([side.means(line, 2).max() for line in range(len(side.values))])
            ends.append((side.values.max(axis=1), side.values.min(axis=1), squares))
        found = jumps_of_products(ends, float(self.users))
        return Jumps(self._in_order(found.span), self._in_order(found.most))

    def intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for the number of users in each row; each end errs with probability `tail` at most."""
        if not self.places:
            return self.raw.copy(), self.raw.copy()
        if self._one:
            low, high = self._of_rows(tail)
            others = (self.users - high, self.users - low)
            if self.merged_rows is not None:
                return others if self._others else (low, high)
            return np.concatenate([others[0], low]), np.concatenate([others[1], high])
        if self.merged_rows is None:
            low, high = self._of_rows(tail)
            return np.where(self._cells == 0, 0.0, low), np.where(self._cells == 0, 0.0, high)
        if self.counts.size <= SMALL_PRODUCT:
            return self._small(self._mask.ravel(order="F")[None, :], self.raw, tail)
        return skewed_intervals(self.raw, self._moments, float(self.users), tail, self._jumps())

    def _of_rows(self, tail: float) -> tuple[Floats, Floats]:
        """Those of all rows; without asked fields, of those who are asked for."""
        patterns = 1 << len(self.places)
        if self.lumps and patterns <= SMALL_PRODUCT and patterns * len(self._plain) <= _MOST_LINES:
            return self._of_patterns(tail)
        if self.counts.size <= SMALL_PRODUCT:
            picked, cells = [side.picked for side in self.sides], np.ndindex(*self.counts.shape[::-1])
            sets = [self._product([one[:, v] for one, v in zip(picked, cell[::-1], strict=True)]) for cell in cells]
            return self._small(np.array(sets).T, self._plain, tail)
        return skewed_intervals(self._plain, self._moments, float(self.users), tail, self._jumps())

    def _small(self, sets: Floats, sums: Floats, tail: float) -> tuple[Floats, Floats]:
        """From the law of few cells; a line of `sets` for each row."""
        table, inverse = (
            reduce(np.kron, [getattr(side.axis, name) for side in reversed(self.sides)])
            for name in ("table", "inverse")
        )
        came = np.rint(self.counts.ravel(order="F")).astype(np.int64)
        return TableIntervals(table, inverse).intervals(sets, came, sums, tail)

    def _of_patterns(self, tail: float) -> tuple[Floats, Floats]:
        """From the law of which answers are among the row's values."""
        table, stacks = np.ones((1, 1)), []
        for side in self.sides:
            own, picked = side.axis.table, side.picked
            kept, size = float(own[0, 0] - own[1, 0]), float(picked.sum(axis=1).max())
            out = size * (1 - kept) / len(own)
            table = np.kron(np.array([[1 - out, out], [1 - out - kept, out + kept]]), table)
            stacks.append(np.stack([1 - picked, picked], axis=1).reshape(-1, picked.shape[1]))
        every = np.rint(self._patterns(through(self.counts, stacks))).astype(np.int64)
        came, line = np.unique(every, axis=0, return_inverse=True)
        inverse = np.asarray(np.linalg.inv(table).T, np.float64)
        sets = np.zeros(came.shape)
        sets[:, -1] = 1.0
        found = came @ inverse[-1]
        low, high = TableIntervals(table, inverse, coarse=True).intervals(sets, came, found, tail)
        return low[line.ravel()], high[line.ravel()]

    def _patterns(self, table: Floats) -> Floats:
        """A line for each row, a column for each pattern: bit i says whether field i is among the row's values."""
        count, sides = len(self.places), [len(side.values) for side in self.sides]
        split = table.reshape([one for side in sides for one in (side, 2)])
        flat = split.transpose([*range(0, 2 * count, 2), *range(1, 2 * count, 2)]).reshape([*sides, -1], order="F")
        return np.stack([self._in_order(flat[..., one]) for one in range(1 << count)], axis=1)

    def possible(self, tables: Mapping[Places, Floats]) -> Floats | None:
        """Return the rows of tables that are possible together, if one of these has all fields."""
        for places, table in tables.items():
            if set(self.places) <= set(places):
                kept = marginal(table, places, self.places)
                rows = self._in_order(through(kept, [side.picked for side in self.sides]))
                return rows if self.asked.fields else np.array([self.users - rows[0], rows[0]])
        return None

    def look_sums(self, rows: Sequence[int]) -> list[ScoreSum]:
        """Return the sum of the scores of each of these rows, which gives intervals for every look."""
        lines = [np.arange(len(side.values), dtype=np.float64) for side in self.sides]
        ones = [np.ones(len(line)) for line in lines]
        numbers = [self._product([*ones[:at], line, *ones[at + 1 :]]) for at, line in enumerate(lines)]
        if self.asked.fields:
            return [self._score([int(one[row]) for one in numbers], float(self._plain[row])) for row in rows]
        inside = self._score([0] * len(lines), float(self._plain[0]))
        others = ScoreSum(
            self.users - inside.total, inside.reports, 1 - inside.least, 1 - inside.most, inside.outside, inside.inside
        )
        return [inside if row else others for row in rows]

    def _score(self, lines: Sequence[int], total: float) -> ScoreSum:
        most, least, inside, every, missed = 1.0, 1.0, 1.0, 1.0, 0.0
        for line, side in zip(lines, self.sides, strict=True):
            values, means = side.values[line], side.means(line, 2)
            counted = (np.arange(len(side.held)) == line) & (side.held > 0) if side.asked else side.held > 0
            if not counted.any():
                return ScoreSum(0.0, self.users, 0.0, 0.0, 0.0, 0.0)
            ends = [one * other for one in (most, least) for other in (values.max(), values.min())]
            most, least = float(max(ends)), float(min(ends))
            inside *= float(means[counted].max())
            every *= float(means.max())
            missed = max(missed, float(means[~counted].max(initial=0.0)) / float(means.max()))
        return ScoreSum(total, self.users, most, least, max(inside - 1, 0.0), every * missed)


@dataclass(frozen=True)
class ProductTables:
    """The tables of every two fields of a record, and the effects of the fields in them."""

    users: int
    sizes: tuple[int, ...]
    axes: tuple[AxisTable, ...]
    counts: Floats

    @cached_property
    def largest(self) -> tuple[Places, ...]:
        """The tables that lie in no other one."""
        places = range(len(self.sizes))
        return tuple(combinations(places, 2)) if len(self.sizes) > 1 else ((0,),)

    def table(self, places: Places) -> Floats:
        """Return the estimated table of some fields, in ascending order."""
        kept = marginal(self.counts, tuple(range(len(self.sizes))), places)
        return through(kept, [self.axes[place].inverse for place in places])

    @cached_property
    def possible(self) -> dict[Places, Floats]:
        """The nearest tables that are possible together; nothing if they have too many cells."""
        if sum(math.prod(self.sizes[place] for place in one) for one in self.largest) > MOST_JOINT:
            return {}
        return all_possible(self.users, self.sizes, {one: self.table(one) for one in self.largest})

    def effect(self, subset: Places) -> Floats:
        """Return what it says beyond the tables of fewer of its fields."""
        return centred(self.table(subset))

    def variance(self, subset: Places) -> float:
        """Return the variance of each free number of an effect in an orthonormal basis, for users spread evenly."""
        return self.users * math.prod(self._noise[place] for place in subset)

    @cached_property
    def _noise(self) -> tuple[float, ...]:
        """For each field, the mean of the squares of a centred estimate, for each free number."""
        found = []
        for axis in self.axes:
            said = axis.table.mean(axis=0)
            moved = axis.inverse - axis.inverse.mean(axis=0)
            found.append(float((moved**2 @ said).sum()) / max(1, len(said) - 1))
        return tuple(found)
