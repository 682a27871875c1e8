"""The join of a search: the best pairs of a partial path and a cell that continues it.

A path may only be continued by the cells of its block (those that agree with every hash it knows). A cell is one
integer: its block, its score counted down from the top, its place. Sorted, the cells that lift a path to a sum of at
least tau are a run, and a binary search counts them. tau is found by bisection on the best paths and an even sample of
the rest, so that about `width` pairs remain. There is no table of paths by cells: time and memory are bounded by the
width and the number of cells of a team, for any reports.

Scores are integers too, in steps of 2^-16. Integers sort several times faster than floats with their places, sums of
them are exact, and equal sums go by place, so that a search finds the same paths on every processor. Binary searches
are fast when the needles rise, so paths are taken block by block, and in a block from the lowest score up.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = [
    "MOST_CANDIDATES",
    "Pairs",
    "Sorted",
    "best_cells",
    "falling",
    "first_rows",
    "floats_of",
    "join",
    "keys_of",
    "pairs",
    "units",
]

MOST_CANDIDATES = 20_000
"""How many complete paths of a search are looked at, the best ones."""

_UNIT = 1 << 16
_FIELD = 28
"""Bits of a cell's score: up to 2,048 standard errors to each side."""
_REACH = (1 << (_FIELD - 1)) - 1
_MOST = 1 << 40
"""Above any sum of a path's scores."""
_BEST, _SAMPLE = 1000, 1500
_STEPS, _NEARLY = 14, 31 / 32
_PART, _BELOW, _ABOVE, _LISTED = 8, _UNIT // 8, _UNIT // 4, 40_000
_HALVED = 1 << 13
_TABLE = 1 << 12
"""Where there are at most so many blocks, their places are looked up."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints, Ints]


def units(scores: npt.NDArray[np.floating]) -> Ints:
    """Return scores as integers, in steps of 2^-16."""
    return np.rint(np.clip(scores.astype(np.float64) * _UNIT, -_REACH, _REACH)).astype(np.int64)


def floats_of(scores: Ints) -> Floats:
    """Return what `units` rounded."""
    return np.asarray(scores / _UNIT, np.float64)


def falling(scores: Ints) -> Ints:
    """Return the places of the scores, the best first; equal ones in their order."""
    bits = len(scores).bit_length()
    packed = (_MOST - scores) << bits | np.arange(len(scores))
    packed.sort()
    return packed & ((1 << bits) - 1)


def first_rows(rows: Ints) -> Ints:
    """Return the places of different rows, the first of equal ones."""
    _, first = np.unique(keys_of(rows), return_index=True)
    return np.sort(first)


def keys_of(rows: Ints) -> npt.NDArray[np.uint64]:
    """Return a hash of 64 bits of each row, by a key of this process.

    Rows of equal hash count as one. If the key were known, somebody could choose an item that hides another one.
    """
    return np.asarray(rows.astype(np.uint64) @ _factors(rows.shape[1]))


@cache
def _factors(width: int) -> npt.NDArray[np.uint64]:
    """Rows of numbers below 2^24 that differ have equal hashes with a probability of at most 2^-40."""
    return np.frombuffer(os.urandom(8 * width), np.uint64)


def best_cells(scores: npt.NDArray[np.float32], keep: int) -> Ints:
    """Return the places of about `keep` of the highest scores, rising, and never of more than twice as many."""
    if scores.size <= keep:
        return np.arange(scores.size)
    sample = scores[:: max(1, scores.size // 65536)]
    place = max(1, int(len(sample) * keep / scores.size))
    chosen = np.flatnonzero(scores > np.partition(sample, -place)[-place])
    if not keep // 4 <= len(chosen) <= 2 * keep:  # many equal scores: only when there are few reports
        chosen = np.sort(np.argpartition(scores, -keep)[-keep:])
    return chosen


class Sorted:
    """Cells by (block, falling score)."""

    def __init__(self, blocks: Ints, scores: Ints) -> None:
        self.beyond = int(blocks.max(initial=0)) + 1
        self._places = len(blocks).bit_length()
        used = (self.beyond + 1).bit_length() + self._places
        self._coarser = max(0, used + _FIELD - 63)  # with very many blocks, scores have fewer digits
        self._field = _FIELD - self._coarser
        self._top = (1 << (self._field - 1)) - 1
        down = self._top - (scores >> self._coarser)
        self._keys = (blocks << self._field | down) << self._places | np.arange(len(blocks))
        self._keys.sort()
        self.best, self.least = int(scores.max(initial=0)), int(scores.min(initial=0))
        few = np.arange(self.beyond + 1 if self.beyond < _TABLE else 0)
        self._starts = np.searchsorted(self._keys, few << self._field + self._places)

    def __len__(self) -> int:
        return len(self._keys)

    def starts(self, blocks: Ints) -> Ints:
        """The place in the order at which each block begins."""
        if len(self._starts):
            return self._starts[blocks]
        return np.searchsorted(self._keys, blocks << self._field + self._places)

    def partners(self, starts: Ints, blocks: Ints, scores: Ints, tau: int) -> Ints:
        """How many cells continue each path to a sum of at least tau."""
        limit = scores - (tau - ((self._top + 1) << self._coarser))
        limit >>= self._coarser
        np.maximum(limit, 0, out=limit)
        np.minimum(limit, 1 << self._field, out=limit)
        limit += blocks << self._field
        limit <<= self._places
        return np.asarray(np.searchsorted(self._keys, limit) - starts)

    def cells(self, order: Ints) -> tuple[Ints, Ints]:
        """The places, as they were given, and the scores of these cells of the order."""
        keys = self._keys[order]
        down = keys >> self._places & ((1 << self._field) - 1)
        return keys & ((1 << self._places) - 1), (self._top - down) << self._coarser


def join(
    scores: Ints,
    blocks: Ints,
    cells: Sorted,
    width: int,
    threads: ThreadPoolExecutor | None = None,
    most: int | None = None,
) -> Pairs:
    """About `width` best pairs: which path, which cell (in the order that `cells` was given), and the sum; best first.

    Paths come best first. Of the pairs, `most` are returned at most.
    """
    bits = (2 * width + 2).bit_length()

    def best_first(found: Pairs) -> Pairs:
        parents, chosen, sums = found
        keys = (_MOST - sums) << bits | np.arange(len(sums))
        keys.sort()
        order = keys & ((1 << bits) - 1)
        return parents[order], chosen[order], keys >> bits << bits | np.arange(len(sums))

    parts = _joined(scores, blocks, cells, width, threads, best_first)
    parents, chosen, keys = (np.concatenate([part[column] for part in parts]) for column in range(3))
    if len(parts) > 1:
        keys[len(parts[0][2]) :] += len(parts[0][2])
        keys.sort(kind="stable")  # which merges two sorted parts
    order, sums = keys[:most] & ((1 << bits) - 1), _MOST - (keys[:most] >> bits)
    return parents[order], chosen[order], sums


def pairs(scores: Ints, blocks: Ints, cells: Sorted, width: int) -> Pairs:
    """The pairs of `join` in no order: equal sums come in the order in which `join` leaves them."""
    parts = _joined(scores, blocks, cells, width, None, lambda found: found)
    parents, chosen, sums = (np.concatenate([part[column] for part in parts]) for column in range(3))
    return parents, chosen, sums


def _joined(
    scores: Ints,
    blocks: Ints,
    cells: Sorted,
    width: int,
    threads: ThreadPoolExecutor | None,
    then: Callable[[Pairs], Pairs],
) -> list[Pairs]:
    """Join, and do what comes `then`: the halves of many paths apart, side by side if there are threads."""
    if not len(scores) or not len(cells):
        return [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))]
    blocks = np.minimum(blocks, cells.beyond)  # no cell is in that block
    halves = 2 if len(scores) >= _HALVED else 1
    tau, most = _threshold(scores, blocks, cells, width), 2 * width // halves

    def half(first: int) -> Pairs:
        parents, chosen, sums = _join_above(scores[first::halves], blocks[first::halves], cells, tau, most)
        return then((halves * parents + first, chosen, sums))

    return list((threads.map if threads else map)(half, range(halves)))


def _join_above(scores: Ints, blocks: Ints, cells: Sorted, tau: int, most: int) -> Pairs:
    """Every pair with a sum of at least tau, in no order; of the best paths only, if there are more than `most`."""
    paths = _by_block(blocks)
    scores, blocks = scores[paths], blocks[paths]
    starts = cells.starts(blocks)
    counts = cells.partners(starts, blocks, scores, tau)
    if counts.sum() > most:  # ties, or a bad sample: the result never grows
        rank = np.empty(len(counts), np.int64)
        rank[paths] = counts
        counts = np.where(np.cumsum(rank)[paths] <= most, counts, 0)
    lines, chosen, own = _every(starts, counts, cells)
    return paths[lines], chosen, scores[lines] + own


def _every(starts: Ints, counts: Ints, cells: Sorted) -> tuple[Ints, Ints, Ints]:
    """For each path `counts` cells of the order from its start on: the path's line, the cell's place, and its score."""
    from_pair = starts - (np.cumsum(counts) - counts)  # from a pair's number to its cell's place in the order
    lines = np.repeat(np.arange(len(counts)), counts)
    return lines, *cells.cells(from_pair[lines] + np.arange(len(lines)))


def _by_block(blocks: Ints) -> Ints:
    """Return the paths, which come best first, block by block and the best of a block last."""
    bits = len(blocks).bit_length()
    packed = blocks << bits | np.arange(len(blocks))[::-1]
    packed.sort()
    return len(blocks) - 1 - (packed & ((1 << bits) - 1))


def _threshold(scores: Ints, blocks: Ints, cells: Sorted, width: int) -> int:
    """The tau that leaves about `width` pairs.

    An eighth of the sample says where tau is about. From a little below, the pairs of the whole sample are listed.
    """
    low, high = int(scores.min()) + cells.least - _UNIT, int(scores.max()) + cells.best + _UNIT
    scores, blocks, weights = _sampled(scores, blocks)
    starts = cells.starts(blocks)

    def counted(tau: int, part: int = 1) -> Ints:
        return cells.partners(starts[::part], blocks[::part], scores[::part], tau)

    sure = _halved(lambda tau: float(counted(tau, _PART) @ weights[::_PART]) * _PART, low, high, width) - _BELOW
    counts = counted(sure)
    if float(counts @ weights) <= width:
        sure, counts = low, counted(low)
        if float(counts @ weights) <= width:
            return low
    if counts.sum() > _LISTED:
        near = sure + _ABOVE
        near = near if float(counted(near) @ weights) <= width else high

        def between(tau: int) -> float:
            return math.inf if tau <= sure else 0.0 if tau >= near else float(counted(tau) @ weights)

        return _halved(between, low, high, width)
    lines, _, own = _every(starts, counts, cells)
    sums = scores[lines] + own
    order = falling(sums)
    above, up_to = -sums[order], np.append(0.0, np.cumsum(weights[lines[order]]))

    def weight(tau: int) -> float:
        return float(up_to[np.searchsorted(above, -tau, side="right")]) if tau > sure else math.inf

    return _halved(weight, low, high, width)


def _sampled(scores: Ints, blocks: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the best paths and a sample of the others by block, and how many paths each stands for."""
    count, weights = len(scores), np.ones(len(scores))
    if count > _BEST + _SAMPLE:
        step = (count - _BEST) / _SAMPLE
        some = np.append(np.arange(_BEST), _BEST + (np.arange(_SAMPLE) * step).astype(np.int64))
        scores, blocks, weights = scores[some], blocks[some], np.where(some < _BEST, 1.0, step)
    order = _by_block(blocks)
    return scores[order], blocks[order], weights[order]


def _halved(weight: Callable[[int], float], low: int, high: int, width: int) -> int:
    """The first tau that halving the range meets above which there is nearly `width`; else the least with less."""
    for _ in range(_STEPS):
        middle = (low + high) // 2
        found = weight(middle)
        if width * _NEARLY <= found <= width:
            return middle
        low, high = (middle, high) if found > width else (low, middle)
    return high
