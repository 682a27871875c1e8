"""The search of the soft decoder: from every team as a start, the T best partial paths, one team at a time.

A path is one cell in each team visited so far; its score is the sum of the cells' weighted scores, which is the
item's estimate in units of its standard error once all teams are in. Cells name their own hash and their neighbours'
hashes, so a path is continued only by cells that agree with every hash it has learnt (joins.py). As soon as as many
teams are visited as carry data, the pieces give the whole message; whoever asked scores it from its true cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.bulk.team_cells import BulkExpanderCode
from ldp_server.heavy_hitters.joins import KEEP, Sorted, best_cells, join_rows

__all__ = ["TeamScores", "propose", "search"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Paths:
    """Partial paths, best first: their scores, the hashes they know (hash m from bit m*y on), their cells so far."""

    scores: Floats
    hashes: Ints
    cells: Ints


class TeamScores:
    """One team's best cells, by falling score, with their hash fields; and the orders for joins, made once each."""

    def __init__(self, code: BulkExpanderCode, team: int, residual: npt.NDArray[np.float32], weight: float) -> None:
        self.fields = (team, *code.code.expander.neighbours[team])  # whose hash each field of the cell is
        self._shift, self._bits = code.code.chunk_bits, code.code.hash_bits
        cells = _possible(code, team, residual)
        order = np.argsort(-residual[cells], kind="stable")
        self.cells: Ints = cells[order]
        self.scores: Floats = residual[self.cells].astype(float) * weight
        self._orders: dict[tuple[int, ...], Sorted] = {}

    def _field(self, slot: int, cells: Ints) -> Ints:
        return cells >> (self._shift + slot * self._bits) & ((1 << self._bits) - 1)

    def slots(self, known: int) -> tuple[int, ...]:
        """The slots whose hashes are among those of the `known` teams (a bit mask)."""
        return tuple(slot for slot, team in enumerate(self.fields) if known >> team & 1)

    def order(self, known: int) -> Sorted:
        """The cells by the hashes of `known` teams."""
        slots = self.slots(known)
        if slots not in self._orders:
            block = np.zeros(len(self.cells), np.int64)
            for slot in slots:
                block = block << self._bits | self._field(slot, self.cells)
            self._orders[slots] = Sorted(block, self.scores)
        return self._orders[slots]

    def learn(self, hashes: Ints, known: int, cells: Ints) -> Ints:
        """The paths' hashes with the fields of newly joined cells added."""
        for slot, team in enumerate(self.fields):
            if not known >> team & 1:
                hashes = hashes | self._field(slot, cells) << team * self._bits
        return hashes

    def blocks(self, hashes: Ints, known: int) -> Ints:
        """The block of cells that each path may be continued by."""
        block = np.zeros(len(hashes), np.int64)
        for slot in self.slots(known):
            block = block << self._bits | (hashes >> self.fields[slot] * self._bits & ((1 << self._bits) - 1))
        return block


def _possible(code: BulkExpanderCode, team: int, residual: npt.NDArray[np.float32]) -> Ints:
    """The best cells, of those that an item can have: a data symbol's padding is zero."""
    chunk = code.code.chunk_bits
    width = code.widths[team] if team < code.code.data else chunk
    if width == chunk:
        return best_cells(residual, KEEP)
    view = residual.reshape(-1, 1 << chunk)[:, : 1 << width].ravel()
    chosen = best_cells(view, KEEP)
    return (chosen >> width << chunk) | chosen & ((1 << width) - 1)


def _next_team(visited: list[int], known: int, lists: list[TeamScores]) -> int:
    """An unvisited team whose own hash is known if there is one, then the one with most known fields."""
    rest = [m for m in range(len(lists)) if m not in visited]
    return max(rest, key=lambda m: (known >> m & 1, len(lists[m].slots(known)), -m))


def _mask(teams: tuple[int, ...]) -> int:
    return sum(1 << team for team in teams)


def search(
    code: BulkExpanderCode, lists: list[TeamScores], start: int, width: int, tick: Callable[[], None] | None = None
) -> Ints:
    """The messages (rows of symbols) of the complete paths that grow from one team."""
    first = lists[start]
    size = min(width, len(first.cells))
    cells = first.cells[:size]
    paths = Paths(first.scores[:size], first.learn(np.zeros(size, np.int64), 0, cells), cells[:, None])
    visited, known = [start], _mask(first.fields)
    while len(visited) < code.code.data:
        if tick is not None:
            tick()
        team = _next_team(visited, known, lists)
        here = lists[team]
        parents, chosen, scores = join_rows(paths.scores, here.blocks(paths.hashes, known), here.order(known), width)
        cells = here.cells[chosen]
        hashes = here.learn(paths.hashes[parents], known, cells)
        paths = Paths(scores, hashes, np.concatenate([paths.cells[parents], cells[:, None]], axis=1))
        visited.append(team)
        known |= _mask(here.fields)
    symbols = paths.cells & ((1 << code.code.chunk_bits) - 1)
    messages = code.reed_solomon.interpolate(visited, symbols)
    return messages[code.fits(messages)]


def propose(
    code: BulkExpanderCode,
    residual: Sequence[npt.NDArray[np.float32]],
    weights: Floats,
    width: int,
    tick: Callable[[], None] | None,
    executor: Executor | None,
) -> Iterator[Ints]:
    """Search from every team; yield the messages of each start."""
    lists = [TeamScores(code, m, residual[m], float(weights[m])) for m in range(code.teams)]
    if executor is None:
        for start in range(code.teams):
            yield search(code, lists, start, width, tick)
        return
    jobs = [executor.submit(search, code, lists, start, width) for start in range(code.teams)]
    for job in jobs:
        if tick is not None:
            tick()
        yield job.result()
