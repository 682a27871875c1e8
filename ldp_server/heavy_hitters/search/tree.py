"""The prefix tree's searches: for the best paths over all levels together, and level by level.

`propose` extends the best prefixes a level at a time and ranks them by the sum of their levels' scores, as beam.py
does for the expander: the cells of a level are sorted by (hash of what came before, falling score), so the extensions
of a prefix are a run of that order. Levels without a payload only check; the final scoring reads them.

`levels` is the classical tree: the best few prefixes of each level by that level's users alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.team_cells import BulkTreeCode
from ldp_server.heavy_hitters.search.acceptance import VERY_LONG
from ldp_server.heavy_hitters.search.halves import by_halves
from ldp_server.heavy_hitters.search.joins import (
    MOST_CANDIDATES,
    Pairs,
    Sorted,
    best_cells,
    falling,
    floats_of,
    join,
    keys_of,
    units,
)
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["MOST_CELLS", "Level", "levels", "propose"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_CELLS = 200_000
"""How many of a level's cells are searched, the best ones: twice as many as for an expander (beam.py), because a tree
has one search where an expander has one for every team."""
_RETRIED = 24
_WIDER = 4
_SPARE = 1.125
"""A join gives about as many pairs as are asked for: so much more are, and the best are kept."""
_BACK = 3
_FAMILIES = 4
_ROUNDED = 0.1
"""Above what the steps of a path's score add up to."""
_CLEAR = 1.2
"""In the search for a very long item a cell counts for this part of the score that an item at the threshold has in a
level, at most. Else the near-copies of one strong item are better than all other items for tens of levels."""
_KEPT = 243, 8
"""In that search the levels so far count 5% less at each further one: this number over 2^8. Without it, noise of early
levels decides which paths are kept for the rest of the search."""
_ALIKE = 256
"""How many paths of a very long item are looked at that have an equal first half."""


class Level:
    """One level's best cells in the order of joins. It is sorted anew when scores have changed."""

    def __init__(self, code: BulkTreeCode, level: int, scores: TeamScores, weight: float, threshold: float) -> None:
        kept = scores.kept
        self.cells = best_cells(scores.scores, MOST_CELLS) if kept is None else kept
        self.payload_bits = code.code.widths[level]
        self._all = kept is None
        self._scores, self._weight = scores, weight
        self._most = _CLEAR * threshold * weight if code.bits > VERY_LONG else math.inf
        self._order: Sorted | None = None
        self._changes = -1

    def renew(self) -> Sorted:
        """Return the cells by (hash of what came before, falling score), of the scores as they are now."""
        if self._order is None or self._changes != self._scores.changes:
            values = self._scores.values[self.cells] if self._all else self._scores.values
            values = np.minimum(values, self._most)
            self._order = Sorted(self.cells >> self.payload_bits, units(values * np.float64(self._weight)))
            self._changes = self._scores.changes
        return self._order

    def payloads(self, chosen: Ints) -> Ints:
        return self.cells[chosen] & ((1 << self.payload_bits) - 1)


def propose(
    code: BulkTreeCode,
    searched: Sequence[Level],
    residual: Sequence[TeamScores],
    weights: Floats,
    width: int,
    least: float,
    tick: Callable[[], None] | None,
    threads: ThreadPoolExecutor | None = None,
) -> Iterator[Ints]:
    """Search from the root; yield the messages found, of those that can have a score of `least`."""
    if threads is not None:
        list(threads.map(Level.renew, searched))
    very_long = code.bits > VERY_LONG
    blocks = code.no_payloads(1)
    hashes, scores = code.prefix_hashes(blocks, 0), np.zeros(1, np.int64)
    joins = _SpreadJoins(width, threads)
    before, parents = blocks, np.zeros(0, np.int64)
    for number, level in enumerate(searched):
        if tick is not None:
            tick()
        if very_long:
            scores = scores * _KEPT[0] >> _KEPT[1]
        parents, chosen, scores = joins.next(scores, hashes, level.renew())
        before = blocks
        blocks, hashes = _longer(code, blocks, parents, level.payloads(chosen), number, threads)
    z = np.zeros(len(blocks)) if very_long else floats_of(scores)  # the search for very long items cuts scores
    teams = range(0 if very_long else len(searched), code.teams)
    z += _added(code, residual, weights, blocks, teams, threads)
    best = falling(units(z))
    best = best[z[best] >= least - _ROUNDED]
    fields = code.fields(blocks[best])
    yield (_spread(fields) if very_long else fields)[:MOST_CANDIDATES]
    yield _last_payloads(code, residual, weights, before, parents, threads)


def _longer(
    code: BulkTreeCode, blocks: Indexes, parents: Ints, payloads: Ints, level: int, threads: ThreadPoolExecutor | None
) -> tuple[Indexes, Ints]:
    """Return the paths with one more payload, and the hashes that their cells of the next level begin with."""
    last = level + 1 == len(code.starts)

    def longer(rows: slice) -> tuple[Indexes, Ints]:
        found = code.with_payloads(blocks[parents[rows]], payloads[rows], level)
        return found, np.zeros(0, np.int64) if last else code.prefix_hashes(found, level + 1)

    paths, hashes = zip(*by_halves(longer, len(parents), threads), strict=True)
    return np.concatenate(paths), np.concatenate(hashes)


def _added(
    code: BulkTreeCode,
    residual: Sequence[TeamScores],
    weights: Floats,
    blocks: Indexes,
    teams: range,
    threads: ThreadPoolExecutor | None,
) -> Floats:
    """Return what these teams add to the paths' scores."""

    def added(rows: slice) -> Floats:
        z = np.zeros(len(blocks[rows]))
        for team in teams:
            z += weights[team] * residual[team].at(code.block_cells(blocks[rows], team))
        return z

    return np.concatenate(by_halves(added, len(blocks), threads))


def _spread(fields: Ints) -> Ints:
    """Return the paths without those that come after many with an equal first half: near-copies of one item."""
    families = keys_of(fields[:, : fields.shape[1] // 2])
    order = np.argsort(families, kind="stable")
    begins = np.flatnonzero(np.diff(families[order], prepend=~families[order[:1]]))
    ranks = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return fields[np.sort(order[ranks < _ALIKE])]


class _SpreadJoins:
    """The joins of one search: the best `width` pairs of each, but not too many of one ancestor a few levels back.

    One strong item has thousands of near-copies that differ from it in the last levels only. Without this limit they
    would fill the beam and hide every other item.
    """

    def __init__(self, width: int, threads: ThreadPoolExecutor | None) -> None:
        self._width, self._threads = width, threads
        self._lines: list[Ints] = []
        """The parents' places at the levels before."""
        self._crowded = False
        """Whether one ancestor had too many at the last level. It will have them at the next one."""

    def next(self, scores: Ints, blocks: Ints, order: Sorted) -> Pairs:
        """Join with the cells of the next level."""
        found = self._wide(scores, blocks, order) if self._crowded else self._narrow(scores, blocks, order)
        self._lines = [*self._lines, found[0]][1 - _BACK :]
        return found

    def _narrow(self, scores: Ints, blocks: Ints, order: Sorted) -> Pairs:
        width = self._width
        found = join(scores, blocks, order, int(_SPARE * width), self._threads, width)
        if len(self._lines) < _BACK - 1 or not len(self._too_many(self._ancestors(found[0]))):
            return found
        self._crowded = True
        return self._wide(scores, blocks, order)

    def _wide(self, scores: Ints, blocks: Ints, order: Sorted) -> Pairs:
        parents, chosen, sums = join(scores, blocks, order, _WIDER * self._width, self._threads)
        ancestors = self._ancestors(parents)
        self._crowded = len(self._too_many(ancestors[: self._width])) > 0
        if not self._crowded:
            return parents[: self._width], chosen[: self._width], sums[: self._width]
        kept = np.ones(len(parents), bool)
        for big in self._too_many(ancestors):
            kept[np.flatnonzero(ancestors == big)[self._most :]] = False
        rest = np.flatnonzero(kept)[: self._width]
        return parents[rest], chosen[rest], sums[rest]

    @property
    def _most(self) -> int:
        return max(1, self._width // _FAMILIES)

    def _too_many(self, ancestors: Ints) -> Ints:
        return np.flatnonzero(np.bincount(ancestors) > self._most)

    def _ancestors(self, parents: Ints) -> Ints:
        """The places that paths had `_BACK` levels before."""

        def before(rows: slice) -> Ints:
            places = parents[rows]
            for earlier in reversed(self._lines):
                places = earlier[places]
            return places

        return np.concatenate(by_halves(before, len(parents), self._threads))


def _last_payloads(
    code: BulkTreeCode,
    residual: Sequence[TeamScores],
    weights: Floats,
    prefixes: Indexes,
    parents: Ints,
    threads: ThreadPoolExecutor | None,
) -> Ints:
    """Return the best paths with every last payload: the last join has no check to read, and drops paths too early.

    `parents` are the places of the prefixes that the last join continued, the best pair first.
    """
    last = len(code.starts) - 1
    if last == 0 or not len(parents):
        return np.empty((0, last + 1), np.int64)
    every = np.arange(1 << code.code.widths[last])

    def best(place: int) -> Ints:
        blocks = code.with_payloads(_repeated(prefixes[place : place + 1], len(every)), every, last)
        z = _added(code, residual, weights, blocks, range(last, code.teams), None)
        return code.fields(blocks[falling(units(z))[:2]])

    places = _distinct(parents, len(prefixes))[:_RETRIED]
    return np.concatenate(list((threads.map if threads else map)(best, places)))


def _distinct(places: Ints, most: int) -> Ints:
    """Return the different places in the order in which they come first."""
    first = np.full(most, len(places))
    first[places[::-1]] = np.arange(len(places))[::-1]  # of several, the last one stays
    return np.argsort(first, kind="stable")[: np.count_nonzero(first < len(places))]


def _repeated(blocks: Indexes, times: int) -> Indexes:
    return blocks[np.repeat(np.arange(len(blocks)), times)]


def levels(code: BulkTreeCode, scores: Sequence[TeamScores], keep: int, tick: Callable[[], None] | None) -> Ints:
    """The `keep` best prefixes of every level but the last, and all their extensions at the last."""
    prefixes = code.no_payloads(1)
    last = len(code.starts) - 1
    for level in range(last + 1):
        if tick is not None:
            tick()
        width = code.code.widths[level]
        extensions = np.arange(1 << width)
        cells = (code.prefix_hashes(prefixes, level) << width)[:, None] | extensions[None, :]
        longer = _repeated(prefixes, len(extensions))
        prefixes = code.with_payloads(longer, np.tile(extensions, len(prefixes)), level)
        if level < last:
            values = scores[level].at(cells.ravel())
            best = np.argpartition(-values, min(keep, len(values) - 1))[:keep]
            prefixes = prefixes[best]
    return code.fields(prefixes)
