"""The search of the soft decoder: from every team as a start, the T best partial paths, one team at a time.

A path is one cell in each team visited so far; its score is the sum of the cells' weighted scores, which is the
item's estimate in units of its standard error once all teams are in. Cells name their own hash and their neighbours'
hashes, so a path may only be continued by cells that agree with every hash it has learnt. A join is: all pairs of
path and cell that agree and whose scores sum to at least tau, with tau found such that about T pairs survive. Each
team's cells are sorted by (fields already known, falling score), so the partners of one path are a run of that order
and counting them is one binary search; no table of paths by cells is ever made.

Work and memory are bounded by T, by `KEEP` cells a team and by the number of teams, whatever the reports hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.bulk.expander_code import BulkExpanderCode

__all__ = ["KEEP", "Beam", "TeamScores", "search"]

KEEP = 200_000
"""How many cells of a team the search looks at: the best ones."""

_SPAN = 4096.0  # wider than any two scores differ, and exact in a 64-bit float beside 2^24 blocks
_BEST, _SAMPLE = 2000, 3000
_STEPS = 14

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Beam:
    """Partial paths: their scores, the hashes they have learnt (hash m in bits m*y ...), their cells so far."""

    scores: Floats
    hashes: Ints
    paths: Ints


class TeamScores:
    """One team's best cells, by falling score, with their hash fields; and the orders for joins, made once each."""

    def __init__(
        self, bulk: BulkExpanderCode, team: int, scores: npt.NDArray[np.float32], weight: float, keep: int = KEEP
    ) -> None:
        code = bulk.code
        self.fields = (team, *code.expander.neighbours[team])  # whose hash each field of the cell is
        cells = _best_cells(bulk, team, scores, keep)
        order = np.argsort(-scores[cells], kind="stable")
        self.cells: Ints = cells[order].astype(np.int64)
        self.scores: Floats = scores[self.cells].astype(np.float64) * weight
        self._shift = code.chunk_bits
        self._bits = code.hash_bits
        self._orders: dict[int, tuple[npt.NDArray[np.intp], Floats]] = {}

    def field(self, slot: int, cells: Ints) -> Ints:
        """The hash in a slot of each cell."""
        return cells >> (self._shift + slot * self._bits) & ((1 << self._bits) - 1)

    def slots(self, known: int) -> list[int]:
        """The slots whose hashes are among the `known` teams (a bit mask)."""
        return [slot for slot, team in enumerate(self.fields) if known >> team & 1]

    def order(self, known: int) -> tuple[npt.NDArray[np.intp], Floats]:
        """The cells by (known fields, falling score), and the keys block * SPAN - score that rise along it."""
        mask = sum(1 << slot for slot in self.slots(known))
        if mask not in self._orders:
            block = np.zeros(len(self.cells), np.int64)
            for slot in self.slots(known):
                block = block << self._bits | self.field(slot, self.cells)
            by = np.argsort(block.astype(np.uint32), kind="stable")
            self._orders[mask] = by, block[by] * _SPAN - self.scores[by]
        return self._orders[mask]

    def learn(self, hashes: Ints, known: int, cells: Ints) -> Ints:
        """The paths' hashes with the fields of newly joined cells added."""
        for slot, team in enumerate(self.fields):
            if not known >> team & 1:
                hashes = hashes | self.field(slot, cells) << team * self._bits
        return hashes

    def blocks(self, hashes: Ints, known: int) -> Ints:
        """The block of cells that each path may be continued by."""
        block = np.zeros(len(hashes), np.int64)
        for slot in self.slots(known):
            block = block << self._bits | (hashes >> self.fields[slot] * self._bits & ((1 << self._bits) - 1))
        return block


def _best_cells(bulk: BulkExpanderCode, team: int, scores: npt.NDArray[np.float32], keep: int) -> npt.NDArray[np.intp]:
    """The `keep` best cells, of those that an element of the domain can have."""
    code = bulk.code
    if team == code.data - 1 and bulk.pad:
        view = scores.reshape(-1, 1 << code.chunk_bits)[:, : 1 << (code.chunk_bits - bulk.pad)]
        rows, columns = np.divmod(np.arange(view.size), view.shape[1])
        candidates: npt.NDArray[np.intp] = (rows << code.chunk_bits) + columns
        values = view.ravel()
    else:
        candidates, values = np.arange(0), scores
    if values.size > keep:
        sample = values[:: max(1, values.size // 65536)]
        floor = np.partition(sample, -max(1, int(len(sample) * keep / values.size)))[
            -max(1, int(len(sample) * keep / values.size))
        ]
        chosen = np.flatnonzero(values > floor)
        if len(chosen) > 2 * keep:  # a poisoned team: many equal scores
            chosen = chosen[:keep]
    else:
        chosen = np.arange(values.size)
    return candidates[chosen] if candidates.size else chosen


def _next_team(visited: list[int], known: int, lists: list[TeamScores]) -> int:
    """An unvisited team whose own hash is known if there is one, then the one with most known fields."""
    open_teams = [m for m in range(len(lists)) if m not in visited]
    return max(open_teams, key=lambda m: (known >> m & 1, len(lists[m].slots(known)), -m))


def _survivors(keys: Floats, starts: Ints, blocks: Ints, scores: Floats, tau: float) -> Ints:
    """How many cells continue each path to a sum of at least tau."""
    reach = np.searchsorted(keys, blocks * _SPAN - np.clip(tau - scores, 1 - _SPAN / 2, _SPAN / 2 - 1), side="right")
    return np.maximum(reach - starts, 0)


def join(beam: Beam, lists: TeamScores, known: int, width: int) -> Beam:
    """The best `width` continuations, about, of the paths of a beam into one more team."""
    by, keys = lists.order(known)
    if not len(keys) or not len(beam.scores):
        return Beam(np.empty(0), np.empty(0, np.int64), np.empty((0, beam.paths.shape[1] + 1), np.int64))
    blocks = lists.blocks(beam.hashes, known)
    starts = np.searchsorted(keys, blocks * _SPAN - _SPAN / 2)
    tau = _threshold(beam, keys, starts, blocks, float(lists.scores[0]), float(lists.scores[-1]), width)
    counts = _survivors(keys, starts, blocks, beam.scores, tau)
    total = int(counts.sum())
    if total > 2 * width:  # ties, or an unlucky sample: cut by position, never grow
        counts = np.where(np.cumsum(counts) <= 2 * width, counts, 0)
        total = int(counts.sum())
    parents = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = by[starts[parents] + within]
    cells = lists.cells[chosen]
    scores = beam.scores[parents] + lists.scores[chosen]
    order = np.argsort(-scores, kind="stable")
    parents, cells, scores = parents[order], cells[order], scores[order]
    hashes = lists.learn(beam.hashes[parents], known, cells)
    return Beam(scores, hashes, np.concatenate([beam.paths[parents], cells[:, None]], axis=1))


def _threshold(beam: Beam, keys: Floats, starts: Ints, blocks: Ints, top: float, bottom: float, width: int) -> float:
    """The tau that leaves about `width` pairs, by bisection on the best paths and an even sample of the rest."""
    count = len(beam.scores)
    if count > _BEST + _SAMPLE:
        step = (count - _BEST) / _SAMPLE
        some = np.concatenate([np.arange(_BEST), _BEST + (np.arange(_SAMPLE) * step).astype(np.int64)])
        weights = np.concatenate([np.ones(_BEST), np.full(_SAMPLE, step)])
    else:
        some, weights = np.arange(count), np.ones(count)
    starts, blocks, scores = starts[some], blocks[some], beam.scores[some]
    low, high = float(beam.scores[-1]) + bottom - 1.0, float(beam.scores[0]) + top + 1.0
    if float(_survivors(keys, starts, blocks, scores, low) @ weights) <= width:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float(_survivors(keys, starts, blocks, scores, middle) @ weights) > width:
            low = middle
        else:
            high = middle
    return high


def search(
    bulk: BulkExpanderCode, lists: list[TeamScores], start: int, width: int, tick: Callable[[], None] | None = None
) -> Ints:
    """The messages (rows of symbols) of the complete paths that grow from one team."""
    code = bulk.code
    first = lists[start]
    size = min(width, len(first.cells))
    cells = first.cells[:size]
    beam = Beam(first.scores[:size], first.learn(np.zeros(size, np.int64), 0, cells), cells[:, None])
    visited, known = [start], _mask(first.fields)
    while len(visited) < code.data:
        if tick is not None:
            tick()
        team = _next_team(visited, known, lists)
        beam = join(beam, lists[team], known, width)
        visited.append(team)
        known |= _mask(lists[team].fields)
    symbols = beam.paths & ((1 << code.chunk_bits) - 1)
    messages = bulk.reed_solomon.interpolate(visited, symbols)
    return messages[bulk.fits(messages)]


def _mask(teams: tuple[int, ...]) -> int:
    return sum(1 << team for team in teams)
