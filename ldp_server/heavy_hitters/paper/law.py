"""How likely PrivateExpanderSketch misses an item: the events E3 to E7 of Theorem 3.13's proof, with numbers for O( ).

An item of frequency f among n users has in a team, with the inner response at epsilon/2 and variance v,

    score ~ N(mu, tau^2),    mu = f / sqrt(M n v),    tau^2 = 1 + (f/n)(r - 1) + f/(n v)

(r - 1: how much more the report of a holder varies; f/(n v): which holders are in this team). It enters the list L_m^b
if this is the largest of the Z = 2^(c + d y) scores of its (b, y), and above the cut that noise alone rarely passes. An
item that does not enter costs the Reed-Solomon code one place (an erasure). It costs two (an error) where another
entry took its vertex and is linked to a neighbour's. The word is decoded while the cost is at most M - k, and at least
half of the lists have the item.

A more frequent item that falls into the same (b, y) takes the vertex. They share the bucket with probability 2^-b, the
same for all teams, and then each team's y with 2^-y.

The confirming oracle is a median of R teams, so it fails only where half of them do (Theorem 3.7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["SketchLaw", "binomial_tail", "cut_of", "median_bound", "winning"]

_NORMAL = NormalDist()
_GRID = np.linspace(-8.0, 8.0, 161)
_WEIGHTS = np.exp(-_GRID * _GRID / 2) / np.exp(-_GRID * _GRID / 2).sum()
_MATES = 12

Floats = npt.NDArray[np.float64]


def cut_of(symbols: int) -> float:
    """The score from which an entry is listed: about the largest of `symbols` scores of noise."""
    return math.sqrt(2 * math.log(symbols))


def binomial_tail(n: int, p: float, least: int) -> float:
    """P(Binomial(n, p) >= least)."""
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(least, n + 1))


@lru_cache(maxsize=1024)
def _noise_below(symbols: int) -> tuple[Floats, Floats]:
    """A grid of scores, and the probability that `symbols` scores of noise are all below each."""
    scores = np.linspace(-4.0, 16.0, 2001)
    tail = np.array([0.5 * math.erfc(x / math.sqrt(2)) for x in scores])
    return scores, np.exp(symbols * np.log1p(-np.minimum(tail, 1 - 1e-12)))


@dataclass(frozen=True)
class SketchLaw:
    """The numbers of a sketch that decide how rare an item it finds."""

    teams: int
    data: int
    degree: int
    symbols_bits: int
    """log2 Z: a symbol with its pointers."""
    hash_bits: int
    bucket_bits: int
    variance: float
    """v of a report of the first half."""
    spread: float
    """r."""

    def entered(self, users: float, frequency: float) -> tuple[float, float]:
        """The probability that an item enters the list of a team, and that junk enters in its place."""
        symbols = 1 << self.symbols_bits
        mean = frequency / math.sqrt(self.teams * users * self.variance)
        share = min(1.0, frequency / users)
        sd = math.sqrt(1 + share * max(0.0, self.spread - 1) + share / self.variance)
        scores, below = _noise_below(symbols)
        own = mean + sd * _GRID
        cut = cut_of(symbols)
        best = np.interp(own, scores, below, left=0.0, right=1.0) * (own >= cut)
        return float(_WEIGHTS @ best), float(1 - np.interp(cut, scores, below))

    def all_missed(self, users: float, frequency: float) -> float:
        """Bound the probability that any item of at least this frequency is missed by the lists.

        There are at most n/f of them. The i-th is hidden by those before it, which are held by more users.
        """
        alone, junk = self.entered(users, frequency)
        items = max(1, int(users / frequency))
        undecoded = [self._undecoded(*self._fates(alone, junk, mates)) for mates in range(min(items, _MATES + 1))]
        together, total = 2.0**-self.bucket_bits, 0.0
        for others in range(items):
            known = min(others, _MATES)
            weights = [math.comb(others, j) * together**j * (1 - together) ** (others - j) for j in range(known + 1)]
            total += sum(w * u for w, u in zip(weights, undecoded, strict=False)) + max(0.0, 1 - math.fsum(weights))
        return total

    def _fates(self, alone: float, junk: float, mates: int) -> tuple[float, float]:
        """The probabilities that a team has the item, and that it costs one place, with so many others in the bucket.

        An entry of another item costs a second place if it is linked to a neighbour's entry of this one.
        """
        free = (1 - 2.0**-self.hash_bits) ** mates
        apart = (1 - 2.0**-self.hash_bits) ** self.degree
        return free * alone, free * (1 - alone) * (1 - junk * (1 - apart)) + (1 - free) * apart

    def _undecoded(self, good: float, lost: float) -> float:
        """The probability that M teams cost too much: 0 with probability `good`, 1 with `lost`, else 2."""
        allowed = self.teams - self.data
        fewest = max(self.data, -(-self.teams // 2), self.teams - int(0.45 * self.teams))
        taken = max(0.0, 1 - good - lost)
        decoded = 0.0
        for errors in range(allowed // 2 + 1):
            for erasures in range(allowed - 2 * errors + 1):
                rest = self.teams - errors - erasures
                if rest >= fewest:
                    ways = math.comb(self.teams, errors) * math.comb(self.teams - errors, erasures)
                    decoded += ways * taken**errors * lost**erasures * good**rest
        return max(0.0, 1 - decoded)


def median_bound(rows: int, sd: float, users: float, cells: int, tail: float) -> float:
    """The deviation that the median of `rows` estimates exceeds on one side with probability at most `tail`.

    Each estimate has normal noise of standard deviation `sd`, and the users of other items that share its cell, for any
    population. At most n/g items have g users or more: one of them is in the cell with probability n/(g T). The rest of
    the items add a variance of at most n g/T. The noise takes a part of the deviation and the rest of the items the
    other; the best part and the best g are taken.
    """

    def failing(deviation: float) -> float:
        best = 1.0
        for part in (0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
            noise, room = _NORMAL.cdf(-part * deviation / sd), ((1 - part) * deviation) ** 2
            for items in (30, 100, 300, 1000, 3000):
                rest = users * users / items / cells
                best = min(best, noise + items / cells + rest / (rest + room))
        return binomial_tail(rows, best, -(-rows // 2))

    low, high = 0.0, sd
    while failing(high) > tail:
        low, high = high, 2 * high
        if high > 1e6 * sd:
            return math.inf
    for _ in range(30):
        middle = (low + high) / 2
        if failing(middle) > tail:
            low = middle
        else:
            high = middle
    return high


def winning(mean: float, symbols: int) -> float:
    """The probability that a score of this mean and variance 1 is larger than those of all other symbols."""
    scores, below = _noise_below(symbols - 1)
    return float(_WEIGHTS @ np.interp(mean + _GRID, scores, below, left=0.0, right=1.0))
