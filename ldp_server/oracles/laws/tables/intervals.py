"""Intervals for sums of estimates of a table: from the exact law where few reports make the noise, else saddlepoints.

A sum of estimates adds up g[y] over the reports. Its mean is the number of users in the set, whoever holds what. Its
law depends also on how the users inside and outside are spread over the elements.

How they are spread is not read off the estimates. Where one field is known well and another one hardly, the estimates
of cells are noise, and those above 0 say nothing about the field that is known well. It is what some rounds of
expectation maximisation find, from users spread evenly: what the reports tell well is found in a few rounds, and what
they hardly tell stays even. It makes little difference to the law, just because they hardly tell it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.oracles.laws.tables.exact_sums import LEAST_TAIL, ExactSums, few_events
from ldp_server.oracles.laws.tables.table_sums import TableSums

__all__ = ["TableIntervals"]

Floats = npt.NDArray[np.float64]

_ROUNDS = 40
_HEDGE = 3.0
"""Times 1/sqrt(n): the part of the users who are taken to hold an extreme element."""


@dataclass(frozen=True)
class TableIntervals:
    """The intervals of one table."""

    table: Floats
    """A: a line for each element, a column for each report."""
    inverse: Floats
    """M: the estimate of element i adds up line i over the reports."""
    coarse: bool = False
    """What a sum stands for (table_sums.py)."""

    def intervals(
        self, sets: Floats, counts: npt.NDArray[np.integer], sums: Floats, tail: float
    ) -> tuple[Floats, Floats]:
        """Return an interval for each line of `sets`, 1 for the elements that are in the set; `sums` are estimated.

        `counts` are the same for all sets, or have a line for each.
        """
        reports = int(counts.sum()) if counts.ndim == 1 else int(counts[:1].sum())
        if not reports:
            return np.zeros(len(sums)), np.zeros(len(sums))
        seen = np.broadcast_to(self._likely(counts) + 1e-9, sets.shape)
        came = np.broadcast_to(counts, (len(sets), self.table.shape[1]))
        values = sets @ self.inverse
        low, high = np.zeros(len(sums)), np.zeros(len(sums))
        few = few_events(self.table, values, reports) & (tail >= LEAST_TAIL)
        for place in np.flatnonzero(few):
            parts = (sets[place], 1 - sets[place])
            crowds = (self._crowds(values[place], part * seen[place], part > 0, reports) for part in parts)
            exact = ExactSums(self.table, values[place], came[place].astype(np.int64), *crowds)
            low[place], high[place] = exact.interval(tail)
        if not few.all():
            many = sets[~few]
            inside = self._spread(values[~few], many * seen[~few], many > 0, reports)
            outside = self._spread(values[~few], (1 - many) * seen[~few], many == 0, reports)
            law = TableSums(self.table, values[~few], inside, outside, reports, self.coarse)
            low[~few], high[~few] = law.intervals(sums[~few], normal_quantile(tail))
        return np.clip(low, 0, reports), np.clip(np.maximum(high, low), 0, reports)

    def _likely(self, counts: npt.NDArray[np.integer]) -> Floats:
        """Which shares of the users hold each element, as far as the reports tell."""
        shares = counts / counts.sum(axis=-1, keepdims=True)
        found = np.full((*counts.shape[:-1], len(self.table)), 1 / len(self.table))
        for _ in range(_ROUNDS):
            found = found * (shares / np.maximum(found @ self.table, 1e-300) @ self.table.T)
        return np.asarray(found)

    def _crowds(self, values: Floats, seen: Floats, allowed: npt.NDArray[np.bool_], reports: int) -> Floats:
        """Return how users may be spread over the allowed elements: as it seems, or a part at an extreme element."""
        noise = self.table @ values**2 - (self.table @ values) ** 2
        off = values - (self.table @ values)[:, None]
        skewed = (self.table * off**3).sum(axis=1)
        shown = seen / max(float(seen.sum()), 1e-300)
        part = min(1.0, _HEDGE / math.sqrt(reports))
        lines = [shown]
        for merit in (noise, -noise, skewed, -skewed):
            extreme = np.zeros(len(seen))
            extreme[np.where(allowed, merit, -np.inf).argmax()] = 1
            lines.append((1 - part) * shown + part * extreme)
        return np.array(lines)

    def _spread(self, values: Floats, seen: Floats, allowed: npt.NDArray[np.bool_], reports: int) -> Floats:
        """How users may be spread over the allowed elements: as it seems, and a part at the element of most noise.

        What seems to be has an error of the order 1/sqrt(n) itself, and an estimate that is too large makes the others
        too small. The part makes up for that: without it, 95% intervals of 60 users held in 91% of crowds.
        """
        noise = np.where(allowed, values**2 @ self.table.T, -np.inf)
        worst = np.zeros_like(seen)
        worst[np.arange(len(seen)), noise.argmax(axis=1)] = 1
        part = min(1.0, _HEDGE / math.sqrt(reports))
        return np.asarray((1 - part) * seen / np.maximum(seen.sum(axis=1, keepdims=True), 1e-300) + part * worst)
