"""The prefix tree's searches: for the best paths over all levels together, and level by level.

`propose` extends the best prefixes a level at a time and ranks them by the sum of their levels' scores, as beam.py
does for the expander: the cells of a level are sorted by (hash of what came before, falling score), so the extensions
of a prefix are a run of that order. Levels without a payload only check; the final scoring reads them.

`levels` is the classical tree: the best few prefixes of each level by that level's users alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkTreeCode
from ldp_server.heavy_hitters.search.joins import Sorted, best_cells, join

__all__ = ["levels", "propose"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

MOST_CELLS = 200_000
"""How many of a level's cells are searched, the best ones: twice as many as for an expander (beam.py), because a tree
has one search where an expander has one for every team."""
_RETRIED = 24
_WIDER = 4
_BACK = 3
_FAMILIES = 4


def propose(
    code: BulkTreeCode,
    residual: Sequence[Scores],
    weights: Floats,
    width: int,
    tick: Callable[[], None] | None,
) -> Iterator[Ints]:
    """Search from the root; yield the messages found."""
    prefixes: Ints = np.zeros((1, 0), np.int64)
    scores: Floats = np.zeros(1)
    lines: list[Ints] = []
    for level in range(len(code.starts)):
        if tick is not None:
            tick()
        cells = best_cells(residual[level], MOST_CELLS)
        values = residual[level][cells].astype(float) * weights[level]
        payload_bits = code.code.widths[level]
        order = Sorted(cells >> payload_bits, values)
        parents, chosen, sums = join(scores, code.prefix_hashes(prefixes, level), order, _WIDER * width)
        lines.append(parents)
        kept = _spread(lines[-_BACK:], width)
        lines[-1], scores = parents[kept], sums[kept]
        payloads = cells[chosen[kept]] & ((1 << payload_bits) - 1)
        prefixes = np.concatenate([prefixes[parents[kept]], payloads[:, None]], axis=1)
    yield prefixes
    yield _last_payloads(code, residual, weights, prefixes)


def _spread(lines: list[Ints], width: int) -> Ints:
    """Return which of the joined paths are kept: the best `width`, but not too many of one ancestor a few levels back.

    One strong item has thousands of near-copies that differ from it in the last levels only. Without this limit they
    would fill the beam and hide every other item. `lines` are the parents' places, level by level.
    """
    ancestors = lines[-1]
    for parents in reversed(lines[:-1]):
        ancestors = parents[ancestors]
    if len(lines) < _BACK or not len(ancestors):
        return np.arange(min(width, len(ancestors)))
    order = np.argsort(ancestors, kind="stable")
    grouped = ancestors[order]
    starts = np.searchsorted(grouped, grouped)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts
    return np.flatnonzero(rank < max(1, width // _FAMILIES))[:width]


def _last_payloads(code: BulkTreeCode, residual: Sequence[Scores], weights: Floats, prefixes: Ints) -> Ints:
    """Return the best paths with every last payload: the last join has no check to read, and drops paths too early."""
    last = len(code.starts) - 1
    if last == 0 or not len(prefixes):
        return prefixes
    _, first = np.unique(prefixes[:, :last], axis=0, return_index=True)
    prefixes = prefixes[np.sort(first)[:_RETRIED], :last]
    width = code.code.widths[last]
    every = np.arange(1 << width)
    out = []
    for prefix in prefixes:
        full = np.concatenate([np.repeat(prefix[None], len(every), axis=0), every[:, None]], axis=1)
        blocks = code.blocks(full)
        z = np.zeros(len(full))
        for level in range(last, code.teams):
            z += weights[level] * residual[level][code.block_cells(blocks, level)]
        out.append(full[np.argsort(-z, kind="stable")[:2]])
    return np.concatenate(out)


def levels(code: BulkTreeCode, scores: Sequence[Scores], keep: int, tick: Callable[[], None] | None) -> Ints:
    """The `keep` best prefixes of every level but the last, and all their extensions at the last."""
    prefixes: Ints = np.zeros((1, 0), np.int64)
    last = len(code.starts) - 1
    for level in range(last + 1):
        if tick is not None:
            tick()
        width = code.code.widths[level]
        extensions = np.arange(1 << width)
        cells = (code.prefix_hashes(prefixes, level) << width)[:, None] | extensions[None, :]
        prefixes = np.concatenate(
            [np.repeat(prefixes, len(extensions), axis=0), np.tile(extensions, len(prefixes))[:, None]], axis=1
        )
        if level < last:
            values = scores[level][cells.ravel()]
            best = np.argpartition(-values, min(keep, len(values) - 1))[:keep]
            prefixes = prefixes[best]
    return prefixes
