r"""A table that is asked for, from all drawn tables that share fields with it.

With A the fields that are asked for, n the number of users, and e_S the pooled effect of the fields S (parts.py),

    table of A = n/k_A + sum over the non-empty subsets S of A of e_S / (number of cells of A without S),
    e_S = sum over the drawn tables T that know S of w_(S,T) (n/n_T) (the effect that T shows),

with weights w_(S,T) in proportion to n_T/nu_T. So tables that share fields agree about them before anything is
projected, and a single that is drawn by itself helps every pair that has it.

A row is a set of cells. Its estimate is n |row|/k_A plus the sum of what the reports add. Each adds one of a few
values, with chances that follow from where its user is: a user of the row is there, exactly, if the row is one cell.
For users elsewhere, and in rows of several cells, it depends on the cell. They are taken to lie as the estimated table
says, projected onto what is possible. Whatever is taken, the mean of the sum is the number of users in the row,
because the estimate is unbiased for every cell; only the spread depends on it. So a mixture law follows (mixture.py).

The law of a row of one value of each asked field, and of a set of values of each field of `where`, depends on which
fields of a user's cell agree with the row. These classes are as many for all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.laws.skewed import skewed_intervals
from ldp_server.oracles.records.mixture import MixtureLaw
from ldp_server.oracles.records.parts import DrawnPart, Places, centred, marginal
from ldp_server.oracles.records.sources import AskedTable
from ldp_server.oracles.records.together.joint import MOST_JOINT, all_possible
from ldp_server.oracles.records.together.shrinking import Effect, shrunk

__all__ = ["MOST_POOLED", "Pooled", "Pooling", "subsets"]

MOST_POOLED = 10
"""Fields: a table of w fields has 2^w effects."""
_EXACT_ROWS = 4096
"""In larger tables the intervals are those of a skewed normal law."""
_READ = 32
"""So many rows are looked at to see how much the reports of linear hash spread."""
_SMALL = 1e-12
_LEAST_SPREAD = 0.05


def subsets(places: Places) -> Iterator[Places]:
    """Yield all non-empty subsets, small ones first."""
    for size in range(1, len(places) + 1):
        yield from combinations(places, size)


@dataclass(frozen=True)
class Pooling:
    """All drawn tables that somebody drew, and how many users there are."""

    users: int
    sizes: tuple[int, ...]
    """Of all fields of the record."""
    parts: tuple[DrawnPart, ...]

    @cached_property
    def _kept(self) -> dict[Places, tuple[Floats, Floats]]:
        """The weights and the effects that were worked out."""
        return {}

    def _found(self, subset: Places) -> tuple[Floats, Floats]:
        if subset not in self._kept:
            wanted = frozenset(subset)
            parts = np.array([part.reports / part.noise if part.knows(wanted) else 0.0 for part in self.parts])
            weights = parts / parts.sum() if parts.any() else parts
            found = np.zeros([self.sizes[place] for place in subset])
            for number in np.flatnonzero(weights).tolist():
                part = self.parts[number]
                found = found + weights[number] * self.users / part.reports * part.effect(subset)
            self._kept[subset] = weights, found
        return self._kept[subset]

    def weights(self, subset: Places) -> Floats:
        """Return w_(S,T) of each part; all 0 where none of them knows the effect."""
        return self._found(subset)[0]

    def effect(self, subset: Places) -> Floats:
        """Return e_S; its axes are the fields in ascending order."""
        return self._found(subset)[1]

    def table(self, places: Places) -> Floats:
        """Return the pooled table of some fields, of which every subset is known."""
        return self._summed(places, {subset: self.effect(subset) for subset in subsets(places)})

    def _summed(self, places: Places, effects: Mapping[Places, Floats]) -> Floats:
        """The table with these effects."""
        shape = [self.sizes[place] for place in places]
        found = np.full(shape, self.users / math.prod(shape))
        for subset in subsets(places):
            axes = [self.sizes[place] if place in subset else 1 for place in places]
            others = math.prod(shape) // math.prod(axes)
            found = found + effects[subset].reshape(axes) / others
        return found

    @cached_property
    def largest(self) -> tuple[Places, ...]:
        """The tables that can be asked for and lie in no other one."""
        known = [
            part.places for part in self.parts if all(self.weights(subset).any() for subset in subsets(part.places))
        ]
        return tuple(one for one in known if not any(set(one) < set(other) for other in known))

    @cached_property
    def possible(self) -> dict[Places, Floats]:
        """The nearest tables that are possible together; nothing if they have too many cells."""
        cells = sum(math.prod(self.sizes[place] for place in one) for one in self.largest)
        if cells > MOST_JOINT:
            return {}
        wanted = {subset for one in self.largest for subset in subsets(one)}
        effects = shrunk(self.users, {one: Effect(self.effect(one), self.spread(one)) for one in wanted})
        return all_possible(self.users, self.sizes, {one: self._summed(one, effects) for one in self.largest})

    def variance(self, subset: Places) -> float:
        """Return the variance of each free number of e_S in an orthonormal basis, for users spread evenly."""
        known = sum(part.reports / part.noise for part in self.parts if part.knows(frozenset(subset)))
        return self.users**2 / known / math.prod(self.sizes[place] for place in subset) if known else math.inf

    def spread(self, subset: Places) -> float:
        """Return the same for the users as they are estimated to lie: an effect e_S makes it smaller.

        A report about T says a vector of the same length whatever it is (randomized response, parity; nearly so for the
        others). So the variances of all free numbers add up to those of users spread evenly less |e_S|^2 w^2/n_T.
        """
        even, free = self.variance(subset), math.prod(self.sizes[place] - 1 for place in subset)
        if not free or math.isinf(even):
            return even
        counts = np.array([part.reports for part in self.parts], np.float64)
        seen = max(0.0, float(np.square(self.effect(subset)).sum()) - free * even)
        less = seen / free * float(np.sum(np.square(self.weights(subset)) / counts))
        return max(even - less, _LEAST_SPREAD * even)


@dataclass(frozen=True)
class _Piece:
    """What the reports about one part add to every row."""

    part: DrawnPart
    axes: Places
    """The fields that it shares with the asked table."""
    values: Floats
    """g of each class."""
    sizes: Floats
    inside: Floats
    """The class of users of the row: a line for each row, or one for all."""
    outside: Floats
    added: tuple[Floats, ...]
    """For some rows, g of every cell of the part; of no use but for linear hash."""


@dataclass(frozen=True)
class Pooled:
    """The rows of an asked table."""

    pooling: Pooling
    asked: AskedTable
    merged_rows: npt.NDArray[np.intp] | None = None
    """The rows that count as one; None: each by itself."""

    whole = False

    @property
    def users(self) -> int:
        return self.pooling.users

    @cached_property
    def needed(self) -> Places:
        return tuple(sorted(self.asked.needed))

    @property
    def count(self) -> int:
        return self.asked.rows if self.merged_rows is None else 1

    @cached_property
    def cells(self) -> Floats:
        """The pooled table of all fields that are needed, with them as axes."""
        return self.pooling.table(self.needed)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The row of each cell, or -1."""
        rows = self.asked.rows_of(self.needed)
        return rows if self.merged_rows is None else np.where(np.isin(rows, self.merged_rows), 0, -1)

    def merged(self, chosen: npt.NDArray[np.intp]) -> Pooled:
        """Return the same with these rows as one, and without the others."""
        return replace(self, merged_rows=chosen)

    def of_cells(self, table: Floats) -> Floats:
        """Return the sum of the cells of each row."""
        inside = self.rows >= 0
        return np.asarray(np.bincount(self.rows[inside], table.ravel(order="F")[inside], self.count), np.float64)

    @cached_property
    def raw(self) -> Floats:
        return self.of_cells(self.cells)

    @cached_property
    def _held(self) -> Floats:
        """Where users are taken to be: every cell has a few."""
        found = norm_sub(self.cells.ravel(order="F"), float(self.users)) + 1e-9 * self.users
        return found.reshape(self.cells.shape, order="F")

    def possible(self) -> Floats | None:
        """Return the rows of the nearest tables that are possible together, if these have been worked out."""
        for places, table in self.pooling.possible.items():
            if set(self.needed) <= set(places):
                return self.of_cells(marginal(table, places, self.needed))
        return None

    def errors(self, holders: Floats) -> Floats:
        """Return the standard errors, with so many users in each row and the others as they are estimated."""
        return np.where(self._empty, 0.0, np.sqrt(self._law.moments(holders)[0]))

    def intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for the number of users in each row; each end errs with probability `tail` at most."""
        law, raw = self._law, self.raw
        if not len(law.counts):  # every value of every field counts
            return raw.copy(), raw.copy()
        if self.count > _EXACT_ROWS:
            return skewed_intervals(raw, law.moments, float(self.users), tail)
        low, high = law.intervals(raw - self._base, tail)
        return np.where(self._empty, 0.0, low), np.where(self._empty, 0.0, high)

    @cached_property
    def _cells_of_rows(self) -> Floats:
        return np.bincount(self.rows[self.rows >= 0], minlength=self.count).astype(np.float64)

    @property
    def _base(self) -> Floats:
        return self.users * self._cells_of_rows / self.rows.size

    @property
    def _empty(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._cells_of_rows == 0)

    @cached_property
    def _law(self) -> MixtureLaw:
        alone = self.merged_rows is not None or not self.asked.fields
        pieces = list(self._of_sets() if alone else self._of_products())
        columns = []
        for piece in pieces:
            atoms = piece.part.atoms(piece.values, piece.sizes, piece.part.grown(piece.added))
            columns.append((atoms.values, piece.inside @ atoms.chances, piece.outside @ atoms.chances))
        most = max((len(values) for values, _, _ in columns), default=1)
        values = np.zeros((len(pieces), most))
        inside, outside = (np.zeros((self.count, len(pieces), most)) for _ in range(2))
        for line, (own, held, others) in enumerate(columns):
            values[line, : len(own)] = own
            inside[:, line, : len(own)], outside[:, line, : len(own)] = held, others
        counts = np.array([piece.part.reports for piece in pieces], np.float64)
        step = max((float(np.diff(np.sort(piece.values)).max()) for piece in pieces), default=0.0)
        if alone and self.count == 2:
            values = np.stack([-values, values])
        return MixtureLaw(float(self.users), counts, values, inside, outside, step)

    def _scale(self, part: DrawnPart) -> float:
        """What turns g of parts.py into an unbiased number of users."""
        p, s = part.told
        return self.users / part.reports / (p - s)

    def _shared(self) -> Iterator[tuple[DrawnPart, Places, dict[Places, float]]]:
        """The parts that say something, the fields they share, and the weights of the effects that they know."""
        weights = {subset: self.pooling.weights(subset) for subset in subsets(self.needed)}
        for number, part in enumerate(self.pooling.parts):
            known = {subset: float(one[number]) for subset, one in weights.items() if one[number]}
            if known:
                yield part, tuple(place for place in self.needed if place in part.places), known

    def _of_sets(self) -> Iterator[_Piece]:
        """Of one row, which may be any set of cells: every cell of the shared fields is a class."""
        flat = self.rows == (0 if self.merged_rows is not None else 1)
        row = flat.astype(np.float64).reshape(self.cells.shape, order="F")
        for part, axes, known in self._shared():
            shape = [self.pooling.sizes[place] for place in axes]
            values = np.zeros(shape)
            for subset, weight in known.items():
                others = self.cells.size / math.prod(self.pooling.sizes[place] for place in subset)
                effect = centred(marginal(row, self.needed, subset)) / others
                values = values + weight * effect.reshape(
                    [size if place in subset else 1 for place, size in zip(axes, shape, strict=True)]
                )
            values = values * self._scale(part)
            if np.ptp(values) <= _SMALL * self.users:
                continue
            inside, outside = (
                _shares(marginal(side, self.needed, axes)) for side in (row * self._held, self._off(row))
            )
            if self.merged_rows is None:
                inside, outside = np.concatenate([outside, inside]), np.concatenate([inside, outside])
            yield self._piece(part, axes, values, (inside, outside), (values,))

    def _off(self, row: Floats) -> Floats:
        return np.asarray((1 - row) * self._held)

    def _piece(
        self, part: DrawnPart, axes: Places, values: Floats, users: tuple[Floats, Floats], added: tuple[Floats, ...]
    ) -> _Piece:
        size = part.oracle.randomizer.size / max(1, values.size)
        spread = []
        for one in added if not part.parity else ():
            wide = one.reshape(
                [own if place in axes else 1 for place, own in zip(part.places, part.sizes, strict=True)]
            )
            spread.append(np.broadcast_to(wide, part.sizes).ravel(order="F"))
        flat = values.ravel(order="F")
        return _Piece(part, axes, flat, np.full(flat.size, size), *users, tuple(spread))

    def _of_products(self) -> Iterator[_Piece]:
        """Of rows that are products: the classes are which of the shared fields agree with the row."""
        shares = [len(self._values_of(place)) / self.pooling.sizes[place] for place in self.needed]
        share = dict(zip(self.needed, shares, strict=True))
        for part, axes, known in self._shared():
            patterns = np.array(np.unravel_index(np.arange(2 ** len(axes)), (2,) * len(axes), order="F"))
            of = {
                place: np.where(line, 1 - share[place], -share[place])
                for place, line in zip(axes, patterns, strict=True)
            }
            values = np.zeros(patterns.shape[1])
            for subset, weight in known.items():
                rest = math.prod(share[place] for place in self.needed if place not in subset)
                values = values + weight * rest * math.prod(of[place] for place in subset)
            sizes = np.ones(len(values)) * part.oracle.randomizer.size
            for place, line in zip(axes, patterns, strict=True):
                sizes = sizes * np.where(line, share[place], 1 - share[place])
            # No cell differs from a row in a field of which the row has every value.
            values = np.where(sizes > 0, values, values[-1]) * self._scale(part)
            inside = np.zeros((1, len(values)))
            inside[0, -1] = 1.0
            if np.ptp(values) > _SMALL * self.users:
                added = self._added(part, axes, values)
                yield _Piece(part, axes, values, sizes, inside, self._elsewhere(axes, patterns), added)

    def _values_of(self, place: int) -> npt.NDArray[np.intp]:
        """The values of a field that one row has: a single one, or those of the slice."""
        if place in self.asked.fields:
            return np.zeros(1, np.intp)
        return np.array(sorted(dict(self.asked.where)[place]), np.intp)

    def _elsewhere(self, axes: Places, patterns: npt.NDArray[np.intp]) -> Floats:
        """For each row, how users who are not in it are parted among the classes."""
        numbers = [self._agreeing(tuple(p for p, on in zip(axes, line, strict=True) if on)) for line in patterns.T]
        exact = np.array(numbers)  # of those who agree at least there; less those who agree in more fields
        for bit in range(len(axes)):
            on = patterns[bit] == 1
            exact[~on] -= exact[on]
        exact[-1] -= self._agreeing(self.needed)
        exact = np.maximum(exact, 0.0) + 1e-12 * self.users
        return np.asarray((exact / exact.sum(axis=0)).T)

    def _agreeing(self, agreed: Places) -> Floats:
        """How many users have the row's values in these fields, for each row."""
        table = self._held
        for axis, place in enumerate(self.needed):
            if place not in self.asked.fields:
                kept = table.take(self._values_of(place), axis=axis) if place in agreed else table
                table = kept.sum(axis=axis, keepdims=True)
            elif place not in agreed:
                table = table.sum(axis=axis, keepdims=True)
        shape = [self.pooling.sizes[place] if place in self.asked.fields else 1 for place in self.needed]
        return self._in_order(np.broadcast_to(table, shape))

    def _in_order(self, table: Floats) -> Floats:
        """The rows of a table with the needed fields as axes, those of `where` alone being 1 long."""
        places = [place for place in self.needed if place in self.asked.fields]
        narrow = table.reshape([self.pooling.sizes[place] for place in places])
        return np.asarray(narrow.transpose([places.index(place) for place in self.asked.fields]).ravel(order="F"))

    def _added(self, part: DrawnPart, axes: Places, values: Floats) -> tuple[Floats, ...]:
        """For some rows, g of each cell of the part."""
        if not part.reads_reports:
            return ()
        found = []
        fields = [self.pooling.sizes[place] for place in self.asked.fields]
        for row in np.unique(np.linspace(0, self.asked.rows - 1, _READ).astype(np.intp)):
            at = dict(zip(self.asked.fields, np.unravel_index(row, fields, order="F"), strict=True))
            numbers = np.zeros(part.sizes, np.intp)
            for bit, place in enumerate(axes):
                held = [at[place]] if place in at else self._values_of(place)
                line = np.isin(np.arange(self.pooling.sizes[place]), held).astype(np.intp) << bit
                numbers = numbers + line.reshape([-1 if own == place else 1 for own in part.places])
            found.append(values[numbers.ravel(order="F")])
        return tuple(found)


def _shares(table: Floats) -> Floats:
    """One line: the shares of the cells; even ones where there is nobody."""
    flat = table.ravel(order="F")
    total = float(flat.sum())
    return np.asarray(flat / total if total > 0 else np.full(flat.size, 1 / flat.size))[None, :]
