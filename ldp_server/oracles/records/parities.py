r"""A table of w binary fields from parities: each cell is 2^-w times a sum over all parities of these fields.

Let y be an answer about the fields S, +1 for an even number of them and -1 for an odd one, and c = 1/(p - q) =
coth(eps/2). With n_S devices that drew S, A_S = (n/n_S) c (sum of y) is unbiased for the sum of (-1)^parity over all n
users, and A of the empty set is n. A cell x is 2^-w (n + sum over S of (-1)^(x . S) A_S). A row is a set of cells: its
coefficient of A_S is the sum of theirs, k_S, and each report about S adds +-k_S c n/n_S.

Given that a report's user is in the row, y k_S > 0 with a probability that follows from where in the row the user is:
for one cell it is p, exactly. For a user elsewhere it depends on where. There, and in rows of several cells, users are
taken to lie as the estimated table says, projected onto what is possible: so a mixture law follows, whose mean is the
number of users in the row (mixture.py). What cells the others hold is no part of what is asked; only how much their
answers vary depends on it, and at most by the part 1/c^2 of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.records.mixture import MixtureLaw

__all__ = ["Parities", "ParityCounts"]


@dataclass(frozen=True)
class ParityCounts:
    """How many devices drew one parity, and what they answered."""

    fields: int
    """Bit i: the i-th of the fields that are needed is in it."""
    even: int
    odd: int
    p: float
    """The probability of the truth."""

    @property
    def reports(self) -> int:
        return self.even + self.odd


@dataclass(frozen=True)
class Parities:
    """The rows of an asked table of binary fields, from all parities of them, each drawn by somebody."""

    users: int
    width: int
    """w: how many fields are needed."""
    counts: tuple[ParityCounts, ...]
    rows: npt.NDArray[np.intp]
    """The row of each of the 2^w cells, or -1."""
    count: int

    whole = False

    def merged(self, chosen: npt.NDArray[np.intp]) -> Parities:
        """Return the same with these rows as one, and without the others."""
        return replace(self, rows=np.where(np.isin(self.rows, chosen), 0, -1), count=1)

    @cached_property
    def _signs(self) -> Floats:
        """(-1)^(x . S), a line for each parity and a column for each cell."""
        masks = np.array([one.fields for one in self.counts])
        crossed = masks[:, None] & np.arange(1 << self.width)[None, :]
        return np.asarray(1 - 2.0 * (np.bitwise_count(crossed.astype(np.uint64)) & 1), np.float64)

    @cached_property
    def _members(self) -> Floats:
        """Which cells are in which row."""
        return np.asarray((self.rows[None, :] == np.arange(self.count)[:, None]).astype(np.float64))

    @cached_property
    def cells(self) -> Floats:
        """Estimates of all cells."""
        sums = np.array([self._scale(one) * (one.even - one.odd) for one in self.counts])
        return np.asarray((self.users + sums @ self._signs) / (1 << self.width))

    def _scale(self, one: ParityCounts) -> float:
        """What an even answer adds to A_S."""
        return self.users / one.reports / (2 * one.p - 1)

    @cached_property
    def raw(self) -> Floats:
        return np.asarray(self._members @ self.cells)

    def errors(self, holders: Floats) -> Floats:
        """Return the standard errors, with so many users in each row and the others as they are estimated."""
        law = self._law
        share = (np.clip(holders, 0, self.users) / self.users)[:, None, None]
        chances = law.outside + share * (law.inside - law.outside)
        mean = (chances * law.values).sum(axis=2)
        square = (chances * np.square(law.values)).sum(axis=2)
        return np.asarray(np.sqrt((law.counts * np.maximum(square - mean**2, 0.0)).sum(axis=1)))

    @cached_property
    def _law(self) -> MixtureLaw:
        held = norm_sub(self.cells, float(self.users)) + 1e-9 * self.users
        scales = np.array([self._scale(one) for one in self.counts])
        reach = self._members @ self._signs.T / (1 << self.width) * scales
        inside, outside = (self._even(members * held) for members in (self._members, 1 - self._members))
        chances = [np.stack([part, 1 - part], axis=2) for part in (inside, outside)]
        counts = np.array([one.reports for one in self.counts], np.float64)
        return MixtureLaw(float(self.users), counts, np.stack([reach, -reach], axis=2), *chances)

    def _even(self, weights: Floats) -> Floats:
        """How likely each parity is answered as even, by users who lie like these weights; a line for each row."""
        p = np.array([one.p for one in self.counts])
        total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        even = (weights @ ((1 + self._signs.T) / 2)) / total
        return np.asarray(1 - p + (2 * p - 1) * even)

    def intervals(self, tail: float) -> tuple[Floats, Floats]:
        """Return intervals for the number of users in each row; each end errs with probability `tail` at most."""
        base = self.users * self._members.sum(axis=1) / (1 << self.width)
        return self._law.intervals(self.raw - base, tail)
