r"""The average of a number in a cell of a table, at any number of reports.

records/averages.py tests an average mu by the sum X of w = 1 - mu for "up", -mu for "down", 1 - 2 mu for both. Here the
same sum is tested by a martingale. With A, B and C the mean factors e^(t w) of a user who is rounded up in the cell,
rounded down there, and of anybody else, a user of the cell with the number x has the factor x A + (1 - x) B. The
logarithm of it is concave in x. So over N users of the cell whose average is mu, the sum of the logarithms is at most
N ln(mu A + (1 - mu) B), and

    exp(t X - N ln(mu A + (1 - mu) B) - (n - N) ln C)

is at most a product of factors of mean 1. Its average over tilts exceeds 1/tail at any n with probability `tail` at
most, and then mu is ruled out. N is not known. It has an interval of its own that holds at every look, with a fifth of
the error; the exponent is linear in N, so the larger of the two at its ends stands for all between.

**Users who are drawn.** Each report comes from a user of the cell with probability omega, with a number whose mean is
mu. Then a factor has the mean omega (mu A + (1 - mu) B) + (1 - omega) C, and omega has an interval of its own.

Where it cannot be ruled out that the cell is empty, no average is: the interval is the whole range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.every_look import Tilted, tilts
from ldp_server.oracles.looks.sums import Ends, share_crossing
from ldp_server.oracles.records.averages import FOR_THE_COUNT, CellLaw, CellSums

__all__ = ["CellLook"]

_GRID = 33
_HALVINGS = 20
_SLACK = 1e-6
_COUNTED = np.array([0.0, 1.0, 1.0, 2.0])
"""How many of the cell's two elements a report supports: none, "down", "up" or both."""


@dataclass(frozen=True)
class CellLook:
    """How many reports support the two elements of a cell, out of how many."""

    law: CellLaw
    reports: float
    downs: float
    ups: float

    @classmethod
    def of(cls, sums: CellSums, cell: int) -> CellLook:
        """Return what the reports say of one cell."""
        lies = sums.reports * sums.law.chance
        downs, ups = (float(one[cell]) * sums.law.gap + lies for one in (sums.downs, sums.ups))
        return cls(sums.law, sums.reports, downs, ups)

    def weighed(self, times: float) -> CellLook:
        """Return the same with each report as 1/times of one, where copies are seen."""
        return CellLook(self.law, self.reports / times, self.downs / times, self.ups / times)

    def with_more(self, other: CellLook) -> CellLook:
        """Return the same of these reports and others of the same question."""
        return replace(
            self, reports=self.reports + other.reports, downs=self.downs + other.downs, ups=self.ups + other.ups
        )

    @property
    def mean(self) -> float:
        """The estimated average, as a part of the range; its middle where nobody is seen."""
        lies = self.law.chance * self.reports
        users = self.downs + self.ups - 2 * lies
        return min(1.0, max(0.0, (self.ups - lies) / users)) if users > 0 else 0.5

    def users(self, tail: float) -> Ends:
        """Return the ends for the users of the cell who have a number."""
        ends = []
        for sign in (1.0, -1.0):
            law = self._counts(sign)
            gains = (law.tilts * (self.downs + self.ups))[None, :]
            ends.append(float(law.least_of(gains, int(self.reports), tail)[0]))
        low = max(0, math.ceil(ends[0] - _SLACK))
        return float(low), float(min(self.reports, max(low, math.floor(ends[1] + _SLACK))))

    def shares(self, tail: float) -> Ends:
        """Return the ends for the share of such users among those who could report."""
        ends = []
        for sign in (1.0, -1.0):
            law = self._counts(sign)
            gains = law.log_weights, law.tilts * (self.downs + self.ups)
            ends.append(share_crossing(gains, (law.holder, law.other), self.reports, tail))
        return ends[0], max(ends)

    def averages(self, tail: float, *, drawn: bool = False) -> Ends:
        """Return the ends for the average as a part of the range; each is ever wrong with probability `tail`.

        With `drawn` it is that of those who could report, of whom each report is a draw.
        """
        if not self.reports:
            return 0.0, 1.0
        part = tail * FOR_THE_COUNT
        low, high = self.shares(part) if drawn else (end / self.reports for end in self.users(part))
        if low <= 0:
            return 0.0, 1.0
        held, rest = np.array([low, high]), tail - part
        return self._end(1.0, held, rest, drawn=drawn), self._end(-1.0, held, rest, drawn=drawn)

    def _counts(self, sign: float) -> Tilted:
        """The law of how many elements a report supports."""
        spread = math.sqrt(float(self.law.other @ _COUNTED**2) - float(self.law.other @ _COUNTED) ** 2)
        found, weights = tilts(spread, 2.0, sign=sign)
        factors = np.exp(np.outer(found, _COUNTED))
        return Tilted(found, weights, np.log(factors @ self.law.down), np.log(factors @ self.law.other))

    def _end(self, sign: float, held: Floats, tail: float, *, drawn: bool) -> float:
        grid = np.linspace(0.0, 1.0, _GRID) if sign > 0 else np.linspace(1.0, 0.0, _GRID)
        kept = np.flatnonzero([not self._ruled_out(float(mean), sign, held, tail, drawn=drawn) for mean in grid])
        if not len(kept):
            return self.mean
        if not kept[0]:
            return float(grid[0])
        out, inside = float(grid[kept[0] - 1]), float(grid[kept[0]])
        for _ in range(_HALVINGS):
            middle = (out + inside) / 2
            ruled_out = self._ruled_out(middle, sign, held, tail, drawn=drawn)
            out, inside = (middle, inside) if ruled_out else (out, middle)
        return out

    def _ruled_out(self, mean: float, sign: float, held: Floats, tail: float, *, drawn: bool) -> bool:
        """Whether the reports are too unlikely under this average, for every number of users of the cell."""
        values = np.array([0.0, -mean, 1 - mean, 1 - 2 * mean])
        spread = math.sqrt(max(float(self.law.other @ values**2) - float(self.law.other @ values) ** 2, 1e-9))
        found, weights = tilts(spread, 1.0, sign=sign)
        factors = np.exp(np.outer(found, values))
        inside = factors @ (mean * self.law.up + (1 - mean) * self.law.down)
        other = factors @ self.law.other
        if drawn:
            most = np.log(held[:, None] * inside + (1 - held)[:, None] * other).max(axis=0)
        else:
            most = (held[:, None] * np.log(inside) + (1 - held)[:, None] * np.log(other)).max(axis=0)
        exponents = weights + found * (self.ups * (1 - mean) - self.downs * mean) - self.reports * most
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum())) > -math.log(max(tail, 1e-300))
