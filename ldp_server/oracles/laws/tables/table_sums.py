r"""The law of a sum over reports whose probabilities stand in a table, by saddlepoints.

A user who holds x sends report y with probability A[x][y], and the estimate adds up g[y] over the reports. With f users
inside a set of elements and n - f outside, its cumulant generating function is

    K(t) = f mean of K_x(t) inside + (n - f) mean of K_x(t) outside,    K_x(t) = ln sum over y of A[x][y] e^(t g[y]).

The means weigh the elements by how many users seem to hold them: only what is inside or outside *on average* is taken
from the estimates, and f is what an interval is about. With K'(t) = s, r = sign(t) sqrt(2 (t s - K(t))) and
u = t sqrt(K''(t)), the probability of a sum of at least s is 1 - Phi(r + ln(u/r)/r) up to terms of a higher order
(Lugannani and Rice 1980, in the form of Barndorff-Nielsen 1986). It holds for skewed sums, where the normal law fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["TableSums"]

Floats = npt.NDArray[np.float64]

_STEPS = 60
_HALVES = 40
_FLAT = 0.02
"""Below this |r|, ln(u/r)/r is nearly its limit at 0, a sixth of the skewness. As a quotient of two rounding errors it
is anything: sums whose noise is many times as large as n had an interval's end beside them, out of nothing.
"""
_SETTLED = 1e-8
"""Of a standard error: how near K'(t) comes to the sum. An error e of u moves the score by e/r^2."""
_PRECISION = 1e-3


@dataclass(frozen=True)
class TableSums:
    """Sums of g over n reports. All tables have a line for each sum that is looked at."""

    table: Floats
    """A: a line for each element, a column for each report."""
    values: Floats
    """g: a line for each sum."""
    inside: Floats
    """How the users inside a set are spread over the elements; each line adds up to 1."""
    outside: Floats
    reports: int
    coarse: bool = False
    """Whether a sum stands for a step as wide as the largest between two values, and not the least: see `_gap`."""

    def intervals(self, sums: Floats, z: float) -> tuple[Floats, Floats]:
        """Return intervals for the users inside; each end errs with the probability that a normal error exceeds z."""
        gap = self._gap() / 2
        low = self._crossing(sums - gap, z)
        high = self._crossing(sums + gap, -z)
        return np.ceil(low - _PRECISION), np.floor(high + _PRECISION)

    def _gap(self) -> Floats:
        """How far two possible sums lie apart at least: a sum stands for a step of that width.

        Where some values hardly differ and one is far from all others, sums lie in heaps that are about as far apart as
        that. The largest distance is then right, and elsewhere a little wide.
        """
        ordered = np.sort(self.values, axis=1)
        steps = np.diff(ordered, axis=1)
        if self.coarse:
            return np.asarray(steps.max(axis=1))
        scale = np.ptp(self.values, axis=1, keepdims=True)
        return np.asarray(np.where(steps > 1e-9 * scale, steps, np.inf).min(axis=1, initial=np.inf))

    def _crossing(self, sums: Floats, z: float) -> Floats:
        """The number of users inside at which so large a sum becomes z standard errors too large, by halving."""
        low, high = np.zeros(len(sums)), np.full(len(sums), float(self.reports))
        t = np.zeros(len(sums))
        for _ in range(_HALVES):
            middle = (low + high) / 2
            scores, t = self._scored(middle, sums, t)
            over = scores > z
            low, high = np.where(over, middle, low), np.where(over, high, middle)
            if float((high - low).max(initial=0.0)) < _PRECISION:
                break
        return np.asarray((low + high) / 2)

    def score(self, holders: Floats, sums: Floats) -> Floats:
        """Return the z with P(sum >= s) = 1 - Phi(z), for so many users inside."""
        return self._scored(holders, sums, np.zeros(len(sums)))[0]

    def _scored(self, holders: Floats, sums: Floats, begin: Floats) -> tuple[Floats, Floats]:
        """Return the scores and their saddlepoints; the search for these begins at `begin`."""
        least, most = (self.reports * end(self.values, axis=1) for end in (np.min, np.max))
        within = (sums > least) & (sums < most)
        s = np.where(within, sums, (least + most) / 2)
        t = self._saddle(holders, s, begin)
        k, _, second = self._cumulants(holders, t)
        r = np.sign(t) * np.sqrt(np.maximum(2 * (t * s - k), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = r + np.log(t * np.sqrt(second) / r) / r
        flat = np.abs(r) <= _FLAT
        if flat.any():
            z = np.where(flat, r + self._skewness(holders) / 6, z)
        z = np.where(np.isfinite(z), z, r)
        return np.where(within, z, np.where(sums <= least, -np.inf, np.inf)), t

    def _skewness(self, holders: Floats) -> Floats:
        """Return the skewness of each sum."""
        mean, square, cube = (self.values**power @ self.table.T for power in (1, 2, 3))
        spread = holders[:, None] * self.inside + (self.reports - holders)[:, None] * self.outside
        second = (spread * (square - mean**2)).sum(axis=1)
        third = (spread * (cube - 3 * mean * square + 2 * mean**3)).sum(axis=1)
        return np.asarray(third / np.maximum(second, 1e-300) ** 1.5)

    def _saddle(self, holders: Floats, sums: Floats, begin: Floats) -> Floats:
        """Solve K'(t) = s: Newton's steps, kept inside a bracket."""
        t = begin
        scale = np.maximum(np.ptp(self.values, axis=1), 1e-300)
        low, high = -700 / scale, 700 / scale
        for _ in range(_STEPS):
            _, first, second = self._cumulants(holders, t)
            off = first - sums
            low, high = np.where(off < 0, t, low), np.where(off > 0, t, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = t - off / second
            new = np.where((step > low) & (step < high) & np.isfinite(step), step, (low + high) / 2)
            if np.all(np.abs(off) <= _SETTLED * np.sqrt(np.maximum(second, 0.0)) + 1e-12 * np.abs(sums)):
                break
            t = new
        return t

    def _cumulants(self, holders: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return K, K' and K'' at a t for each sum."""
        top = np.maximum(t * self.values.max(axis=1), t * self.values.min(axis=1))
        tilted = np.exp(t[:, None] * self.values - top[:, None])
        mass = tilted @ self.table.T
        first = (tilted * self.values) @ self.table.T / mass
        second = (tilted * self.values**2) @ self.table.T / mass - first**2
        spread = holders[:, None] * self.inside + (self.reports - holders)[:, None] * self.outside
        logs = np.log(mass) + top[:, None]
        return (spread * logs).sum(axis=1), (spread * first).sum(axis=1), (spread * second).sum(axis=1)
