"""The oracle of Hashtogram: the sum (or the median) over the teams of what each team's cell says.

Sum:    f(x) = sum over m of g_m(x), as for every sketch of teams (team_sketch.py). The default, with intervals. Where
        the domain can be listed, a team in which x shares its cell with a popular item is left out, and the other
        teams' sum is scaled to all users (laws/crowded_cells.py). What other items add to a cell is then taken from
        the cells without popular items: their average b_m instead of n_m/T.
Median: the median over m of (n/n_m) g_m(x), the paper's estimator. An item that shares a cell with a very popular item
        in one team is not misled by it. The variance is 1.3 to 1.6 times as large, pi/2 times for many teams, as for
        the median of R normal values: pi R / (2 R + pi - 2) times. The paper's form of the expander sketch confirms
        its items in this way (Theorem 3.7).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.medians import medians
from ldp_server.arrays.team_cells import bulk_cells
from ldp_server.arrays.transform import weights_of_reports
from ldp_server.oracles.base import LISTABLE, Floats, binomial_variance
from ldp_server.oracles.laws.clipped_sums import TeamTables, clipped_intervals
from ldp_server.oracles.laws.crowded_cells import CrowdedCells, popular_bar
from ldp_server.oracles.laws.normal import NormalErrors
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.oracles.laws.table_errors import TableErrors
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["HashtogramOracle"]

Cells = npt.NDArray[np.int64]

_CHUNK = 1 << 16
_ROOMY = 25
"""Cells for each team. With fewer, many items near the threshold share cells, so their errors are not independent."""
_LEAST_TEAMS = 4
"""With fewer teams, a median does not tell a popular item from one that shares a cell with it."""


class HashtogramOracle(TeamSketchOracle):
    """Counts of (team, point, answer)."""

    kind: ClassVar[type[Hashtogram]] = Hashtogram

    def __init__(self, randomizer: Hashtogram) -> None:
        self._crowded: CrowdedCells | None = None
        self._others: dict[int, float] = {}
        super().__init__(randomizer)

    def _forget(self) -> None:
        super()._forget()
        self._crowded = None
        self._others.clear()

    def _used(self) -> list[int]:
        return [team for team in self.telling if self.by_team.totals[team]]

    def _cells_of(self, indexes: Indexes) -> Cells:
        """The cells of items, a line for each team that has users."""
        cells = bulk_cells(self._sketch)
        return np.array([cells.block_cells(indexes, team) for team in self._used()], np.int64)

    def _medians(self, lines: Cells) -> Floats:
        """The paper's estimates of the items in these cells."""
        used = self._used()
        scales = self.reports / self.by_team.totals[used]
        found = (self.team_estimate(team, line) for team, line in zip(used, lines, strict=True))
        return medians([line * scale for line, scale in zip(found, scales, strict=True)])

    def estimate_median(self, indexes: Indexes) -> Floats:
        """Return estimates by the paper's median, for a worst-case guarantee; teams without users say nothing."""
        if not self._used():
            return np.zeros(len(indexes))
        return self._medians(self._cells_of(indexes))

    def crowded(self) -> CrowdedCells | None:
        """Return the cells of popular items, kept until the counts change; None where they are not known."""
        if self._crowded is None and self.can_list and len(self._used()) >= _LEAST_TEAMS:
            n, found, values = float(self.reports), [], []
            bar = popular_bar(
                self._sketch.teams, float(np.sqrt(binomial_variance(0.0, n, self.by_team.p, self.by_team.s)))
            )
            for start in range(0, self.randomizer.size, _CHUNK):
                part = np.arange(start, min(start + _CHUNK, self.randomizer.size), dtype=np.uint64)
                medians = self._medians(self._cells_of(part))
                found.append(part[medians >= bar])
                values.append(medians[medians >= bar])
            items, medians = np.concatenate(found), np.concatenate(values)
            self._crowded = CrowdedCells.of(items, medians, self._cells_of(items), self.cells)
        return self._crowded

    def _expected(self, place: int, team: int, crowded: CrowdedCells) -> float:
        """b_m: the average of the team's cells without popular items."""
        if team not in self._others:
            self._others[team] = float(self.by_team.cell_estimates(team)[: self.cells][crowded.empty(place)].mean())
        return self._others[team]

    def estimate(self, indexes: Indexes) -> Floats:
        crowded = self.crowded()
        if crowded is None or not len(crowded.popular):
            return super().estimate(indexes)
        lines = self._cells_of(indexes)
        tells, factor = crowded.tells(indexes, lines), self.cells / (self.cells - 1)
        total, users = np.zeros(len(indexes)), np.zeros(len(indexes))
        for place, team in enumerate(self._used()):
            values = self.by_team.cell_estimates(team)[lines[place]] - self._expected(place, team, crowded)
            total += np.where(tells[place], values * factor, 0.0)
            users += tells[place] * float(self.by_team.totals[team])
        return np.asarray(total * (self.reports / users))

    def second_moment(self) -> float:
        """Return an estimate of the sum of F2_m over the teams, popular items not counted where they are known."""
        crowded = self.crowded()
        if crowded is None or not len(crowded.popular):
            return super().second_moment()
        total = 0.0
        for place, team in enumerate(self._used()):
            empty = crowded.empty(place)
            line = self.by_team.cell_estimates(team)[: self.cells][empty].astype(np.float64)
            noise = float(self.by_team.cell_variance(team, max(0.0, float(line.mean()))))
            total += max(0.0, float(line.var(ddof=1)) - noise) * self.cells
        return total

    @property
    def error_law(self) -> TableErrors | NormalErrors | None:
        if not self.can_list or self._sketch.teams * _ROOMY > self.cells:
            return None
        crowded, used, tables = self.crowded(), self._used(), []
        if crowded is None or not used:
            return NormalErrors(self.reports, self.variance)
        for place, team in enumerate(used):
            line = self.by_team.cell_estimates(team)[: self.cells][crowded.empty(place)].astype(np.float64)
            tables.append((line - line.mean()) * (self.cells / (self.cells - 1)))
        return TableErrors(self.reports, tables, self.variance)

    def _scales(self, indexes: Indexes, lines: Cells, crowded: CrowdedCells) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Which teams tell the items, and all users over those teams' users."""
        tells = crowded.tells(indexes, lines)
        return tells, self.reports / (self.by_team.totals[self._used()].astype(np.float64) @ tells)

    def standard_errors(self, indexes: Indexes, estimates: Floats) -> Floats:
        errors, crowded = super().standard_errors(indexes, estimates), self.crowded()
        if crowded is None or not len(crowded.popular):
            return errors
        _, scale = self._scales(indexes, self._cells_of(indexes), crowded)
        held = np.clip(estimates, 0, self.reports)
        return np.asarray(np.sqrt(np.square(errors) * scale + held * (scale - 1)))

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of a sum as in team_sketch.py, with each item in the teams that tell it."""
        crowded = self.crowded()
        if crowded is None or not len(crowded.popular) or not len(indexes):
            return super().sum_variance(indexes, frequencies)
        inner, p, s = self._sketch.inner, self.by_team.p, self.by_team.s
        lines, noise = self._cells_of(indexes), 0.0
        tells, scale = self._scales(indexes, lines, crowded)
        for place, team in enumerate(self._used()):
            inside = np.bincount(lines[place], tells[place] * scale, minlength=inner.q**inner.t)
            g = (weights_of_reports(inside, inner.q, inner.t).astype(np.float64) - inside.sum() * s) / (p - s)
            signal = float(np.square(inside) @ self.by_team.cell_estimates(team))
            noise += max(0.0, float(self.by_team.line(team) @ np.square(g)) - max(0.0, signal))
        held = np.clip(np.asarray(frequencies, np.float64), 0, self.reports)
        rest = float(held @ (scale - 1)) + float(scale.sum()) * self.second_moment() / (self.cells - 1)
        return noise * (self.cells / (self.cells - 1)) ** 2 + rest

    def sum_interval(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[float, float]:
        """Return the interval for the holders of all these items; each cell that they have counts once.

        Two of the items may share a cell. That counts its users twice in the sum of the estimates, and hashes of
        numbers in a row share cells far less evenly than random ones. Each cell's users are compared with the average
        of the cells that none of the items and no popular item have. An item that a team does not tell is taken from
        the others.
        """
        crowded, lines, total, variance = self.crowded(), self._cells_of(indexes), 0.0, 0.0
        if not len(indexes) or not len(lines):
            return super().sum_interval(indexes, estimates, tail)
        known = crowded is not None and len(crowded.popular) > 0
        tells = crowded.tells(indexes, lines) if crowded is not None and known else np.ones(lines.shape, bool)
        each = self.variance(estimates)
        for place, team in enumerate(self._used()):
            inside = np.zeros(self.cells, bool)
            inside[lines[place][tells[place]]] = True
            empty = ~inside & crowded.empty(place) if crowded is not None and known else ~inside
            part, missing = float(self.by_team.totals[team]) / self.reports, ~inside[lines[place]]
            found, spread = self._together(team, inside, empty)
            total += found + part * float(estimates[missing].sum())
            variance += spread + part**2 * float(each[missing].sum())
        reach = normal_quantile(tail) * float(np.sqrt(variance))
        return max(0.0, total - reach), min(float(self.reports), total + reach)

    def _together(self, team: int, inside: npt.NDArray[np.bool_], empty: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """How many users of a team have one of these cells rather than any, and the variance of that."""
        inner, p, s = self._sketch.inner, self.by_team.p, self.by_team.s
        line, cells = self.by_team.cell_estimates(team).astype(np.float64), int(inside.sum())
        if not empty.any():
            return float(line[: self.cells][inside].sum()), float(cells * self.by_team.cell_variance(team, 0.0))
        others, share = line[: self.cells][empty], cells / int(empty.sum())
        weights = np.zeros(inner.q**inner.t)
        weights[: self.cells] = inside - share * empty
        g = (weights_of_reports(weights, inner.q, inner.t).astype(np.float64) - weights.sum() * s) / (p - s)
        noise = max(0.0, float(self.by_team.line(team) @ np.square(g)) - max(0.0, float(np.square(weights) @ line)))
        uneven = max(0.0, float(others.var()) - float(self.by_team.cell_variance(team, max(0.0, float(others.mean())))))
        return float(weights @ line), noise + uneven * cells * (1 + share)

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return intervals of items from the teams that tell them, by how many those are."""
        crowded = self.crowded()
        if crowded is None or not len(crowded.popular) or not len(indexes):
            return super().intervals(indexes, estimates, tail)
        lines = self._cells_of(indexes)
        tells = crowded.tells(indexes, lines)
        low, high = np.zeros(len(indexes)), np.zeros(len(indexes))
        for count in np.unique(tells.sum(axis=0)).tolist():
            some = np.flatnonzero(tells.sum(axis=0) == count)
            low[some], high[some] = self._from_teams(lines[:, some], tells[:, some], crowded, tail)
        return low, high

    def _from_teams(
        self, lines: Cells, tells: npt.NDArray[np.bool_], crowded: CrowdedCells, tail: float
    ) -> tuple[Floats, Floats]:
        """Intervals of items that are estimated from equally many teams; any choice of so many teams gives the law."""
        n, p, s = float(self.reports), self.by_team.p, self.by_team.s
        used, tables, supports = self._used(), [], []
        for place, team in enumerate(used):
            line = self.by_team.cell_estimates(team)[: self.cells].astype(np.float64) * (p - s)
            line += float(self.by_team.totals[team]) * s
            tables.append(line[crowded.empty(place)])
            supports.append(line[lines[place]])
        totals = self.by_team.totals[used] / n
        return clipped_intervals(TeamTables(tables, totals, n, p, s), np.stack(supports), tail, tells)

    def median_variance(self, frequencies: npt.ArrayLike) -> Floats:
        """Return the variance of the median, without the collisions that it leaves out."""
        teams = self._sketch.teams
        return self.variance(frequencies) * (math.pi * teams / (2 * teams + math.pi - 2))

    @property
    def can_list(self) -> bool:
        """Whether the domain is small enough: Hashtogram has no other way to find items."""
        return self.randomizer.size <= LISTABLE
