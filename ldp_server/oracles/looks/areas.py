r"""The scores of areas of a map: what a report counts for, whatever other reports say.

The grids are made to agree by least squares as in sampled_grid/agreeing.py, with the variances of a crowd that is
spread evenly and with grids drawn as often as their probabilities say. So the coefficients k of z' = z - D C^T (...)
are the same for any reports: a sum a^T z' is a constant plus k^T z. A report about grid j, drawn with probability pi_j,
adds

    x = constant/n + 1/pi_j sum over its elements c of k_c (1[c is supported] - s)/(p - s).

The grids of every single user agree, so the mean of x is what the user counts in a^T z: 1 in the area, 0 elsewhere. The
second moment is added up over the grids for each atom of the map. Where an area cuts cells, its ends are those of sums
below and above it, as in sampled_grid/areas.py. A user may count once too often or too rarely there: `shift`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles.base import Floats
from ldp_server.oracles.looks.sums import Ends, ScoreSum
from ldp_server.oracles.looks.tables import hash_means
from ldp_server.oracles.records.sampled_grid import SampledGridOracle
from ldp_server.oracles.records.sampled_grid.agreeing import AgreedGrids, agreed
from ldp_server.oracles.records.sampled_grid.areas import looked_at
from ldp_server.oracles.records.sampled_grid.sums import GridReports

__all__ = ["AreaScores", "MapScores"]

_NOMINAL = 1e6
"""Users of the crowd whose variances set the coefficients. Their number does not matter."""

Stretch = tuple[int, int]


@dataclass(frozen=True)
class AreaScores:
    """The sums below and above the count of an area; the same ones where it consists of whole cells."""

    below: tuple[ScoreSum, ...]
    above: tuple[ScoreSum, ...]

    def ends(self, tail: float) -> Ends:
        """Return the ends for the users who reported from the area."""
        low = max(one.low(tail / len(self.below)) for one in self.below)
        return low, max(low, min(one.high(tail / len(self.above)) for one in self.above))

    def share_ends(self, tail: float) -> Ends:
        """Return the ends for the share of those who could report."""
        low = max(one.share_ends(tail / len(self.below))[0] for one in self.below)
        return low, max(low, min(one.share_ends(tail / len(self.above))[1] for one in self.above))

    def weighed(self, times: float) -> AreaScores:
        """Return the same with each report as 1/times of one, where copies are seen."""
        return AreaScores(
            tuple(one.weighed(times) for one in self.below), tuple(one.weighed(times) for one in self.above)
        )

    def with_more(self, other: AreaScores) -> AreaScores:
        """Return those of these reports and others of the same question."""
        return AreaScores(
            tuple(one.with_more(two) for one, two in zip(self.below, other.below, strict=True)),
            tuple(one.with_more(two) for one, two in zip(self.above, other.above, strict=True)),
        )


@dataclass(frozen=True)
class MapScores:
    """The scores of a map's reports."""

    oracle: SampledGridOracle

    @cached_property
    def _chances(self) -> dict[int, float]:
        grid = self.oracle.grid
        return {j: float(grid.chance(j)) for j in range(3) if grid.chance(j)}

    @cached_property
    def _fixed(self) -> AgreedGrids:
        """The agreement of an even crowd: of it only the coefficients are used."""
        grid, found, reports = self.oracle.grid, {}, {}
        for j, chance in self._chances.items():
            size = grid.responses[j].size
            found[j] = np.append(0.0, np.full(size - 1, _NOMINAL / (size - 1)))
            reports[j] = GridReports(grid.responses[j], np.zeros(1), _NOMINAL, chance * _NOMINAL)
        return agreed(grid, found, reports)

    def area(self, x: Stretch, y: Stretch) -> AreaScores:
        """Return the sums of an area; its ends are distances from the lowest integers, both included."""
        lowest, highest, exact = looked_at(self._fixed, x, y)
        above = tuple(self._sum(*one) for one in highest)
        return AreaScores(above if exact else tuple(self._sum(*one) for one in lowest), above)

    def _sum(self, cells: Mapping[int, Floats], nowhere: float) -> ScoreSum:
        fixed, n = self._fixed, self.oracle.reports
        own = {j: cells.get(j, np.zeros(len(fixed.elements[j]) - 1)) for j in fixed.parts}
        whole = np.concatenate([np.append(nowhere if j == 2 else 0.0, one) for j, one in own.items()])
        moved = fixed.inverse @ whole
        k = whole - moved @ fixed.held
        base = float(moved @ fixed.wanted) / _NOMINAL - nowhere
        parts, start = {}, 0
        for j, elements in fixed.elements.items():
            parts[j] = self._part(j, k[start : start + len(elements)], base)
            start += len(elements)
        total = base * n + sum(one.total for one in parts.values())
        squares = fixed.on_atoms({j: one.squares[1:] for j, one in parts.items()})
        means = fixed.on_atoms(own) - nowhere
        touched = self._touched(cells)
        none = sum(float(one.squares[0]) for one in parts.values())
        spread = squares - means**2
        inside = float(spread[touched].max(initial=0.0))
        outside = max(none, float(spread[~touched].max(initial=0.0)))
        return ScoreSum(
            total,
            n,
            max(one.most for one in parts.values()),
            min(one.least for one in parts.values()),
            inside,
            outside,
            1.0 if len(cells) > 1 else 0.0,
        )

    def _touched(self, cells: Mapping[int, Floats]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """The atoms that count: those in all of the grids that are added up."""
        return self._fixed.on_atoms(cells) >= len(cells)

    def _part(self, j: int, weights: Floats, base: float) -> _Part:
        """What the reports about one grid add, beside `base`, which stands in each score."""
        chance, response = self._chances[j], self.oracle.grid.responses[j]
        counts = self.oracle.counts.values[self.oracle.grid.starts[j] : self.oracle.grid.starts[j + 1]]
        p, s = GridReports(response, np.zeros(1), 1.0, 1.0).law
        scores = base + (_supported(response, weights) - float(weights.sum()) * s) / (p - s) / chance
        if isinstance(response, LinearHash):
            squares = hash_means(response, np.square(scores))
        else:
            squares = s * float(np.square(scores).sum()) + (p - s) * np.square(scores)
        total = float(counts @ (scores - base))
        return _Part(total, chance * np.asarray(squares), float(scores.max()), float(scores.min()))


@dataclass(frozen=True)
class _Part:
    """What the reports about one grid add to a sum."""

    total: float
    squares: Floats
    """The mean square of a score times the probability of the grid, for a user of each element."""
    most: float
    least: float


def _supported(response: RandomizedResponse | LinearHash, weights: Floats) -> Floats:
    """The sum of the weights of the elements that each report supports."""
    if not isinstance(response, LinearHash):
        return weights
    padded = np.append(weights, np.zeros(response.q**response.t - len(weights)))
    return np.asarray(weights_of_reports(padded, response.q, response.t), np.float64)
