"""The tests that an item must pass before the soft decoder accepts it, and the law of a score and its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkCode, BulkTreeCode
from ldp_server.heavy_hitters.search.tails import binomial_quantile, chi_square_quantile, thresholds

__all__ = ["LONG", "VERY_LONG", "Acceptance", "Limits", "Noise", "Settings", "limits_of"]

Floats = npt.NDArray[np.float64]

LONG = 160
"""Items of more bits are long for a tree."""
VERY_LONG = 8 * 65
"""Items of more bits have paths of some fifty levels and more. One strong item's near-copies would fill its beams, and
elements that share nine of ten cells with an item pass the test against near-copies with the help of other items."""
_DOUBT = 0.1
_STRONG, _LENIENT = 1.3, 0.4
_STEPS = 30
_SURE = 50.0


class Limits(TypedDict):
    """The limits of the tests that depend on the sketch: fields of `Settings`."""

    copy_tail: float
    doubt: float


@dataclass(frozen=True)
class Settings:
    """The width of the search, and the limits of the tests."""

    threshold: float
    """The joint score from which an item is listed."""
    width: int = 1 << 14
    last: int = 1
    """The factor by which the search is widened once it finds nothing new."""
    margin: float = 2.0
    """Candidates are modelled down to this score below the threshold."""
    chi_tail: float = 5e-3
    """Probability with which the balance test may refuse a true item."""
    copy_tail: float = 2e-4
    """Probability with which any near-copy of a true item may pass as an item."""
    rounds: int = 8
    most: int = 4000
    """The most items that are modelled."""
    peel: float = 0.5
    """A round accepts no candidate below this part of its best one."""
    doubt: float = math.inf
    """An item is listed only if the likelihoods of its relatives add up to this part of its own at most."""
    allowed: float = math.inf
    """The expected number of false items that the noise and mixtures (mixtures.py) may give."""
    part: float = 0.0
    """The same as a part of the list, where that is more: an exploratory list."""
    log_items: float = 0.0
    """The logarithm of how many elements there are."""


def limits_of(code: BulkCode) -> Limits:
    """Return the limits of a sketch's tests.

    An expander's relatives are found by its searches from every team, so they are compared with the item, and the test
    against near-copies that nobody found may be lenient. A tree has one search, and the test alone. Where that search
    loses an item, near-copies of it are found without it, so the test is the strictest. Those of a very long item are
    alike: an element that nobody holds has others beside it whose scores are as good. So very long items are compared,
    too.
    """
    if isinstance(code, BulkTreeCode):
        return {"copy_tail": 2e-4, "doubt": _DOUBT if code.bits > VERY_LONG else math.inf}
    return {"copy_tail": 1e-2, "doubt": _DOUBT}


@dataclass(frozen=True)
class Noise:
    """The inner oracle's law for one report: v of an unheld item, r = p(1-p)/(s(1-s)) for holders, and s; and n."""

    reports: int
    variance: float
    holder_ratio: float
    support: float

    def share(self, z: npt.ArrayLike) -> Floats:
        """The share of users who hold an item with score z."""
        return np.asarray(np.clip(np.asarray(z, float) * np.sqrt(self.variance / self.reports), 0.0, 1.0))

    def spread(self, z: npt.ArrayLike) -> Floats:
        """The variance of an item's score relative to that of an unheld item: holders answer by another law."""
        return np.asarray(1.0 + self.share(z) * (self.holder_ratio - 1.0))

    def team_spread(self, z: npt.ArrayLike) -> Floats:
        """The relative variance of an item's score in one team. The number of holders in the team is random too."""
        share = self.share(z)
        return np.asarray(self.spread(z) + share * (1 - share) / self.variance)


class Acceptance:
    """The tests that an item must pass besides the threshold, from its teams' values and its score.

    *Balance*: a chi-square test of the teams' values about the item's score. It refuses chimeras: false items that
    combine cells of several strong items. Only as many teams as carry data can be combined. In the other teams a
    chimera is strong by chance alone.
    *Near-copies*: elements that share part of their cells with a true item have its evidence there. So the teams that
    tell them apart must prove the item alone, against as many rivals as there are near-copies. What these teams show of
    a rival is a count of its own, a binomial one, and few users make its upper tail a heavy one.
    *Relatives*: the other elements that the search found and that share a cell with the item. If one of them is held
    instead, it lends the item its evidence. With scores x of the item and y of a relative, both on what the model
    leaves, the likelihood of "the relative is held" over that of "the item is held" is exp((y^2 - x^2)/2).

    A team with too high a value is no sign of a chimera: another item may have the same cell, or liars may have added
    reports so that a true item is refused. So an item that fails may still pass `capped`: its highest teams are cut to
    what is in balance with the others, and it is tested with what is left.
    """

    def __init__(self, code: BulkCode, weights: Floats, noise: Noise, settings: Settings) -> None:
        self._weights, self._noise = weights, noise
        self.settings = settings
        self._threshold = settings.threshold
        self.limit = chi_square_quantile(code.teams - 1, settings.chi_tail)
        parts = code.near_copies()
        self.rivals: list[tuple[list[int], float]] = []
        """The teams that tell near-copies of a kind apart, and the evidence that an item must have in them."""
        self._parts = np.zeros((len(parts), code.teams))
        self._needed = np.zeros(len(parts))
        self._reports = np.zeros(len(parts))
        for i, (teams, log_count) in enumerate(parts):
            share = weights[teams]
            part = float(share @ share)
            self._parts[i, teams], self._reports[i] = share / max(1e-9, math.sqrt(part)), noise.reports * part
            log_tail = math.log(settings.copy_tail) - max(0.0, log_count)
            self._needed[i] = binomial_quantile(max(1.0, noise.reports * part), noise.support, log_tail)
            self.rivals.append((teams, float(self._needed[i])))

    def misfit(self, values: Floats, z: Floats) -> Floats:
        """Return chi-square. Its last term allows strong items to share a cell: a chimera as strong would have stronger
        parents, and these are found first.
        """
        strong = np.maximum(0.0, np.asarray(z) - _STRONG * self._threshold)
        spread = self._noise.team_spread(z) + (_LENIENT * strong) ** 2 / len(self._weights)
        gaps = values - np.asarray(z)[..., None] * self._weights
        return np.asarray((gaps**2).sum(axis=-1) / spread)

    def passed(self, values: Floats, z: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows of values pass."""
        own = (values @ self._parts.T >= self._needed).all(axis=-1)
        return np.asarray((self.misfit(values, z) <= self.limit) & own)

    def reached(self, values: Floats, z: Floats, bars: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows reach their bars and are in balance: the tests of a candidate.

        A candidate that another item lifts in one team passes if its other teams are in balance and reach the bar. It
        is not cut as other items are: an element that shares most of its cells with an item has a low bar as a
        candidate, and cut to what is in balance it would reach that with the evidence that the item lends it.
        """
        as_it_stands = (z >= bars) & (self.misfit(values, z) <= self.limit)
        highest = np.argmax(np.where(self._weights > 0, values / np.maximum(self._weights, 1e-12), -np.inf), axis=1)
        lent = self._weights[highest]
        rest = np.sqrt(np.maximum(1 - lent**2, 1e-12))
        alone = (z - lent * np.take_along_axis(values, highest[:, None], axis=1)[:, 0]) / rest
        evened = values.copy()
        np.put_along_axis(evened, highest[:, None], (alone / rest * lent)[:, None], axis=1)
        return np.asarray(as_it_stands | (alone >= bars) & (self.misfit(evened, alone / rest) <= self.limit))

    def told_apart(self, log_levels: Floats) -> Floats:
        """Return what a candidate must show in the teams that tell each kind of near-copies apart, for each level."""
        rows = [thresholds(max(1, int(n)), self._noise.support, log_levels) for n in self._reports]
        return np.stack(rows, axis=-1) if rows else np.zeros((len(log_levels), 0))

    def shown(self, values: Floats, needed: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows show that."""
        return np.asarray((values @ self._parts.T >= needed).all(axis=-1))

    def doubt(self, score: float, relatives: Floats) -> float:
        """Return the likelihoods of relatives with these scores, added up, over that of the item."""
        gaps = (np.maximum(relatives, 0.0) ** 2 - max(score, 0.0) ** 2) / 2
        return float(np.exp(np.minimum(gaps, _SURE)).sum())

    def capped(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the rows with their teams cut to the highest level (in units of the score) that is in balance."""
        weights = self._weights
        levels = np.where(weights > 0, values / np.maximum(weights, 1e-12), np.inf)
        low, high = levels.min(axis=1), np.where(np.isfinite(levels), levels, -np.inf).max(axis=1)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            cut = np.minimum(values, middle[:, None] * weights)
            fits = self.misfit(cut, cut @ weights) <= self.limit
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        cut = np.minimum(values, low[:, None] * weights)
        return cut, np.asarray(cut @ weights)

    def proved(self, values: Floats, z: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows may be listed: those that pass above the threshold, as they are or capped."""
        cut, left = self.capped(values)
        as_it_stands = (z >= self._threshold) & self.passed(values, z)
        return np.asarray(as_it_stands | (left >= self._threshold) & self.passed(cut, left))
