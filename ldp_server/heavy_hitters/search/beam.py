"""The search of the soft decoder: from every team as a start, the T best partial paths, one team at a time.

A path is one cell in each team visited so far; its score is the sum of the cells' weighted scores, which is the
item's estimate in units of its standard error once all teams are visited. A cell has its own hash and its neighbours'
hashes, so a path is continued only by cells that agree with every hash that it knows (joins.py). After as many teams as
carry data, the pieces give the whole message; the caller scores it from its true cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.arrays.team_cells import BulkExpanderCode
from ldp_server.heavy_hitters.search.joins import Sorted, best_cells, falling, join, units
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["Paths", "TeamCells", "propose", "search"]

MOST_CELLS = 100_000
"""How many of a team's cells are searched, the best ones. An item that can be listed has its cells far above them."""

_NEXT, _BEFORE = 1, 2
"""Where `TeamCells.fields` has a team's neighbours on the expander's first cycle."""
_LAST = 4
"""The last join keeps so many times more paths: the pointers to teams that were not visited rule out most of them."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Paths:
    """Partial paths, best first: their scores, the hashes they know (a column for each team), their cells so far."""

    scores: Ints
    hashes: npt.NDArray[np.int32]
    cells: Ints


class TeamCells:
    """One team's best cells, their scores and the hashes in them, and the orders for joins.

    The cells are chosen once for all rounds. What depends on their scores is made anew by `renew` when these changed.
    """

    def __init__(self, code: BulkExpanderCode, team: int, residual: TeamScores, weight: float) -> None:
        spec = code.code
        self.cells = _possible(code, team, residual.scores)
        self.fields = (team, *spec.expander.neighbours[team])  # the team whose hash each slot holds
        mask, bits = (1 << spec.hash_bits) - 1, spec.hash_bits
        if spec.symbol_pointers:
            own = code.symbol_hashes(self.cells & ((1 << spec.chunk_bits) - 1), team)
        else:
            own = self.cells >> spec.chunk_bits & mask
        pointers = [self.cells >> (spec.pointer_shift + j * bits) & mask for j in range(spec.degree)]
        self.named = np.stack([own, *pointers], axis=1).astype(np.int32)
        self._bits, self._weight = bits, weight
        self.renew(residual)

    def renew(self, residual: TeamScores) -> None:
        """Read the scores."""
        self._changes = residual.changes
        self.scores = units(residual.scores[self.cells] * np.float64(self._weight))
        self._orders: dict[tuple[int, ...], Sorted] = {}

    def is_of(self, residual: TeamScores) -> bool:
        """Whether the scores are still what was read."""
        return self._changes == residual.changes

    def slots(self, known: int) -> tuple[int, ...]:
        """The slots whose hashes are among those of the `known` teams (a bit mask)."""
        return tuple(slot for slot, team in enumerate(self.fields) if known >> team & 1)

    def places(self, cells: Ints) -> Ints:
        """Where these cells are, of those that are among the best; best first."""
        some = np.flatnonzero(np.isin(self.cells, cells))
        return some[falling(self.scores[some])]

    def _block(self, columns: list[npt.NDArray[np.int32]], count: int) -> Ints:
        block = np.zeros(count, np.int64)
        for column in columns:
            block = block << self._bits | column
        return block

    def order(self, known: int) -> Sorted:
        """The cells by the hashes of `known` teams."""
        slots = self.slots(known)
        if slots not in self._orders:
            self._orders[slots] = Sorted(self._block([self.named[:, s] for s in slots], len(self.cells)), self.scores)
        return self._orders[slots]

    def learn(self, hashes: npt.NDArray[np.int32], known: int, chosen: Ints) -> npt.NDArray[np.int32]:
        """The paths' hashes with what newly joined cells name, in place."""
        for slot, team in enumerate(self.fields):
            if not known >> team & 1:
                hashes[:, team] = self.named[chosen, slot]
        return hashes

    def blocks(self, hashes: npt.NDArray[np.int32], known: int) -> Ints:
        """The block of cells that each path may be continued by."""
        return self._block([hashes[:, self.fields[slot]] for slot in self.slots(known)], len(hashes))


def _possible(code: BulkExpanderCode, team: int, residual: npt.NDArray[np.float32]) -> Ints:
    """The best cells, of those that an item can have: a data symbol's padding is zero."""
    chunk = code.code.chunk_bits
    width = code.widths[team] if team < code.code.data else chunk
    if width == chunk:
        return best_cells(residual, MOST_CELLS)
    view = residual.reshape(-1, 1 << chunk)[:, : 1 << width].ravel()
    chosen = best_cells(view, MOST_CELLS)
    return (chosen >> width << chunk) | chosen & ((1 << width) - 1)


def _next_team(visited: list[int], known: int, lists: list[TeamCells], slot: int) -> int:
    """The team to visit next: one whose own hash is known if there is one, then the one with most known fields.

    Of equal ones the neighbour of the last team in this slot is taken. So on a cycle the searches from M starts visit M
    different runs of teams, and an item that is weak in one run is strong in another.
    """
    rest, near = [m for m in range(len(lists)) if m not in visited], lists[visited[-1]].fields[slot]
    return max(rest, key=lambda m: (known >> m & 1, len(lists[m].slots(known)), m == near, -m))


def _mask(teams: tuple[int, ...]) -> int:
    return sum(1 << team for team in teams)


def search(
    code: BulkExpanderCode,
    lists: list[TeamCells],
    start: int,
    width: int,
    tick: Callable[[], None] | None = None,
    origins: Ints | None = None,
    slot: int = _NEXT,
) -> Ints:
    """Return the messages (rows of symbols) of the complete paths that start in one team, at all cells or at some."""
    first = lists[start]
    best = falling(first.scores)[:width] if origins is None else first.places(origins[:, start])
    hashes = first.learn(np.zeros((len(best), code.teams), np.int32), 0, best)
    paths = Paths(first.scores[best], hashes, first.cells[best, None])
    visited, known = [start], _mask(first.fields)
    while len(visited) < code.code.data:
        if tick is not None:
            tick()
        team = _next_team(visited, known, lists, slot)
        here = lists[team]
        most = _LAST * width if len(visited) == code.code.data - 1 else width
        parents, chosen, scores = join(paths.scores, here.blocks(paths.hashes, known), here.order(known), most)
        hashes = here.learn(paths.hashes[parents], known, chosen)
        paths = Paths(scores, hashes, np.concatenate([paths.cells[parents], here.cells[chosen, None]], axis=1))
        visited.append(team)
        known |= _mask(here.fields)
    messages = _messages(code, visited, paths, [m for m in range(code.teams) if known >> m & 1 and m not in visited])
    return messages[code.fits(messages)]


def _messages(code: BulkExpanderCode, visited: list[int], paths: Paths, named: list[int]) -> Ints:
    """Return the messages of complete paths whose other teams' symbols have the hashes that the paths name."""
    symbols, hashes = paths.cells & ((1 << code.code.chunk_bits) - 1), paths.hashes
    if code.code.symbol_pointers:
        for team in named:
            other = code.reed_solomon.through(visited, symbols, (team,))[:, 0]
            good = np.flatnonzero(code.symbol_hashes(other, team) == hashes[:, team])
            symbols, hashes = symbols[good], hashes[good]
    return code.reed_solomon.interpolate(visited, symbols)


def propose(
    code: BulkExpanderCode,
    lists: list[TeamCells],
    width: int,
    tick: Callable[[], None] | None,
    executor: Executor | None,
    origins: Ints | None = None,
) -> Iterator[Ints]:
    """Search from every team; yield the messages of each start.

    `origins` are the cells of some items, a row each: then only paths from these are searched, which finds the elements
    that share a cell with one of the items, weaker ones than a search from all cells does. It goes both ways.
    """
    slots = (_NEXT,) if origins is None else (_NEXT, _BEFORE)
    ways = [(start, slot) for slot in slots for start in range(code.teams)]
    if executor is None:
        for start, slot in ways:
            yield search(code, lists, start, width, tick, origins, slot)
        return
    jobs = [executor.submit(search, code, lists, start, width, None, origins, slot) for start, slot in ways]
    for job in jobs:
        if tick is not None:
            tick()
        yield job.result()
