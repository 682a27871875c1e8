r"""How much the estimates of picked items exceed the truth, in total.

Of d items the k with the largest estimates are picked: T. Their errors were picked too. Wanted is

    E = sum over T of (r_i - f_i),

r_i the estimate and f_i the number of holders of item i, for every crowd. Nothing is assumed about the crowd.

Unbiased estimate. Item i is picked if r_i is above t_i, which is the k-th largest of the *other* estimates: the k+1-th
of all for a picked item, the k-th of all for another one. Given t_i, the item adds b(f_i) = E_f[(r - f) 1(r > t_i)] to
E on average. Let w be a function with

    E_f[w(r - t)] = b(f)   for every f.

Then W = sum over all d items of w(r_i - t_i) has the mean of E, whoever holds what. (For normal errors of variance v,
w would be v times the density of estimates at the threshold: Stein's identity. Robbins' rule for Poisson counts is of
the same kind.) Only items near the threshold count; where the picked items stand out clearly, W is 0.

Choice of w. The exact w varies wildly, so equality is wanted only nearly. With P the matrix of the chances that an item
of f holders falls into each bin of r - t, and m the expected number of items in each bin, w minimises

    Var(E - W) + sum over f of (N_f (P w - b)_f)^2,

N_f being the number of items that may have about f holders. Var(E - W) is a sum over the items of a function of f_i.
The numbers of holders near the threshold are fitted to the histogram of the estimates, by a few steps of expectation
maximisation only, so that they stay smooth; some items are added for caution.

What is left of the difference P w - b is added to the interval's ends, for as many items as may have it. Items far
above the threshold add their own variances, and everything_else.py adds the covariances of the estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["ErrorLaw", "Excess", "excess_of_picked"]

Floats = npt.NDArray[np.float64]

_REACH = 4.5
"""How far the bins go from the threshold, and the numbers of holders beyond it, in standard errors."""
_FINE = 9
"""Bins to a standard error."""
_HOLDERS = 40
"""Numbers of holders that are looked at."""
_FITTING = 60
"""Steps of expectation maximisation."""
_UNHELD = 0.9
"""The share of items that nobody holds, to begin with."""
_CAUTION = 0.15
"""Items added to each standard error's width of the histogram."""


class ErrorLaw(Protocol):
    """The law of an estimate, given how many users hold the item."""

    @property
    def reports(self) -> int: ...

    @property
    def unit(self) -> float:
        """The distance between two possible estimates; 0 if there is none."""

    def spread(self, holders: npt.ArrayLike) -> Floats:
        """Return the standard error."""

    def tails(self, holders: Floats, limits: Floats) -> Floats:
        """Return P(estimate >= limit), a line for each number of holders and a column for each limit."""


@dataclass(frozen=True)
class Excess:
    """How much the sum of the picked items' estimates exceeds the number of their holders."""

    mean: float
    variance: float
    """Of the sum of the errors less `mean`, as if the estimates of different items were independent."""
    allowance: float
    """What `mean` may be off by besides."""


@dataclass(frozen=True)
class _Bins:
    """What an item with so many holders does near the threshold."""

    holders: Floats
    chances: Floats
    """P: the chance of each bin."""
    gains: Floats
    """(r - f) 1(r > t), in each bin."""
    means: Floats
    """b."""
    lots: Floats
    """The variance for which of several equal estimates are picked, for each number of holders."""
    error: float
    """One standard error near the threshold."""
    step: float
    half: int

    def fitted(self, seen: Floats) -> Floats:
        """Return how many items have about so many holders, as the histogram of the estimates shows it."""
        unheld = _UNHELD if self.holders[0] == 0 else 0.0
        items = np.full(len(self.holders), (1 - unheld) * seen.sum() / len(self.holders) + 1e-9)
        items[0] += unheld * seen.sum()
        inside = np.maximum(self.chances.sum(axis=1), 1e-9)
        for _ in range(_FITTING):
            items = items * (self.chances @ (seen / (items @ self.chances + 1e-12))) / inside
        return np.asarray(items)

    def nearby(self, items: Floats, most: float) -> Floats:
        """Return how many items may have about so many holders: those within a standard error, and some more."""
        close = np.abs(self.holders[:, None] - self.holders) <= self.error
        return np.minimum(close @ items + 1.0, most)

    def weights(self, items: Floats, most: float) -> Floats:
        """Return w for a crowd of these items."""
        counts = items @ self.chances + _CAUTION * self.step / self.error
        scaled = self.nearby(items, most)[:, None] * self.chances
        wanted = scaled.T @ (self.nearby(items, most) * self.means) + (items[:, None] * self.chances * self.gains).sum(
            0
        )
        return np.asarray(np.linalg.solve(scaled.T @ scaled + np.diag(counts), wanted))

    def variance(self, weights: Floats, items: Floats) -> float:
        """Return an upper bound of Var(E - W): the mean square."""
        both = items[:, None] * self.chances * np.square(self.gains - weights)
        return (
            float(both.sum()) + float(items @ self.lots) + _CAUTION * self.step / self.error * float(weights @ weights)
        )


def _bins(law: ErrorLaw, threshold: float, tied: float) -> _Bins:
    near = float(np.clip(threshold, 0, law.reports))
    error = max(float(law.spread(0.0)), float(law.spread(near)), 0.3 * law.unit)
    step = error / _FINE
    if law.unit:
        step = law.unit * (2 * math.floor(step / law.unit / 2) + 1)  # odd: no estimate lies between two bins
    half = math.ceil(_REACH * error / step)
    places = np.arange(-half, half + 2)
    least, most = max(0.0, near - _REACH * error), min(near + _REACH * error, law.reports)
    holders = np.linspace(least, most, _HOLDERS)
    if most - least < 2 * _HOLDERS:
        holders = np.arange(math.floor(least), min(math.ceil(most), law.reports) + 1.0)
    limits = np.asarray(threshold + (places - 0.5) * step, np.float64)
    above = law.tails(holders, limits)
    chances = np.maximum(above[:, :-1] - above[:, 1:], 0.0)
    picked = np.where(places[:-1] > 0, 1.0, np.where(places[:-1] == 0, tied, 0.0))
    errors = threshold + places[:-1] * step - holders[:, None]
    gained, missed = (errors * picked * chances).sum(axis=1), -(errors * (1 - picked) * chances).sum(axis=1)
    means = np.maximum(np.where(holders <= threshold, gained, missed), 0.0)  # the mean error is 0: take the nearer side
    lots = chances[:, half] * np.square(errors[:, half]) * tied * (1 - tied)
    return _Bins(holders, chances, errors * picked, means, lots, error, step, half)


def excess_of_picked(law: ErrorLaw, picked: Floats, others: Floats) -> Excess:
    """Return the excess of the picked estimates, which are in falling order; `others` are all that were not picked."""
    if not len(others):
        return Excess(0.0, float(np.square(law.spread(picked)).sum()), 0.0)
    least, best = float(picked[-1]), float(others.max())
    threshold = (least + best) / 2
    if law.unit:  # a possible value
        threshold = best + law.unit * math.floor((least - best) / (2 * law.unit) + 1e-6)
    tied = 0.5
    if law.unit and least - best < law.unit / 2:  # of equal estimates, those with smaller indexes are picked
        inside = float((picked - least < law.unit / 2).sum())
        tied = inside / (inside + float((others > best - law.unit / 2).sum()))
    bins = _bins(law, threshold, tied)
    close = others[others >= best - (bins.half + 1) * bins.step]
    places = np.rint(np.concatenate((picked - best, close - least)) / bins.step) + bins.half
    seen = np.bincount(places[(places >= 0) & (places <= 2 * bins.half)].astype(np.intp), minlength=2 * bins.half + 1)
    counts, most = seen.astype(np.float64), float(len(picked) + len(others))
    items = bins.fitted(counts)
    weights = bins.weights(items, most)
    left = np.abs(bins.chances @ weights - bins.means) * bins.nearby(items, most)
    far = picked[places[: len(picked)] > 2 * bins.half]
    variance = bins.variance(weights, items) + float(np.square(law.spread(far)).sum())
    return Excess(float(counts @ weights), variance, float(left.max()))
