"""What the oracles of all sketches of teams share (Hashtogram, expander sketch, trees): counts and estimates by team.

A report is m B + (the inner linear hash's report), so the counts are a table with a line for each team. Each line is
decoded like a linear hash of the users of that team.

In team m, with n_m reports, fhat_m(cell_m(x)) estimates the team's holders of all items that share x's cell. Removing
the expected collisions, f(x) = sum over m of K/(K-1) (fhat_m(cell_m(x)) - n_m/K), with K the cells a team uses, is
unbiased over the choice of the hashes for any team sizes. Where only some teams tell an item (a tree), their sum is
scaled to all users.

Variance. Noise: (K/(K-1))^2 times the linear hash's, summed over the teams. Collisions: over the choice of the hash, a
team's estimate moves by the items that share the cell, with variance F2_m/(K-1), where F2_m is the sum of the squared
numbers of the team's users that hold each *other* item. F2_m is estimated without bias: the squared cell estimates of a
team add up to (their noise variance) + F2_m + (n_m^2 - F2_m)/K on average. The teams that tell the item are drawn too:
f (1 - 1/scale) for the users that they miss.

ldp_server/heavy_hitters finds the items; here they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.team_cells import bulk_cells
from ldp_server.arrays.transform import drawn, support, weights_of_reports
from ldp_server.oracles.base import Floats, FrequencyOracle, binomial_variance
from ldp_server.oracles.independence.chances import Chance
from ldp_server.oracles.laws.clipped_sums import TeamTables, clipped_intervals
from ldp_server.oracles.linear_hash import report_chances
from ldp_server.oracles.shared.counts import Counts

__all__ = ["TeamCounts", "TeamSketchOracle"]

KEPT_CELLS = 1 << 23
"""Estimates of at most this many cells are kept between queries (single precision); else a team is decoded anew."""
_CHUNK = 1 << 16


class TeamCounts:
    """A view of `counts` by teams, with the estimates of each team's cells."""

    def __init__(self, counts: Counts, inner: LinearHash, teams: int) -> None:
        self.counts = counts
        self.inner = inner
        self.teams = teams
        self.p, self.s = (float(x) for x in inner.support)
        self._kept: dict[int, npt.NDArray[np.float32]] = {}
        self._totals: npt.NDArray[np.int64] | None = None

    def forget(self) -> None:
        """Drop what was worked out: the counts are about to change."""
        self._kept.clear()
        self._totals = None

    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """How many users each team has."""
        if self._totals is None:
            self._totals = self.counts.sums(self.counts.cells // self.teams)
        return self._totals

    def line(self, team: int) -> npt.NDArray[np.unsignedinteger]:
        """Return how many reports of a team there were of each (point, answer)."""
        length = self.counts.cells // self.teams
        return self.counts.line(team * length, (team + 1) * length)

    def cell_estimates(self, team: int) -> npt.NDArray[np.float32]:
        """Return unbiased estimates of how many of the team's users hold each of the q^t cells.

        Single precision: its rounding, 6e-8 of the largest value, is far below the noise of any estimate.
        """
        cells = self._kept.get(team)
        if cells is None:
            supports = support(self.line(team), self.inner.q, self.inner.t)
            supports -= self.totals[team] * self.s
            supports /= self.p - self.s
            cells = supports.astype(np.float32, copy=False)
            if self.teams * len(cells) <= KEPT_CELLS:
                self._kept[team] = cells
        return cells

    def cell_variance(self, team: int, holders: npt.ArrayLike) -> Floats:
        """Return the variance of the estimate of a cell that so many of the team's users hold."""
        return binomial_variance(holders, float(self.totals[team]), self.p, self.s)


class TeamSketchOracle(FrequencyOracle):
    """Counts of (team, point, answer)."""

    knows_copies: ClassVar[bool] = True
    """F2 is what the cells' spread exceeds the noise of independent reports by, and intervals are made of the cells."""

    def __init__(self, randomizer: TeamSketch) -> None:
        self._sketch = randomizer
        self._second_moments: dict[int, float] = {}
        super().__init__(randomizer)

    @property
    def sketch(self) -> TeamSketch:
        """The mechanism of the counts by team (of the first report, where there are two)."""
        return self._sketch

    @property
    def by_team(self) -> TeamCounts:
        return self._by_team

    @property
    def cells(self) -> int:
        """How many of the q^t cells a team uses."""
        return self._sketch.cells

    @property
    def telling(self) -> range:
        """The teams whose cells depend on the whole item."""
        return range(self._sketch.teams)

    def set_counts(self, counts: Counts) -> None:
        super().set_counts(counts)
        self._by_team = TeamCounts(counts, self._sketch.inner, self._sketch.teams)

    def _forget(self) -> None:
        self._by_team.forget()
        self._second_moments.clear()

    def points(self) -> Iterable[Iterable[npt.NDArray[np.integer]]]:
        """Team and point are one draw of equally likely values."""
        teams, q = range(self._sketch.teams), self._sketch.inner.q
        yield (drawn(self._by_team.line(team), q) for team in teams)

    def teams(self) -> Sequence[Chance]:
        each = 1 / self._sketch.teams
        return (Chance(self._by_team.totals, self.counts.total, each, each),)

    def chances(self) -> Iterable[Chance]:
        """A team after the other: sorted reports stay sorted."""
        teams, total, length = self._sketch.teams, self.counts.total, self._sketch.inner.bound
        most, least = (chance / teams for chance in report_chances(self._sketch.inner))
        for team in range(teams):
            yield Chance(self._by_team.line(team), total, most, least, place=team * length, of=teams)

    def _scale(self) -> float:
        """All users over those of the telling teams."""
        told = int(self._by_team.totals[list(self.telling)].sum())
        return self.counts.total / told if told else 0.0

    def estimate(self, indexes: Indexes) -> Floats:
        cells = bulk_cells(self._sketch)
        blocks = cells.permuted(indexes)
        out = np.zeros(len(indexes))
        for team in self.telling:
            out += self.team_estimate(team, cells.block_cells(blocks, team))
        return np.asarray(out * self._scale())

    def team_estimate(self, team: int, cells: npt.NDArray[np.int64]) -> Floats:
        """Return g_m for these cells: the team's estimates without the expected collisions."""
        line, size = self._by_team.cell_estimates(team), self.cells
        self._note_second_moment(team, line)
        expected = self._by_team.totals[team] / size
        return np.asarray((line[cells] - expected) * (size / (size - 1)))

    def _note_second_moment(self, team: int, line: npt.NDArray[np.float32]) -> None:
        """Keep an unbiased estimate of F2_m, at least 0, while the team's cells are at hand."""
        if team in self._second_moments:
            return
        size, users = self.cells, float(self._by_team.totals[team])
        parts = (line[i : min(i + _CHUNK, size)] for i in range(0, size, _CHUNK))
        squares = float(sum(float(np.square(part, dtype=np.float64).sum()) for part in parts))
        noise = float(self._by_team.cell_variance(team, users))
        noise += (size - 1) * float(self._by_team.cell_variance(team, 0.0))
        self._second_moments[team] = max(0.0, (squares - noise - users**2 / size) / (1 - 1 / size))

    def second_moment(self) -> float:
        """Return an estimate of the sum of F2_m over the telling teams, the item itself included."""
        for team in self.telling:
            if team not in self._second_moments:
                self._note_second_moment(team, self._by_team.cell_estimates(team))
        return sum(self._second_moments[team] for team in self.telling)

    def variance(self, frequencies: npt.ArrayLike) -> Floats:
        f, size, scale = np.asarray(frequencies, float), self.cells, self._scale()
        if not scale:
            return np.zeros(f.shape)
        held, users = np.clip(f, 0, self.counts.total) / scale, self.counts.total / scale
        noise = binomial_variance(held, users, self._by_team.p, self._by_team.s) * (size / (size - 1)) ** 2
        others = np.maximum(0.0, self.second_moment() - held**2 / len(self.telling))
        return np.asarray((noise + held * (1 - 1 / scale) + others / (size - 1)) * scale**2)

    def sum_variance(self, indexes: Indexes, frequencies: npt.ArrayLike) -> float:
        """Return the variance of a sum: each team's noise as in linear_hash.py, with items that share a cell.

        A user whose cell holds w of the items has E[g] = w, so the noise is E[sum of g^2] - sum over cells of w^2 f.
        """
        scale, size, count = self._scale(), self.cells, len(indexes)
        if not scale or not count:
            return 0.0
        inner, p, s = self._sketch.inner, self._by_team.p, self._by_team.s
        cells, noise = bulk_cells(self._sketch), 0.0
        blocks = cells.permuted(indexes)
        for team in self.telling:
            inside = np.bincount(cells.block_cells(blocks, team), minlength=inner.q**inner.t)
            g = (weights_of_reports(inside, inner.q, inner.t).astype(np.float64) - count * s) / (p - s)
            held = float(np.square(inside).astype(np.float64) @ self._by_team.cell_estimates(team))
            noise += max(0.0, float(self._by_team.line(team) @ np.square(g)) - max(0.0, held))
        held = float(np.clip(np.sum(frequencies), 0, self.counts.total)) / scale
        rest = held * (1 - 1 / scale) + count * self.second_moment() / (size - 1)
        return (noise * (size / (size - 1)) ** 2 + rest) * scale**2

    def intervals(self, indexes: Indexes, estimates: Floats, tail: float) -> tuple[Floats, Floats]:
        """Return intervals that survive collisions with popular items (laws/clipped_sums.py) and hold the estimates."""
        totals, n = self._by_team.totals, float(self.counts.total)
        used = [team for team in self.telling if totals[team]]
        if not used or not len(indexes):
            return np.zeros(len(indexes)), np.full(len(indexes), n)
        cells, p, s = bulk_cells(self._sketch), self._by_team.p, self._by_team.s
        blocks = cells.permuted(indexes)
        tables, supports = [], np.empty((len(used), len(indexes)))
        for line, team in enumerate(used):
            found = self._by_team.cell_estimates(team)[: self.cells].astype(np.float64)
            tables.append(found * (p - s) + totals[team] * s)
            supports[line] = tables[-1][cells.block_cells(blocks, team)]
        low, high = clipped_intervals(TeamTables(tables, totals[used] / n, n, p, s), supports, tail)
        inside = np.clip(estimates, 0, n)
        return np.minimum(low, inside), np.maximum(high, inside)

    @property
    def can_list(self) -> bool:
        """False: nobody lists the domain of a sketch."""
        return False
