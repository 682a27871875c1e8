"""The probability that a tree's search loses an item to the item's own near-copies.

The search keeps the best w paths of each level. Take an item whose values in a few levels running are low: a dip. Paths
that left the item's before the dip have the noise of other cells there, and there are so many that the best of them do
better than the item. If w of them do, the item is lost, whatever its earlier levels were.

A level has m users, and a cell that nobody chose is supported by Binomial(m, s) of them. Let K be the cumulant function
of that count, standardised, and let 2^b paths leave a path at each level. Of the paths that left k levels ago, the
expected number with a sum of at least t in these levels is at most

    exp(k (b ln 2 + K(h)) - h t)        for every h > 0 (Chernoff).

Take the h for which c = (b ln 2 + K(h))/h is the least. The number is then exp(h (k c - t)), so it matters by how much
the item's sum stays behind k c. With the item's value v in a level, the most that it stays behind, over all places at
which paths may have left, is W = max(0, W + c - v) from one level to the next. The item is lost when exp(h W), times
the factor by which Chernoff's bound is too large, exceeds w. That factor is 1/(h sd sqrt(2 pi k)), sd^2 = K''(h); k = 5
stands for all dips. v is normal about z/sqrt(M). W is a Markov chain on a short interval, and its law is computed on a
grid. The first level's number of paths is another one, so W begins higher or lower.

The last rounds keep w = 2^17 paths. With this w the formula says .31, .10 and .04 for items of 32 bytes at 1.1, 1.16
and 1.2 x D_opt, n = 10^6 and epsilon = 1, of which .33, .11 and .01 were not listed, for any reason (70 items each). At
n = 10^5 and epsilon = 4 it says .24 for 66 bytes and .38 for 64, where 16 of 52 items and 5 of 16 were missing. Where
other items are near, their near-copies take a part of the paths. So a promise is made with a quarter of them
(`_PREFIXES`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ldp_server.heavy_hitters.search.tails import normal_tails

__all__ = ["Dips"]

_PREFIXES = 1 << 15
_LENGTH = 5
_STEP = 0.05
_SLOPES = np.arange(0.25, 12, 0.01)


@lru_cache(maxsize=4096)
def _rivals(bits: int, users: int, s: float) -> tuple[float, float, float]:
    """Return h, c, and by how much an item may stay behind, for so many bits and users a level."""
    unit = math.sqrt(users * s * (1 - s))
    logs = users * np.log1p(s * np.expm1(_SLOPES / unit)) - _SLOPES * users * s / unit  # K(h)
    levels = (bits * math.log(2) + logs) / _SLOPES
    best = int(np.argmin(levels[1:-1])) + 1
    h, c = float(_SLOPES[best]), float(levels[best])
    step = float(_SLOPES[1] - _SLOPES[0])
    sd = math.sqrt(max(1e-9, float(logs[best + 1] - 2 * logs[best] + logs[best - 1]))) / step
    spare = math.log(max(1.0, h * sd * math.sqrt(2 * math.pi * _LENGTH)))
    return h, c, (math.log(_PREFIXES) + spare) / h


class Dips:
    """The law for one tree: the payload bits of its levels, the users of a level, and s."""

    def __init__(self, widths: tuple[int, ...], users: float, s: float) -> None:
        self._levels = len(widths)
        step = widths[min(1, len(widths) - 1)]
        self._h, self._c, self._most = _rivals(step, max(1, round(users)), s)
        self._begins = (widths[0] - step) * math.log(2) / self._h

    def lost(self, mean: float, sd: float) -> float:
        """Return the probability that an item is lost whose values have this mean and standard deviation."""
        grid = np.arange(0.0, self._most, _STEP)
        apart = np.arange(-len(grid), len(grid)) * _STEP
        drift = self._c - mean
        below = 1 - normal_tails((apart + _STEP / 2 - drift) / sd)  # by how far a place is above the one before
        places = np.arange(len(grid))
        moves = np.diff(below[len(grid) + places[None, :] - places[:, None]], axis=1, prepend=0.0)
        law = np.diff(1 - normal_tails((grid + _STEP / 2 - self._begins - drift) / sd), prepend=0.0)
        for _ in range(self._levels - 1):
            law = law @ moves
        return max(0.0, 1.0 - float(law.sum()))
