r"""Columns, rows and tiles that agree: least squares, then one map that has all of them.

Let z be the estimates of all elements of the three grids, D their variances (at first those of empty elements), and
C z = d what has to hold: each grid adds up to n with its `none`, the three have one `none`, and the tiles beside or
above each other add up to their columns or rows. The least-squares estimate that agrees is

    z' = z - D C^T (C D C^T)^+ (C z - d).

It is linear in z: a sum a^T z' is a constant plus k^T z with k = a - C^T (C D C^T)^+ C D a. So the variance of any sum
of cells is that of a sum over the reports (sums.py), with the covariances of the cells in it.

The map. Each column crosses each row in an *atom*. The agreed grids are made possible (not negative, with the same sum)
and to agree, in turn. The map gives every atom a number of users such that columns, rows and tiles have what they then
have: the one of largest entropy, by proportional fitting (Deming and Stephan 1940). Inside an atom users are taken to
be spread evenly. This is a guess: no report tells more. Intervals do not use the map (areas.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_server.oracles.base import Floats
from ldp_server.oracles.hierarchy import RangeCount
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.records.sampled_grid.sums import GridReports

__all__ = ["AgreedGrids", "agreed"]

_ROUNDS = 200
_TURNS = 3
_CLOSE = 1e-7


@dataclass(frozen=True)
class AgreedGrids:
    """The grids of a map after least squares."""

    grid: SampledGrid
    reports: float
    parts: Mapping[int, GridReports]
    """Those of the grids that are drawn: 0 columns, 1 rows, 2 tiles."""
    elements: Mapping[int, Floats]
    """How many users have each element of them, `none` first, after agreement."""
    held: Floats
    """C: a line for each sum that has to hold."""
    inverse: Floats
    """(C D C^T)^+ C D."""
    wanted: Floats
    """d."""

    @property
    def nowhere(self) -> float:
        """How many users are not on the map."""
        return float(self.elements[2][0])

    def count(self, cells: Mapping[int, Floats], nowhere: float = 0.0) -> RangeCount:
        """Return how many users are in these cells: 1 for a cell that counts, else 0.

        Of cells of several grids the counts are added up, less `nowhere` times all who are on the map. A user may then
        count more or less than once, and the spread of the users is left in the variance, which it makes no smaller.
        """
        own = {j: cells.get(j, np.zeros(len(self.elements[j]) - 1)) for j in self.parts}
        whole = np.concatenate([np.append(nowhere if j == 2 else 0.0, one) for j, one in own.items()])
        k = whole - (self.inverse @ whole) @ self.held
        sums, start = {}, 0
        for j, elements in self.elements.items():
            sums[j] = self.parts[j].sum(k[start : start + len(elements)])
            start += len(elements)
        count = float(whole @ np.concatenate(list(self.elements.values()))) - nowhere * self.reports
        held = min(max(count, 0.0), self.reports) if len(cells) == 1 else 0.0
        read_off = sum(one.read_off for one in sums.values()) - held * (1 - held / self.reports)
        variance = max(read_off, sum(one.lies for one in sums.values()), 0.0)
        none = sum(float(one.per_user[0]) for one in sums.values())
        users = np.maximum(0.0, self.on_atoms({j: one.per_user[1:] for j, one in sums.items()}) - 1)
        there = self.on_atoms(cells) > 0
        outside = max(0.0, none - 1, float(users[~there].max(initial=0.0)))
        return RangeCount(count, float(np.sqrt(variance)), float(users[there].max(initial=0.0)), outside)

    @property
    def sides(self) -> tuple[int, int]:
        """How many atoms are beside and above each other: those of tiles where lines are not drawn."""
        made = self.grid
        return (made.columns, made.rows) if 0 in self.parts else (made.across, made.down)

    def on_atoms(self, cells: Mapping[int, Floats]) -> Floats:
        """Return the sum of the values of the cells that each atom lies in: a line for each row."""
        wide, high = self.sides
        found = np.zeros((high, wide))
        if 0 in cells:
            found += cells[0][None, :]
        if 1 in cells:
            found += cells[1][:, None]
        if 2 in cells:
            tiles = cells[2].reshape(self.grid.down, self.grid.across)
            found += tiles.repeat(high // self.grid.down, axis=0).repeat(wide // self.grid.across, axis=1)
        return found

    def map(self) -> Floats:
        """Return the users of every atom: a line for each row."""
        wide, high = self.sides
        made, on_map = self.grid, min(max(0.0, self.reports - self.nowhere), self.reports)
        possible = self._possible(on_map)
        tiles = possible[2].reshape(made.down, made.across)
        if 0 not in self.parts:
            return np.asarray(tiles)
        columns, rows = possible[0], possible[1]
        return _fitted((high, wide), columns, rows, tiles)

    def _possible(self, on_map: float) -> dict[int, Floats]:
        """The grids made possible and to agree in turn: what one grid knows to be empty moves the others."""
        elements = dict(self.elements)
        for left in range(_TURNS, -1, -1):
            elements = {j: np.append(self.reports - on_map, norm_sub(one[1:], on_map)) for j, one in elements.items()}
            if left:
                z = np.concatenate(list(elements.values()))
                z = z - self.inverse.T @ (self.held @ z - self.wanted)
                cuts = np.cumsum([len(one) for one in elements.values()])[:-1]
                elements = dict(zip(elements, np.split(z, cuts), strict=True))
        return {j: one[1:] for j, one in elements.items()}


def _parts(values: Floats, high: int, wide: int) -> Floats:
    """The sums of so many equal parts of a map."""
    rows, columns = values.shape
    return np.asarray(values.reshape(high, rows // high, wide, columns // wide).sum(axis=(1, 3)))


def _fitted(sides: tuple[int, int], columns: Floats, rows: Floats, tiles: Floats) -> Floats:
    """The map of largest entropy with these columns, rows and tiles, by proportional fitting."""
    (high, wide), (down, across) = sides, tiles.shape
    found = np.full(sides, tiles.sum() / (high * wide))
    for _ in range(_ROUNDS):
        before = found
        found = found * _ratio(columns, found.sum(axis=0))[None, :]
        found = found * _ratio(rows, found.sum(axis=1))[:, None]
        now = _ratio(tiles, _parts(found, down, across))
        found = found * now.repeat(high // down, 0).repeat(wide // across, 1)
        if float(np.abs(found - before).sum()) <= _CLOSE * max(1.0, float(tiles.sum())):
            break
    return np.asarray(found)


def _ratio(wanted: Floats, there: Floats) -> Floats:
    return np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)


def agreed(grid: SampledGrid, found: Mapping[int, Floats], parts: Mapping[int, GridReports]) -> AgreedGrids:
    """Return the grids that agree; `found` are the estimates of those that are drawn."""
    n = parts[2].reports
    starts = dict(zip(found, np.cumsum([0, *(len(one) for one in found.values())]).tolist(), strict=False))
    z = np.concatenate(list(found.values()))
    spread = np.concatenate([np.full(len(one), parts[j].noise) for j, one in found.items()])
    lines, wanted = [], []

    def hold(weights: dict[int, Floats], value: float) -> None:
        line = np.zeros(len(z))
        for j, own in weights.items():
            line[starts[j] : starts[j] + len(own)] += own
        lines.append(line)
        wanted.append(value)

    for j, one in found.items():
        hold({j: np.ones(len(one))}, n)
    for j in (0, 1) if 0 in found else ():
        first = np.append(1.0, np.zeros(len(found[2]) - 1))
        hold({j: np.append(1.0, np.zeros(len(found[j]) - 1)), 2: -first}, 0.0)
        sides, cells = ((grid.across, grid.columns), (grid.down, grid.rows))[j], np.arange(grid.across * grid.down)
        for place in range(sides[0]):
            mine = np.arange(sides[1]) // (sides[1] // sides[0]) == place
            tiles = (cells % grid.across if j == 0 else cells // grid.across) == place
            hold({j: np.append(0.0, mine), 2: -np.append(0.0, tiles)}, 0.0)
    c, d = np.array(lines), np.array(wanted)
    cuts = np.cumsum([len(one) for one in found.values()])[:-1]
    for _ in range(2):  # once more, with the larger variances of the cells that many users are in
        inner = np.linalg.pinv((c * spread) @ c.T, rcond=1e-10)
        better = z - spread * (c.T @ (inner @ (c @ z - d)))
        result = AgreedGrids(
            grid, n, parts, dict(zip(found, np.split(better, cuts), strict=True)), c, inner @ (c * spread), d
        )
        spread = np.concatenate([parts[j].variances(one) for j, one in result.elements.items()])
    return result
