r"""The oracle of a table of probabilities that is a Kronecker product: linear equations, solved axis by axis.

An axis is a field of a record, or the whole domain. The counts C of n reports have the means A' f, where f is how many
users hold each element and A the table of all probabilities, the Kronecker product of the tables of the axes. So

    f = M C,    M = the product of the axes' M_a = inverse of A_a',

is unbiased whatever people hold, and is worked out one axis after the other. The estimate of a set S of elements adds
up g, the sum of the lines of M in S, over the reports. E[g] is 1 for a user in S and 0 for any other, so with F users
in S and the mean of g^k of all others r_k,

    variance        F (E_S[g^2] - 1) + (n - F) r_2
    third moment    F (E_S[g^3] - 3 E_S[g^2] + 2) + (n - F) r_3.

The moments of the users in S are those of the table, for users as the estimates show them; those of the others follow
from the counts without bias, and r_2 is kept between what users can have (`set_law`). Up to 64 elements, intervals come
from the law of the sum itself (laws/tables). Above, from a normal law with this skewness: they need some hundreds of
users.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_server.arrays.hashing import Indexes
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.skewed import Jumps, skewed_intervals
from ldp_server.oracles.laws.tables.intervals import TableIntervals
from ldp_server.oracles.shared.axis_table import AxisTable
from ldp_server.oracles.shared.counts import Counts

__all__ = ["SMALL_PRODUCT", "ProductOracle", "jumps_of", "jumps_of_products", "set_law", "through"]

SMALL_PRODUCT = 64
"""Up to so many elements, the whole table is looked at."""

Moments = Callable[[Floats], tuple[Floats, Floats]]
"""The variance and the third central moment of sums, for numbers of users that they count."""


def through(values: Floats, matrices: Sequence[Floats | None]) -> Floats:
    """Multiply an array by a matrix along each of its axes; None leaves the axis as it is."""
    found = values
    for place, matrix in enumerate(matrices):
        if matrix is not None:
            found = np.moveaxis(np.tensordot(matrix, found, (1, place)), 0, place)
    return np.asarray(found)


def set_law(
    users: float,
    held: tuple[Floats, Floats],
    sums: tuple[Floats, Floats],
    estimates: Floats,
    ends: tuple[Floats, Floats],
) -> Moments:
    """Return the moments of the estimates of some sets of elements.

    `held` are E[g^2] and E[g^3] of the users in each set, `sums` the sums of g^2 and g^3 over all reports; `ends` are
    the least and the largest E[g^2] of all others.
    """
    inside = np.clip(estimates, 0.0, max(users - 1, 0.0))
    second, third = (
        (found - inside * own) / np.maximum(users - inside, 1.0) for found, own in zip(sums, held, strict=True)
    )
    second = np.clip(second, *ends)
    own_second, own_third = held[0] - 1, held[1] - 3 * held[0] + 2

    def moments(holders: Floats) -> tuple[Floats, Floats]:
        f = np.clip(holders, 0.0, users)
        return f * own_second + (users - f) * second, f * own_third + (users - f) * third

    return moments


def jumps_of(values: Floats, chosen: Floats, tables: Sequence[Floats], users: float) -> Jumps:
    """Return what one report may add to the sum over a set of elements, 1 in `chosen`; `values` are g."""
    noise = through(values**2, tables) - chosen
    return Jumps(np.array([np.ptp(values)]), np.array([users * float(noise.max())]))


def jumps_of_products(parts: Sequence[tuple[Floats, Floats, Floats]], users: float) -> Jumps:
    """Return the same for sums whose g is a product over the axes, all combinations of lines: an axis of lines each.

    The parts are the largest and the least value of each line of an axis, and the largest E[g^2] of any holder.
    """
    most = least = squares = np.ones(())
    for high, low, square in parts:
        found = [np.multiply.outer(one, other) for one in (most, least) for other in (high, low)]
        most, least = np.max(found, axis=0), np.min(found, axis=0)
        squares = np.multiply.outer(squares, square)
    return Jumps(np.asarray(most - least), np.asarray(users * squares))


class ProductOracle(FrequencyOracle):
    """Counts of reports, and the inverses of the axes' tables."""

    tables: object | None = None
    """All tables of two fields, until the counts change (records/view.py)."""

    def __init__(self, randomizer: Randomizer) -> None:
        super().__init__(randomizer)
        self.axes = self.axis_tables()
        self._shape = tuple(len(axis.table) for axis in reversed(self.axes))
        self._found: Floats | None = None
        self._small: TableIntervals | None = None
        if randomizer.size <= SMALL_PRODUCT:
            table, inverse = (
                reduce(np.kron, [getattr(axis, name) for axis in reversed(self.axes)]) for name in ("table", "inverse")
            )
            self._small = TableIntervals(table, inverse)

    @abstractmethod
    def axis_tables(self) -> tuple[AxisTable, ...]:
        """Return the table of each axis: of each field, in the record's order."""

    def set_counts(self, counts: Counts) -> None:
        super().set_counts(counts)
        self.tables = None

    def _forget(self) -> None:
        self._found = self.tables = None

    def _through(self, values: npt.ArrayLike, matrix: Callable[[AxisTable], Floats]) -> Floats:
        """Multiply a line of numbers, one for each element or report, by a matrix for each axis."""
        found = np.asarray(values, np.float64).reshape(self._shape)
        for place, axis in enumerate(reversed(self.axes)):
            found = np.moveaxis(np.tensordot(matrix(axis), found, (1, place)), 0, place)
        return np.asarray(found.ravel())

    def _each(self, name: str) -> Floats:
        """The product of a number for each element of each axis."""
        return np.asarray(reduce(np.kron, [getattr(axis, name) for axis in reversed(self.axes)]))

    def estimate_all(self) -> Floats:
        if self._found is None:
            self._found = self._through(self.counts.values, lambda axis: axis.inverse)
        return self._found.copy()

    def estimate(self, indexes: Indexes) -> Floats:
        return np.asarray(self.estimate_all()[indexes.astype(np.intp)])

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the largest variance that an element of so many holders can have."""
        f = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        own, others = float(self._each("squares").max()) - 1, self._worst()
        return np.asarray(f * own + (self.reports - f) * others)

    def noise_per_report(self) -> float:
        """Return the largest standard error that an item nobody holds can have, of a share, times sqrt(n)."""
        return float(np.sqrt(self._worst()))

    def _worst(self) -> float:
        ends = [
            (float(axis.most[np.isfinite(axis.most)].max(initial=0.0)), float(axis.squares.max())) for axis in self.axes
        ]
        return max(
            np.prod([ends[i][0] if i == other else max(ends[i]) for i in range(len(ends))]).item()
            for other in range(len(ends))
        )

    def _moments(self, indexes: Indexes) -> tuple[Floats, Floats, Floats, Floats]:
        """Of each of these elements: E[g^2] and E[g^3] of its holders, and the sums of g^2 and g^3 over the reports."""
        at = indexes.astype(np.intp)
        own_second, own_third = (self._each(name)[at] for name in ("squares", "cubes"))
        second, third = (
            self._through(self.counts.values, lambda axis, power=power: axis.inverse**power)[at]  # type: ignore[misc]
            for power in (2, 3)
        )
        return own_second, own_third, second, third

    def _law(
        self, held: tuple[Floats, Floats], sums: tuple[Floats, Floats], estimates: Floats, ends: tuple[Floats, Floats]
    ) -> Moments:
        return set_law(float(self.reports), held, sums, estimates, ends)

    def _ends(self, indexes: Indexes) -> tuple[Floats, Floats]:
        """The least and the largest E[g^2] of the holders of any element, for each of these."""
        at = indexes.astype(np.intp)
        parts = [(np.minimum(axis.least, axis.squares), np.maximum(axis.most, axis.squares)) for axis in self.axes]
        least, most = (reduce(np.kron, [part[end] for part in reversed(parts)])[at] for end in (0, 1))
        return least, most

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        """Return the errors of these elements, from the counts."""
        if not self.reports:
            return np.zeros(len(estimates))
        own_second, own_third, second, third = self._moments(indexes)
        law = self._law((own_second, own_third), (second, third), estimates, self._ends(indexes))
        return np.asarray(np.sqrt(np.maximum(law(estimates)[0], 0.0)))

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        if not self.reports:
            return np.zeros(len(estimates)), np.zeros(len(estimates))
        if self._small is not None:
            sets = np.zeros((len(indexes), self.randomizer.size))
            sets[np.arange(len(indexes)), indexes.astype(np.intp)] = 1
            return self._small.intervals(sets, self.counts.values, estimates, tail)
        own_second, own_third, second, third = self._moments(indexes)
        law = self._law((own_second, own_third), (second, third), estimates, self._ends(indexes))
        return skewed_intervals(estimates, law, float(self.reports), tail, self._jumps(indexes))

    def _jumps(self, indexes: Indexes) -> Jumps:
        """What one report may add to the estimate of each of these elements."""
        rows = [axis.inverse for axis in reversed(self.axes)]
        ends = [(row.max(axis=1), row.min(axis=1), np.ones(len(row))) for row in rows]
        span = jumps_of_products(ends, 1.0).span.ravel()[indexes.astype(np.intp)]
        return Jumps(span, self.reports * self._ends(indexes)[1])

    def _chosen(self, indexes: Indexes) -> tuple[Floats, Floats]:
        """1 for the elements of a set, and g for each report."""
        chosen = np.zeros(self.randomizer.size)
        chosen[indexes.astype(np.intp)] = 1
        return chosen, self._through(chosen, lambda axis: axis.inverse.T)

    def _set(self, indexes: Indexes, total: float) -> Moments:
        """The variance and the third moment of the estimate of a set of elements."""
        chosen, values = self._chosen(indexes)
        means = [self._through(values**power, lambda axis: axis.table) for power in (2, 3)]
        seen = np.maximum(self.estimate_all(), 0.0) * chosen + 1e-9 * chosen
        held = [np.array([float(seen @ one) / float(seen.sum())]) for one in means]
        sums = [np.array([float(values**power @ self.counts.values)]) for power in (2, 3)]
        others = means[0][chosen == 0]
        ends = (np.array([others.min()]), np.array([others.max()]))
        return self._law((held[0], held[1]), (sums[0], sums[1]), np.array([total]), ends)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of the sum of the estimates of different indexes, from the counts."""
        if not self.reports or not 0 < len(indexes) < self.randomizer.size:
            return 0.0
        total = np.array([float(np.sum(np.asarray(frequencies, np.float64)))])
        return max(0.0, float(self._set(indexes, total.item())(total)[0].item()))

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        if not self.reports or not 0 < len(indexes) < self.randomizer.size:
            total = float(self.reports) if len(indexes) else 0.0
            return total, total
        sums = np.array([float(np.sum(estimates))])
        if self._small is not None:
            sets = np.zeros((1, self.randomizer.size))
            sets[0, indexes.astype(np.intp)] = 1
            low, high = self._small.intervals(sets, self.counts.values, sums, tail)
        else:
            chosen, values = self._chosen(indexes)
            tables = [axis.table for axis in reversed(self.axes)]
            values, chosen = (one.reshape(self._shape) for one in (values, chosen))
            jumps = jumps_of(values, chosen, tables, float(self.reports))
            low, high = skewed_intervals(sums, self._set(indexes, sums.item()), float(self.reports), tail, jumps)
        return float(low[0]), float(high[0])

    def chances(self) -> Sequence[Chance]:
        """How likely each place of each axis is said, at most and at least."""
        counts = self.counts.values.reshape(self._shape)
        found = []
        for place, axis in enumerate(reversed(self.axes)):
            said = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != place))
            most, least = axis.table.max(axis=0).tolist(), axis.table.min(axis=0).tolist()
            found += [
                Chance(said[y : y + 1], self.reports, most[y], least[y], of=sum(counts.shape)) for y in range(len(said))
            ]
        return found
