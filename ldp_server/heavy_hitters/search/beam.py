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
from ldp_server.heavy_hitters.search.joins import Sorted, best_cells, falling, join, pairs, units
from ldp_server.heavy_hitters.search.scores import TeamScores

__all__ = ["Paths", "TeamCells", "propose", "search"]

MOST_CELLS = 100_000
"""How many of a team's cells are searched, the best ones. An item that can be listed has its cells far above them."""

_NEXT, _BEFORE = 1, 2
"""Where `TeamCells.fields` has a team's neighbours on the expander's first cycle."""
_LAST = 4
"""The last join keeps so many times more paths: the pointers to teams that were not visited rule out most of them."""

Ints = npt.NDArray[np.int64]
Symbols = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Paths:
    """Partial paths, best first."""

    scores: Ints
    hashes: tuple[Ints, ...]
    """The hashes that they know, each at its team's place (`TeamCells.named`)."""
    symbols: tuple[Symbols, ...]
    """Their symbols in each team visited so far."""


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
        self.symbols = (self.cells & ((1 << spec.chunk_bits) - 1)).astype(np.int32)
        self.per_word = 63 // bits
        self.named = tuple(np.zeros(len(self.cells), np.int64) for _ in range(-(-code.teams // self.per_word)))
        """The hashes in each cell, each at its team's place."""
        for other, hashes in zip(self.fields, (own, *pointers), strict=True):
            word, place = divmod(other, self.per_word)
            self.named[word][:] |= hashes << place * bits
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

    def order(self, known: int) -> Sorted:
        """The cells by the hashes of `known` teams."""
        slots = self.slots(known)
        if slots not in self._orders:
            self._orders[slots] = Sorted(self.blocks(self.named, known), self.scores)
        return self._orders[slots]

    def hash_of(self, hashes: tuple[Ints, ...], team: int) -> Ints:
        """One team's hashes, of those that paths or cells have."""
        word, place = divmod(team, self.per_word)
        return hashes[word] >> place * self._bits & ((1 << self._bits) - 1)

    def blocks(self, hashes: tuple[Ints, ...], known: int) -> Ints:
        """The block of cells that each path may be continued by; or that each cell is in."""
        block = np.zeros(len(hashes[0]), np.int64)
        for slot in self.slots(known):
            block = block << self._bits | self.hash_of(hashes, self.fields[slot])
        return block

    def learn(self, hashes: tuple[Ints, ...], parents: Ints, chosen: Ints) -> tuple[Ints, ...]:
        """What paths know, with what newly joined cells name. Where both know a hash they agree: it was joined on."""
        return tuple(word[parents] | named[chosen] for word, named in zip(hashes, self.named, strict=True))


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
    paths = Paths(first.scores[best], tuple(word[best] for word in first.named), (first.symbols[best],))
    visited, known = [start], _mask(first.fields)
    while len(visited) < code.code.data:
        if tick is not None:
            tick()
        team = _next_team(visited, known, lists, slot)
        here = lists[team]
        visited.append(team)
        continued = here.blocks(paths.hashes, known), here.order(known)
        known |= _mask(here.fields)
        if len(visited) < code.code.data:
            paths = _continued(paths, here, join(paths.scores, *continued, width))
            continue
        found = pairs(paths.scores, *continued, _LAST * width)
        if code.code.symbol_pointers:
            named = [m for m in range(code.teams) if known >> m & 1 and m not in visited]
            found = _agreeing(code, visited, paths, here, found, named)
        order = falling(found[2])
        paths = _continued(paths, here, (found[0][order], found[1][order], found[2][order]))
    messages = code.reed_solomon.interpolate(visited, np.stack(paths.symbols, axis=1).astype(np.int64))
    return messages[code.fits(messages)]


def _continued(paths: Paths, here: TeamCells, joined: tuple[Ints, Ints, Ints]) -> Paths:
    """Return the paths with the cells that a join continued them by."""
    parents, chosen, sums = joined
    symbols = (*(column[parents] for column in paths.symbols), here.symbols[chosen])
    return Paths(sums, here.learn(paths.hashes, parents, chosen), symbols)


def _agreeing(
    code: BulkExpanderCode,
    visited: list[int],
    paths: Paths,
    here: TeamCells,
    joined: tuple[Ints, Ints, Ints],
    named: list[int],
) -> tuple[Ints, Ints, Ints]:
    """Return the pairs whose other teams' symbols have the hashes that the pairs name.

    A symbol of another team is a sum of what the path's symbols and the cell's add to it.
    """
    parents, chosen, sums = joined
    before = np.stack(paths.symbols, axis=1).astype(np.int64)
    for team in named:
        weights = code.reed_solomon.weights(visited, (team,))
        field = code.reed_solomon.field
        path_part = field.combine(before, weights[:-1])[:, 0]
        symbols = path_part[parents] ^ field.times(here.symbols[chosen], weights[-1, 0])
        told = here.hash_of(paths.hashes, team)[parents] | here.hash_of(here.named, team)[chosen]
        good = np.flatnonzero(code.symbol_hashes(symbols, team) == told)
        parents, chosen, sums = parents[good], chosen[good], sums[good]
    return parents, chosen, sums


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
