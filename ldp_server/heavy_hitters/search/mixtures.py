"""How many elements that nobody holds would reach a score, as the cells of this answer are; and the bar that follows.

A cell of an item that is held and not explained by the model has a higher value. Elements that nobody holds and that
combine such cells of several items, with the best noise in the other teams, reach the threshold more often than by
noise: mixtures. Hashing spreads elements over the cells, so the scores of all |X| elements are |X| draws of a sum with
one random cell of each team. Let E be a cell's value, u the team's weight, and

    K(h) = sum over teams of ln(mean over cells of exp(h u E)).

The expected number of elements with a score of at least b is, with K'(h) = b (the saddlepoint formula),

    |X| exp(K(h) - h b) / (h sqrt(2 pi K''(h))).

K is read from the cells themselves. Where no item is held, it is that of noise, and the number that of tails.py.
Elements that share several cells with one item are more than this says, because their cells are not drawn apart. For
these there is the test against near-copies (acceptance.py).

The items found are judged one after the other, the best first. Each must reach the bar at which the allowed number of
false items is expected while itself and everything below it counts as unexplained. Once it is listed, its cells are
explained, and the bar falls. So many items near the threshold raise the bar for each other, and few hardly do.

In an exploratory list a part of the items may be false. So the allowed number rises with the items that are listed: for
the k-th it is k times that part. The list ends with the first item that does not reach its bar. When it has k items,
the expected number of elements above the bar of the last one, held by nobody, is at most that part of k: the rule of
Benjamini and Hochberg, taken step by step from the top, which is the more cautious way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkCode
from ldp_server.heavy_hitters.search.acceptance import Settings
from ldp_server.heavy_hitters.search.model import Model
from ldp_server.heavy_hitters.search.tails import binomial_tail_log, log_normal_tails, normal_tails, threshold

__all__ = ["Judged", "Mixtures", "step_down"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_FROM, _BINS, _MOST = 2.0, 16, 640
"""Values are counted from this one on, in bins of 1/16 of a standard error, and so many bins at most. Values below
follow the normal law: they hardly matter."""
_SLOPES, _HALVINGS, _LOG_MOST = (0.5, 120.0), 36, 50.0
_CLEAR = 1.5
"""Items of a score this many times the threshold are explained: no mixture of others reaches it."""


class Mixtures:
    """The law of a random element's score on what the model leaves, with items put back."""

    def __init__(self, code: BulkCode, model: Model, log_items: float, threads: ThreadPoolExecutor | None) -> None:
        self._model, self._log_items, self._weights = model, log_items, model.weights
        paddings = [code.padding(team) for team in range(code.teams)]
        self._sizes = np.array([1 << code.cell_bits - padding.bit_count() for padding in paddings], float)
        self._firsts = np.array([self._first(code, team) for team in range(code.teams)])

        def counts(team: int) -> Ints:
            return _counts(model, team, paddings[team], float(self._firsts[team]))

        self._counts = np.stack(list((threads.map if threads else map)(counts, range(code.teams))))
        self._now: dict[tuple[int, int], float] = {}
        """The values of cells that differ from those that the model leaves."""

    def _first(self, code: BulkCode, team: int) -> float:
        """From which value on all cells of a team are known."""
        kept = self._model.residual[team].kept
        part = 0.5 if kept is None else min(0.5, len(kept) / (1 << code.cell_bits))
        return max(_FROM, NormalDist().inv_cdf(1 - part))

    def put_back(self, cells: Ints, score: float) -> None:
        """Count an item of the model as unexplained."""
        for team, cell in enumerate(cells.tolist()):
            self._add(team, cell, score * float(self._weights[team]))

    def take(self, cells: Ints, score: float) -> None:
        """Count an item as explained again."""
        self.put_back(cells, -score)

    def _add(self, team: int, cell: int, value: float) -> None:
        now = self._now.get((team, cell))
        if now is None:
            now = float(self._model.residual[team].at(np.array([cell]))[0])
        first = float(self._firsts[team])
        for old, change in ((now, -1), (now + value, 1)):
            if old > first:
                self._counts[team, min(int((old - first) * _BINS), _MOST - 1)] += change
        self._now[team, cell] = now + value

    def bar(self, allowed: float) -> float:
        """Return the score that `allowed` elements which nobody holds are expected to reach."""
        return self._where(lambda _, log_number: log_number > math.log(allowed))[0]

    def bar_of_noise(self, allowed: float) -> float:
        """Return the same by noise alone, without the cells of the answer."""
        noise = self._model.noise
        return threshold(noise.reports, noise.support, self._log_items, allowed)

    def expected(self, score: float) -> float:
        """Return how many of them are expected to reach this score."""
        return math.exp(min(_LOG_MOST, self._where(lambda reached, _: reached < score)[1]))

    def beyond_noise(self, score: float) -> float:
        """Return how many of these are more than noise gives."""
        noise = self._model.noise
        n, s = noise.reports, noise.support
        log_tail = binomial_tail_log(n, s, n * s + score * math.sqrt(n * s * (1 - s)))
        return max(0.0, self.expected(score) - math.exp(min(0.0, self._log_items + log_tail)))

    def _where(self, before: Callable[[float, float], bool]) -> tuple[float, float]:
        """Return the score, and the logarithm of the number of elements that reach it, up to which `before` holds."""
        used = int(np.flatnonzero(self._counts.any(axis=0)).max(initial=0)) + 1
        counts, middles = self._counts[:, :used], self._firsts[:, None] + (np.arange(used) + 0.5) / _BINS
        tops = np.where(counts > 0, middles, self._firsts[:, None]).max(axis=1)
        low, high = _SLOPES
        for _ in range(_HALVINGS):
            slope = (low + high) / 2
            found = self._at(slope, counts, middles, tops)
            low, high = (slope, high) if before(*found) else (low, slope)
        return self._at(high, counts, middles, tops)

    def _at(self, slope: float, counts: Ints, middles: Floats, tops: Floats) -> tuple[float, float]:
        """Return K' of a slope, and the logarithm of the number of elements that reach it."""
        t, first = slope * self._weights, self._firsts
        top = t * tops  # the largest exponent, which is divided out
        parts = np.exp(t[:, None] * np.minimum(middles - tops[:, None], 0.0)) * counts / self._sizes[:, None]
        moments = np.stack([(parts * middles**power).sum(axis=1) for power in range(3)])
        noise = np.exp(t * t / 2 + _log_below(first - t) - top)  # of the values below `first`
        edge = np.exp(t * first - first**2 / 2 - top) / math.sqrt(2 * math.pi)
        moments += np.stack([noise, t * noise - edge, (1 + t * t) * noise - (t + first) * edge])
        mean = moments[1] / moments[0]
        spread = float((self._weights**2 * (moments[2] / moments[0] - mean**2)).sum())
        score, law = float(self._weights @ mean), float((np.log(moments[0]) + top).sum())
        wide = slope * math.sqrt(2 * math.pi * max(spread, 1e-9))
        return score, self._log_items + law - slope * score - math.log(wide)


def _log_below(z: Floats) -> Floats:
    """Return ln P(N(0,1) < z)."""
    return np.where(z < 0, log_normal_tails(-z), np.log(normal_tails(-np.maximum(z, 0.0))))


def _counts(model: Model, team: int, padding: int, first: float) -> Ints:
    """Return how many cells that elements have are in each bin."""
    scores = model.residual[team]
    high = np.flatnonzero(scores.values > first)
    if padding:
        cells = high if scores.kept is None else scores.kept[high]
        high = high[cells & padding == 0]
    values = np.minimum(scores.values[high], first + (_MOST - 1) / _BINS)
    return np.bincount(((values - first) * _BINS).astype(np.int64), minlength=_MOST)


@dataclass(frozen=True)
class Judged:
    """What a list's mixtures ask of its items."""

    bars: Floats
    """The score that each item had to reach."""
    bar: float
    """The score that another item would have to reach."""
    expected: float
    """How many mixtures are expected above that bar."""


def step_down(law: Mixtures, model: Model, settings: Settings, passed: Bools, certain: Bools) -> Judged:
    """Judge the items of a model that `passed` the tests, the best first; those that are `certain` are not judged."""
    clear = model.scores >= _CLEAR * settings.threshold
    listed = int((certain | clear & passed).sum())
    certain = certain | clear
    for item in np.flatnonzero(~certain):
        law.put_back(model.cells[item], float(model.scores[item]))
    bar = _bar(law, settings, listed + 1)
    bars = np.where(certain, settings.threshold, np.inf)
    judged = np.flatnonzero(passed & ~certain)
    for item in judged[np.argsort(-model.scores[judged], kind="stable")]:
        bars[item] = bar
        if model.scores[item] < bar:
            break
        law.take(model.cells[item], float(model.scores[item]))
        listed += 1
        bar = _bar(law, settings, listed + 1)
    return Judged(bars, bar, law.beyond_noise(bar))


def _bar(law: Mixtures, settings: Settings, items: int) -> float:
    """Return the score that the last one of so many listed items must reach."""
    if not settings.part:
        return max(settings.threshold, law.bar(settings.allowed))
    allowed = max(settings.allowed, settings.part * items)
    return max(settings.threshold, law.bar(allowed), law.bar_of_noise(allowed))
