r"""What one drawn table says about the effects of its fields, and what one report about it adds to a row.

The *effect* of a set S of fields is the part of a table of S that no smaller set of fields explains: the table minus
its average over each of the fields in turn, so that it adds up to 0 along every field. A table of A is the sum of the
effects of all subsets S of A, each spread evenly over the other fields of A. The effect of the empty set is the number
of users, which is known.

A drawn table T has the effects of all its subsets, a parity only that of its own fields: 2^-w times the sum of the
signs, with the sign of the cell. For users spread evenly over the k cells of T, an estimated effect of S has the
variance nu_T |e|^2/k_S for a report and a direction e, whatever S is:

    nu_T = k m (1 - m) c/(p - s)^2,   m = (p + (k-1) s)/k

p and s being how likely a report supports the user's cell and any other one, and c = k/(k-1) where every report
supports equally many cells (randomized response, subset selection), else 1 (linear hash). It does not depend on S. So
if several tables have the effect of S, the weights n_T/nu_T are the best for users spread evenly. They depend on the
draws and on no answer, so that the weighted sum is unbiased.

A report about T adds to a row the sum of g(y) over the cells y that it supports, for a function g whose sum over all
cells is 0. It depends on the fields that T shares with the asked table. Their cells are put into classes of equal g.

    randomized response   P(class u | user's class v) = s size(u) + (p - s) [u = v]
    parity                +g or -g: the truth with p
    others                given v, the sum has the mean (p - s) g(v). Its variance and its third moment follow, for
                          subset selection, from draws without replacement. For linear hash they are those of supports
                          that are independent in threes, enlarged where the counts show more. A law of two values has
                          all three
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles.base import Floats, FrequencyOracle
from ldp_server.oracles.linear_hash import LinearHashOracle
from ldp_server.oracles.subset_selection import SubsetSelectionOracle

__all__ = ["Atoms", "DrawnPart", "Places", "centred", "marginal"]

Places = tuple[int, ...]


def marginal(table: Floats, axes: Places, kept: Places) -> Floats:
    """Return the sums of a table with these axes for some of them."""
    return np.asarray(table.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in kept)))


def centred(table: Floats) -> Floats:
    """Return what is left when the mean along each axis is taken away."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True)
class Atoms:
    """What one report adds: a few values, and how likely each is for a user of each class."""

    values: Floats
    chances: Floats
    """A line for each class of users, a column for each value."""


@dataclass(frozen=True)
class DrawnPart:
    """A drawn table with the counts of its reports."""

    places: Places
    """Its fields, in ascending order."""
    sizes: tuple[int, ...]
    parity: bool
    oracle: FrequencyOracle
    """Of its cells, or of its parity: even, odd."""

    @property
    def reports(self) -> int:
        return self.oracle.reports

    @cached_property
    def told(self) -> tuple[float, float]:
        """(p, s)."""
        law = self.oracle.law
        if law is None:
            raise InvalidSpec(f"{self.oracle.randomizer.name} gives no tables of fields")
        return law.p, law.s

    @cached_property
    def noise(self) -> float:
        """nu_T."""
        (p, s), k = self.told, self.oracle.randomizer.size
        m = (p + (k - 1) * s) / k
        alike = 1.0 if isinstance(self.oracle, LinearHashOracle) or k == 1 else k / (k - 1)
        return max(k * m * (1 - m) * alike / (p - s) ** 2, 1e-9)

    @property
    def reads_reports(self) -> bool:
        """Whether the spread of its reports is read off them (`grown`)."""
        return isinstance(self.oracle, LinearHashOracle)

    def knows(self, subset: frozenset[int]) -> bool:
        """Whether it says something about the effect of these fields."""
        return subset == frozenset(self.places) if self.parity else subset <= frozenset(self.places)

    @cached_property
    def _table(self) -> Floats:
        found = self.oracle.estimate_all()
        if not self.parity:
            return found.reshape(self.sizes, order="F")
        signs = np.ones(())
        for _ in self.places:
            signs = np.multiply.outer(signs, np.array([1.0, -1.0]))
        return np.asarray(signs * (found[0] - found[1]) / 2 ** len(self.places))

    def effect(self, subset: Places) -> Floats:
        """Return the estimated effect for those who drew the table; its axes are the fields in ascending order."""
        return centred(marginal(self._table, self.places, subset))

    def added(self, axes: Places, values: Floats) -> float:
        """Return what all its reports add to an unbiased sum for those who drew it: values of the cells of some fields.

        The values add up to 0. Of a parity, the fields are all of its own.
        """
        return float(np.sum(values * marginal(self._table, self.places, axes)))

    def atoms(self, values: Floats, sizes: Floats, grown: float) -> Atoms:
        """Return the law of a report for g of each class, of so many cells; `grown` enlarges that of linear hash."""
        p, s = self.told
        if self.parity:
            even = (values > 0)[:, None]
            return Atoms(np.array([1.0, -1.0]) * np.abs(values).max(), np.where(even, [p, 1 - p], [1 - p, p]))
        if isinstance(self.oracle, SubsetSelectionOracle):
            d = int(self.oracle.randomizer.parameters()["d"])
            return _of_two(*_of_sets(values, sizes, p, d))
        if isinstance(self.oracle, LinearHashOracle):
            mean, variance, third = _of_hashes(values, sizes, p, s)
            return _of_two(mean, variance * grown, third * grown**1.5)
        return Atoms(values, s * sizes[None, :] + (p - s) * np.eye(len(values)))

    def grown(self, added: Iterable[Floats]) -> float:
        """Return by how much reports spread more than supports that are independent, at least 1.

        `added` are some rows' g of every cell. The row with the largest spread counts.
        """
        oracle, most = self.oracle, 1.0
        if not isinstance(oracle, LinearHashOracle) or not self.reports:
            return most
        made, (p, s) = oracle.randomizer.parameters(), self.told
        q, t = int(made["q"]), int(made["t"])
        for values in added:
            held = np.zeros(q**t)
            held[: len(values)] = values
            seen = weights_of_reports(held, q, t)
            m = (p + (len(values) - 1) * s) / len(values)
            expected = m * (1 - m) * float(values @ values)
            if expected > 0:
                most = max(most, float(oracle.counts.values @ np.square(seen)) / self.reports / expected)
        return most


def _of_two(mean: Floats, variance: Floats, third: Floats) -> Atoms:
    """For each class a law of two values with this mean, variance and third central moment."""
    sd = np.sqrt(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(sd > 0, third / sd**3, 0.0) / 2
    root = np.sqrt(1 + skew**2)
    up, down = skew + root, root - skew  # up * down = 1
    count = len(mean)
    values = np.concatenate([mean + sd * up, mean - sd * down])
    chances = np.zeros((count, 2 * count))
    chances[np.arange(count), np.arange(count)] = down / (up + down)
    chances[np.arange(count), count + np.arange(count)] = up / (up + down)
    return Atoms(values, chances)


def _of_sets(values: Floats, sizes: Floats, p: float, d: int) -> tuple[Floats, Floats, Floats]:
    """Moments of a sum over a set of d cells that holds the user's with p, the others drawn without replacement."""
    k = float(sizes.sum())
    sums = [float(sizes @ values**power) - values**power for power in (1, 2, 3)]  # of all cells but the user's
    others = k - 1
    mean = sums[0] / others
    square = np.maximum(sums[1] / others - mean**2, 0.0)
    cube = sums[2] / others - 3 * mean * sums[1] / others + 2 * mean**3
    found = []
    for drawn, own, chance in ((d - 1, values, p), (d, np.zeros_like(values), 1 - p)):
        left = others - drawn
        variance = drawn * square * left / max(others - 1, 1)
        third = drawn * cube * left * (others - 2 * drawn) / max((others - 1) * (others - 2), 1)
        found.append((chance, own + drawn * mean, variance, third))
    total = np.asarray(sum(chance * middle for chance, middle, _, _ in found))
    spread = np.asarray(sum(chance * (v + (middle - total) ** 2) for chance, middle, v, _ in found))
    skewed = sum(
        chance * (third + 3 * (middle - total) * v + (middle - total) ** 3) for chance, middle, v, third in found
    )
    return total, spread, np.asarray(skewed)


def _of_hashes(values: Floats, sizes: Floats, p: float, s: float) -> tuple[Floats, Floats, Floats]:
    """Moments of a sum over the supported cells: the user's with p, every other one with s."""

    def bernoulli(chance: float) -> tuple[float, float]:
        variance = chance * (1 - chance)
        return variance, variance * (1 - 2 * chance)

    squares, cubes = float(sizes @ values**2) - values**2, float(sizes @ values**3) - values**3
    (own, own_third), (other, other_third) = bernoulli(p), bernoulli(s)
    return (p - s) * values, own * values**2 + other * squares, own_third * values**3 + other_third * cubes
