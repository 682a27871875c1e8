"""The join of a search: the best pairs of a partial path and a cell that continues it.

A path may only be continued by the cells of its block (those that agree with every hash it knows). Cells are sorted
by (block, falling score) under one key, block * SPAN - score, so the cells that lift a path to a sum of at least tau
are a run of that order, and one binary search counts them. tau is found by bisection on the best paths and an even
sample of the rest, so that about `width` pairs remain. There is no table of paths by cells: time and memory are bounded
by the width and the number of cells of a team, for any reports.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Sorted", "best_cells", "join"]

_SPAN = 4096.0  # above any difference of scores; beside 2^24 blocks exact in a 64-bit float
_REACH = _SPAN / 2 - 1
_BEST, _SAMPLE = 1000, 1500
_STEPS = 14

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def best_cells(scores: npt.NDArray[np.float32], keep: int) -> Ints:
    """Return the places of about `keep` of the highest scores, and never of more than twice as many."""
    if scores.size <= keep:
        return np.arange(scores.size)
    sample = scores[:: max(1, scores.size // 65536)]
    place = max(1, int(len(sample) * keep / scores.size))
    chosen = np.flatnonzero(scores > np.partition(sample, -place)[-place])
    if not keep // 4 <= len(chosen) <= 2 * keep:  # many equal scores: only when there are few reports
        chosen = np.argpartition(scores, -keep)[-keep:]
    return chosen


class Sorted:
    """Cells by (block, falling score)."""

    def __init__(self, blocks: Ints, scores: Floats) -> None:
        scores = np.clip(scores, -_REACH / 2, _REACH / 2)
        falling = np.argsort(-scores, kind="stable")
        self.order = falling[np.argsort(blocks[falling].astype(np.uint32), kind="stable")]
        self.scores = scores
        self.keys: Floats = blocks[self.order] * _SPAN - scores[self.order]

    def starts(self, blocks: Ints) -> Ints:
        """The place in the order at which each block begins."""
        return np.asarray(np.searchsorted(self.keys, blocks * _SPAN - _SPAN / 2), np.int64)

    def partners(self, starts: Ints, blocks: Ints, scores: Floats, tau: float) -> Ints:
        """How many cells continue each path to a sum of at least tau."""
        needed = np.clip(tau - scores, -_REACH, _REACH)
        reached = np.searchsorted(self.keys, blocks * _SPAN - needed, side="right")
        return np.asarray(np.maximum(reached - starts, 0), np.int64)


def join(scores: Floats, blocks: Ints, cells: Sorted, width: int) -> tuple[Ints, Ints, Floats]:
    """About `width` best pairs: which path, which cell (in the order that `cells` was given), and the sum; best first.

    Paths come best first.
    """
    if not len(scores) or not len(cells.keys):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    starts = cells.starts(blocks)
    counts = cells.partners(starts, blocks, scores, _threshold(scores, blocks, starts, cells, width))
    reached = np.cumsum(counts)
    if reached[-1] > 2 * width:  # ties, or a bad sample: cut by position, so that the result never grows
        counts = np.where(reached <= 2 * width, counts, 0)
        reached = np.cumsum(counts)
    parents = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(reached[-1]) - np.repeat(reached - counts, counts)
    chosen = cells.order[starts[parents] + within]
    sums = scores[parents] + cells.scores[chosen]
    order = np.argsort(-sums, kind="stable")
    return parents[order], chosen[order], sums[order]


def _threshold(scores: Floats, blocks: Ints, starts: Ints, cells: Sorted, width: int) -> float:
    """The tau that leaves about `width` pairs."""
    top, bottom = float(cells.scores.max()), float(cells.scores.min())
    low, high = float(scores[-1]) + bottom - 1.0, float(scores[0]) + top + 1.0
    count = len(scores)
    if count > _BEST + _SAMPLE:
        step = (count - _BEST) / _SAMPLE
        some = np.concatenate([np.arange(_BEST), _BEST + (np.arange(_SAMPLE) * step).astype(np.int64)])
        weights = np.concatenate([np.ones(_BEST), np.full(_SAMPLE, step)])
    else:
        some, weights = np.arange(count), np.ones(count)
    starts, blocks, scores = starts[some], blocks[some], scores[some]
    if float(cells.partners(starts, blocks, scores, low) @ weights) <= width:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float(cells.partners(starts, blocks, scores, middle) @ weights) > width:
            low = middle
        else:
            high = middle
    return high
